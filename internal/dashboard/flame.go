package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/question"
	"github.com/chimbuko/chimbuko/internal/trace"
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
		q.p.fail("metric", "%.40q is none of lost, time", metric)
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
	if n := root.prune(maxFlame); n > 0 {
		partial = strings.TrimSpace(partial + fmt.Sprintf(" %s with the least time are left out.", counted(int64(n), "call path")))
	}
	return Flame{Metric: metric, Root: root.page(), Partial: partial}, nil
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

// unknownPath is where functions are shown of whose callers nothing is known.
const unknownPath = "(call path not known)"

// timePaths are the functions with the time of all their calls. The store has it by
// function only. Each is shown at the call path that is most often seen in what is kept:
// that of a kept execution of it, or the way to it in those of others. partial says so.
func (q *asked) timePaths(ctx context.Context, p *trace.Program) (paths []pathTime, partial string, err error) {
	times, err := q.Times(ctx, p)
	if err != nil {
		return nil, "", err
	}
	if len(times) == 0 {
		return nil, "The times of all calls are stored when the run ends.", nil
	}
	ways, err := q.KeptWays(ctx, p)
	if err != nil {
		return nil, "", err
	}
	usual := usualPaths(ways)
	unplaced, total, lost := 0, 0.0, 0.0
	for _, t := range times {
		path := usual[functionKey{t.Program, t.Name}]
		if path == nil {
			path = []string{unknownPath, t.Name}
			unplaced++
			lost += t.Exclusive
		}
		total += t.Exclusive
		paths = append(paths, pathTime{t.Program, path, t.Exclusive, t.Calls})
	}
	partial = "Times are known by function, not by call path: all calls of a function are shown at the call path that is most often seen in the executions that are kept."
	if unplaced > 0 && total > 0 {
		partial += fmt.Sprintf(" Of %s with %s of the time no call path is kept.", counted(int64(unplaced), "function"), percentText(100*lost/total))
	}
	return paths, partial, nil
}

// usualPaths are the paths to functions that are seen most often, in themselves or as
// the begin of others.
func usualPaths(ways []question.Way) map[functionKey][]string {
	type seen struct {
		path []string
		n    int64
	}
	counts := make(map[functionKey]map[string]*seen)
	for _, w := range ways {
		for i, name := range w.Path {
			key := functionKey{w.Program, name}
			if counts[key] == nil {
				counts[key] = make(map[string]*seen)
			}
			path := w.Path[:i+1]
			text := strings.Join(path, "\x00")
			if counts[key][text] == nil {
				counts[key][text] = &seen{path: path}
			}
			counts[key][text].n += w.N
		}
	}
	usual := make(map[functionKey][]string, len(counts))
	for key, paths := range counts {
		var best *seen
		for _, s := range paths {
			// Ties must not depend on the order of a map.
			if best == nil || s.n > best.n || s.n == best.n && slices.Compare(s.path, best.path) < 0 {
				best = s
			}
		}
		usual[key] = best.path
	}
	return usual
}

// flameNode is a node of a tree in the making.
type flameNode struct {
	FlameNode
	children map[string]*flameNode
}

// newFlame makes the tree. Where there are several programs, they are its first level.
// device tells which functions run on a GPU.
func newFlame(paths []pathTime, device map[functionKey]bool) *flameNode {
	root := &flameNode{FlameNode: FlameNode{Function: "all", Group: groupUser}}
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
		n.children[name] = &flameNode{FlameNode: FlameNode{Function: name, Group: groupOf(name, onGPU)}}
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

// prune leaves out the nodes with the least time, with all below them, until no more
// than most are left. Their time stays in that of the nodes above them. It returns how
// many it left out.
func (n *flameNode) prune(most int) int {
	var totals []float64
	n.walk(func(c *flameNode) { totals = append(totals, c.Total) })
	if len(totals) <= most {
		return 0
	}
	slices.SortFunc(totals, func(a, b float64) int { return cmp.Compare(b, a) })
	least := totals[most] // of equal ones none is kept, so that what is kept does not depend on their order
	n.walk(func(c *flameNode) {
		for name, child := range c.children {
			if child.Total <= least {
				delete(c.children, name)
			}
		}
	})
	left := 0
	n.walk(func(*flameNode) { left++ })
	return len(totals) - left
}

func (n *flameNode) walk(f func(*flameNode)) {
	f(n)
	for _, c := range n.children {
		c.walk(f)
	}
}

// page is the tree in the order in which it is drawn: the largest first.
func (n *flameNode) page() FlameNode {
	out := n.FlameNode
	out.Children = []FlameNode{}
	for _, c := range n.children {
		out.Children = append(out.Children, c.page())
	}
	slices.SortFunc(out.Children, func(a, b FlameNode) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Function, b.Function))
	})
	return out
}
