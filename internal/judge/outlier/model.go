package outlier

import "github.com/chimbuko/chimbuko/internal/judge/stats"

// Model describes the times of a function in ticks, and the numbers of calls that its calls make. The zero value is empty and
// the identity of Merge.
type Model struct {
	Stats stats.Sums      // for sstd
	Hist  stats.Histogram // for all other detectors
	Times stats.Timeline  // changes during the run
	Made  stats.Histogram // numbers of calls made by calls that make any, in units of 1/madeUnits
}

// Count returns the number of times in the model.
func (m *Model) Count() uint64 { return m.Hist.Total() }

// Learn adds time v of a call that ended at time at, both in ticks. A negative v counts as 0.
func (m *Model) Learn(v, at int64) {
	v = max(v, 0)
	m.Stats.Add(uint64(v))
	m.Hist.Add(v)
	m.Times.Add(v, at)
}

// ShortTime is the upper limit of the times that ShortTimes counts.
const ShortTime = 128

// ShortTimes counts times below ShortTime, as most calls have, that belong to the same span of a model's timeline, and adds them
// to the model in one step. The zero value counts nothing until Begin.
type ShortTimes struct {
	from, to int64 // the span
	counts   [ShortTime]uint32
}

// Add counts time v of a call that ended at time at. It returns false if v is too long or at is not in the span.
func (s *ShortTimes) Add(v uint64, at int64) bool { return s.Includes(at) && s.AddIncluded(v) }

// AddIncluded is like Add for a time that is in the span.
func (s *ShortTimes) AddIncluded(v uint64) bool {
	if v >= ShortTime {
		return false
	}
	s.counts[v]++
	return true
}

// Includes reports whether a time is in the span.
func (s *ShortTimes) Includes(at int64) bool { return at >= s.from && at < s.to }

// End returns the end of the span.
func (s *ShortTimes) End() int64 { return s.to }

// Begin sets the span to that of time at, at which a call ended, in the timeline of m. The counts must be empty.
func (s *ShortTimes) Begin(m *Model, at int64) { s.from, s.to = m.Times.SpanAt(at) }

// MoveTo adds the counted times to m and returns their sums. It clears the counts and the span.
func (s *ShortTimes) MoveTo(m *Model) (sums stats.Sums) {
	for v, n := range s.counts {
		if n == 0 {
			continue
		}
		sums.AddShort(uint32(v), n)
		m.Hist.AddBin(stats.BinOf(int64(v)), uint64(n))
		m.Times.AddCount(int64(v), s.from, uint64(n))
		s.counts[v] = 0
	}
	m.Stats.Merge(&sums)
	s.from, s.to = 0, 0
	return sums
}

// madeUnits is the precision of Model.Made. The detector allows for a clock resolution of 1, but numbers of calls are exact.
const madeUnits = 64

// LearnMade records that a call made n calls; n is at least 1.
func (m *Model) LearnMade(n uint32) { m.Made.Add(int64(n) * madeUnits) }

// LongCalls is the share of the longest calls with which a call that is not unusual is compared.
const LongCalls = 0.1

// UsualTime returns the time that a call with a verdict usually takes. A call that is not unusual may be one of those that do
// most work, so it is compared with the shortest of the longest calls.
func (m *Model) UsualTime(v Verdict) int64 {
	if v < Recurring {
		return int64(m.Hist.Quantile(1 - LongCalls))
	}
	return int64(m.Hist.Quantile(0.5))
}

// Merge adds all times of o. Merging is exact, so its order does not matter.
func (m *Model) Merge(o *Model) {
	m.Stats.Merge(&o.Stats)
	m.Hist.Merge(&o.Hist)
	m.Times.Merge(&o.Times)
	m.Made.Merge(&o.Made)
}

// Reset empties the model and keeps its memory.
func (m *Model) Reset() {
	m.Stats = stats.Sums{}
	m.Hist.Reset()
	m.Times.Reset()
	m.Made.Reset()
}

// Clone returns an independent copy.
func (m *Model) Clone() Model {
	return Model{Stats: m.Stats, Hist: m.Hist.Clone(), Times: m.Times.Clone(), Made: m.Made.Clone()}
}

// AppendBinary appends the encoding of the model to b. It appends at most 4 kB unless the histograms alone need more.
func (m *Model) AppendBinary(b []byte) []byte {
	return m.Made.AppendBinary(m.timeline().AppendBinary(m.Hist.AppendBinary(m.Stats.AppendBinary(b))))
}

// mostBytes is the approximate limit of histograms and timeline together.
const mostBytes = 4000

// timeline returns the timeline with spans long enough for the size limit. All results use it, so they do not depend on
// whether the model was encoded and decoded.
func (m *Model) timeline() *stats.Timeline {
	return m.Times.Fitting(mostBytes - m.Hist.Size() - m.Made.Size())
}

// CallsBetween returns the number of calls between two times in ticks, assuming that the calls of a span of the timeline are
// evenly spread.
func (m *Model) CallsBetween(from, to int64) (n float64) {
	for _, s := range m.timeline().Spans() {
		if begin, end := max(from, s.From), min(to, s.To); begin < end {
			n += float64(s.Total) * float64(end-begin) / float64(s.To-s.From)
		}
	}
	return n
}

// Part has the number of calls from the end of the previous part until a time in ticks.
type Part struct {
	Until int64   `json:"until"`
	Calls float64 `json:"calls"`
}

// Parts divides the calls of the run into at most n parts with about as many calls each. It excludes the calls of others, which
// are parts of the model.
func (m *Model) Parts(n int, others []*Model) (parts []Part) {
	spans := m.timeline().Spans()
	calls, total := make([]float64, len(spans)), 0.0
	for i, s := range spans {
		calls[i] = float64(s.Total)
		for _, o := range others {
			calls[i] -= o.CallsBetween(s.From, s.To)
		}
		calls[i] = max(0, calls[i])
		total += calls[i]
	}
	var part Part
	sum := 0.0
	for i, s := range spans {
		part.Until = s.To
		part.Calls += calls[i]
		if sum += calls[i]; part.Calls > 0 && (sum*float64(n) >= total*float64(len(parts)+1) || i == len(spans)-1) {
			parts = append(parts, part)
			part = Part{}
		}
	}
	return parts
}

// ReadModel decodes a model from the start of b and returns the rest of b.
func ReadModel(b []byte) (m Model, rest []byte, err error) {
	rest, err = m.Decode(b)
	return m, rest, err
}

// Decode replaces the model by the one encoded at the start of b, reusing its memory, and returns the rest of b. After an error
// the model is empty.
func (m *Model) Decode(b []byte) (rest []byte, err error) {
	if rest, err = m.Stats.Decode(b); err == nil {
		rest, err = m.Hist.Decode(rest)
	}
	if err == nil {
		rest, err = m.Times.Decode(rest)
	}
	if err == nil {
		rest, err = m.Made.Decode(rest)
	}
	if err != nil || m.Stats.Count() != m.Count() || max(m.Times.Total(), m.Made.Total()) > m.Count() {
		m.Reset()
		return nil, stats.ErrEncoding
	}
	return rest, nil
}
