package query

import (
	"context"
	"errors"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Details are the messages, counters and node states of some executions of a run: those with
// the lowest lots, which come first in any sample. They are read only.
type Details struct {
	of   map[trace.EventKey]*sampled
	list []*sampled // in the order of samples
}

// Runs with at least LeastDetailed executions have details of about MaxDetailed of them,
// which takes about 30 MB.
const (
	LeastDetailed = 50_000
	MaxDetailed   = 60_000
)

// ForExplain makes explanations of a large run look at the same executions as the dashboard.
func (a *Queries) ForExplain(ctx context.Context) (err error) {
	a.Details, err = a.ReadDetails(ctx, LeastDetailed, MaxDetailed)
	return err
}

// ReadDetails returns the details of about most executions; nil if the run has fewer than
// least executions.
func (a *Queries) ReadDetails(ctx context.Context, least, most int64) (*Details, error) {
	n, err := a.Count(ctx)
	if err != nil || n == 0 || n < least {
		return nil, err
	}
	below := max(1, executions.Lots*most/n)
	inSample := executions.Lot.Between(int64(math.MinInt64), below-1) // it is negative for some ids
	d := &Details{of: make(map[trace.EventKey]*sampled)}
	if d.list, err = a.sample(ctx, executions.AllOf(inSample, executions.AnyOf(executions.Typical, executions.Flagged)), int(n)); err != nil {
		return nil, err
	}
	numbered := make(map[trace.EventKey]*sampled, len(d.list)) // the store has no details of others
	for _, x := range d.list {
		d.of[x.key()] = x
		if _, ok := executions.EventNumbers(x.Event); ok {
			numbered[x.key()] = x
		}
	}
	const where = executions.LotSQL + " < $2::BIGINT"
	args := []any{below}
	return d, errors.Join(a.messagesOf(ctx, numbered, where, args), a.countersOf(ctx, numbered, where, args),
		a.statesOf(ctx, numbered, where, args))
}

// first returns copies of the first n executions with their states; nil if there are fewer.
func (d *Details) first(n int) []*sampled {
	if d == nil || len(d.list) < n {
		return nil
	}
	list := make([]*sampled, n)
	for i, x := range d.list[:n] {
		c := *x
		c.message, c.counters = nil, nil
		list[i] = &c
	}
	return list
}

// mark marks executions whose details are at hand.
func (d *Details) mark(list []*sampled) {
	for _, x := range list {
		if !x.marked {
			x.marked, x.detailed = true, d.of[x.key()] != nil
		}
	}
}

// fill fills in what a field of a kind needs of executions, as far as it is known, and
// returns the others.
func (d *Details) fill(byKey map[trace.EventKey]*sampled, kind contrast.FieldKind) (unknown map[trace.EventKey]*sampled) {
	if d == nil {
		return byKey
	}
	unknown = make(map[trace.EventKey]*sampled)
	for key, x := range byKey {
		known := d.of[key]
		switch {
		case known == nil:
			unknown[key] = x
		case kind == contrast.FieldCounter:
			x.counters = known.counters
		case kind == contrast.FieldState:
			x.states, x.stateRead = known.states, known.stateRead
		default:
			x.message = known.message
		}
	}
	return unknown
}
