package analyzer

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// spoolFile is the file that the spools of all ranks share, because there may be
// thousands of ranks. It is created at the first write.
type spoolFile struct {
	dir string

	mu   sync.Mutex
	f    *os.File
	size int64
}

// write appends b and returns its position.
func (s *spoolFile) write(b []byte) (at int64, err error) {
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

// close removes the file with the content of all spools.
func (s *spoolFile) close() {
	if s.f != nil {
		_ = s.f.Close() // it is not read again
		_ = os.Remove(s.f.Name())
		s.f = nil
	}
}

// spool stores the captures of a rank until the end of the run, in the file if they
// exceed spoolBuffer.
type spool struct {
	file  *spoolFile
	count int64       // of captures
	parts []spoolPart // in the file
	buf   []byte      // those after them
	// unneeded captures, by number in the order of add, are skipped by each. It may be shorter
	// than count.
	unneeded []bool
}

// spoolPart is the place of captures in the file.
type spoolPart struct {
	at     int64
	length int
}

// spoolBuffer is the number of bytes that a spool keeps in memory.
const spoolBuffer = 4 << 10

func (s *spool) add(c *provenance.Capture) error {
	s.count++
	s.buf = c.AppendBinary(s.buf)
	if len(s.buf) < spoolBuffer {
		return nil
	}
	at, err := s.file.write(s.buf)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.parts = append(s.parts, spoolPart{at, len(s.buf)})
	s.buf = s.buf[:0]
	return nil
}

// all returns all captures at once; callers must know that there are few.
func (s *spool) all() (all []*provenance.Capture, err error) {
	err = s.each(func(c *provenance.Capture) error {
		own := new(provenance.Capture)
		*own, *c = *c, provenance.Capture{}
		all = append(all, own)
		return nil
	})
	return all, err
}

// each calls visit for all needed captures in the order of add. A capture is valid until
// visit returns.
func (s *spool) each(visit func(*provenance.Capture) error) error {
	c := captures.Get().(*pendingCapture)
	defer captures.Put(c)
	var part []byte
	unneeded, total := s.unneeded, int64(0)
	for _, p := range s.parts {
		if cap(part) < p.length {
			part = make([]byte, p.length)
		}
		if _, err := s.file.f.ReadAt(part[:p.length], p.at); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		n, err := eachOf(part[:p.length], &unneeded, &c.capture, visit)
		if err != nil {
			return err
		}
		total += n
	}
	n, err := eachOf(s.buf, &unneeded, &c.capture, visit)
	if total += n; err == nil && total != s.count {
		err = fmt.Errorf("spool: damaged: %d captures instead of %d", total, s.count)
	}
	return err
}

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
