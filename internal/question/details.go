package question

import (
	"context"
	"errors"
)

// Details are what an explanation looks at closely, messages, counters and states of nodes,
// of some executions of a run: those with the least lots, which are the first of whatever
// is drawn. Nobody changes them.
type Details struct {
	of map[string]*sampled
}

// Bounds of details: runs of fewer executions are asked of the store, of others details of
// so many are held.
const (
	leastDetailed = 50_000
	maxDetailed   = 60_000
)

// ReadDetails reads those of the executions that are in memory; nil if there are so few of
// them that the store can be asked.
func (a *Asker) ReadDetails(ctx context.Context) (*Details, error) {
	x := a.InMemory
	if x == nil || x.Len() < leastDetailed {
		return nil, nil //nolint:nilnil // the store is asked
	}
	d, below := &Details{make(map[string]*sampled)}, lots*maxDetailed/int64(x.Len())
	for _, c := range []*columns{&x.flagged, &x.typical} {
		for i := range c.len() {
			if x.lot(c, i) < below {
				s := x.sampled(c, i)
				d.of[s.key()] = s
			}
		}
	}
	const where = "(ev_row * 7919 + rid) % 1009 < $2::BIGINT"
	args := []any{below}
	if err := errors.Join(a.messagesOf(ctx, d.of, where, args), a.countersOf(ctx, d.of, where, args), a.statesOf(ctx, d.of, where, args)); err != nil {
		return nil, err
	}
	return d, nil
}

// mark marks executions whose details are at hand.
func (d *Details) mark(list []*sampled) {
	if d == nil {
		return
	}
	for _, x := range list {
		x.detailed = d.of[x.key()] != nil
	}
}

// fill fills in what is known of executions, and returns the others.
func (d *Details) fill(byKey map[string]*sampled) (unknown map[string]*sampled) {
	if d == nil {
		return byKey
	}
	unknown = make(map[string]*sampled)
	for key, x := range byKey {
		if known := d.of[key]; known != nil {
			x.message, x.counters, x.states, x.stateRead = known.message, known.counters, known.states, known.stateRead
		} else {
			unknown[key] = x
		}
	}
	return unknown
}
