package outlier

import (
	"encoding/binary"
	"math"

	"github.com/chimbuko/chimbuko/internal/stats"
)

// Model is what was learned of the times of a function, in microseconds. The
// zero value knows nothing and is the identity of Merge.
type Model struct {
	Stats stats.RunStats  // sstd judges by it
	Hist  stats.Histogram // hbos and copod do
}

// Count returns the number of times that were learned.
func (m *Model) Count() uint64 { return m.Hist.Total() }

// Learn adds one time; a negative one counts as 0.
func (m *Model) Learn(v int64) {
	v = max(v, 0)
	m.Stats.Add(float64(v))
	m.Hist.Add(v)
}

// Merge adds all that o learned; o stays unchanged.
func (m *Model) Merge(o *Model) {
	m.Stats.Merge(o.Stats)
	m.Hist.Merge(&o.Hist)
}

// Reset forgets everything and keeps the memory.
func (m *Model) Reset() {
	m.Stats = stats.RunStats{}
	m.Hist.Reset()
}

// Clone returns an independent copy.
func (m *Model) Clone() Model { return Model{Stats: m.Stats, Hist: m.Hist.Clone()} }

// AppendBinary appends the encoding of the model to b.
func (m *Model) AppendBinary(b []byte) []byte {
	s := m.Stats
	for _, v := range [...]float64{s.N, s.Mean, s.M2, s.M3, s.M4, s.Min, s.Max} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return m.Hist.AppendBinary(b)
}

// ReadModel decodes a model from the start of b and returns the rest.
func ReadModel(b []byte) (m Model, rest []byte, err error) {
	fields := [...]*float64{&m.Stats.N, &m.Stats.Mean, &m.Stats.M2, &m.Stats.M3, &m.Stats.M4, &m.Stats.Min, &m.Stats.Max}
	if len(b) < 8*len(fields) {
		return Model{}, nil, stats.ErrEncoding
	}
	for _, f := range fields {
		*f = math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if m.Hist, rest, err = stats.ReadHistogram(b); err != nil {
		return Model{}, nil, err
	}
	for _, f := range fields {
		if math.IsNaN(*f) || math.Abs(*f) > 1e100 { // far beyond what times add up to
			return Model{}, nil, stats.ErrEncoding
		}
	}
	if m.Stats.N != float64(m.Count()) || m.Stats.M2 < 0 {
		return Model{}, nil, stats.ErrEncoding
	}
	return m, rest, nil
}
