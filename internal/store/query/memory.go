package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// MaxCached is the number of executions up to which a run is copied into memory, which takes
// about 200 bytes for each.
const MaxCached = 4_000_000

// copied are the tables of a copy; sql/copy_schema.sql defines them and sql/copy_NAME.sql reads
// them from the store.
var copied = []string{
	"functions", "executions", "paths", "call_paths", "path_stats", "links", "metadata", "profiles", "final_models", "models",
}

// Fill copies into c what queries over many executions read. It reports false and copies
// nothing if the run has more than limit executions.
func (a *Asker) Fill(ctx context.Context, c provdb.Cache, limit int64) (bool, error) {
	n, err := a.count(ctx)
	if err != nil || n > limit {
		return false, err
	}
	if err := c.Exec(ctx, text("copy_schema")); err != nil {
		return false, err
	}
	for _, table := range copied {
		rows, err := a.Query(ctx, text("copy_"+table), int32(a.Run.ID))
		if err != nil {
			return false, err
		}
		if err := c.Add(ctx, table, rows); err != nil {
			return false, err
		}
	}
	return true, nil
}

// count returns the number of stored executions.
func (a *Asker) count(ctx context.Context) (n int64, err error) {
	type row struct {
		N int64 `sql:"executions"`
	}
	err = readEach(ctx, a, "SELECT count(*) AS executions FROM executions WHERE run = $1", func(r *row) { n = r.N })
	return n, err
}

// bulk returns an Asker for queries over many executions: it asks the copy in memory if there
// is one.
func (a *Asker) bulk() *Asker {
	if a.Memory == nil {
		return a
	}
	return a.By(a.Memory)
}
