package summary

import (
	"encoding/binary"
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
		b = binary.AppendVarint(b, int64(f.ID))
		b = binary.AppendUvarint(b, uint64(f.Program))
		b = appendText(b, f.Name)
		b = f.Exclusive.AppendBinary(b)
		b = f.Inclusive.AppendBinary(b)
		b = f.anomalies.AppendBinary(b)
	}

	b = binary.AppendUvarint(b, uint64(len(l.counters.list)))
	for _, c := range l.counters.inOrder() {
		b = binary.AppendUvarint(b, uint64(c.Program))
		b = appendText(b, c.Name)
		b = c.Values.AppendBinary(b)
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
		b = binary.AppendVarint(b, int64(m.function))
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
	return b
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
	c, err := newCursor(b)
	if err != nil {
		return nil, err
	}
	l := NewLive()
	l.news = c.bool()
	for _, read := range [...]func(*cursor){l.readFunction, l.readCounter, l.readRank, l.readMetrics, l.readStep} {
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
	id, program, name := int(c.signed(math.MinInt, math.MaxInt)), c.program(), c.text()
	if n := len(l.functions.list); c.err != nil || n > 0 && l.functions.list[n-1].ID >= id {
		c.fail("functions out of order")
		return
	}
	f := l.function(id, program, name)
	f.Exclusive, f.Inclusive, f.anomalies = c.sums(), c.sums(), c.sums()
}

func (l *Live) readCounter(c *cursor) {
	program, name := c.program(), c.text()
	if c.err != nil || l.counters.get(trace.FuncKey{Program: program, Name: name}) != nil {
		c.fail("a counter twice")
		return
	}
	l.counter(program, name).Values = c.sums()
}

func (l *Live) readRank(c *cursor) {
	k := c.rank()
	if c.err != nil || l.ranks.get(k) != nil {
		c.fail("a rank twice")
		return
	}
	r := l.rank(k)
	r.steps, r.anomalies = c.sums(), c.number()
	r.lastStep, r.lastTime = c.step(), c.micros()
}

func (l *Live) readMetrics(c *cursor) {
	k := metricsKey{c.rank(), int(c.signed(math.MinInt, math.MaxInt))}
	if c.err != nil || l.metrics.get(k) != nil {
		c.fail("metrics twice")
		return
	}
	m := l.metrics.add(k, &liveMetrics{metricsKey: k, index: c.number(), all: c.metrics()})
	if c.bool() {
		fresh := c.metrics()
		m.fresh = &fresh
		l.fresh = append(l.fresh, m)
	}
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

// program reads the number of a program.
func (c *cursor) program() trace.Program { return trace.Program(c.below(math.MaxUint32)) }

func (c *cursor) rank() trace.RankKey {
	return trace.RankKey{Program: c.program(), Rank: trace.Rank(c.signed(math.MinInt32, math.MaxInt32))}
}

func (c *cursor) step() int32 { return int32(c.signed(math.MinInt32, math.MaxInt32)) }

func (c *cursor) micros() trace.Micros {
	return trace.Micros(c.signed(math.MinInt64, math.MaxInt64))
}

func (c *cursor) metrics() (m Metrics) {
	m.Count = c.sums()
	m.FirstStep, m.LastStep = c.step(), c.step()
	m.First, m.Last = c.micros(), c.micros()
	m.Score, m.Severity = c.runStats(), c.sums()
	return m
}
