package query

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

// MaxIndexed is of how many executions there is an index, some 320 MB. Of runs with at
// least LeastDetailed of them details of about MaxDetailed are looked at, some 30 MB.
const (
	MaxIndexed    = 4_000_000
	LeastDetailed = 50_000
	MaxDetailed   = 60_000
)

// ForExplain has explanations of a large run look at the same executions as those of
// somebody who holds an index and details.
func (a *Asker) ForExplain(ctx context.Context) error {
	kept, err := a.Kept(ctx, 0)
	if err != nil || kept.Executions < LeastDetailed {
		return err
	}
	if a.InMemory, err = a.Index(ctx, MaxIndexed); err != nil {
		return err
	}
	a.Details, err = a.ReadDetails(ctx, LeastDetailed, MaxDetailed)
	return err
}

// ReadDetails reads those of about most of the executions that are in memory; nil if there
// are fewer than least of them, of which the store can be asked.
func (a *Asker) ReadDetails(ctx context.Context, least, most int) (*Details, error) {
	x := a.InMemory
	if x == nil || x.Len() == 0 || x.Len() < least {
		return nil, nil //nolint:nilnil // the store is asked
	}
	d, below := &Details{make(map[string]*sampled)}, max(1, lots*int64(most)/int64(x.Len()))
	numbered := make(map[string]*sampled) // of others nothing more is known
	for _, c := range []*columns{&x.flagged, &x.typical} {
		for i := range c.len() {
			if int64(c.lot[i]) < below {
				s := x.sampled(c, i)
				d.of[s.key()] = s
				if c.texts[int32(i)] == "" {
					numbered[s.key()] = s
				}
			}
		}
	}
	const where = "(ev_row * 7919 + rid) % 1009 < $2::BIGINT"
	args := []any{below}
	return d, errors.Join(a.messagesOf(ctx, numbered, where, args), a.countersOf(ctx, numbered, where, args), a.statesOf(ctx, numbered, where, args))
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
func (d *Details) fill(byKey map[string]*sampled, kind FieldKind) (unknown map[string]*sampled) {
	if d == nil {
		return byKey
	}
	unknown = make(map[string]*sampled)
	for key, x := range byKey {
		known := d.of[key]
		switch {
		case known == nil:
			unknown[key] = x
		case kind == FieldCounter:
			x.counters = known.counters
		case kind == FieldState:
			x.states, x.stateRead = known.states, known.stateRead
		default:
			x.message = known.message
		}
	}
	return unknown
}
