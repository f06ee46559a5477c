// Package query answers what people usually ask about a run: which functions,
// ranks and hosts lost most time, which executions went wrong, what is known of
// one, and what can be compared with another run. Its SQL is in sql/ and runs on every
// store; each answer can be had with the statements that gave it.
package query

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

//go:embed sql/*.sql
var files embed.FS

// Asker asks about one run of a store.
type Asker struct {
	executions.Reader
	// Guessed says that Begin is the entry of the first execution that is kept, as the
	// run does not tell yet when it began.
	Guessed bool
	// Details are of some executions what an explanation looks at closely; nil: the store
	// is asked for all of it.
	Details *Details
}

// Runs returns the runs of a store, in the order in which they were started.
func Runs(ctx context.Context, r provdb.Reader) ([]provdb.Run, error) {
	return runsBy(ctx, r, text("runs"))
}

// runsBy reads runs.
func runsBy(ctx context.Context, r provdb.Reader, sql string) (runs []provdb.Run, err error) {
	rows, err := r.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	type row struct {
		ID       provdb.RunID    `sql:"run"`
		Name     string          `sql:"name"`
		State    provdb.State    `sql:"state"`
		Started  time.Time       `sql:"started"`
		Finished time.Time       `sql:"finished"`
		Info     json.RawMessage `sql:"info"`
	}
	err = provdb.Scan(rows, func(r *row) { runs = append(runs, provdb.Run(*r)) })
	return runs, err
}

// New returns an Asker for the run of that name, or for the latest without a
// name. provdb.ErrNotFound says which runs there are.
func New(ctx context.Context, r provdb.Reader, name string) (*Asker, error) {
	run, err := Find(ctx, r, name)
	if err != nil {
		return nil, err
	}
	return Of(ctx, r, *run)
}

// Find returns the run that New is for, without its Info, which may be large.
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

// Of returns an Asker for a run that was found.
func Of(ctx context.Context, r provdb.Reader, run provdb.Run) (*Asker, error) {
	a := &Asker{Reader: executions.Reader{Run: run, Store: r}}
	type row struct {
		Info json.RawMessage `sql:"info"`
	}
	err := executions.ReadEach(ctx, a, text("run_info"), func(r *row) { a.Run.Info = r.Info })
	if err != nil {
		return nil, err
	}
	return a, a.begin(ctx)
}

// WithReader returns an Asker for the same run that queries another reader.
func (a *Asker) WithReader(r provdb.Reader) *Asker {
	b := *a
	b.Store = r
	return &b
}

// begin finds out when the run began.
func (a *Asker) begin(ctx context.Context) error {
	if a.Begin = a.Run.Decoded().Totals.Begin; a.Begin != 0 {
		return nil
	}
	type row struct {
		Begin *trace.Micros `sql:"begin_us"`
	}
	first, err := executions.ReadFirst[row](ctx, a, text("begin"))
	if err == nil && first != nil && first.Begin != nil {
		a.Begin, a.Guessed = *first.Begin, true
	}
	return err
}

// FirstCall returns when the first call was entered that is in the call stack of an
// execution that is kept; that is about when the run began. oneRank looks at one rank
// only, which is quicker. It is 0 if nothing is kept.
func (a *Asker) FirstCall(ctx context.Context, oneRank bool) (trace.Micros, error) {
	type row struct {
		First trace.Micros `sql:"first_us"`
	}
	first, err := executions.ReadFirst[row](ctx, a, text("first_call"), oneRank)
	if err != nil || first == nil {
		return 0, err
	}
	return first.First, nil
}

// summing returns the statement of a file that sums anomalies up: by the sums that
// were made when the run ended, or anew.
func (a *Asker) summing(ctx context.Context, name string) (string, error) {
	type row struct {
		RolledUp bool `sql:"rolled_up"`
	}
	first, err := executions.ReadFirst[row](ctx, a, text("rolled_up"))
	if err != nil {
		return "", err
	}
	from := "live_rollups"
	if first != nil && first.RolledUp {
		from = "rollups"
	}
	return strings.ReplaceAll(text(name), "/*rollups*/", from), nil
}

// text returns the statement of a file in sql/.
func text(name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // a file that is not embedded is a mistake in this package
	}
	return strings.TrimSpace(string(b))
}
