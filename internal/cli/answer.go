package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// runHelp ends the help of all commands that query a run.
const runHelp = `

RUN is a run directory, a provenance.duckdb file or postgres://user@server/database. It
may still be running.`

// queryFlags are the flags that all queries share.
type queryFlags struct {
	run     string
	program int
	format  string
	output  string
	showSQL bool
	timeout time.Duration
}

func (q *queryFlags) register(f *pflag.FlagSet) {
	registerRun(f, &q.run)
	f.IntVar(&q.program, "program", -1, "number of the program of a workflow; -1 for all")
	f.StringVar(&q.format, "format", "table", "format of the answer: table, json, csv, markdown or parquet")
	f.StringVar(&q.output, "output", "", "file for the answer instead of standard output; required for parquet")
	f.BoolVar(&q.showSQL, "show-sql", false, "print the SQL of the query to standard error")
	f.DurationVar(&q.timeout, "timeout", time.Minute, "time limit; 0 for none")
}

// registerRun adds the flag that selects one of several runs.
func registerRun(f *pflag.FlagSet, run *string) {
	f.StringVar(run, "run", "", "name of the run if the store contains several; the latest by default")
}

// chosenProgram returns the selected program, or nil for all.
func (q *queryFlags) chosenProgram() *trace.Program {
	if q.program < 0 {
		return nil
	}
	return new(trace.Program(q.program))
}

// check returns an error if the flags are invalid.
func (q *queryFlags) check(f *pflag.FlagSet) error {
	if !slices.Contains(output.Formats(), q.format) {
		return usage.Errorf("unknown format %q (want %s)", q.format, strings.Join(output.Formats(), ", "))
	}
	if q.format == "parquet" && q.output == "" {
		return usage.Errorf("--format parquet needs --output FILE")
	}
	for _, name := range []string{"limit", "offset"} {
		if n, err := f.GetInt(name); err == nil && n < 0 {
			return usage.Errorf("--%s %d is negative", name, n)
		}
	}
	return nil
}

// newRunQueryCmd returns a command that queries the run of its first argument and writes the answer. ask is called with the
// other arguments; its answer may be nil.
func newRunQueryCmd(env *Env, cmd *cobra.Command, q *queryFlags,
	ask func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error),
) *cobra.Command {
	q.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return q.limited(cmd, func(ctx context.Context) error {
			return q.places(env).Query(ctx, args[0], q.run, func(a *query.Queries) error {
				answer, err := ask(ctx, a, args[1:])
				if err != nil || answer == nil {
					return err
				}
				return q.write(ctx, env, answer)
			})
		})
	}
	return cmd
}

// rowsAnswer returns the answer with the result of a query.
func rowsAnswer(rows *provdb.Rows, err error) (*output.Answer, error) {
	return &output.Answer{Rows: rows}, err
}

func (q *queryFlags) write(ctx context.Context, env *Env, a *output.Answer) error {
	return a.Write(ctx, env.Stdout, q.format, q.output, duckstore.WriteParquet)
}

var errTimeout = errors.New("time limit exceeded")

// limited checks the flags and calls f with a time limit. It marks mistakes in the query as usage errors.
func (q *queryFlags) limited(cmd *cobra.Command, f func(ctx context.Context) error) error {
	if err := q.check(cmd.Flags()); err != nil {
		return err
	}
	ctx := cmd.Context()
	if q.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, q.timeout, errTimeout)
		defer cancel()
	}
	err := f(ctx)
	if err != nil && (errors.Is(context.Cause(ctx), errTimeout) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("no answer within %v (narrow the query or raise --timeout): %w", q.timeout, err)
	}
	_, isChoice := errors.AsType[*executions.ChoiceError](err)
	_, isTerm := errors.AsType[*contrast.TermError](err)
	if isChoice || isTerm || errors.Is(err, query.ErrNoFinding) {
		return usage.Error{Err: err}
	}
	return err
}

// places returns access to the stores of runs. It warns about incomplete runs without a running process.
func (q *queryFlags) places(env *Env) *rundir.Places {
	return &rundir.Places{OnQuery: q.onQuery(env), OnOpen: func(place rundir.Place, r provdb.Reader) {
		if _, owned := r.(*remotestore.Client); owned || filepath.Base(place.File) != duckstore.FileName {
			return
		}
		dir := filepath.Dir(place.File)
		if info, err := runfiles.ReadInfo(dir); err == nil && info.State.Open() {
			fmt.Fprintf(env.Stderr, "chimbuko: the run is incomplete: %s\n", viewer.StopReason(dir, info))
		}
	}}
}

// onQuery returns a function that prints each statement and its arguments, or nil without --show-sql. The function may be
// called concurrently, because some answers run several statements at a time.
func (q *queryFlags) onQuery(env *Env) func(sql string, args []any) {
	if !q.showSQL {
		return nil
	}
	var mu sync.Mutex
	return func(sql string, args []any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(env.Stderr, "%s;\n", sql)
		for i, v := range args {
			value := fmt.Sprint(v)
			if v == nil {
				value = "NULL"
			}
			if s, ok := v.(string); ok {
				value = "'" + strings.ReplaceAll(s, "'", "''") + "'"
			}
			fmt.Fprintf(env.Stderr, "-- $%d = %s\n", i+1, value)
		}
		fmt.Fprintln(env.Stderr)
	}
}
