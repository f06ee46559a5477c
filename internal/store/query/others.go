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
	var rows [][]any
	var err error
	if n, ok := eventNumbers(r.EventID); ok {
		rows, err = a.collect(ctx, text("place_number"), int32(a.Run.ID), int32(r.PID), n[0], n[1], n[2])
	}
	if err == nil && len(rows) == 0 {
		rows, err = a.collect(ctx, text("place"), int32(a.Run.ID), int32(r.PID), int32(r.RID), r.EventID)
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &Place{Function{Program: r.PID, FID: r.FID, Name: r.Func, fn: whole[int32](rows[0][0])}, whole[int32](rows[0][1])}, nil
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
func (a *Asker) twin(ctx context.Context, program trace.Program, rank trace.Rank, entry trace.Micros, p *Place) (id string, samePath bool, err error) {
	rows, err := a.bulk().collect(ctx, text("twin"), int32(a.Run.ID), int32(program), p.Function.fn, p.path, int32(rank), int64(entry))
	if err != nil || len(rows) == 0 {
		return "", false, err
	}
	samePath, _ = rows[0][1].(bool)
	return word[string](rows[0][0]), samePath, nil
}

// EventWithTwin returns what Event, Place and Twin do. It reads the documents of anomalies that
// are in memory at the same time. twin is nil if there is none, or if the execution is not an
// anomaly.
func (a *Asker) EventWithTwin(ctx context.Context, id string, p *trace.Program) (e, twin *Event, place *Place, samePath bool, err error) {
	n, numbered := eventNumbers(id)
	if a.Memory == nil || !numbered {
		return a.eventThenTwin(ctx, id, p)
	}
	rows, err := a.bulk().collect(ctx, text("place_anomaly"), int32(a.Run.ID), n[0], n[1], n[2], program(p))
	if err != nil {
		return nil, nil, nil, false, err
	}
	if len(rows) != 1 {
		return a.eventThenTwin(ctx, id, p)
	}
	row := rows[0]
	of := whole[trace.Program](row[0])
	place = &Place{Function{Program: of, Name: word[string](row[4]), fn: whole[int32](row[2])}, whole[int32](row[3])}
	other, samePath, err := a.twin(ctx, of, trace.Rank(n[0]), whole[trace.Micros](row[1]), place)
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
	Process
	Event, Host, Function string
	Entry, Lost           trace.Micros
}

func relatedOf(row []any) Related {
	return Related{
		Process: Process{whole[trace.Program](row[0]), whole[trace.Rank](row[1])}, Event: word[string](row[2]), Host: word[string](row[3]),
		Function: word[string](row[4]), Entry: whole[trace.Micros](row[5]), Lost: whole[trace.Micros](row[6]),
	}
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
	var rows [][]any
	n, ok := eventNumbers(event)
	var err error
	if ok {
		rows, err = a.collect(ctx, text("related"), int32(a.Run.ID), int32(program), n[0], n[1], n[2])
	}
	if err == nil && len(rows) == 0 {
		rows, err = a.collect(ctx, text("related_text"), int32(a.Run.ID), int32(program), event)
	}
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	o := relatedOf(rows[0])
	return &o, nil
}

// Victims returns who waited because of a culprit, as it was stored when the run ended:
// those that lost most, but no more than limit.
func (a *Asker) Victims(ctx context.Context, program trace.Program, culprit string, limit int) (list []Related, err error) {
	a = a.bulk()
	numbered, odd := make(map[int64][]string), make(map[int64][]string) // ids by program
	err = a.each(ctx, text("victims"), func(row []any) {
		id := word[string](row[1])
		if _, ok := eventNumbers(id); ok {
			numbered[row[0].(int64)] = append(numbered[row[0].(int64)], id)
		} else {
			odd[row[0].(int64)] = append(odd[row[0].(int64)], id)
		}
	}, int32(program), culprit)
	if err != nil {
		return nil, err
	}
	for p, ids := range numbered {
		err := a.each(ctx, text("related_worst"), func(row []any) { list = append(list, relatedOf(row)) }, int32(p), strings.Join(ids, ","), int64(limit))
		if err != nil {
			return nil, err
		}
	}
	for p, ids := range odd {
		for _, id := range ids {
			r, err := a.Related(ctx, trace.Program(p), id)
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
	rows, err := a.collect(ctx, text("neighbors"), int32(a.Run.ID), int32(issue), int64(r.Entry), r.EventID, int32(r.PID), p.Function.fn, p.path)
	if err != nil || len(rows) == 0 {
		return "", "", err
	}
	return word[string](rows[0][0]), word[string](rows[0][1]), nil
}

// nearest is how many anomalies before and after another are looked at first: most of
// those of the same function and call path are of the same issue.
const nearest = 20

// near looks for Neighbors among the nearest. It is sure unless there may be nearer ones
// than those that it found, or others where it found none.
func (a *Asker) near(ctx context.Context, issue int, r *provenance.Record, p *Place) (previous, next string, sure bool, err error) {
	rows, err := a.collect(ctx, text("neighbors_near"), int32(a.Run.ID), int32(r.PID), p.Function.fn, p.path, int64(r.Entry), int64(nearest))
	if err != nil {
		return "", "", false, err
	}
	own := slices.IndexFunc(rows, func(row []any) bool { return row[0] == r.EventID })
	if own < 0 {
		return "", "", false, nil // many at the same time
	}
	member, err := a.members(ctx, issue, r.PID, rows)
	if err != nil {
		return "", "", false, err
	}
	before, after := rows[:own], rows[own+1:]
	edges := map[any]bool{rows[0][2]: len(rows) >= nearest, rows[len(rows)-1][2]: len(rows) >= nearest} // times of which not all may be there
	sure = true
	for i := range before {
		if row := before[len(before)-1-i]; member[row[0]] {
			previous, sure = word[string](row[0]), !edges[row[2]]
			break
		}
	}
	if previous == "" {
		sure = len(rows) < nearest
	}
	for _, row := range after {
		if member[row[0]] {
			return previous, word[string](row[0]), sure && !edges[row[2]], nil
		}
	}
	return previous, "", sure && len(rows) < nearest, nil
}

// members tells which of some anomalies of a program are of an issue.
func (a *Asker) members(ctx context.Context, issue int, program trace.Program, rows [][]any) (map[any]bool, error) {
	args := []any{int32(a.Run.ID), int32(program), int32(issue)}
	marks := func(column int) string {
		var list []string
		for _, row := range rows {
			args = append(args, row[column])
			list = append(list, fmt.Sprintf("$%d", len(args)))
		}
		return strings.Join(list, ", ")
	}
	sql := strings.ReplaceAll(strings.ReplaceAll(text("neighbors_linked"), "/*ranks*/", marks(1)), "/*events*/", marks(0))
	member := make(map[any]bool)
	linked, err := a.collect(ctx, sql, args...)
	for _, row := range linked {
		member[row[0]] = true
	}
	return member, err
}

// Point is an execution by its time.
type Point struct {
	Event           string
	Entry           trace.Micros
	Exclusive, Lost trace.Micros
	Rank            trace.Rank
	Host            string
	Status          string // empty for typical executions
}

func (a *Asker) points(ctx context.Context, name string, args ...any) (list []Point, err error) {
	err = a.bulk().each(ctx, text(name), func(row []any) {
		list = append(list, Point{
			Event: word[string](row[0]), Entry: whole[trace.Micros](row[1]), Exclusive: whole[trace.Micros](row[2]), Lost: whole[trace.Micros](row[3]),
			Rank: whole[trace.Rank](row[4]), Host: word[string](row[5]), Status: word[string](row[6]),
		})
	}, args...)
	return list, err
}

// PointsOfIssue returns the anomalies of an issue, as it was stored when the run ended:
// those that lost most, but no more than limit. f is the function of the issue.
func (a *Asker) PointsOfIssue(ctx context.Context, issue int, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points", int32(issue), int64(limit), int32(f.Program), f.fn)
}

// PointsOfFunction returns the anomalies of a function that were not withdrawn: those
// that lost most, but no more than limit.
func (a *Asker) PointsOfFunction(ctx context.Context, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points_function", int32(f.Program), f.fn, int64(limit))
}

// TypicalPoints returns typical executions of a function; if there are more than limit,
// some of all times.
func (a *Asker) TypicalPoints(ctx context.Context, f *Function, limit int) ([]Point, error) {
	return a.points(ctx, "points_typical", int32(f.Program), f.fn, int64(limit))
}
