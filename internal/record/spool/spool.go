// Package spool stores the captures of ranks until the end of a run, in a file if they need much memory.
package spool

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// File is the file that the spools of all ranks share, because there may be
// thousands of ranks. It is created at the first write.
type File struct {
	dir string

	mu   sync.Mutex
	f    *os.File
	size int64
}

// NewFile returns a file in a directory.
func NewFile(dir string) *File { return &File{dir: dir} }

// New returns an empty spool.
func (s *File) New() *Spool { return &Spool{file: s} }

// write appends b and returns its position.
func (s *File) write(b []byte) (at int64, err error) {
	s.mu.Lock()
	if s.f == nil {
		if s.f, err = os.CreateTemp(s.dir, "captures-*"); err == nil { // other processes may use the directory
			_ = os.Remove(s.f.Name()) // so that a killed process leaves no file; some systems cannot
		}
	}
	f := s.f
	at = s.size
	s.size += int64(len(b))
	s.mu.Unlock()
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	return at, err
}

// Close removes the file with the content of all spools.
func (s *File) Close() {
	if s.f != nil {
		_ = s.f.Close() // it is not read again
		_ = os.Remove(s.f.Name())
		s.f = nil
	}
}

// Spool has the captures of a rank. Those that exceed bufferSize are in the file.
type Spool struct {
	// Unneeded captures, by number in the order of Add, are skipped by Each. It may be shorter
	// than Count.
	Unneeded []bool

	file  *File
	count int64  // of captures
	parts []part // in the file
	buf   []byte // those after them
}

// part is the place of captures in the file.
type part struct {
	at     int64
	length int
}

// bufferSize is the number of bytes that a spool keeps in memory.
const bufferSize = 4 << 10

// Count returns the number of captures.
func (s *Spool) Count() int64 { return s.count }

// Add adds a capture.
func (s *Spool) Add(c *provenance.Capture) error {
	s.count++
	s.buf = c.AppendBinary(s.buf)
	if len(s.buf) < bufferSize {
		return nil
	}
	at, err := s.file.write(s.buf)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.parts = append(s.parts, part{at, len(s.buf)})
	s.buf = s.buf[:0]
	return nil
}

// All returns all captures at once; the caller must ensure that they are few.
func (s *Spool) All() (all []*provenance.Capture, err error) {
	err = s.Each(func(c *provenance.Capture) error {
		own := new(provenance.Capture)
		*own, *c = *c, provenance.Capture{}
		all = append(all, own)
		return nil
	})
	return all, err
}

// Each calls visit for all needed captures in the order of Add. A capture is valid until
// visit returns.
func (s *Spool) Each(visit func(*provenance.Capture) error) error {
	c := captures.Get().(*provenance.Capture)
	defer captures.Put(c)
	var data []byte
	unneeded, total := s.Unneeded, int64(0)
	for _, p := range s.parts {
		if cap(data) < p.length {
			data = make([]byte, p.length)
		}
		if _, err := s.file.f.ReadAt(data[:p.length], p.at); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		n, err := eachOf(data[:p.length], &unneeded, c, visit)
		if err != nil {
			return err
		}
		total += n
	}
	n, err := eachOf(s.buf, &unneeded, c, visit)
	if total += n; err == nil && total != s.count {
		err = fmt.Errorf("spool: damaged: %d captures instead of %d", total, s.count)
	}
	return err
}

var captures = sync.Pool{New: func() any { return new(provenance.Capture) }}

// eachOf calls visit for the needed captures in b, each read into c. It removes all of them
// from unneeded, and returns the number of captures, needed or not.
func eachOf(b []byte, unneeded *[]bool, c *provenance.Capture, visit func(*provenance.Capture) error) (count int64, err error) {
	for ; len(b) > 0; count++ {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return count, fmt.Errorf("spool: %w", io.ErrUnexpectedEOF)
		}
		n := 4 + int(binary.LittleEndian.Uint32(b))
		data := b[4:n]
		b = b[n:]
		if skip := *unneeded; len(skip) > 0 {
			if *unneeded = skip[1:]; skip[0] {
				continue
			}
		}
		if err := c.ReadCapture(data); err != nil {
			return count, fmt.Errorf("spool: %w", err)
		}
		if err := visit(c); err != nil {
			return count, err
		}
	}
	return count, nil
}
