package recordstream

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// errEncoding means that bytes are not an encoding of records.
var errEncoding = errors.New("malformed records")

// maxExpanded bounds the size of all texts of a message, with repetitions. Analyzers send much
// less. The limit protects the store, which writes many texts once per occurrence.
const maxExpanded = 64 << 20

// coder encodes or decodes records. Each text is written once: the
// models, functions and event IDs of neighboring records are the same. Times are relative to the
// one before.
type coder struct {
	codec.Coder
	number   map[string]uint64 // of texts, from 1, while encoding
	texts    []text            // by number, while decoding
	source   string            // text of the encoding, of which texts are parts
	expanded int               // bytes of all texts so far
	last     trace.Ticks
}

type text struct {
	string
	document json.RawMessage // the text as JSON, if a record used it as a document
}

// append appends a record and returns the size of its encoding.
func (c *coder) append(r *provenance.Record) int {
	before := len(c.B)
	c.record(r)
	return len(c.B) - before
}

// ReadRecords decodes the records of a message. They share their texts.
func ReadRecords(b []byte) ([]*provenance.Record, error) {
	c := &coder{Coder: codec.Decoder(b, errEncoding), source: string(b)}
	var all []*provenance.Record
	for c.Left() > 0 && c.Err == nil {
		r := new(provenance.Record)
		c.record(r)
		all = append(all, r)
	}
	return all, c.Err
}

func number[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](c *coder, numbers ...*T) {
	codec.Signed(&c.Coder, numbers...)
}

func (c *coder) time(times ...*trace.Ticks) {
	for _, t := range times {
		c.last += trace.Ticks(c.Int(int64(*t - c.last)))
		*t = c.last
	}
}

// text codes a text: its number, or 0 and the text if it is new.
func (c *coder) text(s *string) { c.textOf(s) }

// textOf returns the entry of the text while decoding.
func (c *coder) textOf(s *string) *text {
	if !c.Decoding {
		if c.Uint(c.number[*s], 0) == 0 {
			c.number[*s] = uint64(len(c.number) + 1)
			c.Text(s)
		}
		return nil
	}
	n := c.ReadUint(math.MaxUint64)
	if n == 0 && c.Err == nil {
		size := len(c.ReadText())
		end := len(c.source) - c.Left()
		c.texts = append(c.texts, text{string: c.source[end-size : end]})
		n = uint64(len(c.texts))
	}
	if c.Err == nil && n > uint64(len(c.texts)) {
		c.Fail("there is no text %d", n)
	}
	if c.Err != nil {
		return nil
	}
	t := &c.texts[n-1]
	if *s = t.string; len(*s) > maxExpanded-c.expanded {
		c.Fail("their texts have more than %d bytes", maxExpanded)
	}
	c.expanded += len(*s)
	return t
}

// words codes texts of another type.
func words[T ~string](c *coder, texts ...*T) {
	for _, t := range texts {
		s := string(*t)
		c.text(&s)
		*t = T(s)
	}
}

// document codes JSON; an empty one is nil.
func (c *coder) document(raw *json.RawMessage) {
	s := string(*raw)
	t := c.textOf(&s)
	if t == nil {
		return
	}
	c.expanded -= len(s) // the store keeps it only once
	if t.document == nil && s != "" {
		if t.document = json.RawMessage(s); !json.Valid(t.document) {
			c.Fail("a model is not JSON")
		}
	}
	*raw = t.document
}

// list codes a list of elements that take at least size bytes each. It distinguishes nil from empty.
func list[T any](c *coder, all *[]T, size int, element func(*coder, *T)) {
	n := uint64(0)
	if *all != nil {
		n = uint64(len(*all)) + 1
	}
	if n = c.Uint(n, uint64(c.Left()/size)+1); n == 0 {
		return
	}
	if c.Decoding {
		*all = make([]T, n-1)
	}
	for i := range *all {
		element(c, &(*all)[i])
	}
}

// optional codes a value that may be nil.
func optional[T any](c *coder, p **T, value func(*coder, *T)) {
	exists := *p != nil
	if c.Bool(&exists); !exists || c.Err != nil {
		return
	}
	if c.Decoding {
		*p = new(T)
	}
	value(c, *p)
}

func (c *coder) record(r *provenance.Record) {
	c.document(&r.AlgoParams)
	words(c, &r.EventID, &r.Func, &r.Hostname, &r.Why)
	words(c, &r.Kind)
	words(c, &r.Status)
	c.time(&r.IOStepStart, &r.IOStepEnd, &r.Entry, &r.Exit)
	number(c, &r.RuntimeExclusive, &r.RuntimeTotal, &r.LostTime)
	number(c, &r.Children, &r.UsualChildren)
	number(c, &r.FID, &r.Version)
	number(c, &r.IOStep)
	number(c, &r.PID)
	number(c, &r.RID)
	number(c, &r.TID)
	number(c, &r.Unit)
	c.Floats(&r.OutlierScore, &r.OutlierSeverity)
	c.Bool(&r.IsGPUEvent)
	list(c, &r.CallStack, 6, (*coder).stackEntry)
	list(c, &r.CounterEvents, 7, (*coder).counterEntry)
	list(c, &r.EventWindow.Execs, 7, (*coder).windowEntry)
	list(c, &r.EventWindow.Comms, 10, (*coder).commEntry)
	optional(c, &r.GPULocation, func(c *coder, g *provenance.GPULocation) {
		number(c, &g.Context, &g.Device, &g.Stream)
		number(c, &g.Thread)
	})
	c.gpuParent(&r.GPUParent)
	optional(c, &r.NodeState, func(c *coder, n *provenance.NodeState) {
		c.time(&n.Timestamp)
		list(c, &n.Data, 2, func(c *coder, e *provenance.StateEntry) {
			c.text(&e.Field)
			number(c, &e.Value)
		})
	})
}

func (c *coder) stackEntry(e *provenance.StackEntry) {
	c.time(&e.Entry, &e.Exit)
	words(c, &e.EventID, &e.Func)
	number(c, &e.FID)
	c.Bool(&e.IsAnomaly)
}

func (c *coder) windowEntry(e *provenance.WindowEntry) {
	c.stackEntry(&e.StackEntry)
	c.text(&e.ParentID)
}

func (c *coder) counterEntry(e *provenance.CounterEntry) {
	c.time(&e.Timestamp)
	c.text(&e.Name)
	number(c, &e.Index)
	number(c, &e.Value)
	number(c, &e.PID)
	number(c, &e.RID)
	number(c, &e.TID)
}

func (c *coder) commEntry(e *provenance.CommEntry) {
	c.time(&e.Timestamp)
	words(c, &e.Exec, &e.Type)
	optional(c, &e.Bytes, func(c *coder, n *uint64) { number(c, n) })
	number(c, &e.PID)
	number(c, &e.RID, &e.Source, &e.Target)
	number(c, &e.Tag)
	number(c, &e.TID)
}

// The kinds of GPU parents.
const (
	noParent uint64 = iota
	callParent
	textParent
)

func (c *coder) gpuParent(p *any) {
	var call provenance.GPUParent
	var reason string
	kind := noParent
	switch v := (*p).(type) {
	case provenance.GPUParent:
		call, kind = v, callParent
	case string:
		reason, kind = v, textParent
	}
	switch kind = c.Uint(kind, math.MaxUint64); kind {
	case callParent:
		list(c, &call.CallStack, 6, (*coder).stackEntry)
		c.text(&call.EventID)
		number(c, &call.TID)
		*p = call
	case textParent:
		c.text(&reason)
		*p = reason
	case noParent:
	default:
		c.Fail("the parent of a kernel has the unknown kind %d", kind)
	}
}
