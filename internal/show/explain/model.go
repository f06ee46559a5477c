package explain

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// model is what a function was judged by.
type model struct{ provenance.Model }

func (m *model) known() bool { return m.Moments != nil || len(m.Counts) > 0 }

// absence says why there is no model.
func (m *model) absence() string {
	if m.Given {
		return "no model is kept that can be read"
	}
	return "no model is kept"
}

// binOf returns the number of the bin that holds v, -1 below all, and the number
// of bins above all. A bin holds its lower edge; the last one both.
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
