package insight

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

//go:embed sql/*.sql
var files embed.FS

func statement(name string) string { return executions.Statement(files, name) }

// MaxRows bounds the rows of a list, maxTops the cached lists of Top.
const (
	MaxRows = 5000
	maxTops = 16
	// MaxMicros bounds times to about three hundred years, so that sums do not overflow.
	MaxMicros = 1e16
)

// Top lists the functions, ranks or hosts that lost most to anomalies.
func (in *Insight) Top(ctx context.Context, run string, of query.Top) (*api.List, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.List, error) {
		program := int64(-1)
		if of.Program != nil {
			program = int64(*of.Program)
		}
		a, key := *q.Queries, fmt.Sprintf("%s %s %s %d", runKey(&q.Run), of.By, of.Order, program)
		rows, err := in.tops.Get(ctx, key, func(ctx context.Context) ([]json.RawMessage, bool, error) {
			ctx, cancel := context.WithTimeout(ctx, in.Timeout)
			defer cancel()
			// Summing takes as long with any limit.
			all := of
			all.Limit = MaxRows
			rows, err := objects(a.Top(ctx, all))
			return rows, !a.Run.State.Open(), err
		})
		return &api.List{Rows: rows[:min(len(rows), of.Limit)]}, err
	})
}

// CountersParams select counters.
type CountersParams struct {
	Name    string // pattern; empty: all
	Program *trace.Program
	Limit   int
}

// Counters lists the statistics of counters.
func (in *Insight) Counters(ctx context.Context, run string, of CountersParams) (*api.List, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.List, error) {
		rows, err := objects(q.Counters(ctx, of.Name, of.Program, of.Limit))
		return &api.List{Rows: rows}, err
	})
}

// Metadata lists the metadata of ranks. Its cursor is an offset, because the list changes
// slowly.
func (in *Insight) Metadata(ctx context.Context, run string, m query.Metadata) (*api.List, error) {
	return read(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.List, error) {
		limit := int(m.Limit)
		m.Limit++
		rows, err := objects(q.Metadata(ctx, m))
		l := &api.List{Rows: rows}
		if len(rows) > limit {
			l.Rows = rows[:limit]
			l.Next = strconv.FormatInt(m.Offset+int64(limit), 10)
		}
		return l, err
	})
}

// forAPI adapts the error of a query that needs a program from the command line to the API.
func forAPI(err error) error {
	if err == nil || !strings.Contains(err.Error(), "--program") {
		return err
	}
	return api.Problemf(api.Invalid, "add ?program=N", "%s", strings.ReplaceAll(err.Error(), "--program", "the parameter program"))
}
