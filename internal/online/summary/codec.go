package summary

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
)

// coder appends the encoding of values to b, or decodes them from it. Each type
// has one function for both directions. The first error of decoding stays; every
// value after it is zero.
type coder struct {
	b        []byte
	decoding bool
	size     int  // of the input
	delta    bool // of an exchange, which may hold no more than maxValues
	loadSize int  // bytes
	err      error
}

// maxValues limits the values in one part of an exchange: more than an analyzer
// ever sees, and few enough for exact sums of all exchanges.
const maxValues = 1 << 40

// encode appends what code writes to b.
func encode(b []byte, code func(*coder)) []byte {
	c := &coder{b: b}
	code(c)
	return c.b
}

// decode decodes all of b, a part of an exchange. The error wraps
// stats.ErrEncoding.
func decode(b []byte, code func(*coder)) error {
	c := &coder{b: b, decoding: true, size: len(b), delta: true}
	code(c)
	c.end()
	return c.err
}

func (c *coder) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: before byte %d of %d: %s", stats.ErrEncoding, c.size-len(c.b), c.size, why)
	}
	c.b = nil
}

// end rejects trailing bytes.
func (c *coder) end() {
	if c.err == nil && len(c.b) > 0 {
		c.fail("trailing bytes")
	}
}

// unsigned codes a number of at most the given value.
func unsigned[T ~int | ~uint32 | ~uint64](c *coder, v *T, most uint64) {
	if !c.decoding {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.b)
	if *v = T(n); size <= 0 || n > most {
		*v = 0
		c.fail("number missing or too large")
		return
	}
	c.b = c.b[size:]
}

func signed[T ~int | ~int32 | ~int64](c *coder, values ...*T) {
	for _, v := range values {
		if !c.decoding {
			c.b = binary.AppendVarint(c.b, int64(*v))
			continue
		}
		n, size := binary.Varint(c.b)
		if *v = T(n); size <= 0 || int64(*v) != n {
			*v = 0
			c.fail("number missing or too large")
			return
		}
		c.b = c.b[size:]
	}
}

// list codes the length of a list and its elements. Decoding reuses its memory.
func list[T any](c *coder, all *[]T, code func(*T, *coder)) {
	n := len(*all)
	unsigned(c, &n, math.MaxInt)
	if !c.decoding {
		for i := range *all {
			code(&(*all)[i], c)
		}
		return
	}
	dst := (*all)[:0]
	for ; n > 0 && c.err == nil; n-- {
		if k := len(dst); k < cap(dst) {
			dst = dst[:k+1]
		} else {
			dst = append(dst, *new(T))
		}
		code(&dst[len(dst)-1], c)
	}
	*all = dst
}

func (c *coder) bool(v *bool) {
	var n uint32
	if *v {
		n = 1
	}
	unsigned(c, &n, 1)
	*v = n == 1
}

// bytes decodes a text without a copy.
func (c *coder) bytes() []byte {
	var n uint64
	unsigned(c, &n, math.MaxUint64)
	if n > uint64(len(c.b)) {
		c.fail("text is cut off")
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *coder) text(s *string) {
	if c.decoding {
		*s = string(c.bytes())
		return
	}
	c.b = append(binary.AppendUvarint(c.b, uint64(len(*s))), *s...)
}

func (c *coder) sums(all ...*stats.Sums) {
	for _, s := range all {
		if !c.decoding {
			c.b = s.AppendBinary(c.b)
			continue
		}
		if *s = (stats.Sums{}); c.err != nil {
			return
		}
		rest, err := s.Decode(c.b)
		if c.b = rest; err != nil || c.delta && s.Count() > maxValues {
			c.fail("malformed sums")
		}
	}
}

func (c *coder) model(m *outlier.Model) {
	if !c.decoding {
		c.b = m.AppendBinary(c.b)
		return
	}
	if m.Reset(); c.err != nil {
		return
	}
	rest, err := m.Decode(c.b)
	if c.b = rest; err != nil || c.delta && m.Count() > maxValues {
		c.fail("malformed model")
	}
}

func (c *coder) moments(s *stats.RunStats) {
	if c.decoding && len(c.b) < 7*8 {
		c.fail("moments are cut off")
		*s = stats.RunStats{}
		return
	}
	for _, v := range [...]*float64{&s.N, &s.Mean, &s.M2, &s.M3, &s.M4, &s.Min, &s.Max} {
		if c.decoding {
			*v = math.Float64frombits(binary.LittleEndian.Uint64(c.b))
			c.b = c.b[8:]
		} else {
			c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(*v))
		}
	}
	if c.decoding && c.delta && !s.Valid() {
		c.fail("malformed moments")
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
	c.text(&k.Name)
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
	if c.bool(&anomalies); anomalies {
		f.Anomalies.code(c)
	} else if c.decoding {
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
	if !c.decoding {
		text := string(callpath.AppendBinary(nil, p.List))
		c.text(&text)
		return
	}
	var err error
	if p.List, err = callpath.Decode(p.List[:0], c.bytes()); err != nil {
		c.fail("malformed call paths")
	}
}

// load codes the load of an exchange, which may be nil.
func (c *coder) load(l **workload.Load) {
	if !c.decoding {
		var text []byte
		if *l != nil {
			text = compressor().EncodeAll((*l).AppendDense(nil), nil)
		}
		c.b = append(binary.AppendUvarint(c.b, uint64(len(text))), text...)
		c.loadSize = len(text)
		return
	}
	*l = nil
	b := c.bytes()
	if len(b) == 0 {
		return
	}
	b, err := decompressor().DecodeAll(b, nil)
	if err == nil {
		*l, err = workload.Decode(b, maxValues)
	}
	if err != nil {
		c.fail("malformed load")
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
	c := &coder{b: b}
	d.code(c)
	return c.b, c.loadSize
}

// Decode replaces the delta by one that AppendBinary wrote, and reuses its memory.
// It keeps nothing of b. No bytes are an empty delta. The error wraps
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
	c.text(&r.Host)
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
	if c.decoding {
		for i, n := range counts[:min(len(counts), int(tally.NumKinds))] {
			h.Tally.Add(tally.Kind(i), n)
		}
	}
	list(c, &h.Broken, func(s *string, c *coder) { c.text(s) })
	list(c, &h.Ranks, func(r **RankOutcome, c *coder) {
		if c.decoding {
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
