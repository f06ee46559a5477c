package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// registerTime adds a flag with a time: a duration, or a number of units.
func registerTime(f *pflag.FlagSet, name string, unit time.Duration, usage string, set func(time.Duration)) {
	f.Func(name, usage, func(text string) error {
		t, err := query.ParseTime(text, unit)
		if err == nil {
			set(t)
		}
		return err
	})
}

// registerFilter adds the flags that select executions in all commands. since and until are the names of two of them.
func registerFilter(fs *pflag.FlagSet, f *executions.Filter, since, until string) {
	fs.StringVar(&f.Function, "func", "", "pattern of function names, with * and ?")
	fs.StringSliceVar(&f.Kinds, "kind", nil, "kinds, separated by commas: slow, fast, comm-wait, gpu, recurring, excess-work or rare")
	fs.StringVar(&f.Host, "host", "", "pattern of host names")
	fs.Func("rank", "ranks, as in 0,4-7", func(text string) (err error) {
		f.Ranks, err = query.ParseRanks(text)
		return err
	})
	registerTime(fs, since, time.Second, "start of the time in which executions run, since the start of the run: 90s, 1.5m, or seconds",
		func(t time.Duration) { f.Since = &t })
	registerTime(fs, until, time.Second, "end of the time in which executions run", func(t time.Duration) { f.Until = &t })
}

func newAnomaliesCmd(env *Env) *cobra.Command {
	var q queryFlags
	var filter executions.Filter
	cmd := &cobra.Command{
		Use:   "anomalies RUN",
		Short: "List anomalies",
		Long: `List the anomalies of a run, those with the longest own time first. chimbuko event RUN ID
explains one of them.` + runHelp,
		Example: `  chimbuko anomalies run --func 'MPI_*' --rank 0-3 --min-severity 10ms
  chimbuko anomalies run --kind slow,gpu --order lost
  chimbuko anomalies run --since 60s --until 90s --order time --limit 100
  chimbuko anomalies run --host 'nid0012*' --format csv > anomalies.csv`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	registerFilter(f, &filter, "since", "until")
	f.Func("step", "I/O steps first:last; either may be omitted", func(text string) (err error) {
		filter.Steps, err = query.ParseSteps(text)
		return err
	})
	registerTime(f, "min-severity", time.Microsecond, "minimum own (exclusive) time, such as 20ms, or in microseconds",
		func(t time.Duration) { filter.Severity = t })
	registerTime(f, "min-lost", time.Microsecond, "minimum lost time, such as 20ms, or in microseconds",
		func(t time.Duration) { filter.Lost = t })
	f.Float64Var(&filter.Score, "min-score", 0, "minimum score")
	f.BoolVar(&filter.Normal, "normal", false, "typical executions instead of anomalies")
	f.BoolVar(&filter.Withdrawn, "withdrawn", false, "include anomalies withdrawn at the end of the run")
	f.StringVar(&filter.Order, "order", "severity", "order: severity (longest own time first), lost, score or time")
	f.IntVar(&filter.Limit, "limit", 20, "number of rows")
	f.IntVar(&filter.Offset, "offset", 0, "number of rows to skip")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		filter.Program = q.chosenProgram()
		return rowsAnswer(a.Executions(ctx, filter))
	})
}
