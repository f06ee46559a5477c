package analyzer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chimbuko/chimbuko/internal/provenance"
)

// spool holds the captures of a rank until the end of the run, in a file as
// soon as they are many.
type spool struct {
	path string
	file *os.File
	buf  []byte
}

// spoolBuffer is how much is held in memory.
const spoolBuffer = 256 << 10

func (s *spool) add(c *provenance.Capture) error {
	s.buf = c.AppendBinary(s.buf)
	if len(s.buf) < spoolBuffer {
		return nil
	}
	return s.flush()
}

func (s *spool) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.Create(s.path); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	if _, err = s.file.Write(s.buf); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.buf = s.buf[:0]
	return nil
}

// each calls visit for all captures in the order in which they were added. The
// capture is valid until visit returns.
func (s *spool) each(visit func(*provenance.Capture) error) error {
	var in io.Reader = bytes.NewReader(s.buf)
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		in = io.MultiReader(s.file, in)
	}
	r := bufio.NewReaderSize(in, 1<<16)
	var head [4]byte
	var body []byte
	var c provenance.Capture
	for {
		if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		n := int(binary.LittleEndian.Uint32(head[:]))
		if cap(body) < n {
			body = make([]byte, n)
		}
		if _, err := io.ReadFull(r, body[:n]); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if err := c.ReadCapture(body[:n]); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if err := visit(&c); err != nil {
			return err
		}
	}
}

// close removes what is on disk.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // it is removed anyway
		_ = os.Remove(s.path)
		s.file = nil
	}
}
