// Package callpath counts calls and their time by call path: the functions from the outermost to the called one. A Tree has
// limited size, and merging trees gives the same result in any order and grouping. The package is pure. A Tree is not safe
// for concurrent use.
//
// A function occurs at most MaxRecursion times in a path. A deeper call in a recursion has the path of the last call of that
// function around it. Recursions therefore have few paths, but their first levels, such as those of a multigrid solver, have
// separate paths.
//
// A tree contains a limited number of paths, none deeper than MaxDepth. If there are more, it folds: below each path of some
// depth, all deeper paths become one path that ends in Other. The depth is the greatest that satisfies the limit. A path in
// which a function has reached MaxRecursion counts as deep as where it did, because calls in a recursion return to such
// paths: they are kept or folded together. No call and no time is lost, and the depth depends only on the set of all paths
// that were ever added or merged, not on their order: folding early, late or several times gives the same result as folding
// once at the end.
package callpath

import (
	"math"
	"math/bits"
)

// MaxPaths is the usual limit of paths, not counting those that end in Other. At most one of these is below each path.
const MaxPaths = 20_000

// MaxDepth is the greatest number of functions in a path, not counting Other. Without it, the paths of a recursion of many
// functions would need memory quadratic in its depth.
const MaxDepth = 128

// MaxRecursion is the greatest number of occurrences of a function in a path.
const MaxRecursion = 8

// Other is the last function of a path that represents all folded paths. No trace has enough functions to use this number for
// one of them.
const Other = math.MaxUint32

// OtherName is the display name of Other.
const OtherName = "(other paths)"

// Node is a path in a Tree.
type Node int32

// Root is the empty path. It has no calls.
const Root Node = 0

// Sums contains the totals of the calls with a path. They are exact below 2⁶⁴, which only damaged traces exceed.
type Sums struct {
	Calls     uint64
	Exclusive uint64 // ticks in the calls themselves
}

// Tree counts calls by path. Its owner assigns the numbers of functions. Nodes are valid until the tree is folded.
type Tree struct {
	limit int
	depth int32 // greatest level; deeper paths are in Other
	paths int   // number of paths, not counting those that end in Other
	nodes []node
	sums  []Sums
	slots []slot // open addressing, at most three quarters full
	shift uint8  // shift of the hash for the number of slots

	recursions int // number of slots of recursive calls, whose nodes have other parents

	marks []int32 // scratch
}

// node is a path: the path of its parent and one more function.
type node struct {
	parent      Node
	fn          uint32
	depth       int16
	level       int16 // depth of its shortest recursive beginning, or else its own depth
	isRecursive bool  // a function occurs in it MaxRecursion times
}

// slot finds a path by its parent and function.
type slot struct {
	key  uint64
	node Node // Root if the slot is free
}

// minSlots is the least number of slots, a power of two.
const minSlots = 16

// New returns a tree with at most limit paths.
func New(limit int) *Tree {
	t := &Tree{limit: limit, depth: MaxDepth}
	t.clear(minSlots)
	return t
}

// clear removes all paths.
func (t *Tree) clear(slots int) {
	t.paths, t.recursions = 0, 0
	t.nodes = append(t.nodes[:0], node{parent: -1})
	t.sums = append(t.sums[:0], Sums{})
	t.slots = make([]slot, slots)
	t.shift = uint8(64 - bits.TrailingZeros(uint(slots)))
}

func keyOf(parent Node, fn uint32) uint64 { return uint64(parent)<<32 | uint64(fn) }

// Find returns the path that extends parent by a function, or Root if the tree does not have it.
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

// Add counts calls with a path.
func (t *Tree) Add(n Node, calls, exclusive uint64) {
	s := &t.sums[n]
	s.Calls += calls
	s.Exclusive += exclusive
}

// Child returns the path that extends parent by a function, and adds it if it is new. If the path would be too deep, Child
// returns the path that ends in Other. Afterwards, the tree may have too many paths; see ExceedsLimit.
func (t *Tree) Child(parent Node, fn uint32) Node {
	if n := t.Find(parent, fn); n != Root {
		return n
	}
	p := t.nodes[parent]
	if parent != Root && p.fn == Other {
		return parent
	}
	n := node{parent: parent, fn: fn, depth: p.depth + 1, level: p.depth + 1}
	if fn != Other {
		times, last := t.count(parent, fn)
		if times == MaxRecursion {
			t.putRecursion(parent, fn, last)
			return last
		}
		if n.isRecursive = p.isRecursive || times == MaxRecursion-1; p.isRecursive {
			n.level = p.level
		}
		if n.depth > MaxDepth || int32(n.level) > t.depth {
			return t.Child(parent, Other)
		}
	}
	at := Node(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.sums = append(t.sums, Sums{})
	if fn != Other {
		t.paths++
	}
	if 2*len(t.nodes) > len(t.slots) {
		t.grow()
	} else {
		t.put(at)
	}
	return at
}

// count returns the number of occurrences of a function in a path, and the path that ends with the last one.
func (t *Tree) count(path Node, fn uint32) (times int, last Node) {
	for n := path; n != Root; n = t.nodes[n].parent {
		if t.nodes[n].fn == fn {
			if times++; times == 1 {
				last = n
			}
		}
	}
	return times, last
}

// maxSlots is the number of slots at which recursive calls get no more slots.
const maxSlots = 1 << 17

// putRecursion makes Find return the path of a recursive call.
func (t *Tree) putRecursion(parent Node, fn uint32, n Node) {
	if t.recursions >= len(t.slots)/4 {
		if len(t.slots) >= maxSlots {
			return
		}
		t.grow()
	}
	t.recursions++
	t.enter(keyOf(parent, fn), n)
}

// Last returns the last function of a path and the path without it. The root has none.
func (t *Tree) Last(n Node) (parent Node, fn uint32) { return t.nodes[n].parent, t.nodes[n].fn }

// Hash returns the hash of a path with the names of functions, or 0 if one is unknown.
func (t *Tree) Hash(n Node, name func(fn uint32) (string, bool)) (h Hash) {
	parent, fn := t.Last(n)
	if parent != Root {
		if h = t.Hash(parent, name); h == 0 {
			return 0
		}
	}
	if known, ok := name(fn); ok {
		return h.Then(known)
	}
	return 0
}

// put adds a path to the slots.
func (t *Tree) put(n Node) { t.enter(keyOf(t.nodes[n].parent, t.nodes[n].fn), n) }

func (t *Tree) enter(key uint64, n Node) {
	i := key * 0x9e3779b97f4a7c15 >> t.shift
	for t.slots[i&uint64(len(t.slots)-1)].node != Root {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = slot{key, n}
}

// grow doubles the number of slots and drops those of recursive calls, which are added again when needed.
func (t *Tree) grow() {
	t.recursions = 0
	t.slots = make([]slot, 2*len(t.slots))
	t.shift--
	for n := 1; n < len(t.nodes); n++ {
		t.put(Node(n))
	}
}

// Depth returns the depth below which paths are folded.
func (t *Tree) Depth() int { return int(t.depth) }

// Room returns the number of paths that can be added before ExceedsLimit is true.
func (t *Tree) Room() int { return max(0, t.limit-t.paths) }

// ExceedsLimit reports whether the tree has too many paths.
func (t *Tree) ExceedsLimit() bool { return t.paths > t.limit }

// Fold reduces the tree to the limit of paths. It returns the new node of each old node.
func (t *Tree) Fold() (moved []Node) {
	var atDepth [MaxDepth + 1]int
	for _, n := range t.nodes[1:] {
		if n.fn != Other {
			atDepth[n.level]++
		}
	}
	depth, paths := int32(0), 0
	for depth < t.depth {
		if paths += atDepth[depth+1]; paths > t.limit {
			break
		}
		depth++
	}
	return t.foldTo(depth)
}

// foldTo folds the paths below a depth.
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

// Reset removes all calls and keeps the paths and the depth.
func (t *Tree) Reset() { clear(t.sums) }
