package query

import (
	"context"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// Kept is what a store holds of a run, in numbers.
type Kept struct {
	Executions int64        `sql:"kept"`      // typical ones and withdrawn anomalies included
	Anomalies  int64        `sql:"anomalies"` // that count
	Lost       trace.Micros `sql:"lost_us"`   // by them
	Confirmed  int64        `sql:"confirmed"`
	Promoted   int64        `sql:"promoted"`
	Withdrawn  int64        `sql:"withdrawn"`
	// End is the newest time that is known, since the epoch of the trace; 0: none.
	End       trace.Micros `sql:"last_us"`
	Functions int64        `sql:"functions"`
	// Profiled is how many functions have a profile, which they get when the run ends;
	// Warm of them have at least as many calls as were asked for. Calls is all of them.
	Profiled int64   `sql:"profiled"`
	Warm     int64   `sql:"warm"`
	Calls    int64   `sql:"calls"`
	Longest  float64 `sql:"longest_us"` // of the longest call that is known of, in microseconds
}

// Kept counts what is stored. minCalls is how many calls make a function warm.
func (a *Queries) Kept(ctx context.Context, minCalls int) (*Kept, error) {
	k, err := executions.ReadFirst[Kept](ctx, a, text("kept"), float64(minCalls))
	if err != nil || k == nil {
		return new(Kept), err
	}
	return k, nil
}

// Placed is a rank and where it ran.
type Placed struct {
	trace.RankKey `sql:"pid,rid"`
	Host          string `sql:"host"` // empty where it is not known
}

// Provisional returns the number of anomalies that have not been reviewed.
func (a *Queries) Provisional(ctx context.Context) (n int64, err error) {
	type row struct {
		N int64 `sql:"anomalies"`
	}
	const sql = `SELECT count(*) AS anomalies FROM executions WHERE run = $1 AND status = 'provisional'`
	err = executions.ReadEach(ctx, a, sql, func(r *row) { n = r.N })
	return n, err
}

// Ranks returns the ranks that the store knows of, in order, but no more than limit.
func (a *Queries) Ranks(ctx context.Context, limit int) ([]Placed, error) {
	return executions.ReadAll[Placed](ctx, a, text("ranks"), int64(limit))
}

// Executables returns the executables of programs, as far as metadata tells.
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
// anomalies. It is known when the run has ended.
func (a *Queries) Slowest(ctx context.Context, limit int) ([]api.Slowest, error) {
	return executions.ReadAll[api.Slowest](ctx, a, text("slowest"), int64(limit))
}
