// Package flame makes trees of call paths, of one run or of two, and groups functions by
// their names. Pure.
package flame

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// maxNodes is how many nodes a tree has at most.
const maxNodes = 5000

// Path is what belongs to a call path: the time in its last function itself.
type Path struct {
	Program trace.Program
	Funcs   []string // from the outermost function on
	Self    float64  // microseconds
	Calls   int64
}

// flameNode is a node of a tree in the making.
type flameNode struct {
	api.FlameNode
	children map[string]*flameNode
}

// Tree makes a tree of call paths; device tells which functions run on a GPU. Where there are
// several programs, they are its first level. partial says what was left out, if anything.
func Tree(paths []Path, device map[trace.FuncKey]bool) (_ api.FlameNode, partial string) {
	root := &flameNode{FlameNode: api.FlameNode{Function: "all", Group: groupUser}}
	several := slices.ContainsFunc(paths, func(p Path) bool { return p.Program != paths[0].Program })
	for _, p := range paths {
		at := root
		if several {
			at = at.child(fmt.Sprintf("program %d", p.Program), false)
		}
		for _, name := range p.Funcs {
			at = at.child(name, device[trace.FuncKey{Program: p.Program, Name: name}])
		}
		at.Self += p.Self
		at.Calls += p.Calls
	}
	root.sum()
	partial = prune(root)
	return root.page(), partial
}

func (n *flameNode) child(name string, onGPU bool) *flameNode {
	if n.children == nil {
		n.children = make(map[string]*flameNode)
	}
	if n.children[name] == nil {
		n.children[name] = &flameNode{FlameNode: api.FlameNode{Function: name, Group: Group(name, onGPU)}}
	}
	return n.children[name]
}

func (n *flameNode) sum() float64 {
	n.Total = n.Self
	for _, c := range n.children {
		n.Total += c.sum()
	}
	return n.Total
}

func (n *flameNode) below() map[string]*flameNode { return n.children }
func (n *flameNode) weight() float64              { return n.Total }

// page is the tree in the order in which it is drawn: the largest first.
func (n *flameNode) page() api.FlameNode {
	out := n.FlameNode
	out.Children = []api.FlameNode{}
	for _, c := range n.children {
		out.Children = append(out.Children, c.page())
	}
	slices.SortFunc(out.Children, func(a, b api.FlameNode) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Function, b.Function))
	})
	return out
}
