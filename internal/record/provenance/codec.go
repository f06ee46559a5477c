package provenance

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// ErrEncoding means that bytes are not an encoded Capture.
var ErrEncoding = errors.New("malformed capture")

// captureCoder encodes or decodes a capture. Times are differences to the one before.
type captureCoder struct {
	codec.Coder
	last trace.Ticks
}

// number codes the low 32 bits of a number.
func number[T ~int32 | ~uint32 | ~uint8](c *captureCoder, v *T) {
	*v = T(c.Uint(uint64(uint32(*v)), math.MaxUint32))
}

func (c *captureCoder) uint(v *uint64) { *v = c.Uint(*v, math.MaxUint64) }

func (c *captureCoder) time(t *trace.Ticks) {
	*t = c.last + trace.Ticks(c.Int(int64(*t-c.last)))
	if *t != 0 {
		c.last = *t
	}
}

func list[T any](c *captureCoder, all *[]T, element func(*T)) { codec.List(&c.Coder, all, element) }

func (c *captureCoder) frame(f *Frame) {
	number(c, &f.Func)
	number(c, &f.Step)
	number(c, &f.Row)
	c.time(&f.Entry)
	c.time(&f.Exit)
	number(c, &f.ParentStep)
	number(c, &f.ParentRow)
	c.Bool(&f.Anomalous)
}

func (c *captureCoder) event(e *trace.Event) {
	c.time(&e.Time)
	c.uint(&e.Value)
	number(c, &e.Row)
	number(c, &e.ID)
	number(c, &e.Tag)
	number(c, &e.Kind)
}

func (c *captureCoder) capture(v *Capture) {
	number(c, &v.Kind)
	number(c, &v.Context)
	number(c, &v.Thread)
	number(c, &v.IOStep)
	c.time(&v.StepStart)
	c.time(&v.StepEnd)
	c.time(&v.Exclusive)
	number(c, &v.Children)
	v.Score = math.Float64frombits(c.Uint(math.Float64bits(v.Score), math.MaxUint64))
	c.Bool(&v.Sent)
	list(c, &v.Stack, c.frame)
	list(c, &v.Counters, c.event)
	list(c, &v.Window, c.frame)
	list(c, &v.Comms, func(m *Comm) {
		c.event(&m.Event)
		number(c, &m.Step)
		number(c, &m.Row)
	})
	list(c, &v.Partners, func(l *Partner) {
		number(c, &l.Thread)
		list(c, &l.Stack, c.frame)
	})
	c.time(&v.NodeTime)
	list(c, &v.NodeState, func(f *Field) {
		number(c, &f.Counter)
		c.uint(&f.Value)
	})
}

// AppendBinary appends the length and the encoding of the capture to b.
func (c *Capture) AppendBinary(b []byte) []byte {
	at := len(b)
	w := captureCoder{Coder: codec.Coder{B: append(b, 0, 0, 0, 0)}}
	w.capture(c)
	binary.LittleEndian.PutUint32(w.B[at:], uint32(len(w.B)-at-4))
	return w.B
}

// ReadCapture decodes a capture without its length into c.
func (c *Capture) ReadCapture(b []byte) error {
	r := captureCoder{Coder: codec.Decoder(b, ErrEncoding)}
	r.capture(c)
	r.End()
	if len(c.Stack) == 0 || slices.ContainsFunc(c.Partners, func(p Partner) bool { return len(p.Stack) == 0 }) {
		r.Fail("call stack is empty")
	}
	return r.Err
}
