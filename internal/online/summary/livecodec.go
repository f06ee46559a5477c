package summary

import (
	"bytes"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/codec"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// liveMagic begins an encoded Live; its number is the version.
const liveMagic = "chimbuko live 1\n"

// AppendBinary appends the encoding of the state to b, with the news since the last
// TakeNews and without the load. Equal states have equal encodings.
func (l *Live) AppendBinary(b []byte) []byte { return encode(append(b, liveMagic...), l.code) }

// ReadLive decodes all of b, which AppendBinary wrote. It takes memory in
// proportion to b. The error wraps stats.ErrEncoding.
func ReadLive(b []byte) (*Live, error) {
	rest, ok := bytes.CutPrefix(b, []byte(liveMagic))
	if !ok {
		return nil, fmt.Errorf("%w: want %q at the start", stats.ErrEncoding, liveMagic)
	}
	c := &coder{Coder: codec.Decoder(rest, stats.ErrEncoding)}
	l := NewLive()
	l.code(c)
	c.End()
	if l.check(c); c.Err != nil {
		return nil, c.Err
	}
	l.news = l.news || len(l.fresh) > 0 || len(l.steps) > 0
	return l, nil
}

func (l *Live) code(c *coder) {
	c.Bool(&l.news)
	codeTable(c, &l.functions, (*FunctionStats).code)
	codeTable(c, &l.counters, (*Counter).code)
	codeTable(c, &l.ranks, (*liveRank).code)
	codeTable(c, &l.metrics, (*liveMetrics).code)
	list(c, &l.steps, (*liveStep).code)
	paths := l.PathDeltas()
	list(c, &paths, (*PathDelta).code)
	if !c.Decoding || c.Err != nil {
		return
	}
	for i := range paths {
		if l.paths[paths[i].Program] != nil {
			c.Fail("duplicate call paths of a program")
			return
		}
		l.addPaths(&paths[i])
	}
	for _, m := range l.metrics.list {
		if m.fresh != nil {
			l.fresh = append(l.fresh, m)
		}
	}
}

// codeTable codes the values of a table in order.
func codeTable[K comparable, V any](c *coder, t *table[K, V], code func(*V, *coder)) {
	all := t.inOrder()
	list(c, &all, func(v **V, c *coder) {
		if !c.Decoding {
			code(*v, c)
			return
		}
		*v = new(V)
		if code(*v, c); c.Err != nil {
			return
		}
		if n := len(t.list); n > 0 && t.compare(t.list[n-1], *v) >= 0 {
			c.Fail("duplicate or out of order")
			return
		}
		t.add(*v)
	})
}

func (r *liveRank) code(c *coder) {
	c.rank(&r.RankKey)
	c.sums(&r.steps)
	unsigned(c, &r.Anomalies, math.MaxUint64)
	signed(c, &r.LastStep)
	signed(c, &r.LastTime)
}

func (m *liveMetrics) code(c *coder) {
	c.rank(&m.RankKey)
	c.id(&m.function)
	unsigned(c, &m.index, math.MaxUint64)
	m.all.code(c)
	fresh := m.fresh != nil
	if c.Bool(&fresh); !fresh {
		return
	}
	if m.fresh == nil {
		m.fresh = new(Metrics)
	}
	m.fresh.code(c)
}

func (s *liveStep) code(c *coder) {
	c.rank(&s.RankKey)
	signed(c, &s.Step)
	signed(c, &s.First, &s.Last)
	c.moments(&s.Scores)
}

// check rejects steps of unknown ranks, and metrics that are not numbered from 0
// without gaps: the next number must be free.
func (l *Live) check(c *coder) {
	for i := range l.steps {
		if l.ranks.get(l.steps[i].RankKey) == nil {
			c.Fail("step of an unknown rank")
			return
		}
	}
	seen := make([]bool, len(l.metrics.list))
	for _, m := range l.metrics.list {
		if m.index >= uint64(len(seen)) || seen[m.index] {
			c.Fail("wrong number of metrics")
			return
		}
		seen[m.index] = true
	}
}
