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
	Program trace.Program `sql:"pid"`
	FID     int           `sql:"fid"`
	Name    string        `sql:"name"`
	Number  int32         `sql:"fn"` // in the store
}

// Function finds a function by its name, a pattern with * and ?, or a part of
// its name. Several that match are an error that lists them.
func (a *Asker) Function(ctx context.Context, name string, p *trace.Program) (*Function, error) {
	for _, pattern := range []string{like(name), "%" + like(name) + "%"} {
		found, err := readAll[Function](ctx, a, text("func_match"), program(p), name, pattern)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		if len(found) == 1 || found[0].Name == name && found[1].Name != name {
			return &found[0], nil
		}
		return nil, ambiguous(name, found)
	}
	return nil, fmt.Errorf("function %q: %w; chimbuko top lists those with anomalies", name, provdb.ErrNotFound)
}

func ambiguous(name string, found []Function) error {
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
	return a.Query(ctx, text("func_profile"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number)
}

// OverRanks answers with the ranks on which the function lost most.
func (a *Asker) OverRanks(ctx context.Context, f *Function, limit int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_ranks"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number, int64(limit))
}

// RankLoss is a rank by what a function lost there.
type RankLoss struct {
	Rank      trace.Rank `sql:"rank"`
	Host      string     `sql:"host"`
	Anomalies int64      `sql:"anomalies"`
	Lost      int64      `sql:"lost_us"`
	Longest   int64      `sql:"longest_us"`
	First     float64    `sql:"first_s"` // seconds since the run's begin
	Last      float64    `sql:"last_s"`
}

// RankLosses returns the ranks on which the function lost most.
func (a *Asker) RankLosses(ctx context.Context, f *Function, limit int) ([]RankLoss, error) {
	return readAll[RankLoss](ctx, a.bulk(), text("func_ranks"), int64(a.Begin), int32(f.Program), f.Number, int64(limit))
}

// OverTime answers with the anomalies of equal parts of the time from the run's
// begin to the last anomaly. Parts without any are left out.
func (a *Asker) OverTime(ctx context.Context, f *Function, parts int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_times"), int32(a.Run.ID), int64(a.Begin), int32(f.Program), f.Number, int64(parts))
}

// Paths answers with the call paths that lead to the function.
func (a *Asker) Paths(ctx context.Context, f *Function, limit int) (*provdb.Rows, error) {
	return a.Query(ctx, text("func_paths"), int32(a.Run.ID), int32(f.Program), f.Number, int64(limit))
}

// Model returns the final model of the function, nil where there is none.
func (a *Asker) Model(ctx context.Context, f *Function) (json.RawMessage, error) {
	return a.model(ctx, "func_model", f)
}

func (a *Asker) model(ctx context.Context, statement string, f *Function) (json.RawMessage, error) {
	type row struct {
		Model json.RawMessage `sql:"model"`
	}
	first, err := readFirst[row](ctx, a, text(statement), int32(f.Program), f.Number)
	if err != nil || first == nil {
		return nil, err
	}
	return first.Model, nil
}
