// Package query implements the built-in queries of a run: the functions, ranks and hosts that lost most
// time, its findings, the fields in which selected executions differ from others, and the data that
// is compared with other runs. Its SQL is in sql/ and runs on every store.
package query

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

//go:embed sql/*.sql
var files embed.FS

// Queries are the queries of one run of a store.
type Queries struct {
	executions.Reader
	// BeginEstimated reports that Begin is the entry of the first stored execution, because the start of
	// the run is not stored yet.
	BeginEstimated bool
	// Details caches messages, counters and node states of some executions for explanations. If
	// nil, explanations read them from the store.
	Details *Details
}

// Runs returns the runs of a store, in the order in which they were started.
func Runs(ctx context.Context, r provdb.Reader) ([]provdb.Run, error) {
	return runsBy(ctx, r, text("runs"))
}

// runsBy returns the runs that a statement selects.
func runsBy(ctx context.Context, r provdb.Reader, sql string) (runs []provdb.Run, err error) {
	rows, err := r.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	err = provdb.Scan(rows, func(r *provdb.Run) { runs = append(runs, *r) })
	return runs, err
}

// New returns the queries of the run with a name, or of the latest run if name is empty. For a
// missing run, the error wraps provdb.ErrNotFound and lists the runs.
func New(ctx context.Context, r provdb.Reader, name string) (*Queries, error) {
	run, err := Find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	return Of(ctx, r, *run)
}

// Find returns the run with a name, or the latest, without its Info, which may be large.
func Find(ctx context.Context, r provdb.Reader, name string) (*provdb.Run, error) {
	runs, err := runsBy(ctx, r, text("run_names"))
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no run is in the store: %w", provdb.ErrNotFound)
	}
	i := len(runs) - 1
	if name != "" {
		i = slices.IndexFunc(runs, func(run provdb.Run) bool { return run.Name == name })
	}
	if i < 0 {
		var names []string
		for _, run := range runs {
			names = append(names, run.Name)
		}
		return nil, fmt.Errorf("run %q: %w; the store holds %s", name, provdb.ErrNotFound, strings.Join(names, ", "))
	}
	return &runs[i], nil
}

// Of returns the queries of a run that Find returned.
func Of(ctx context.Context, r provdb.Reader, run provdb.Run) (*Queries, error) {
	a := &Queries{Reader: executions.Reader{Run: run, Store: r}}
	var err error
	if a.Run.Info, err = executions.ReadValue[json.RawMessage](ctx, a, text("run_info")); err != nil {
		return nil, err
	}
	return a, a.begin(ctx)
}

// WithReader returns queries of the same run that read from r.
func (a *Queries) WithReader(r provdb.Reader) *Queries {
	b := *a
	b.Store = r
	return &b
}

// begin sets Unit, Begin and BeginEstimated.
func (a *Queries) begin(ctx context.Context) error {
	info := a.Run.Decoded()
	if a.Unit, a.Begin = info.Unit, info.Totals.Begin; a.Begin != 0 {
		return nil
	}
	first, err := executions.ReadValue[*trace.Ticks](ctx, a, text("begin_of_peers"))
	if first != nil {
		a.Begin = *first
	}
	if err != nil || first != nil {
		return err
	}
	first, err = executions.ReadValue[*trace.Ticks](ctx, a, text("begin"))
	if first != nil {
		a.Begin, a.BeginEstimated = *first, true
	}
	return err
}

// FirstCall returns the entry time of the first call in the stacks of stored executions, which is
// about the start of the run, or 0 if none is stored. With oneRank it reads one rank only, which is
// faster.
func (a *Queries) FirstCall(ctx context.Context, oneRank bool) (trace.Ticks, error) {
	return executions.ReadValue[trace.Ticks](ctx, a, text("first_call"), oneRank)
}

// rollupStatement returns the statement of a file that sums up anomalies. It reads the sums stored
// when the run ended, or else the anomalies.
func (a *Queries) rollupStatement(ctx context.Context, name string) (string, error) {
	rolledUp, err := executions.ReadValue[bool](ctx, a, text("rolled_up"))
	from := "live_rollups"
	if rolledUp {
		from = "rollups"
	}
	return strings.ReplaceAll(text(name), "/*rollups*/", from), err
}

func text(name string) string { return executions.Statement(files, name) }
