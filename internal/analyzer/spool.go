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
// soon as they are many. There may be thousands, so the file is not held open.
type spool struct {
	path   string
	onDisk bool
	buf    []byte
}

// spoolBuffer is how much is held in memory.
const spoolBuffer = 16 << 10

func (s *spool) add(c *provenance.Capture) error {
	s.buf = c.AppendBinary(s.buf)
	if len(s.buf) < spoolBuffer {
		return nil
	}
	return s.flush()
}

func (s *spool) flush() error {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !s.onDisk {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(s.path, mode, 0o600)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.onDisk = true
	_, err = f.Write(s.buf)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.buf = s.buf[:0]
	return nil
}

// all returns all captures. There must not be many.
func (s *spool) all() (all []*provenance.Capture, err error) {
	err = s.each(func(c *provenance.Capture) error {
		own := new(provenance.Capture)
		*own, *c = *c, provenance.Capture{}
		all = append(all, own)
		return nil
	})
	return all, err
}

// each calls visit for all captures in the order in which they were added. The
// capture is valid until visit returns.
func (s *spool) each(visit func(*provenance.Capture) error) error {
	var in io.Reader = bytes.NewReader(s.buf)
	if s.onDisk {
		f, err := os.Open(s.path)
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		defer f.Close() //nolint:errcheck // only read from: nothing can be lost
		in = io.MultiReader(f, in)
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
	if s.onDisk {
		_ = os.Remove(s.path) // its directory is removed anyway
		s.onDisk = false
	}
}
