package blame

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// timeline finds the anomalies within an interval of time.
type timeline struct {
	items []int32 // in order of entry
	all   []Anomaly
	last  []trace.Ticks // tree of the latest exits; the children of node n are 2n and 2n+1
}

func newTimeline(all []Anomaly, items []int32) *timeline {
	slices.SortFunc(items, func(a, b int32) int {
		return cmp.Or(cmp.Compare(all[a].Entry, all[b].Entry), cmp.Compare(a, b))
	})
	n := 1
	for n < len(items) {
		n *= 2
	}
	t := &timeline{items: items, all: all, last: make([]trace.Ticks, 2*n)}
	for i := range n {
		t.last[n+i] = math.MinInt64
		if i < len(items) {
			t.last[n+i] = all[items[i]].Exit
		}
	}
	for i := n - 1; i > 0; i-- {
		t.last[i] = max(t.last[2*i], t.last[2*i+1])
	}
	return t
}

// maxMatches is the number of anomalies to consider for a wait: the last ones.
const maxMatches = 4096

// during returns the anomalies that run at any time between since and until, in order of entry.
func (t *timeline) during(since, until trace.Ticks) (matches []int32) {
	end, _ := slices.BinarySearchFunc(t.items, until, func(i int32, at trace.Ticks) int { return cmp.Compare(t.all[i].Entry, at) })
	var visit func(node, from, size int)
	visit = func(node, from, size int) { // from the last anomaly
		switch {
		case from >= end || t.last[node] <= since || len(matches) == maxMatches:
		case size == 1:
			matches = append(matches, t.items[from])
		default:
			visit(2*node+1, from+size/2, size/2)
			visit(2*node, from, size/2)
		}
	}
	visit(1, 0, len(t.last)/2)
	slices.Reverse(matches)
	return matches
}
