package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// maxFlame is how many nodes a tree has at most.
const maxFlame = 5000

// pathTime is what belongs to a call path: the time in its last function itself.
type pathTime struct {
	program trace.Program
	path    []string // from the outermost function on
	self    float64  // microseconds
	calls   int64
}

// flame is a tree of call paths by time, or by lost time.
func (s *server) flame(ctx context.Context, q *asked) (any, error) {
	metric, program := q.p.word("metric", "time"), q.p.program()
	if metric != "time" && metric != metricLost {
		q.p.fail("metric", "unknown value %.40q (want lost, time)", metric)
	}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	find := q.timePaths
	if metric == metricLost {
		find = q.lostPaths
	}
	paths, partial, err := find(ctx, program)
	if err != nil {
		return nil, err
	}
	device := make(map[functionKey]bool)
	if err := q.OnDevice(ctx, func(p trace.Program, name string) { device[functionKey{p, name}] = true }); err != nil {
		return nil, err
	}
	root := newFlame(paths, device)
	if n := prune(root, maxFlame); n > 0 {
		partial = strings.TrimSpace(partial + fmt.Sprintf(" %s with the least time are left out.", counted(int64(n), "call path")))
	}
	return api.Flame{Metric: metric, Root: root.page(), Partial: partial}, nil
}

// lostPaths are the call paths of all anomalies that count, with what these lost
// themselves; nothing of that is missing.
func (q *asked) lostPaths(ctx context.Context, p *trace.Program) (paths []pathTime, partial string, err error) {
	ways, err := q.LostWays(ctx, p)
	for _, w := range ways {
		paths = append(paths, pathTime{w.Program, w.Path, float64(w.Lost), w.N})
	}
	return paths, "", err
}

// timePaths are all calls with their call paths and times.
func (q *asked) timePaths(ctx context.Context, p *trace.Program) (paths []pathTime, partial string, err error) {
	times, err := q.PathTimes(ctx, p)
	for i := range times {
		t := &times[i]
		paths = append(paths, pathTime{t.Program, t.Funcs, float64(t.Exclusive), t.Calls})
	}
	if len(paths) == 0 {
		partial = "The times of call paths are not known: they come some ten seconds after the first calls of a run, or an older chimbuko analyzed this one."
	}
	return paths, partial, err
}

// flameNode is a node of a tree in the making.
type flameNode struct {
	api.FlameNode
	children map[string]*flameNode
}

// newFlame makes the tree. Where there are several programs, they are its first level.
// device tells which functions run on a GPU.
func newFlame(paths []pathTime, device map[functionKey]bool) *flameNode {
	root := &flameNode{FlameNode: api.FlameNode{Function: "all", Group: groupUser}}
	several := slices.ContainsFunc(paths, func(p pathTime) bool { return p.program != paths[0].program })
	for _, p := range paths {
		at := root
		if several {
			at = at.child(fmt.Sprintf("program %d", p.program), false)
		}
		for _, name := range p.path {
			at = at.child(name, device[functionKey{p.program, name}])
		}
		at.Self += p.self
		at.Calls += p.calls
	}
	root.sum()
	return root
}

func (n *flameNode) child(name string, onGPU bool) *flameNode {
	if n.children == nil {
		n.children = make(map[string]*flameNode)
	}
	if n.children[name] == nil {
		n.children[name] = &flameNode{FlameNode: api.FlameNode{Function: name, Group: groupOf(name, onGPU)}}
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
