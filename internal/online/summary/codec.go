package summary

import (
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// coder encodes or decodes statistics.
type coder struct {
	codec.Coder
	delta    bool // of an exchange, which may hold no more than maxValues
	loadSize int  // bytes
}

// maxValues limits the values in one part of an exchange: more than an analyzer ever produces, and
// few enough for exact sums of all exchanges.
const maxValues = 1 << 40

// encode appends the output of code to b.
func encode(b []byte, code func(*coder)) []byte {
	c := &coder{Coder: codec.Coder{B: b}}
	code(c)
	return c.B
}

// decode decodes all of b, a part of an exchange. The error wraps
// stats.ErrEncoding.
func decode(b []byte, code func(*coder)) error {
	c := &coder{Coder: codec.Decoder(b, stats.ErrEncoding), delta: true}
	code(c)
	c.End()
	return c.Err
}

func unsigned[T ~int | ~uint32 | ~uint64](c *coder, v *T, most uint64) {
	codec.Unsigned(&c.Coder, v, most)
}

func signed[T ~int | ~int32 | ~int64](c *coder, values ...*T) { codec.Signed(&c.Coder, values...) }

func list[T any](c *coder, all *[]T, code func(*T, *coder)) {
	codec.List(&c.Coder, all, func(v *T) { code(v, c) })
}

func (c *coder) sums(all ...*stats.Sums) {
	for _, s := range all {
		if !c.Decoding {
			c.B = s.AppendBinary(c.B)
			continue
		}
		if *s = (stats.Sums{}); c.Err != nil {
			return
		}
		rest, err := s.Decode(c.Rest())
		if c.Continue(rest); err != nil || c.delta && s.Count() > maxValues {
			c.Fail("malformed sums")
		}
	}
}

func (c *coder) model(m *outlier.Model) {
	if !c.Decoding {
		c.B = m.AppendBinary(c.B)
		return
	}
	if m.Reset(); c.Err != nil {
		return
	}
	rest, err := m.Decode(c.Rest())
	if c.Continue(rest); err != nil || c.delta && m.Count() > maxValues {
		c.Fail("malformed model")
	}
}

func (c *coder) moments(s *stats.RunStats) {
	c.Floats(&s.N, &s.Mean, &s.M2, &s.M3, &s.M4, &s.Min, &s.Max)
	if c.Decoding && c.delta && !s.Valid() {
		c.Fail("malformed moments")
	}
	if c.Err != nil {
		*s = stats.RunStats{}
	}
}

func (c *coder) program(p *trace.Program) { unsigned(c, p, math.MaxUint32) }

// id codes the number of a function.
func (c *coder) id(id *int) { unsigned(c, id, math.MaxUint32) }

func (c *coder) rank(k *trace.RankKey) {
	c.program(&k.Program)
	signed(c, &k.Rank)
}

func (c *coder) funcKey(k *trace.FuncKey) {
	c.program(&k.Program)
	c.Text(&k.Name)
}

func (m *Metrics) code(c *coder) {
	c.sums(&m.Count)
	signed(c, &m.FirstStep, &m.LastStep)
	signed(c, &m.First, &m.Last)
	c.moments(&m.Score)
	c.sums(&m.Severity)
}

func (f *FunctionStats) code(c *coder) {
	c.id(&f.ID)
	c.funcKey(&f.FuncKey)
	c.sums(&f.Exclusive, &f.Inclusive, &f.PerStep)
	anomalies := !f.Anomalies.Empty()
	if c.Bool(&anomalies); anomalies {
		f.Anomalies.code(c)
	} else if c.Decoding {
		f.Anomalies = Metrics{}
	}
	signed(c, &f.LostTime)
}

func (k *Counter) code(c *coder) {
	c.funcKey(&k.FuncKey)
	c.sums(&k.Values)
}

func (m *ModelDelta) code(c *coder) {
	c.id(&m.ID)
	unsigned(c, &m.Path, math.MaxUint64)
	c.model(&m.Model)
}

func (r *RankDelta) code(c *coder) {
	c.rank(&r.RankKey)
	c.sums(&r.Anomalies)
}

func (s *StepReport) code(c *coder) {
	c.rank(&s.RankKey)
	signed(c, &s.Step)
	signed(c, &s.First, &s.Last)
	c.moments(&s.Scores)
	list(c, &s.Functions, (*FunctionStats).code)
}

func (p *PathDelta) code(c *coder) {
	c.program(&p.Program)
	unsigned(c, &p.Depth, callpath.MaxDepth)
	if !c.Decoding {
		text := string(callpath.AppendBinary(nil, p.List))
		c.Text(&text)
		return
	}
	var err error
	if p.List, err = callpath.Decode(p.List[:0], c.ReadText()); err != nil {
		c.Fail("malformed call paths")
	}
}

// load codes the load of an exchange, which may be nil.
func (c *coder) load(l **workload.Load) {
	if !c.Decoding {
		var text []byte
		if *l != nil {
			text = compressor().EncodeAll((*l).AppendDense(nil), nil)
		}
		c.Uint(uint64(len(text)), 0)
		c.B = append(c.B, text...)
		c.loadSize = len(text)
		return
	}
	*l = nil
	b := c.ReadText()
	if len(b) == 0 {
		return
	}
	b, err := decompressor().DecodeAll(b, nil)
	if err == nil {
		*l, err = workload.Decode(b, maxValues)
	}
	if err != nil {
		c.Fail("malformed load")
	}
}

// Loads are compressed with Zstandard. Both are safe for concurrent use.
var (
	compressor = sync.OnceValue(func() *zstd.Encoder {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // impossible options
		}
		return w
	})
	decompressor = sync.OnceValue(func() *zstd.Decoder {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(4), zstd.WithDecoderMaxMemory(maxLoad))
		if err != nil {
			panic(err)
		}
		return r
	})
)

// maxLoad limits the bytes of a load in an exchange.
const maxLoad = 1 << 28

func (d *Delta) code(c *coder) {
	list(c, &d.Models, (*ModelDelta).code)
	list(c, &d.Functions, (*FunctionStats).code)
	list(c, &d.Ranks, (*RankDelta).code)
	list(c, &d.Steps, (*StepReport).code)
	list(c, &d.Counters, (*Counter).code)
	list(c, &d.Paths, (*PathDelta).code)
	c.load(&d.Load)
}

// AppendBinary appends the encoding of the delta to b, and returns how many bytes the load has.
func (d *Delta) AppendBinary(b []byte) (encoded []byte, load int) {
	c := &coder{Coder: codec.Coder{B: b}}
	d.code(c)
	return c.B, c.loadSize
}

// Decode replaces the delta by one that AppendBinary wrote, and reuses its memory.
// It keeps nothing of b. An empty b is an empty delta. The error wraps
// stats.ErrEncoding.
func (d *Delta) Decode(b []byte) error {
	if len(b) == 0 {
		*d = Delta{d.Models[:0], d.Functions[:0], d.Ranks[:0], d.Steps[:0], d.Counters[:0], d.Paths[:0], nil}
		return nil
	}
	return decode(b, d.code)
}

func (t *Totals) code(c *coder) {
	signed(c, &t.Steps)
	signed(c, &t.Events, &t.Calls, &t.Flagged)
	signed(c, &t.Ranks)
	signed(c, &t.Begin, &t.End)
}

func (r *RankOutcome) code(c *coder) {
	c.rank(&r.RankKey)
	c.Text(&r.Host)
	signed(c, r.Review.fields()...)
	list(c, &r.Functions, (*FunctionStats).code)
}

func (h *Handover) code(c *coder) {
	h.Totals.code(c)
	var counts []int64
	for kind := range tally.NumKinds {
		counts = append(counts, h.Tally.Count(kind))
	}
	list(c, &counts, func(n *int64, c *coder) { signed(c, n) })
	if c.Decoding {
		for i, n := range counts[:min(len(counts), int(tally.NumKinds))] {
			h.Tally.Add(tally.Kind(i), n)
		}
	}
	list(c, &h.Broken, func(s *string, c *coder) { c.Text(s) })
	list(c, &h.Ranks, func(r **RankOutcome, c *coder) {
		if c.Decoding {
			*r = new(RankOutcome)
		}
		(*r).code(c)
	})
}

// AppendBinary appends the encoding of the handover to b.
func (h *Handover) AppendBinary(b []byte) []byte { return encode(b, h.code) }

// ReadHandover decodes all of b, which AppendBinary wrote.
func ReadHandover(b []byte) (*Handover, error) {
	h := new(Handover)
	if err := decode(b, h.code); err != nil {
		return nil, fmt.Errorf("results of ranks: %w", err)
	}
	return h, nil
}
