package sst

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// SavedSuffix is the end of the name of the file with the attributes of a stream, after that
// of the contact file.
const SavedSuffix = ".attributes"

// savedStep has the attributes of a step in a file of saved attributes. The first one identifies
// the stream instead: its writer may have ended and another one may use the same path.
type savedStep struct {
	Stream     string
	Step       int
	Attributes []bp.Attribute
}

// encode returns the length of an encoding and the encoding.
func (s *savedStep) encode() ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, savedLength))
	err := gob.NewEncoder(b).Encode(s)
	binary.LittleEndian.PutUint32(b.Bytes(), uint32(b.Len()-savedLength))
	return b.Bytes(), err
}

// savedLength is the size of the length before an encoding.
const savedLength = 4

// decodeSaved returns the steps in b up to one that is incomplete, and their length.
func decodeSaved(b []byte) (steps []savedStep, length int) {
	for len(b)-length >= savedLength {
		rest := b[length+savedLength:]
		n := int64(binary.LittleEndian.Uint32(b[length:]))
		var s savedStep
		if n > int64(len(rest)) || gob.NewDecoder(bytes.NewReader(rest[:n])).Decode(&s) != nil {
			break
		}
		steps, length = append(steps, s), length+savedLength+int(n)
	}
	return steps, length
}

// restore prepares to save the attributes of the stream of at, and to return those that an
// earlier reader of this stream saved. It drops an incomplete step at the end.
func (r *Reader) restore(at contact) error {
	content, err := (&savedStep{Stream: fmt.Sprintf("%#x:%s", at.writer, at.encode())}).encode()
	if err != nil {
		return err
	}
	file := r.path + SavedSuffix
	saved, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var steps []savedStep
	if rest, same := bytes.CutPrefix(saved, content); same {
		var length int
		steps, length = decodeSaved(rest)
		content = saved[:len(content)+length]
	}
	if err := atomicfile.Write(file, content, 0o644); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restored, r.saving = steps, true
	return nil
}

// save appends the attributes of a step to the file. They are on disk when it returns.
func (r *Reader) save(s *bp.Step) error {
	b, err := (&savedStep{Step: s.Index, Attributes: s.Attributes}).encode()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path+SavedSuffix, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// failToSave stops saving because of an error. Reading continues.
func (r *Reader) failToSave(err error) {
	r.saving = false
	if r.opt.Unsaved != nil {
		r.opt.Unsaved(err)
	}
}
