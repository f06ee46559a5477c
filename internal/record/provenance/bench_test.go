package provenance_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// usual returns a typical capture: a stack of four calls and a window of 21.
func usual() *provenance.Capture {
	c := &provenance.Capture{IOStep: 7, StepStart: 1_700_000_000_000_000, StepEnd: 1_700_000_000_900_000, Exclusive: 1234, Score: 5.25}
	frame := func(i int) provenance.Frame {
		at := c.StepStart + trace.Ticks(i)*1500
		return provenance.Frame{Func: trace.FuncID(i), Step: 7, Row: uint32(400 + 2*i), Entry: at, Exit: at + 1400, ParentStep: 7, ParentRow: 399}
	}
	for i := range 21 {
		if i < 4 {
			c.Stack = append(c.Stack, frame(10-i))
		}
		c.Window = append(c.Window, frame(i))
	}
	return c
}

func BenchmarkEncodeCapture(b *testing.B) {
	c := usual()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendBinary(buf[:0])
	}
}

func BenchmarkDecodeCapture(b *testing.B) {
	buf := usual().AppendBinary(nil)
	var c provenance.Capture
	b.ReportAllocs()
	for b.Loop() {
		if err := c.ReadCapture(buf[4:]); err != nil {
			b.Fatal(err)
		}
	}
}
