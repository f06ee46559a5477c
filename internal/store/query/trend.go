package query

import (
	"context"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Sums returns the sums by function of runs of a store, in the order of runs, as a trend needs them.
// It queries all runs at once. onQuery, if not nil, is called with each statement.
func Sums(ctx context.Context, r provdb.Reader, runs []provdb.Run, onQuery func(sql string, args []any)) ([]*comparison.Sums, error) {
	a := &Queries{Reader: executions.Reader{Store: r, OnQuery: onQuery}}
	units := make(map[provdb.RunID]trace.Unit)
	all, byID := make([]*comparison.Sums, len(runs)), make(map[provdb.RunID]*comparison.Sums, len(runs))
	for i := range runs {
		all[i] = &comparison.Sums{Comparable: Comparable(runs[i])}
		byID[runs[i].ID], units[runs[i].ID] = all[i], runs[i].Decoded().Unit
	}
	byTable, err := a.runsByRollup(ctx, runs)
	if err != nil {
		return nil, err
	}
	for table, ids := range byTable {
		rows, err := a.Query(ctx, strings.ReplaceAll(ofRuns("trend_functions", ids), "/*rollups*/", table))
		if err != nil {
			return nil, err
		}
		type row struct {
			Run provdb.RunID `sql:"run"`
			comparison.Function
		}
		err = provdb.Scan(rows, func(r *row) {
			r.Exclusive, r.Lost = units[r.Run].MicrosOf(r.Exclusive), units[r.Run].MicrosOf(r.Lost)
			byID[r.Run].Add(&r.Function)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Comparable describes a run for comparisons.
func Comparable(run provdb.Run) api.Comparable {
	return api.Comparable{Name: run.Name, State: string(run.State), Started: run.Started}
}

// runsByRollup returns the runs by the table with the sums of their anomalies, as rollupStatement
// chooses it for one run.
func (a *Queries) runsByRollup(ctx context.Context, runs []provdb.Run) (map[string][]provdb.RunID, error) {
	var ids []provdb.RunID
	for i := range runs {
		ids = append(ids, runs[i].ID)
	}
	tables := make(map[string][]provdb.RunID)
	if len(ids) == 0 {
		return tables, nil
	}
	rows, err := a.Query(ctx, ofRuns("trend_rolled_up", ids))
	if err != nil {
		return nil, err
	}
	type row struct {
		Run provdb.RunID `sql:"run"`
	}
	rolledUp := make(map[provdb.RunID]bool)
	if err := provdb.Scan(rows, func(r *row) { rolledUp[r.Run] = true }); err != nil {
		return nil, err
	}
	for _, id := range ids {
		table := "live_rollups"
		if rolledUp[id] {
			table = "rollups"
		}
		tables[table] = append(tables[table], id)
	}
	return tables, nil
}

// ofRuns returns the statement of a file for several runs.
func ofRuns(name string, ids []provdb.RunID) string {
	var list []string
	for _, id := range ids {
		list = append(list, strconv.Itoa(int(id)))
	}
	return strings.ReplaceAll(text(name), "/*runs*/", strings.Join(list, ", "))
}
