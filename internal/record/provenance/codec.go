package provenance

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// ErrEncoding means that bytes are not an encoded Capture.
var ErrEncoding = errors.New("malformed capture")

// codec appends numbers to its bytes or reads them. Encoding and decoding use the same
// functions, so that they cannot differ.
type codec struct {
	b    []byte
	read bool
	err  error
	last uint64 // the previous time: times are stored as differences
}

func (c *codec) uint(v *uint64) { *v = c.both(*v) }

// both appends v and returns it, or returns the number it reads. Most numbers need one or
// two bytes.
func (c *codec) both(v uint64) uint64 {
	if !c.read {
		switch {
		case v < 1<<7:
			c.b = append(c.b, byte(v))
		case v < 1<<14:
			c.b = append(c.b, byte(v)|0x80, byte(v>>7))
		default:
			c.b = binary.AppendUvarint(c.b, v)
		}
		return v
	}
	if len(c.b) > 0 && c.b[0] < 1<<7 {
		v, c.b = uint64(c.b[0]), c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.err, c.b = ErrEncoding, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func number[T ~int32 | ~uint32 | ~uint8](c *codec, v *T) { *v = T(c.both(uint64(uint32(*v)))) }

func (c *codec) flag(v *bool) {
	u := uint64(0)
	if *v {
		u = 1
	}
	*v = c.both(u) != 0
}

func (c *codec) time(t *trace.Micros) {
	d := int64(uint64(*t) - c.last)
	u := c.both(uint64(d)<<1 ^ uint64(d>>63))
	if c.read {
		*t = trace.Micros(c.last + (u>>1 ^ -(u & 1)))
	}
	if *t != 0 {
		c.last = uint64(*t)
	}
}

func (c *codec) float(v *float64) {
	*v = math.Float64frombits(c.both(math.Float64bits(*v)))
}

// list encodes or decodes a slice. A length beyond the remaining bytes is an error.
func list[T any](c *codec, s *[]T, each func(*T)) {
	n := uint64(len(*s))
	c.uint(&n)
	if c.read {
		if n > uint64(len(c.b)) {
			c.err, n = ErrEncoding, 0
		}
		*s = (*s)[:0]
		for range n {
			if c.err != nil {
				return
			}
			*s = append(*s, *new(T))
			each(&(*s)[len(*s)-1])
		}
		return
	}
	for i := range *s {
		each(&(*s)[i])
	}
}

func (c *codec) frame(f *Frame) {
	number(c, &f.Func)
	number(c, &f.Step)
	number(c, &f.Row)
	c.time(&f.Entry)
	c.time(&f.Exit)
	number(c, &f.ParentStep)
	number(c, &f.ParentRow)
	c.flag(&f.Anomalous)
}

func (c *codec) event(e *trace.Event) {
	c.time(&e.Time)
	c.uint(&e.Value)
	number(c, &e.Row)
	number(c, &e.ID)
	number(c, &e.Tag)
	number(c, &e.Kind)
}

func (c *codec) capture(v *Capture) {
	number(c, &v.Kind)
	number(c, &v.Context)
	number(c, &v.Thread)
	number(c, &v.IOStep)
	c.time(&v.StepStart)
	c.time(&v.StepEnd)
	c.time(&v.Exclusive)
	number(c, &v.Children)
	c.float(&v.Score)
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
	w := codec{b: append(b, 0, 0, 0, 0)}
	w.capture(c)
	binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
	return w.b
}

// ReadCapture decodes a capture without its length into c.
func (c *Capture) ReadCapture(b []byte) error {
	r := codec{b: b, read: true}
	r.capture(c)
	if r.err == nil && (len(r.b) > 0 || len(c.Stack) == 0) {
		return ErrEncoding
	}
	for _, l := range c.Partners {
		if len(l.Stack) == 0 {
			return ErrEncoding
		}
	}
	return r.err
}
