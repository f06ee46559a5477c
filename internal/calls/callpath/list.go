package callpath

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Entry is a path in a list. It follows its parent in the list.
type Entry struct {
	Parent int32 // index in the list; -1 if none
	Func   uint32
	Sums
}

// Append appends the paths with calls and all their parents to an empty list. It omits paths with a function for which skip,
// if not nil, returns true.
func (t *Tree) Append(list []Entry, skip func(fn uint32) bool) []Entry {
	places := t.markNodes(skip)
	for i := 1; i < len(t.nodes); i++ {
		if places[i] < 0 {
			continue
		}
		n := &t.nodes[i]
		places[i] = int32(len(list))
		list = append(list, Entry{places[n.parent], n.fn, t.sums[i]})
	}
	return list
}

// markNodes returns -1 for all nodes that Append omits, and for the root.
func (t *Tree) markNodes(skip func(fn uint32) bool) []int32 {
	marks := append(t.marks[:0], make([]int32, len(t.nodes))...)
	t.marks = marks
	for i := 1; i < len(marks); i++ {
		if n := &t.nodes[i]; marks[n.parent] < 0 || skip != nil && n.fn != Other && skip(n.fn) {
			marks[i] = -1
		}
	}
	for i := len(marks) - 1; i > 0; i-- { // children follow their parents
		switch parent := t.nodes[i].parent; {
		case marks[i] < 0:
		case marks[i] > 0 || t.sums[i].Calls > 0:
			marks[parent] = 1
		default:
			marks[i] = -1
		}
	}
	marks[Root] = -1
	return marks
}

// Take is like Append, but also removes the appended calls from the tree. It returns the number of calls that remain, in
// omitted paths.
func (t *Tree) Take(list []Entry, skip func(fn uint32) bool) (taken []Entry, left uint64) {
	list = t.Append(list, skip)
	for i, place := range t.marks {
		if place >= 0 {
			t.sums[i] = Sums{}
		}
		left += t.sums[i].Calls
	}
	return list, left
}

// Merge adds a list of paths that were folded below depth. It accepts any list: an entry whose Parent is not an earlier index
// has no parent.
func (t *Tree) Merge(depth int, list []Entry) {
	if depth < int(t.depth) {
		t.foldTo(int32(max(depth, 0)))
	}
	nodes := append(t.marks[:0], make([]int32, len(list))...)
	t.marks = nodes
	for i := range list {
		e := &list[i]
		parent := Root
		if uint64(uint32(e.Parent)) < uint64(i) {
			parent = Node(nodes[e.Parent])
		}
		n := t.Child(parent, e.Func)
		t.sums[n].Calls += e.Calls
		t.sums[n].Exclusive += e.Exclusive
		nodes[i] = int32(n)
	}
	if t.ExceedsLimit() {
		t.Fold()
	}
}

// Sort returns a sorted list: a path is followed by all paths that begin with it, and the paths of one parent are ordered by
// compare, with Other last.
func Sort(list []Entry, compare func(a, b uint32) int) []Entry {
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &list[a], &list[b]
		if c := cmp.Compare(x.Parent, y.Parent); c != 0 {
			return c
		}
		if x.Func == Other || y.Func == Other {
			return cmp.Compare(x.Func, y.Func)
		}
		return compare(x.Func, y.Func)
	})
	first := make([]int32, len(list)+1) // index in order of the first child plus 1, by parent
	for i, at := range slices.Backward(order) {
		first[list[at].Parent+1] = int32(i) + 1
	}
	sorted, open := make([]Entry, 0, len(list)), make([][2]int32, 0, MaxDepth)
	if len(list) > 0 {
		open = append(open, [2]int32{0, -1}) // index of the next child in order, and index of its parent in sorted
	}
	for len(open) > 0 {
		top := &open[len(open)-1]
		at := order[top[0]]
		e := list[at]
		oldParent := e.Parent
		e.Parent = top[1]
		if top[0]++; int(top[0]) == len(order) || list[order[top[0]]].Parent != oldParent {
			open = open[:len(open)-1]
		}
		if begin := first[at+1]; begin > 0 {
			open = append(open, [2]int32{begin - 1, int32(len(sorted))})
		}
		sorted = append(sorted, e)
	}
	return sorted
}

// AppendBinary appends the encoding of a list to b: for each path the distance to its parent, its function, its calls and
// their time.
func AppendBinary(b []byte, list []Entry) []byte {
	for i := range list {
		e := &list[i]
		b = binary.AppendUvarint(b, uint64(int32(i)-e.Parent))
		b = binary.AppendUvarint(b, uint64(e.Func+1)) // 0 for Other
		b = binary.AppendUvarint(b, e.Calls)
		b = binary.AppendUvarint(b, e.Exclusive)
	}
	return b
}

// Decode appends a list that AppendBinary encoded to an empty list. It takes memory in proportion to b.
func Decode(list []Entry, b []byte) ([]Entry, error) {
	for i := 0; len(b) > 0; i++ {
		var values [4]uint64
		for k := range values {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return list, fmt.Errorf("%w: call path %d is truncated", stats.ErrEncoding, i)
			}
			values[k], b = v, b[n:]
		}
		if values[0] == 0 || values[0] > uint64(i)+1 || values[1] > Other {
			return list, fmt.Errorf("%w: call path %d is impossible", stats.ErrEncoding, i)
		}
		list = append(list, Entry{int32(i) - int32(values[0]), uint32(values[1]) - 1, Sums{values[2], values[3]}})
	}
	return list, nil
}
