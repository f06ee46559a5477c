package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Place is what function an execution is of, and how that was called.
type Place struct {
	Function Function
	path     int32
}

// Place returns the place of an execution; nil if the store does not know it.
func (a *Asker) Place(ctx context.Context, r *provenance.Record) (*Place, error) {
	type row struct {
		Number int32 `sql:"fn"`
		Path   int32 `sql:"path"`
	}
	var found *row
	var err error
	if n, ok := eventNumbers(r.EventID); ok {
		found, err = readFirst[row](ctx, a, text("place_number"), int32(r.PID), n[0], n[1], n[2])
	}
	if err == nil && found == nil {
		found, err = readFirst[row](ctx, a, text("place"), int32(r.PID), int32(r.RID), r.EventID)
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &Place{Function{Program: r.PID, FID: r.FID, Name: r.Func, Number: found.Number}, found.Path}, nil
}

// Twin returns the typical execution of the same function to compare one with: of the
// same call path if there is one, then of the same rank, and then the nearest in time.
// samePath says whether it is of the same path; nil: there is none.
func (a *Asker) Twin(ctx context.Context, r *provenance.Record, p *Place) (twin *Event, samePath bool, err error) {
	id, samePath, err := a.twin(ctx, r.PID, r.RID, r.Entry, p)
	if err != nil || id == "" {
		return nil, false, err
	}
	twin, err = a.Event(ctx, id, &r.PID)
	return twin, samePath, err
}

// twin returns the id of the execution that Twin returns; empty if there is none.
func (a *Asker) twin(ctx context.Context, program trace.Program, rank trace.Rank, entry trace.Micros, p *Place) (id string, samePath bool,
	err error,
) {
	type row struct {
		ID       string `sql:"event_id"`
		SamePath bool   `sql:"same_path"`
	}
	r, err := readFirst[row](ctx, a.bulk(), text("twin"), int32(program), p.Function.Number, p.path, int32(rank), int64(entry))
	if err != nil || r == nil {
		return "", false, err
	}
	return r.ID, r.SamePath, nil
}

// EventWithTwin returns what Event, Place and Twin do. It reads the documents of anomalies that
// are in memory at the same time. twin is nil if there is none, or if the execution is not an
// anomaly.
func (a *Asker) EventWithTwin(ctx context.Context, id string, p *trace.Program) (e, twin *Event, place *Place, samePath bool, err error) {
	n, numbered := eventNumbers(id)
	if a.Memory == nil || !numbered {
		return a.eventThenTwin(ctx, id, p)
	}
	type row struct {
		numberKey
		Entry trace.Micros `sql:"entry"`
		Path  int32        `sql:"path"`
		Name  string       `sql:"func"`
	}
	rows, err := readAll[row](ctx, a.bulk(), text("place_anomaly"), n[0], n[1], n[2], program(p))
	if err != nil {
		return nil, nil, nil, false, err
	}
	if len(rows) != 1 {
		return a.eventThenTwin(ctx, id, p)
	}
	r := &rows[0]
	of := r.Program
	place = &Place{Function{Program: of, Name: r.Name, Number: r.Number}, r.Path}
	other, samePath, err := a.twin(ctx, of, trace.Rank(n[0]), r.Entry, place)
	if err != nil {
		return nil, nil, nil, false, err
	}
	g, asking := errgroup.WithContext(ctx)
	g.Go(func() (err error) { e, err = a.Event(asking, id, &of); return err })
	if other != "" {
		g.Go(func() (err error) { twin, err = a.Event(asking, other, &of); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, nil, nil, false, err
	}
	place.Function.FID = e.Record.FID
	return e, twin, place, samePath, nil
}

func (a *Asker) eventThenTwin(ctx context.Context, id string, p *trace.Program) (e, twin *Event, place *Place, samePath bool, err error) {
	if e, err = a.Event(ctx, id, p); err != nil {
		return nil, nil, nil, false, err
	}
	if place, err = a.Place(ctx, e.Record); err != nil || place == nil || e.Collection != "anomalies" {
		return e, nil, place, false, err
	}
	twin, samePath, err = a.Twin(ctx, e.Record, place)
	return e, twin, place, samePath, err
}

// Related is an anomaly that has to do with another.
type Related struct {
	trace.RankKey `sql:"pid,rid"`
	Event         string       `sql:"event_id"`
	Host          string       `sql:"hostname"`
	Function      string       `sql:"func"`
	Entry         trace.Micros `sql:"entry"`
	Lost          trace.Micros `sql:"lost_time"`
}

// Related returns an anomaly; nil if there is none of that name.
func (a *Asker) Related(ctx context.Context, program trace.Program, event string) (*Related, error) {
	if a.Memory != nil { // a copy of an open run may lack the newest
		if r, err := a.bulk().related(ctx, program, event); err != nil || r != nil {
			return r, err
		}
	}
	return a.related(ctx, program, event)
}

func (a *Asker) related(ctx context.Context, program trace.Program, event string) (*Related, error) {
	if n, ok := eventNumbers(event); ok {
		r, err := readFirst[Related](ctx, a, text("related"), int32(program), n[0], n[1], n[2])
		if err != nil || r != nil {
			return r, err
		}
	}
	return readFirst[Related](ctx, a, text("related_text"), int32(program), event)
}

// Victims returns who waited because of a culprit, as it was stored when the run ended:
// those that lost most, but no more than limit.
func (a *Asker) Victims(ctx context.Context, program trace.Program, culprit string, limit int) (list []Related, err error) {
	a = a.bulk()
	numbered, odd := make(map[trace.Program][]string), make(map[trace.Program][]string) // ids by program
	type row struct {
		trace.EventKey `sql:"pid,event_id"`
	}
	err = readEach(ctx, a, text("victims"), func(r *row) {
		if _, ok := eventNumbers(r.ID); ok {
			numbered[r.Program] = append(numbered[r.Program], r.ID)
		} else {
			odd[r.Program] = append(odd[r.Program], r.ID)
		}
	}, int32(program), culprit)
	if err != nil {
		return nil, err
	}
	for p, ids := range numbered {
		worst, err := readAll[Related](ctx, a, text("related_worst"), int32(p), strings.Join(ids, ","), int64(limit))
		if err != nil {
			return nil, err
		}
		list = append(list, worst...)
	}
	for p, ids := range odd {
		for _, id := range ids {
			r, err := a.Related(ctx, p, id)
			if err != nil {
				return nil, err
			}
			if r != nil {
				list = append(list, *r)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y Related) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Rank, y.Rank))
	})
	return list[:min(len(list), limit)], nil
}

// Neighbors returns the ids of the anomalies of an issue, as it was stored when the run
// ended, that were entered just before and after another of it; empty where there is none.
func (a *Asker) Neighbors(ctx context.Context, issue int, r *provenance.Record, p *Place) (previous, next string, err error) {
	a = a.bulk()
	previous, next, sure, err := a.near(ctx, issue, r, p)
	if err != nil || sure {
		return previous, next, err
	}
	type row struct {
		Previous string `sql:"previous"`
		Next     string `sql:"next"`
	}
	found, err := readFirst[row](ctx, a, text("neighbors"), int32(issue), int64(r.Entry), r.EventID, int32(r.PID), p.Function.Number, p.path)
	if err != nil || found == nil {
		return "", "", err
	}
	return found.Previous, found.Next, nil
}

// nearest is how many anomalies before and after another are looked at first: most of
// those of the same function and call path are of the same issue.
const nearest = 20

// near looks for Neighbors among the nearest. It is sure unless there may be nearer ones
// than those that it found, or others where it found none.
func (a *Asker) near(ctx context.Context, issue int, r *provenance.Record, p *Place) (previous, next string, sure bool, err error) {
	rows, err := readAll[nearRow](ctx, a, text("neighbors_near"), int32(r.PID), p.Function.Number, p.path, int64(r.Entry), int64(nearest))
	if err != nil {
		return "", "", false, err
	}
	own := slices.IndexFunc(rows, func(row nearRow) bool { return row.Event == r.EventID })
	if own < 0 {
		return "", "", false, nil // many at the same time
	}
	member, err := a.members(ctx, issue, r.PID, rows)
	if err != nil {
		return "", "", false, err
	}
	before, after := rows[:own], rows[own+1:]
	// times of which not all may be there
	edges := map[int64]bool{rows[0].Entry: len(rows) >= nearest, rows[len(rows)-1].Entry: len(rows) >= nearest}
	sure = true
	for _, row := range slices.Backward(before) {
		if member[row.Event] {
			previous, sure = row.Event, !edges[row.Entry]
			break
		}
	}
	if previous == "" {
		sure = len(rows) < nearest
	}
	for _, row := range after {
		if member[row.Event] {
			return previous, row.Event, sure && !edges[row.Entry], nil
		}
	}
	return previous, "", sure && len(rows) < nearest, nil
}

// nearRow is an anomaly near another.
type nearRow struct {
	Event string `sql:"event_id"`
	Rank  int32  `sql:"rid"`
	Entry int64  `sql:"entry"`
}

// members tells which of some anomalies of a program are of an issue.
func (a *Asker) members(ctx context.Context, issue int, program trace.Program, rows []nearRow) (map[string]bool, error) {
	args := []any{int32(program), int32(issue)}
	marks := func(value func(row *nearRow) any) string {
		var list []string
		for i := range rows {
			args = append(args, value(&rows[i]))
			list = append(list, fmt.Sprintf("$%d", len(args)+1)) // the run is the first
		}
		return strings.Join(list, ", ")
	}
	ranks := marks(func(row *nearRow) any { return row.Rank })
	events := marks(func(row *nearRow) any { return row.Event })
	sql := strings.NewReplacer("/*ranks*/", ranks, "/*events*/", events).Replace(text("neighbors_linked"))
	type linked struct {
		Event string `sql:"event_id"`
	}
	member := make(map[string]bool)
	err := readEach(ctx, a, sql, func(r *linked) { member[r.Event] = true }, args...)
	return member, err
}

// Point is an execution by its time.
type Point struct {
	Event     string       `sql:"event_id"`
	Entry     trace.Micros `sql:"entry"`
	Exclusive trace.Micros `sql:"runtime_exclusive"`
	Lost      trace.Micros `sql:"lost_time"`
	Rank      trace.Rank   `sql:"rid"`
	Host      string       `sql:"hostname"`
	Status    string       `sql:"status"` // empty for typical executions
}

func (a *Asker) points(ctx context.Context, name string, args ...any) ([]Point, error) {
	return readAll[Point](ctx, a.bulk(), text(name), args...)
}

// PointsOfIssue returns the anomalies of an issue, as it was stored when the run ended:
// those that lost most, but no more than limit. f is the function of the issue.
func (a *Asker) PointsOfIssue(ctx context.Context, issue int, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points", int32(issue), int64(limit), int32(f.Program), f.Number)
}

// PointsOfFunction returns the anomalies of a function that were not withdrawn: those
// that lost most, but no more than limit.
func (a *Asker) PointsOfFunction(ctx context.Context, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points_function", int32(f.Program), f.Number, int64(limit))
}

// TypicalPoints returns typical executions of a function; if there are more than limit,
// some of all times.
func (a *Asker) TypicalPoints(ctx context.Context, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points_typical", int32(f.Program), f.Number, int64(limit))
}
