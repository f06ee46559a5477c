package executions

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Place is the function and call path of an execution.
type Place struct {
	Function Function
	path     int32
}

// Place returns the place of an execution, or nil if it is not stored.
func (a *Reader) Place(ctx context.Context, r *provenance.Record) (*Place, error) {
	e, err := a.find(ctx, r.PID, r.EventID)
	if err != nil || e == nil {
		return nil, err
	}
	return &Place{Function{Program: r.PID, FID: r.FID, Name: r.Func, Number: e.Number}, e.Path}, nil
}

// find returns the execution with an ID, or nil. A copy of an open run may lack the newest executions, so find also searches
// the store.
func (a *Reader) find(ctx context.Context, program trace.Program, id string) (*Execution, error) {
	list, err := a.List(ctx, withID(&program, id), InSamplingOrder, 1)
	if err == nil && len(list) == 0 && a.Memory != nil {
		list, err = stored{a}.list(ctx, withID(&program, id), InSamplingOrder, 1)
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// twin returns the ID of the typical execution of the same function with which to compare an execution: preferably of the
// same call path, with about the median time of the function, on the same rank, and nearest in time. The ID is empty if there
// is no typical execution.
func (a *Reader) twin(ctx context.Context, of *Execution, p *Place) (id string, samePath bool, err error) {
	program, rank, entry := of.Program, of.Rank, of.Entry
	by := Order{
		first(PathNumber.In(PathID{program, p.path})), fromMedian(int64(of.Exclusive - of.Lost)), first(Rank.Between(int64(rank), int64(rank))),
		{Column: Column{sql: fmt.Sprintf("abs(entry - %d)", entry), of: func(x *Columns) any {
			return func(row int32) int64 { return max(x.entry[row]-int64(entry), int64(entry)-x.entry[row]) }
		}}},
		{Column: Rank},
		{Column: eventStep},
		{Column: eventRow},
	}
	list, err := a.List(ctx, AllOf(OfFunction(&p.Function), Typical), by, 1)
	if err != nil || len(list) == 0 {
		return "", false, err
	}
	return list[0].Event, list[0].Path == p.path, nil
}

// fromMedian sorts executions that take from half to twice the median first, and the others by their distance from it. A
// median that is not positive means that it is unknown.
func fromMedian(median int64) Key {
	low, high := median/2, 2*median
	if median <= 0 {
		low, high = math.MinInt64, math.MaxInt64
	}
	sql := fmt.Sprintf("CASE WHEN runtime_exclusive BETWEEN %d AND %d THEN 0 ELSE abs(runtime_exclusive - %d) END", low, high, median)
	return Key{Column: Column{sql: sql, of: func(x *Columns) any {
		return func(row int32) int64 {
			own := x.exclusive[row]
			if low <= own && own <= high {
				return 0
			}
			return max(own-median, median-own)
		}
	}}}
}

// first sorts the executions that a condition on numbers selects before all others.
func first(c Condition) Key {
	sql := fmt.Sprintf(strings.ReplaceAll(c.sql, "?", "%d"), c.values...)
	return Key{Column: Column{sql: "CASE WHEN " + sql + " THEN 0 ELSE 1 END", of: func(x *Columns) any {
		selected, _ := c.test(x)
		return func(row int32) int64 {
			if selected(row) {
				return 0
			}
			return 1
		}
	}}}
}

// EventWithTwin returns an execution, its place and, for an anomaly, its twin, which may be nil. samePath is true if both
// have the same call path. If the copy has the anomaly, the two documents are read concurrently.
func (a *Reader) EventWithTwin(ctx context.Context, id string, p *trace.Program) (e, twin *Event, place *Place, samePath bool, err error) {
	g, ctx := errgroup.WithContext(ctx)
	readTwin := func(of *Execution) error {
		place = &Place{Function{Program: of.Program, Name: of.Function, Number: of.Number}, of.Path}
		if !of.Anomalous {
			return nil
		}
		var other string
		if other, samePath, err = a.twin(ctx, of, place); err != nil || other == "" {
			return err
		}
		g.Go(func() (err error) { twin, err = a.Event(ctx, other, &of.Program); return err })
		return nil
	}
	var copied []Execution // executions of all programs with the ID
	if a.Memory != nil {
		if copied, err = a.Memory.list(ctx, withID(p, id), InSamplingOrder, 2); err != nil {
			return nil, nil, nil, false, err
		}
	}
	if len(copied) == 1 {
		g.Go(func() (err error) { e, err = a.Event(ctx, id, &copied[0].Program); return err })
		err = readTwin(&copied[0])
	} else if e, err = a.Event(ctx, id, p); err == nil {
		var of *Execution
		if of, err = a.find(ctx, e.Record.PID, e.Record.EventID); err == nil && of != nil {
			err = readTwin(of)
		}
	}
	if err = cmp.Or(g.Wait(), err); err != nil {
		return nil, nil, nil, false, err
	}
	if place != nil {
		place.Function.FID = e.Record.FID
	}
	return e, twin, place, samePath, nil
}

// Related returns the anomaly with an ID, or nil.
func (a *Reader) Related(ctx context.Context, program trace.Program, event string) (*Execution, error) {
	e, err := a.find(ctx, program, event)
	if err != nil || e == nil || !e.Anomalous {
		return nil, err
	}
	return e, nil
}

// Victims returns the anomalies that waited for a culprit, as stored when the run ended: at most limit, in descending order
// of lost time.
func (a *Reader) Victims(ctx context.Context, program trace.Program, event string, limit int) (list []Execution, err error) {
	return a.List(ctx, AllOf(culprit.In(trace.EventKey{Program: program, ID: event}), Anomalous.Is()), listOrder(Lost, true), limit)
}

// Neighbors returns the IDs of the anomalies of a finding, as stored when the run ended, that were entered just before and
// after another anomaly. A missing one is empty.
func (a *Reader) Neighbors(ctx context.Context, finding int, r *provenance.Record) (previous, next string, err error) {
	members := AllOf(Anomalous.Is(), Finding.Between(int64(finding), int64(finding)))
	entry, itself := int64(r.Entry), event.Between(r.EventID, r.EventID)
	upTo := event.Between("", r.EventID)
	for _, side := range []struct {
		where      Condition
		descending bool
		id         *string
	}{
		{AnyOf(Entry.Between(int64(math.MinInt64), entry-1), AllOf(Entry.Between(entry, entry), upTo, Not(itself))), true, &previous},
		{AnyOf(Entry.Between(entry+1, int64(math.MaxInt64)), AllOf(Entry.Between(entry, entry), Not(upTo))), false, &next},
	} {
		by := Order{{Entry, side.descending}, {event, side.descending}}
		list, err := a.List(ctx, AllOf(members, side.where), by, 1)
		if err != nil {
			return "", "", err
		}
		if len(list) > 0 {
			*side.id = list[0].Event
		}
	}
	return previous, next, nil
}

// byLost is the order of plots: by lost time, descending.
var byLost = Order{{Lost, true}, {Column: Entry}, {Column: event}}

// PointsOfFinding returns the anomalies of a finding, as stored when the run ended: at most limit,
// those with the most lost time.
func (a *Reader) PointsOfFinding(ctx context.Context, finding, limit int) ([]Execution, error) {
	return a.List(ctx, AllOf(Anomalous.Is(), Finding.Between(int64(finding), int64(finding))), byLost, limit)
}

// PointsOfFunction returns the anomalies of a function that were not withdrawn: at most limit,
// those with the most lost time.
func (a *Reader) PointsOfFunction(ctx context.Context, f *Function, limit int) ([]Execution, error) {
	return a.List(ctx, AllOf(OfFunction(f), Flagged), byLost, limit)
}

// TypicalPoints returns typical executions of a function. If there are more than limit, it returns a sample.
func (a *Reader) TypicalPoints(ctx context.Context, f *Function, limit int) ([]Execution, error) {
	return a.List(ctx, AllOf(OfFunction(f), Typical), InSamplingOrder, limit)
}
