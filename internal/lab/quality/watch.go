package quality

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// watch forwards the steps of a simulated rank, keeps their truth, and counts the calls
// that are not normal.
type watch struct {
	*simulate.Stream
	each    map[string]bool  // troubles whose calls must all be found
	regions []*truth.Trouble // lasting troubles of this rank
	calls   []truth.Call     // affected by troubles
	events  map[string]bool  // of those calls; true if the call must be found
	late    int              // calls from LateStep on that must be found
	open    map[trace.Thread][]openCall
	around  int64 // unaffected calls in regions
}

// openCall is a call without exit.
type openCall struct {
	id    trace.EventID
	fn    trace.FuncID
	entry trace.Ticks
}

func newWatch(s *simulate.Stream, troubles []*truth.Trouble) *watch {
	w := &watch{Stream: s, each: make(map[string]bool), events: make(map[string]bool), open: make(map[trace.Thread][]openCall)}
	for _, t := range troubles {
		w.each[t.Name] = t.Each
		if !t.Each && t.Program == s.Program() && slices.Contains(t.Ranks, s.Rank()) {
			w.regions = append(w.regions, t)
		}
	}
	return w
}

// touched returns the number of calls that are not normal.
func (w *watch) touched() int64 { return int64(len(w.events)) + w.around }

// Next returns the next step of the rank.
func (w *watch) Next(ctx context.Context) (*trace.Step, error) {
	step, err := w.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range w.Truth() {
		w.calls = append(w.calls, c)
		required := w.each[c.Trouble] && c.Role == truth.Cause && !c.Minor
		if required && !w.events[c.Event] && step.Index >= LateStep {
			w.late++
		}
		w.events[c.Event] = w.events[c.Event] || required
	}
	if len(w.regions) > 0 {
		for i := range step.Batches {
			w.walk(step.Index, &step.Batches[i])
		}
	}
	return step, nil
}

// walk follows the calls of a thread.
func (w *watch) walk(step int, b *trace.Batch) {
	stack := w.open[b.Thread]
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case trace.Enter:
			stack = append(stack, openCall{trace.EventID{Rank: b.Rank, Step: step, Row: e.Row}, e.Func(), e.Time})
		case trace.Exit:
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if w.inRegion(&top, e.Time) {
				if _, ok := w.events[top.id.String()]; !ok {
					w.around++
				}
			}
		}
	}
	w.open[b.Thread] = stack
}

// inRegion reports whether a call is in the region of a lasting trouble.
func (w *watch) inRegion(c *openCall, exit trace.Ticks) bool {
	name, _ := w.Names().Func(w.Rank(), c.fn)
	f := &truth.Flag{Program: w.Program(), Rank: w.Rank(), Function: name, Entry: c.entry, Exit: exit}
	return slices.ContainsFunc(w.regions, func(t *truth.Trouble) bool { return t.Covers(f) })
}
