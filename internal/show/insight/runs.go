package insight

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Runs lists the runs of the store and names the watched one.
func (in *Insight) Runs(ctx context.Context) (*api.RunList, error) {
	answer := &api.RunList{Rows: []json.RawMessage{}, Watched: in.Run}
	reader := in.Source.Reader()
	if reader == nil {
		return answer, nil
	}
	return InSlot(ctx, in, func(ctx context.Context) (_ *api.RunList, err error) {
		answer.Rows, err = objects(reader.Query(ctx, statement("runs"), nil))
		return answer, err
	})
}

// OneRun returns a run with its settings and totals, as JSON.
func (in *Insight) OneRun(ctx context.Context, run string) (json.RawMessage, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (json.RawMessage, error) {
		rows, err := objects(q.Query(ctx, statement("runs"), q.Run.Name))
		if err != nil || len(rows) != 1 {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		info := q.Run.Info
		if info == nil {
			info = json.RawMessage("null")
		}
		return json.RawMessage(strings.TrimSuffix(string(rows[0]), "}") + `,"info":` + string(info) + "}"), nil
	})
}

// SnapshotParams bound the rows of a snapshot.
type SnapshotParams struct{ Top, Newest int }

// Snapshot returns the state of the pipeline, the functions that lost most, and the newest
// anomalies. It fails if neither the source nor the store has the run; answers that the store
// cannot give now are left out.
func (in *Insight) Snapshot(ctx context.Context, run string, of SnapshotParams) (*api.SnapshotOfRun, error) {
	answer := new(api.SnapshotOfRun)
	var err error
	if run == in.Run {
		if answer.Status, err = in.Source.Status(ctx); err != nil {
			return nil, err
		}
	}
	rows, err := read(ctx, in, run, func(ctx context.Context, q *runQuery) (rows [2][]json.RawMessage, err error) {
		if rows[0], err = objects(q.Top(ctx, query.Top{By: "function", Order: "lost", Limit: of.Top, Waits: true})); err == nil {
			rows[1], err = newestOf(ctx, q.Queries, of.Newest)
		}
		return rows, err
	})
	switch {
	case err == nil:
		answer.Top, answer.Newest = rows[0], rows[1]
	case answer.Status == nil:
		return nil, err
	default:
		answer.Problem = AsProblem(err)
	}
	return answer, nil
}

// newestOf returns the anomalies that were entered last, the newest first.
func newestOf(ctx context.Context, a *query.Queries, n int) ([]json.RawMessage, error) {
	rows, err := a.Query(ctx, statement("newest"), int32(a.Run.ID), int64(n))
	if err != nil {
		return nil, err
	}
	list, err := rows.Collect()
	if err != nil || len(list) == 0 || list[0][0] == nil {
		return []json.RawMessage{}, err
	}
	since := a.Unit.Duration(trace.Ticks(list[0][0].(int64)) - a.Begin)
	// Several may have the same entry time as the first of them.
	all, err := objects(a.Executions(ctx, executions.Filter{Since: &since, Order: "time", Limit: n + MaxRows}))
	if err != nil {
		return nil, err
	}
	all = all[max(0, len(all)-n):]
	slices.Reverse(all)
	return all, nil
}
