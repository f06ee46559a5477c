package outlier

import "github.com/chimbuko/chimbuko/internal/judge/stats"

// Model is what was learned of the times of a function, in microseconds. The
// zero value knows nothing and is the identity of Merge.
type Model struct {
	Stats stats.Sums      // sstd judges by it
	Hist  stats.Histogram // all others do
	Times stats.Timeline  // how they changed in this run
}

// Count returns the number of times that were learned.
func (m *Model) Count() uint64 { return m.Hist.Total() }

// Learn adds one time, of a call that ended at a moment in microseconds; a
// negative time counts as 0.
func (m *Model) Learn(v, at int64) {
	v = max(v, 0)
	m.Stats.Add(uint64(v))
	m.Hist.Add(v)
	m.Times.Add(v, at)
}

// Merge adds all that o learned; o stays unchanged. It is exact, so the order of
// merges does not matter.
func (m *Model) Merge(o *Model) {
	m.Stats.Merge(&o.Stats)
	m.Hist.Merge(&o.Hist)
	m.Times.Merge(&o.Times)
}

// Reset forgets everything and keeps the memory.
func (m *Model) Reset() {
	m.Stats = stats.Sums{}
	m.Hist.Reset()
	m.Times.Reset()
}

// Clone returns an independent copy.
func (m *Model) Clone() Model {
	return Model{Stats: m.Stats, Hist: m.Hist.Clone(), Times: m.Times.Clone()}
}

// AppendBinary appends the encoding of the model to b. It has no more than 4 kB,
// unless the histogram alone has.
func (m *Model) AppendBinary(b []byte) []byte {
	return m.timeline().AppendBinary(m.Hist.AppendBinary(m.Stats.AppendBinary(b)))
}

// mostBytes is about the most that histogram and timeline take together.
const mostBytes = 4000

// timeline is how times changed, in spans so long that the model is not too large. All
// that is found out from a timeline is found out from this one, so that it does not
// matter whether a model was encoded on the way.
func (m *Model) timeline() *stats.Timeline { return m.Times.Fitting(mostBytes - m.Hist.Size()) }

// ReadModel decodes a model from the start of b and returns the rest.
func ReadModel(b []byte) (m Model, rest []byte, err error) {
	rest, err = m.Decode(b)
	return m, rest, err
}

// Decode replaces the model by the one that AppendBinary wrote at the start of b,
// in the memory that it has, and returns the rest. After an error it is empty.
func (m *Model) Decode(b []byte) (rest []byte, err error) {
	if rest, err = m.Stats.Decode(b); err == nil {
		rest, err = m.Hist.Decode(rest)
	}
	if err == nil {
		rest, err = m.Times.Decode(rest)
	}
	if err != nil || m.Stats.Count() != m.Count() || m.Times.Total() > m.Count() {
		m.Reset()
		return nil, stats.ErrEncoding
	}
	return rest, nil
}
