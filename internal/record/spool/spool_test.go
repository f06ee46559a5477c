package spool

import (
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedSpool reads mutations of a spool. Each capture is read, or an error reports the loss.
func TestDamagedSpool(t *testing.T) {
	const captures = 12
	var b []byte
	for i := range captures {
		b = (&provenance.Capture{IOStep: int32(i), Stack: []provenance.Frame{{}}}).AppendBinary(b)
	}
	damage.Run(t, damage.Format{Files: damage.Files{"spool": b}, Read: func(files damage.Files) error {
		s := Spool{count: captures, buf: files["spool"]}
		n := 0
		err := s.Each(func(*provenance.Capture) error { n++; return nil })
		if err == nil && n != captures {
			return fmt.Errorf("%d of %d captures, without an error", n, captures)
		}
		return nil
	}})
}
