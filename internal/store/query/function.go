package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Function names a function of the run.
type Function struct {
	Program trace.Program
	FID     int
	Name    string

	fn int32
}

// Function finds a function by its name, a pattern with * and ?, or a part of
// its name. Several that match are an error that lists them.
func (a *Asker) Function(ctx context.Context, name string, p *trace.Program) (*Function, error) {
	for _, pattern := range []string{like(name), "%" + like(name) + "%"} {
		rows, err := a.collect(ctx, text("func_match"), int32(a.Run.ID), program(p), name, pattern)
		if err != nil {
			return nil, err
		}
		var found []*Function
		for _, row := range rows {
			found = append(found, &Function{trace.Program(row[0].(int64)), int(row[2].(int64)), row[3].(string), int32(row[1].(int64))})
		}
		if len(found) == 0 {
			continue
		}
		if len(found) == 1 || found[0].Name == name && found[1].Name != name {
			return found[0], nil
		}
		return nil, ambiguous(name, found)
	}
	return nil, fmt.Errorf("function %q: %w; chimbuko top lists those with anomalies", name, provdb.ErrNotFound)
}

func ambiguous(name string, found []*Function) error {
	var b strings.Builder
	for i, f := range found {
		if i == 10 {
			b.WriteString("\n  …")
			break
		}
		fmt.Fprintf(&b, "\n  program %d: %.200s", f.Program, f.Name)
	}
	return fmt.Errorf("%q is the name of several functions; say which, with --program if need be:%s", name, b.String())
}

// Profile answers with one row: times of all its calls, and sums over what was kept.
func (a *Asker) Profile(ctx context.Context, f *Function) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_profile"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.fn)
}

// OverRanks answers with the ranks on which the function lost most.
func (a *Asker) OverRanks(ctx context.Context, f *Function, limit int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_ranks"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.fn, int64(limit))
}

// RankLoss is a rank by what a function lost there.
type RankLoss struct {
	Rank                     trace.Rank
	Host                     string
	Anomalies, Lost, Longest int64   // times in microseconds
	First, Last              float64 // seconds since the run's begin
}

// RankLosses returns the ranks on which the function lost most.
func (a *Asker) RankLosses(ctx context.Context, f *Function, limit int) (list []RankLoss, err error) {
	err = a.bulk().each(ctx, text("func_ranks"), func(row []any) {
		l := RankLoss{Rank: whole[trace.Rank](row[0]), Host: word[string](row[1]), Anomalies: whole[int64](row[2]), Lost: whole[int64](row[3]), Longest: whole[int64](row[4])}
		l.First, _ = row[6].(float64)
		l.Last, _ = row[7].(float64)
		list = append(list, l)
	}, int64(a.Begin), int32(f.Program), f.fn, int64(limit))
	return list, err
}

// OverTime answers with the anomalies of equal parts of the time from the run's
// begin to the last anomaly. Parts without any are left out.
func (a *Asker) OverTime(ctx context.Context, f *Function, parts int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_times"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.fn, int64(parts))
}

// Paths answers with the call paths that lead to the function.
func (a *Asker) Paths(ctx context.Context, f *Function, limit int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_paths"), int32(a.Run.ID), int32(f.Program), f.fn, int64(limit))
}

// Model returns the final model of the function, nil where there is none.
func (a *Asker) Model(ctx context.Context, f *Function) (json.RawMessage, error) {
	rows, err := a.collect(ctx, text("func_model"), int32(a.Run.ID), int32(f.Program), f.fn)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return json.RawMessage(rows[0][0].(string)), nil
}
