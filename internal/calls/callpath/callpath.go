// Package callpath counts calls, and the time in them, by call path: the functions
// from the outermost to the one that was called. A Tree is bounded, and it is a sum:
// trees that are merged give the same in any order and grouping. The package is
// pure; a Tree must not be shared.
//
// A tree holds at most so many paths, none of them deeper than MaxDepth. Where there
// would be more it folds: what is deeper than some depth becomes, below each path of
// that depth, one path that ends in Other. The depth is the greatest that leaves no
// more paths than may be. So no call and no time is lost, and where a tree is folded
// depends on which paths there ever were in it and in all that was merged into it,
// not on their order: folding early, late or several times gives what folding all
// of them once at the end would give.
package callpath

import (
	"math"
	"math/bits"
)

// MaxPaths is how many paths a tree usually holds, those of Other not counted. Each
// path has at most one of these below it.
const MaxPaths = 20_000

// MaxDepth is how many functions a path has at most, before that of Other. Without
// such a bound the paths of a recursion would take the square of its depth.
const MaxDepth = 128

// Other stands, as the last function of a path, for all paths that were folded. No
// trace has so many functions that one of them would need the number.
const Other = math.MaxUint32

// OtherName is what people see for Other.
const OtherName = "(other paths)"

// Node is a path in a Tree: that of no call is Root.
type Node int32

// Root has no function and no calls.
const Root Node = 0

// Sums are those of the calls with a path. They are exact below 2⁶⁴, beyond which only
// damaged traces get.
type Sums struct {
	Calls     uint64
	Exclusive uint64 // microseconds in the calls themselves
}

// Tree counts calls by path. What the numbers of functions stand for its owner
// knows. Nodes are valid until the tree is folded.
type Tree struct {
	most  int
	depth int32 // of the deepest paths; what is deeper is in Other
	paths int   // without those of Other
	nodes []node
	sums  []Sums
	slots []slot // open addressing, at most half full
	shift uint8  // of the hash, for the number of slots

	marks []int32 // scratch
}

// node is a path: that of its parent and one function more.
type node struct {
	parent Node
	fn     uint32
	depth  int32
}

// slot finds a path by its parent and function.
type slot struct {
	key  uint64
	node Node // Root: free
}

// minSlots is how many slots a tree has at least, a power of two.
const minSlots = 16

// New returns a tree of at most so many paths.
func New(most int) *Tree {
	t := &Tree{most: most, depth: MaxDepth}
	t.clear(minSlots)
	return t
}

// clear removes all paths.
func (t *Tree) clear(slots int) {
	t.paths = 0
	t.nodes = append(t.nodes[:0], node{parent: -1})
	t.sums = append(t.sums[:0], Sums{})
	t.slots = make([]slot, slots)
	t.shift = uint8(64 - bits.TrailingZeros(uint(slots)))
}

func keyOf(parent Node, fn uint32) uint64 { return uint64(parent)<<32 | uint64(fn) }

// Find returns the path that continues from another with a function, or Root if the
// tree does not have it.
func (t *Tree) Find(parent Node, fn uint32) Node {
	key := keyOf(parent, fn)
	i := key * 0x9e3779b97f4a7c15 >> (t.shift & 63)
	for {
		s := &t.slots[i&uint64(len(t.slots)-1)]
		if s.key == key || s.node == Root {
			return s.node
		}
		i++
	}
}

// Add counts a call with a path.
func (t *Tree) Add(n Node, exclusive uint64) {
	s := &t.sums[n]
	s.Calls++
	s.Exclusive += exclusive
}

// Child returns the path that continues from another with a function. It is made if
// it is new; where it would be too deep, it is that of Other. The tree may have too
// many paths then, see Over.
func (t *Tree) Child(parent Node, fn uint32) Node {
	if n := t.Find(parent, fn); n != Root {
		return n
	}
	p := t.nodes[parent]
	switch {
	case parent != Root && p.fn == Other:
		return parent
	case fn != Other && p.depth >= t.depth:
		return t.Child(parent, Other)
	}
	n := Node(len(t.nodes))
	t.nodes = append(t.nodes, node{parent, fn, p.depth + 1})
	t.sums = append(t.sums, Sums{})
	if fn != Other {
		t.paths++
	}
	if 2*len(t.nodes) > len(t.slots) {
		t.grow()
	} else {
		t.put(n)
	}
	return n
}

// put makes a path be found.
func (t *Tree) put(n Node) {
	key := keyOf(t.nodes[n].parent, t.nodes[n].fn)
	i := key * 0x9e3779b97f4a7c15 >> t.shift
	for t.slots[i&uint64(len(t.slots)-1)].node != Root {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = slot{key, n}
}

// grow doubles the slots.
func (t *Tree) grow() {
	t.slots = make([]slot, 2*len(t.slots))
	t.shift--
	for n := 1; n < len(t.nodes); n++ {
		t.put(Node(n))
	}
}

// Len is how many paths there are, those of Other included.
func (t *Tree) Len() int { return len(t.nodes) - 1 }

// Depth is that of the deepest paths which the tree distinguishes.
func (t *Tree) Depth() int { return int(t.depth) }

// Over reports whether there are more paths than may be.
func (t *Tree) Over() bool { return t.paths > t.most }

// Fold makes the tree hold no more paths than may be, if it does. It returns, for
// each node of before, the one that it is in now.
func (t *Tree) Fold() (moved []Node) {
	var atDepth [MaxDepth + 1]int
	for _, n := range t.nodes[1:] {
		if n.fn != Other {
			atDepth[n.depth]++
		}
	}
	depth, paths := int32(0), 0
	for depth < t.depth {
		if paths += atDepth[depth+1]; paths > t.most {
			break
		}
		depth++
	}
	return t.foldTo(depth)
}

// foldTo folds what is deeper.
func (t *Tree) foldTo(depth int32) (moved []Node) {
	old := *t
	t.depth = min(t.depth, depth)
	t.nodes, t.sums = nil, nil
	t.clear(minSlots)
	moved = make([]Node, len(old.nodes))
	for i := 1; i < len(old.nodes); i++ { // parents come before their children
		n := t.Child(moved[old.nodes[i].parent], old.nodes[i].fn)
		t.sums[n].Calls += old.sums[i].Calls
		t.sums[n].Exclusive += old.sums[i].Exclusive
		moved[i] = n
	}
	return moved
}

// Folded is how many calls are in paths that were folded.
func (t *Tree) Folded() (calls uint64) {
	for i, n := range t.nodes {
		if n.fn == Other && i != int(Root) {
			calls += t.sums[i].Calls
		}
	}
	return calls
}

// Reset forgets all calls. The paths stay, and so does the depth.
func (t *Tree) Reset() { clear(t.sums) }
