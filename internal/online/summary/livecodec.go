package summary

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// liveMagic begins an encoded Live; its number is the version.
const liveMagic = "chimbuko live 1\n"

// AppendBinary appends the encoding of the complete picture to b, with the news
// that no packet took yet. Functions, counters, ranks and metrics follow each
// other in order, each list after its length; the steps are those of the news.
func (l *Live) AppendBinary(b []byte) []byte {
	b = append(b, liveMagic...)
	b = appendBool(b, l.news)

	b = binary.AppendUvarint(b, uint64(len(l.functions.list)))
	for _, f := range l.functions.inOrder() {
		b = f.AppendBinary(b)
	}
	b = binary.AppendUvarint(b, uint64(len(l.counters.list)))
	for _, c := range l.counters.inOrder() {
		b = c.AppendBinary(b)
	}
	b = binary.AppendUvarint(b, uint64(len(l.ranks.list)))
	for _, r := range l.ranks.inOrder() {
		b = appendRank(b, r.RankKey)
		b = r.steps.AppendBinary(b)
		b = binary.AppendUvarint(b, r.anomalies)
		b = binary.AppendVarint(b, int64(r.lastStep))
		b = binary.AppendVarint(b, int64(r.lastTime))
	}

	b = binary.AppendUvarint(b, uint64(len(l.metrics.list)))
	for _, m := range l.metrics.inOrder() {
		b = appendRank(b, m.RankKey)
		b = binary.AppendUvarint(b, uint64(m.function))
		b = binary.AppendUvarint(b, m.index)
		b = appendMetrics(b, &m.all)
		if b = appendBool(b, m.fresh != nil); m.fresh != nil {
			b = appendMetrics(b, m.fresh)
		}
	}

	b = binary.AppendUvarint(b, uint64(len(l.steps)))
	for i := range l.steps {
		s := &l.steps[i]
		b = appendRank(b, s.RankKey)
		b = binary.AppendVarint(b, int64(s.step))
		b = binary.AppendVarint(b, int64(s.first))
		b = binary.AppendVarint(b, int64(s.last))
		b = appendRunStats(b, &s.scores)
	}
	return appendList(b, l.PathDeltas(), (*PathDelta).AppendBinary)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendRank(b []byte, k trace.RankKey) []byte {
	return binary.AppendVarint(binary.AppendUvarint(b, uint64(k.Program)), int64(k.Rank))
}

func appendFuncKey(b []byte, k trace.FuncKey) []byte {
	return appendText(binary.AppendUvarint(b, uint64(k.Program)), k.Name)
}

// appendList appends the length of a list and its elements.
func appendList[T any](b []byte, list []T, encode func(*T, []byte) []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		b = encode(&list[i], b)
	}
	return b
}

// AppendBinary appends the encoding of the statistics to b.
func (f *FunctionStats) AppendBinary(b []byte) []byte {
	b = appendFuncKey(binary.AppendUvarint(b, uint64(f.ID)), f.FuncKey)
	b = f.Exclusive.AppendBinary(b)
	b = f.Inclusive.AppendBinary(b)
	b = f.PerStep.AppendBinary(b)
	if b = appendBool(b, !f.Anomalies.Empty()); !f.Anomalies.Empty() {
		b = appendMetrics(b, &f.Anomalies)
	}
	return binary.AppendVarint(b, int64(f.LostTime))
}

// AppendBinary appends the encoding of the counter to b.
func (c *Counter) AppendBinary(b []byte) []byte {
	return c.Values.AppendBinary(appendFuncKey(b, c.FuncKey))
}

func appendMetrics(b []byte, m *Metrics) []byte {
	b = m.Count.AppendBinary(b)
	b = binary.AppendVarint(b, int64(m.FirstStep))
	b = binary.AppendVarint(b, int64(m.LastStep))
	b = binary.AppendVarint(b, int64(m.First))
	b = binary.AppendVarint(b, int64(m.Last))
	b = appendRunStats(b, &m.Score)
	return m.Severity.AppendBinary(b)
}

func appendRunStats(b []byte, s *stats.RunStats) []byte {
	for _, v := range [...]float64{s.N, s.Mean, s.M2, s.M3, s.M4, s.Min, s.Max} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// ReadLive decodes what AppendBinary wrote, and nothing else: b must end there.
// It takes memory in proportion to b. An error is an ErrEncoding of stats.
func ReadLive(b []byte) (*Live, error) {
	rest, ok := bytes.CutPrefix(b, []byte(liveMagic))
	if !ok {
		return nil, fmt.Errorf("%w: it does not begin with %q", stats.ErrEncoding, liveMagic)
	}
	c := &cursor{b: rest, size: len(b)}
	l := NewLive()
	l.news = c.bool()
	for _, read := range [...]func(*cursor){l.readFunction, l.readCounter, l.readRank, l.readMetrics, l.readStep, l.readPaths} {
		c.list(read)
	}
	c.end()
	l.checkIndices(c)
	l.news = l.news || len(l.fresh) > 0 || len(l.steps) > 0
	if c.err != nil {
		return nil, c.err
	}
	return l, nil
}

func (l *Live) readFunction(c *cursor) {
	var f FunctionStats
	c.function(&f)
	if n := len(l.functions.list); c.err != nil || n > 0 && l.functions.list[n-1].ID >= f.ID {
		c.fail("functions out of order")
		return
	}
	l.function(f.ID, f.FuncKey).FunctionStats = f
}

func (l *Live) readCounter(c *cursor) {
	var counter Counter
	c.counter(&counter)
	if c.err != nil || l.counters.get(counter.FuncKey) != nil {
		c.fail("a counter twice")
		return
	}
	l.counter(counter.FuncKey).Values = counter.Values
}

func (l *Live) readRank(c *cursor) {
	k := c.rank()
	if c.err != nil || l.ranks.get(k) != nil {
		c.fail("a rank twice")
		return
	}
	r := l.rank(k)
	c.sums(&r.steps)
	r.anomalies, r.lastStep, r.lastTime = c.number(), c.step(), c.micros()
}

func (l *Live) readMetrics(c *cursor) {
	k := metricsKey{c.rank(), c.id()}
	if c.err != nil || l.metrics.get(k) != nil {
		c.fail("metrics twice")
		return
	}
	m := l.metrics.add(k, &liveMetrics{metricsKey: k, index: c.number()})
	c.metrics(&m.all)
	if c.bool() {
		m.fresh = new(Metrics)
		c.metrics(m.fresh)
		l.fresh = append(l.fresh, m)
	}
}

func (l *Live) readPaths(c *cursor) {
	var p PathDelta
	if c.paths(&p); c.err != nil || l.paths[p.Program] != nil {
		c.fail("call paths of a program twice")
		return
	}
	l.addPaths(&p)
}

func (l *Live) readStep(c *cursor) {
	s := liveStep{RankKey: c.rank(), step: c.step(), first: c.micros(), last: c.micros(), scores: c.runStats()}
	if c.err == nil && l.ranks.get(s.RankKey) == nil {
		c.fail("a step of an unknown rank")
		return
	}
	l.steps = append(l.steps, s)
}

// checkIndices holds that metrics are numbered from 0 on without gaps, so that
// the next number is free.
func (l *Live) checkIndices(c *cursor) {
	seen := make([]bool, len(l.metrics.list))
	for _, m := range l.metrics.list {
		if m.index >= uint64(len(seen)) || seen[m.index] {
			c.fail("a wrong number of metrics")
			return
		}
		seen[m.index] = true
	}
}
