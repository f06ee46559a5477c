package callpath

// Len returns the number of paths, including those that end in Other.
func (t *Tree) Len() int { return len(t.nodes) - 1 }

// Folded returns the number of calls in folded paths.
func (t *Tree) Folded() (calls uint64) {
	for i, n := range t.nodes {
		if n.fn == Other && i != int(Root) {
			calls += t.sums[i].Calls
		}
	}
	return calls
}
