package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Counts contains the numbers of stored executions, anomalies and functions of a run.
type Counts struct {
	Executions int64       `sql:"kept"`      // including typical ones and withdrawn anomalies
	Anomalies  int64       `sql:"anomalies"` // anomalies that were not withdrawn
	Lost       trace.Ticks `sql:"lost_us"`   // time lost to these anomalies
	Confirmed  int64       `sql:"confirmed"`
	Promoted   int64       `sql:"promoted"`
	Withdrawn  int64       `sql:"withdrawn"`
	// End is the latest stored time, since the epoch of the trace; 0 without data.
	End       trace.Ticks `sql:"last_us"`
	Functions int64       `sql:"functions"`
	// Profiled is the number of functions with a profile, which is stored when the run ends. Warm of
	// them have at least the requested number of calls. Calls is the number of all calls.
	Profiled int64   `sql:"profiled"`
	Warm     int64   `sql:"warm"`
	Calls    int64   `sql:"calls"`
	Longest  float64 `sql:"longest_us"` // duration of the longest call, in ticks
}

// Counts counts the stored data. A function is warm if it has at least minCalls calls.
func (a *Queries) Counts(ctx context.Context, minCalls int) (*Counts, error) {
	k, err := executions.ReadFirst[Counts](ctx, a, text("kept"), float64(minCalls))
	if err != nil || k == nil {
		return new(Counts), err
	}
	return k, nil
}

// Provisional returns the number of anomalies that have not been reviewed.
func (a *Queries) Provisional(ctx context.Context) (int64, error) {
	return executions.ReadValue[int64](ctx, a, `SELECT count(*) AS "value" FROM executions WHERE run = $1 AND status = 'provisional'`)
}

// Ranks returns the stored ranks in order, at most limit.
func (a *Queries) Ranks(ctx context.Context, limit int) ([]executions.RankHost, error) {
	return executions.ReadAll[executions.RankHost](ctx, a, text("ranks"), int64(limit))
}

// Executables returns the executables of programs that are in the metadata.
func (a *Queries) Executables(ctx context.Context) (map[trace.Program]string, error) {
	type row struct {
		Program trace.Program `sql:"pid"`
		Name    string        `sql:"executable"`
	}
	names := make(map[trace.Program]string)
	err := executions.ReadEach(ctx, a, text("executables"), func(r *row) { names[r.Program] = r.Name })
	return names, err
}

// Slowest returns the functions with the longest single calls, whether or not they are
// anomalies. It returns none before the run ends.
func (a *Queries) Slowest(ctx context.Context, limit int) ([]api.Slowest, error) {
	all, err := executions.ReadAll[api.Slowest](ctx, a, text("slowest"), int64(limit))
	for i := range all {
		all[i].Longest, all[i].Mean = a.Unit.MicrosOf(all[i].Longest), a.Unit.MicrosOf(all[i].Mean)
	}
	return all, err
}
