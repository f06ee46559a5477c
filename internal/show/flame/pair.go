package flame

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Pair makes one tree of the call paths of two runs, by time or by lost time. only, if
// not nil, is the program that is wanted; several says that programs are the first level.
func Pair(runs [2]*comparison.Run, lost bool, only *trace.Program, several bool) (_ api.FlamePairNode, partial string) {
	root := &pairNode{FlamePairNode: api.FlamePairNode{Function: "all", Group: groupUser}}
	var unknown []string
	for i, r := range runs {
		if !root.add(r, i, lost, only, several) && !lost {
			unknown = append(unknown, "AB"[i:i+1])
		}
	}
	root.sum()
	if len(unknown) > 0 {
		partial = "The times of call paths are not known of " + strings.Join(unknown, " and ") + "."
	}
	partial = strings.TrimSpace(partial + " " + prune(root))
	return root.page(), partial
}

// pairNode is a node of a tree of two runs in the making.
type pairNode struct {
	api.FlamePairNode
	children map[string]*pairNode
}

// add adds the paths of one of the runs; false if there is no time in any of them.
func (n *pairNode) add(r *comparison.Run, at int, lost bool, only *trace.Program, several bool) (found bool) {
	device := make(map[trace.FuncKey]bool)
	for i := range r.Functions {
		if f := &r.Functions[i]; f.OnGPU {
			device[trace.FuncKey{Program: f.Program, Name: f.Name}] = true
		}
	}
	nodes := make([]*pairNode, len(r.Paths))
	for i := range r.Paths {
		p := &r.Paths[i]
		if only != nil && p.Program != *only {
			continue
		}
		parent := n
		if p.Parent >= 0 {
			parent = nodes[p.Parent]
		} else if several {
			parent = n.child(fmt.Sprintf("program %d", p.Program), false)
		}
		nodes[i] = parent.child(p.Function, device[trace.FuncKey{Program: p.Program, Name: p.Function}])
		self, calls := p.Exclusive, p.Calls
		if lost {
			self, calls = p.Lost, p.Anomalies
		}
		nodes[i].Self[at] += float64(self)
		nodes[i].Calls[at] += calls
		found = found || self > 0
	}
	return found
}

func (n *pairNode) child(name string, onGPU bool) *pairNode {
	if n.children == nil {
		n.children = make(map[string]*pairNode)
	}
	if n.children[name] == nil {
		n.children[name] = &pairNode{FlamePairNode: api.FlamePairNode{Function: name, Group: Group(name, onGPU)}}
	}
	return n.children[name]
}

// sum adds up what is below, and leaves out what has no time in either run.
func (n *pairNode) sum() {
	n.Total = n.Self
	for name, c := range n.children {
		c.sum()
		if c.weight() == 0 {
			delete(n.children, name)
		}
		n.Total[0] += c.Total[0]
		n.Total[1] += c.Total[1]
	}
}

func (n *pairNode) below() map[string]*pairNode { return n.children }
func (n *pairNode) weight() float64             { return max(n.Total[0], n.Total[1]) }

// page is the tree in the order in which it is drawn.
func (n *pairNode) page() api.FlamePairNode {
	out := n.FlamePairNode
	out.Children = []api.FlamePairNode{}
	for _, c := range n.children {
		out.Children = append(out.Children, c.page())
	}
	slices.SortFunc(out.Children, func(a, b api.FlamePairNode) int {
		return cmp.Or(cmp.Compare(max(b.Total[0], b.Total[1]), max(a.Total[0], a.Total[1])), strings.Compare(a.Function, b.Function))
	})
	return out
}
