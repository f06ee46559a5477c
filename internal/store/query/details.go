package query

import (
	"context"
	"errors"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Details caches the messages, counters and node states of some executions of a run: those with
// the lowest lots, which come first in every sample. It must not be modified.
type Details struct {
	of   map[trace.EventKey]*sampled
	list []*sampled // in sampling order
}

// Details of about MaxDetailed executions are cached, about 30 MB, if a run has at least
// LeastDetailed executions.
const (
	LeastDetailed = 50_000
	MaxDetailed   = 60_000
)

// copiedPerExplanation is the number of executions that take as long to copy with their details as an
// explanation takes to read what it needs from DuckDB: 40 ms in runs of the scenarios slow-mode and
// rare-by-design with 2,000 to 32,000 executions, 2026-11-19. PostgreSQL and remote stores take longer.
const copiedPerExplanation = 3000

// ForExplain reads what a number of explanations share into memory: all executions with their details if
// that is faster, and else, in large runs, the details that the dashboard caches, so that explanations
// examine the same executions.
func (a *Queries) ForExplain(ctx context.Context, explanations int) (err error) {
	least := int64(LeastDetailed)
	if a.Memory, err = a.Copy(ctx, min(least-1, int64(explanations)*copiedPerExplanation)); err != nil {
		return err
	}
	if a.Memory != nil {
		least = 0
	}
	a.Details, err = a.ReadDetails(ctx, least, MaxDetailed)
	return err
}

// ReadDetails reads the details of about most executions. It returns nil if the run has fewer
// than least executions.
func (a *Queries) ReadDetails(ctx context.Context, least, most int64) (*Details, error) {
	n, err := a.Count(ctx)
	if err != nil || n == 0 || n < least {
		return nil, err
	}
	below := max(1, executions.Lots*most/n)
	inSample := executions.Lot.Between(int64(math.MinInt64), below-1) // lots may be negative
	d := &Details{of: make(map[trace.EventKey]*sampled)}
	if d.list, err = a.sample(ctx, executions.AllOf(inSample, executions.AnyOf(executions.Typical, executions.Flagged)), int(n)); err != nil {
		return nil, err
	}
	numbered := make(map[trace.EventKey]*sampled, len(d.list)) // only these have details in the store
	for _, x := range d.list {
		d.of[x.key()] = x
		if _, ok := trace.EventNumbers(x.Event); ok {
			numbered[x.key()] = x
		}
	}
	const where = executions.LotSQL + " < $2::BIGINT"
	args := []any{below}
	return d, errors.Join(a.messagesOf(ctx, numbered, where, args), a.countersOf(ctx, numbered, where, args),
		a.statesOf(ctx, numbered, where, args))
}

// first returns copies of the first n executions with their node states, or nil if there are fewer.
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

// mark sets hasDetails of the executions.
func (d *Details) mark(list []*sampled) {
	for _, x := range list {
		if !x.marked {
			x.marked, x.hasDetails = true, d.of[x.key()] != nil
		}
	}
}

// fill copies the cached details that fields of a kind need into the executions, and returns
// the executions that are not cached.
func (d *Details) fill(byKey map[trace.EventKey]*sampled, kind contrast.FieldKind) (missing map[trace.EventKey]*sampled) {
	if d == nil {
		return byKey
	}
	missing = make(map[trace.EventKey]*sampled)
	for key, x := range byKey {
		cached := d.of[key]
		switch {
		case cached == nil:
			missing[key] = x
		case kind == contrast.FieldCounter:
			x.counters = cached.counters
		case kind == contrast.FieldState:
			x.states, x.stateRead = cached.states, cached.stateRead
		default:
			x.message = cached.message
		}
	}
	return missing
}
