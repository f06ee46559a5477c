package quality

import (
	"context"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// watch passes on the steps of a simulated rank, keeps the truth about them, and
// counts the calls that are not normal.
type watch struct {
	*simulate.Stream
	each    map[string]bool  // troubles of which each call is to be found
	regions []*truth.Trouble // troubles that last, where this rank is
	calls   []truth.Call     // that troubles touched
	events  map[string]bool  // of those calls; true: it is to be found
	late    int              // that are to be found, from LateStep on
	open    map[trace.Thread][]openCall
	around  int64 // calls in regions that no trouble touched
}

// openCall is a call that has not ended.
type openCall struct {
	id    trace.EventID
	fn    trace.FuncID
	entry trace.Micros
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

// touched is how many calls are not normal.
func (w *watch) touched() int64 { return int64(len(w.events)) + w.around }

// Next returns the next step of the rank.
func (w *watch) Next(ctx context.Context) (*tau.Step, error) {
	step, err := w.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range w.Truth() {
		w.calls = append(w.calls, c)
		demanded := w.each[c.Trouble] && c.Role == truth.Cause && !c.Minor
		if demanded && !w.events[c.Event] && step.Index >= LateStep {
			w.late++
		}
		w.events[c.Event] = w.events[c.Event] || demanded
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

// inRegion reports whether a call is where and when a trouble lasts, by the rule of
// docs/formats/truth.md.
func (w *watch) inRegion(c *openCall, exit trace.Micros) bool {
	name, _ := w.Names().Func(w.Rank(), c.fn)
	return slices.ContainsFunc(w.regions, func(t *truth.Trouble) bool {
		return t.From <= exit && (t.To == 0 || c.entry <= t.To) && (len(t.Functions) == 0 || slices.Contains(t.Functions, name))
	})
}
