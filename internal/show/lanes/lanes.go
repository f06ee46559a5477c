// Package lanes draws the surroundings of an execution as lanes of calls with arrows between
// them. It is pure.
package lanes

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Of draws the window of an execution. The first lane is its thread, with open callers; the
// second, for a kernel, is the thread that launched it. Arrows are the launch and messages.
// Records have no calls of other ranks.
func Of(r *provenance.Record) (lanes []api.Lane, arrows []api.Arrow) {
	b := &laneBuilder{r: r, byID: make(map[string]*laneCall)}
	for i := range r.EventWindow.Execs {
		e := &r.EventWindow.Execs[i]
		b.add(0, laneCall{id: e.EventID, parent: e.ParentID, name: e.Func, entry: e.Entry, exit: e.Exit, anomaly: e.IsAnomaly})
	}
	b.stack(0, r.CallStack)
	b.add(0, laneCall{id: r.EventID, name: r.Func, entry: r.Entry, exit: r.Exit})
	if self := b.byID[r.EventID]; self != nil {
		self.self = true
	}
	b.lanes = []api.Lane{{Name: threadName(r), Rank: int64(r.RID), Thread: int64(r.TID)}}
	arrows = []api.Arrow{}
	if launch, ok := r.GPUParent.(provenance.GPUParent); ok && len(launch.CallStack) > 0 {
		arrows = append(arrows, b.launch(&launch))
	}
	for i := range r.EventWindow.Comms {
		arrows = append(arrows, messageArrow(r, &r.EventWindow.Comms[i]))
	}
	for i := range b.lanes {
		b.lanes[i].Calls = b.lane(i)
	}
	return b.lanes, arrows
}

func threadName(r *provenance.Record) string {
	l := r.GPULocation
	if l == nil {
		return fmt.Sprintf("rank %d, thread %d", r.RID, r.TID)
	}
	part := func(what string, n uint64) string {
		if n == math.MaxUint64 {
			return ""
		}
		return fmt.Sprintf(", %s %d", what, n)
	}
	return fmt.Sprintf("rank %d, GPU", r.RID) + part("device", l.Device) + part("context", l.Context) + part("stream", l.Stream)
}

// laneCall is a call of a lane.
type laneCall struct {
	id, parent, name string
	entry, exit      trace.Ticks // exit is 0 if the call was open
	anomaly, self    bool
	lane             int

	depth int
	end   trace.Ticks
	open  bool // end is not known yet
}

type laneBuilder struct {
	r     *provenance.Record
	lanes []api.Lane
	calls []*laneCall
	byID  map[string]*laneCall
}

// add adds a call, or completes a call that was added before.
func (b *laneBuilder) add(lane int, c laneCall) {
	if old := b.byID[c.id]; old != nil && old.lane == lane && c.id != "" {
		old.exit = cmp.Or(old.exit, c.exit)
		old.anomaly = old.anomaly || c.anomaly
		old.parent = cmp.Or(old.parent, c.parent)
		return
	}
	c.lane = lane
	b.calls = append(b.calls, &c)
	if b.byID[c.id] == nil {
		b.byID[c.id] = &c
	}
}

// stack adds the calls of a stack, which begins with the innermost.
func (b *laneBuilder) stack(lane int, stack []provenance.StackEntry) {
	parent := ""
	for _, e := range slices.Backward(stack) {
		b.add(lane, laneCall{id: e.EventID, parent: parent, name: e.Func, entry: e.Entry, exit: e.Exit, anomaly: e.IsAnomaly})
		parent = e.EventID
	}
}

// launch adds the thread that launched a kernel, if it is another one, and returns the arrow
// to the kernel.
func (b *laneBuilder) launch(p *provenance.GPUParent) api.Arrow {
	lane := 0
	if p.TID != b.r.TID {
		lane = 1
		b.lanes = append(b.lanes, api.Lane{
			Name: fmt.Sprintf("rank %d, thread %d", b.r.RID, p.TID), Rank: int64(b.r.RID), Thread: int64(p.TID),
		})
	}
	b.stack(lane, p.CallStack)
	return api.Arrow{Kind: "launch", FromLane: lane, From: b.sinceEntry(p.CallStack[0].Entry), Partner: int64(b.r.RID)}
}

// sinceEntry returns a time relative to the entry of the execution.
func (b *laneBuilder) sinceEntry(t trace.Ticks) float64 { return b.r.Unit.Between(b.r.Entry, t) }

// lane returns the nested calls of a lane. No call ends after its caller.
func (b *laneBuilder) lane(lane int) []api.LaneCall {
	var list []*laneCall
	last := trace.Ticks(math.MinInt64)
	for _, c := range b.calls {
		if c.lane == lane {
			list = append(list, c)
			last = max(last, c.entry, c.exit)
		}
	}
	b.nest(list)
	drawn := make([]api.LaneCall, 0, len(list))
	for _, c := range list {
		d := api.LaneCall{
			Event: c.id, Function: c.name, Depth: c.depth, Enter: b.sinceEntry(c.entry), Exit: b.sinceEntry(c.end), Open: c.exit == 0,
			Anomaly: c.anomaly, Self: c.self, Group: activity.Group(c.name, b.r.IsGPUEvent && lane == 0),
		}
		if name := provenance.CallName(c.name, c.id); name != c.name {
			d.Label = name
		}
		if c.open { // still open
			d.Exit = b.sinceEntry(max(last, c.entry))
		}
		drawn = append(drawn, d)
	}
	return drawn
}

// nest sorts calls by entry and sets their depths and ends. A call is nested in its parent or,
// if the record lacks the parent, in the last open call, with one depth left empty. An open
// call ends where the next call of its caller begins.
func (b *laneBuilder) nest(list []*laneCall) {
	place := make(map[string]int, len(b.r.CallStack)) // callers precede calls with the same entry
	for i := range b.r.CallStack {
		place[b.r.CallStack[i].EventID] = -i - 1
	}
	slices.SortStableFunc(list, func(x, y *laneCall) int {
		return cmp.Or(cmp.Compare(x.entry, y.entry), cmp.Compare(place[x.id], place[y.id]))
	})
	var stack []*laneCall
	for _, c := range list {
		n, direct := enclosing(stack, c)
		for _, ended := range stack[n:] {
			if ended.open || ended.end > c.entry {
				ended.end, ended.open = c.entry, false
			}
		}
		stack = stack[:n]
		c.depth, c.end, c.open = 0, max(c.entry, c.exit), c.exit == 0
		if n > 0 {
			outer := stack[n-1]
			c.depth = outer.depth + 1
			if !outer.open && (c.open || c.end > outer.end) {
				c.end, c.open = outer.end, false
			}
		}
		if !direct {
			c.depth++
		}
		stack = append(stack, c)
	}
}

// enclosing returns the number of calls of a stack that enclose a call, and whether its parent
// is the last of them.
func enclosing(stack []*laneCall, c *laneCall) (n int, direct bool) {
	if c.parent == "root" {
		return 0, true
	}
	for i, p := range slices.Backward(stack) {
		if c.parent != "" && p.id == c.parent && (p.open || p.end >= c.entry) {
			return i + 1, true
		}
	}
	n = len(stack)
	for n > 0 && !stack[n-1].open && stack[n-1].end <= c.entry {
		n--
	}
	return n, c.parent == ""
}

// messageArrow returns the arrow of a message.
func messageArrow(r *provenance.Record, m *provenance.CommEntry) api.Arrow {
	at := r.Unit.Between(r.Entry, m.Timestamp)
	a := api.Arrow{Kind: "send", ToLane: -1, From: at, To: at, Partner: int64(m.Target), Bytes: m.Bytes, Tag: int64(m.Tag)}
	if m.Type == "RECV" {
		a.Kind, a.FromLane, a.ToLane, a.Partner = "receive", -1, 0, int64(m.Source)
	}
	return a
}
