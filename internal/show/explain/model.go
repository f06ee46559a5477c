package explain

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// model is the model by which an execution was judged.
type model struct{ provenance.Model }

func (m *model) exists() bool { return m.Moments != nil || len(m.Counts) > 0 }

// absence returns why there is no model.
func (m *model) absence() string {
	if m.Given {
		return "the stored model cannot be read"
	}
	return "no model is stored"
}

// binOf returns the index of the bin with v, -1 below all bins, and their number above all. A
// bin includes its lower edge; the last bin includes both edges.
func (m *model) binOf(v float64) int {
	last := len(m.Counts) - 1
	width := m.Edges[last+1] - m.Edges[last]
	if v >= m.Edges[last] && v-m.Edges[last+1] <= 1e-6*width { // edges may be rounded
		return last
	}
	above, _ := slices.BinarySearchFunc(m.Edges, v, func(edge, v float64) int {
		if edge <= v {
			return -1
		}
		return 1
	})
	return above - 1
}
