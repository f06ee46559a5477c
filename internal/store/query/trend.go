package query

import (
	"context"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Sums returns what a trend needs of runs of a store, which are those of what Comparable
// returns, in the same order. They are asked for all at once. told is told each statement;
// nil: nobody is.
func Sums(ctx context.Context, r provdb.Reader, runs []provdb.Run, told func(sql string, args []any)) ([]*comparison.Sums, error) {
	a := &Asker{reader: r, Told: told}
	all, byID := make([]*comparison.Sums, len(runs)), make(map[int64]*comparison.Sums, len(runs))
	for i := range runs {
		all[i] = &comparison.Sums{Name: runs[i].Name, Started: runs[i].Started}
		byID[int64(runs[i].ID)] = all[i]
	}
	byTable, err := a.tablesOfSums(ctx, runs)
	if err != nil {
		return nil, err
	}
	for table, ids := range byTable {
		rows, err := a.collect(ctx, strings.ReplaceAll(ofRuns("trend_functions", ids), "/*rollups*/", table))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			f := byID[row[0].(int64)].Function(whole[trace.Program](row[1]), word[string](row[2])) // several may have one name
			exclusive, _ := row[4].(float64)
			f.Calls += whole[int64](row[3])
			f.Exclusive += exclusive
			f.Anomalies += whole[int64](row[5])
			f.Lost += whole[int64](row[6])
		}
	}
	return all, nil
}

// tablesOfSums returns the runs by where their anomalies are summed up: when they ended, or
// anew, as summing does it for one.
func (a *Asker) tablesOfSums(ctx context.Context, runs []provdb.Run) (map[string][]provdb.RunID, error) {
	var ids []provdb.RunID
	for i := range runs {
		ids = append(ids, runs[i].ID)
	}
	tables := make(map[string][]provdb.RunID)
	if len(ids) == 0 {
		return tables, nil
	}
	rows, err := a.collect(ctx, ofRuns("trend_rolled_up", ids))
	if err != nil {
		return nil, err
	}
	rolledUp := make(map[provdb.RunID]bool)
	for _, row := range rows {
		rolledUp[provdb.RunID(row[0].(int64))] = true
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

// ofRuns is the statement of a file about several runs.
func ofRuns(name string, ids []provdb.RunID) string {
	var list []string
	for _, id := range ids {
		list = append(list, strconv.Itoa(int(id)))
	}
	return strings.ReplaceAll(text(name), "/*runs*/", strings.Join(list, ", "))
}
