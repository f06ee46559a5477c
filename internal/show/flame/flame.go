// Package flame builds trees of call paths, of one run or of two. It is pure.
package flame

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// maxNodes bounds the nodes of a tree.
const maxNodes = 5000

// Tree builds a tree of the call paths of a run, by time or by lost time. If there are several
// programs, they are the first level. partial describes the omitted part of the tree.
func Tree(r *comparison.Run, lost bool) (_ api.FlameNode, partial string) {
	root := newNode("all", activity.GroupUser)
	several := slices.ContainsFunc(r.Paths, func(p comparison.Path) bool { return p.Program != r.Paths[0].Program })
	root.add(r, 0, lost, nil, several)
	root.sum()
	partial = root.prune()
	return root.single(), partial
}

// Pair builds one tree of the call paths of two runs, by time or by lost time. only selects a
// program; nil selects all. several makes programs the first level.
func Pair(runs [2]*comparison.Run, lost bool, only *trace.Program, several bool) (_ api.FlamePairNode, partial string) {
	root := newNode("all", activity.GroupUser)
	var unknown []string
	for i, r := range runs {
		if !root.add(r, i, lost, only, several) && !lost {
			unknown = append(unknown, "AB"[i:i+1])
		}
	}
	root.sum()
	root.remove(0)
	if len(unknown) > 0 {
		partial = "Times of call paths are unknown for " + strings.Join(unknown, " and ") + "."
	}
	partial = strings.TrimSpace(partial + " " + root.prune())
	return root.pair(), partial
}

// node is a node of a tree that is being built. A tree of one run uses the first values.
type node struct {
	api.FlamePairNode
	children map[string]*node
}

func newNode(function, group string) *node {
	return &node{FlamePairNode: api.FlamePairNode{Function: function, Group: group}, children: make(map[string]*node)}
}

func (n *node) child(function, group string) *node {
	if n.children[function] == nil {
		n.children[function] = newNode(function, group)
	}
	return n.children[function]
}

func (n *node) program(p trace.Program) *node {
	return n.child(fmt.Sprintf("program %d", p), activity.GroupUser)
}

// add adds the paths of a run and reports whether any has a time.
func (n *node) add(r *comparison.Run, at int, lost bool, only *trace.Program, several bool) (timed bool) {
	device := make(map[trace.FuncKey]bool)
	for i := range r.Functions {
		if f := &r.Functions[i]; f.OnGPU {
			device[f.Key()] = true
		}
	}
	nodes := make([]*node, len(r.Paths))
	for i := range r.Paths {
		p := &r.Paths[i]
		if only != nil && p.Program != *only {
			continue
		}
		parent := n
		if p.Parent >= 0 {
			parent = nodes[p.Parent]
		} else if several {
			parent = n.program(p.Program)
		}
		nodes[i] = parent.child(p.Function, activity.Group(p.Function, device[trace.FuncKey{Program: p.Program, Name: p.Function}]))
		self, calls := p.Exclusive, p.Calls
		if lost {
			self, calls = p.Lost, p.Anomalies
		}
		nodes[i].Self[at] += float64(self)
		nodes[i].Calls[at] += calls
		timed = timed || self > 0
	}
	return timed
}

// sum sets the total times.
func (n *node) sum() {
	n.Total = n.Self
	for _, c := range n.children {
		c.sum()
		n.Total[0] += c.Total[0]
		n.Total[1] += c.Total[1]
	}
}

// weight returns the larger total, which is at least the weight of any child.
func (n *node) weight() float64 { return max(n.Total[0], n.Total[1]) }

// walk calls f with the node and all nodes below it.
func (n *node) walk(f func(*node)) {
	f(n)
	for _, c := range n.children {
		c.walk(f)
	}
}

// remove removes the nodes below n up to that weight.
func (n *node) remove(weight float64) {
	n.walk(func(n *node) {
		for name, c := range n.children {
			if c.weight() <= weight {
				delete(n.children, name)
			}
		}
	})
}

// prune removes the lightest nodes until at most maxNodes are left. It returns a sentence about
// them, or "".
func (n *node) prune() string {
	var weights []float64
	n.walk(func(n *node) { weights = append(weights, n.weight()) })
	if len(weights) <= maxNodes {
		return ""
	}
	slices.SortFunc(weights, func(a, b float64) int { return cmp.Compare(b, a) })
	n.remove(weights[maxNodes]) // all of equal weight, so that the result does not depend on their order
	left := 0
	n.walk(func(*node) { left++ })
	return text.Count(len(weights)-left, "call path") + " with the least time are left out."
}

// sortedChildren returns the children, the largest first.
func (n *node) sortedChildren() []*node {
	list := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), strings.Compare(a.Function, b.Function))
	})
	return list
}

// single returns the tree of one run.
func (n *node) single() api.FlameNode {
	out := api.FlameNode{
		Function: n.Function, Group: n.Group, Self: n.Self[0], Total: n.Total[0], Calls: n.Calls[0], Children: []api.FlameNode{},
	}
	for _, c := range n.sortedChildren() {
		out.Children = append(out.Children, c.single())
	}
	return out
}

// pair returns the tree of two runs.
func (n *node) pair() api.FlamePairNode {
	out := n.FlamePairNode
	out.Children = []api.FlamePairNode{}
	for _, c := range n.sortedChildren() {
		out.Children = append(out.Children, c.pair())
	}
	return out
}
