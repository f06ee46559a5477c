package flame

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// tree is a node of a flame graph with all below it.
type tree[N any] interface {
	below() map[string]N
	weight() float64 // no less than that of any node below
}

// walk calls f for a node and all below it.
func walk[N tree[N]](n N, f func(N)) {
	f(n)
	for _, c := range n.below() {
		walk(c, f)
	}
}

// prune leaves out the nodes with the least weight, with all below them, until no more
// than maxNodes are left. It says so if there are any.
func prune[N tree[N]](root N) string {
	var weights []float64
	walk(root, func(n N) { weights = append(weights, n.weight()) })
	if len(weights) <= maxNodes {
		return ""
	}
	slices.SortFunc(weights, func(a, b float64) int { return cmp.Compare(b, a) })
	least, left := weights[maxNodes], 0 // of equal ones none is kept, so that what is kept does not depend on their order
	walk(root, func(n N) {
		left++
		for name, child := range n.below() {
			if child.weight() <= least {
				delete(n.below(), name)
			}
		}
	})
	return text.Count(int64(len(weights)-left), "call path") + " with the least time are left out."
}
