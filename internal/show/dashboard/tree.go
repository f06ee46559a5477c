package dashboard

import (
	"cmp"
	"slices"
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
// than most are left. It returns how many it left out.
func prune[N tree[N]](root N, most int) int {
	var weights []float64
	walk(root, func(n N) { weights = append(weights, n.weight()) })
	if len(weights) <= most {
		return 0
	}
	slices.SortFunc(weights, func(a, b float64) int { return cmp.Compare(b, a) })
	least, left := weights[most], 0 // of equal ones none is kept, so that what is kept does not depend on their order
	walk(root, func(n N) {
		left++
		for name, child := range n.below() {
			if child.weight() <= least {
				delete(n.below(), name)
			}
		}
	})
	return len(weights) - left
}
