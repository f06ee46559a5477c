package paramserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// The file of a snapshot holds fileMark, a checksum (CRC-32C), and the encoded
// protocol.Snapshot that it covers.
const (
	fileMark = "chimbuko parameters 1\n"
	headSize = len(fileMark) + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Save atomically replaces a file by a snapshot, and marks its content as durable for analyzers. It
// must not be called concurrently.
func (s *State) Save(path string) (size int, err error) {
	return s.saveWith(func(content []byte) error { return atomicfile.Write(path, content, 0o600) })
}

func (s *State) saveWith(write func(content []byte) error) (size int, err error) {
	snap := s.snapshot()
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(make([]byte, headSize), snap.message)
	if err != nil {
		return 0, err
	}
	copy(b, fileMark)
	binary.LittleEndian.PutUint32(b[len(fileMark):], crc32.Checksum(b[headSize:], castagnoli))
	if err := write(b); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	s.markDurable(snap)
	return len(b), nil
}

// readSnapshot decodes the file of a snapshot.
func readSnapshot(b []byte) (*protocol.Snapshot, error) {
	if len(b) < headSize || string(b[:len(fileMark)]) != fileMark {
		return nil, fmt.Errorf("not a snapshot of a parameter server: want %q at the start", fileMark)
	}
	if crc32.Checksum(b[headSize:], castagnoli) != binary.LittleEndian.Uint32(b[len(fileMark):]) {
		return nil, fmt.Errorf("damaged: the checksum does not match the %d bytes after it", len(b)-headSize)
	}
	m := new(protocol.Snapshot)
	if err := proto.Unmarshal(b[headSize:], m); err != nil {
		return nil, fmt.Errorf("not a snapshot of a parameter server: %w", err)
	}
	return m, nil
}

// Restore restores a snapshot that Save wrote, if it exists. The state must be new.
func (s *State) Restore(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.load(b); err != nil {
		return fmt.Errorf("%s: %w (remove the run directory to start over)", path, err)
	}
	return nil
}

func (s *State) load(b []byte) error {
	m, err := readSnapshot(b)
	if err != nil {
		return err
	}
	return s.restore(m)
}
