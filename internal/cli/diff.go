package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

var diffHelp = `Compare two runs: first in a sentence, then one of
  --show lost      the anomalies by program, function and call path, also those that
                   only one run has; the largest change of lost time is the first
  --show time      all calls by program and function, the largest change of the time
                   in the function itself first: what is slower in all its calls need
                   not have anomalies
  --show metadata  hosts, settings, versions and what ranks told of themselves
What changed by more than a tenth is worse or better. Distance tells how much the
distribution of a function's times changed: the largest difference of the shares of
calls up to any time, from 0 (the same) to 1. Moved is by how much the time of a call
differs on average when both runs are put in order of time (earth mover's distance).

Each run may also be a file that chimbuko baseline wrote. chimbuko view RUN_B --compare
RUN_A shows the same in the browser.

More than two runs, or one store that holds several, are put in the order in which they
were started, and it is told since when the newest is as it is: first in a sentence,
then what each run lost, then by --show time, or --show lost, the functions that differ
most between any two runs. BEFORE is the run in which a function was best, or else
worst; by the same rule the newest differs from it, and so do all runs from SINCE on.
Only finished runs count, the newest ` + strconv.Itoa(comparison.MaxTrend) + ` of them; of a store all, or with --run those
that have that in their names. As json there are the values of each run.

--fail-if makes the command end with code 3 if a condition is true. A condition is
NAME>NUMBER or NAME>NUMBER%, and NAME is one of
  lost       growth of the lost time; with % growth of its share of all time, in
             percentage points
  time       growth of the time of all calls; with % of that of run A
  anomalies  growth of the number of anomalies; with % of that of run A
  new        call paths with anomalies in run B alone
  worse      call paths that became worse` + whereHelp

func newDiffCmd(env *Env) *cobra.Command {
	var q questionFlags
	var runB, show string
	var conditions []string
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:   "diff RUN_A [RUN_B…]",
		Short: "what became better or worse from one run to another, or since which of many",
		Long:  diffHelp,
		Example: `  chimbuko diff yesterday today
  chimbuko diff yesterday today --show time
  chimbuko diff good.baseline today --fail-if 'lost>2%' --fail-if 'new>10'
  chimbuko diff postgres://user@server/chimbuko postgres://user@server/chimbuko --run monday --run-b tuesday
  chimbuko diff nightly/* --show time
  chimbuko diff postgres://user@server/chimbuko --run nightly-`,
		Args: args(cobra.MinimumNArgs(1)),
	}
	f := cmd.Flags()
	q.register(f)
	f.StringVar(&runB, "run-b", "", "name of the second run, where its store holds several; by default the latest")
	f.StringVar(&show, "show", "lost", "what is listed: lost, time or metadata; as json all of it is")
	f.StringArrayVar(&conditions, "fail-if", nil, "condition such as lost>2% that makes the command end with code 3")
	f.IntVar(&limit, "limit", 20, "rows that are listed")
	f.BoolVar(&all, "all", false, "list also what stayed the same")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		checks, err := parseConditions(conditions)
		if err != nil {
			return err
		}
		list, ok := diffLists[show]
		if !ok {
			return usagef("--show: unknown value %q (want lost, time, metadata)", show)
		}
		if err := checkLimit(limit); err != nil {
			return err
		}
		if len(args) != 2 {
			if len(checks) > 0 || runB != "" || show == "metadata" {
				return usagef("--fail-if, --run-b and --show metadata are for two runs: give exactly two")
			}
			byLost := show == "lost" && f.Changed("show")
			return q.asking(cmd.Context(), func(ctx context.Context) error { return q.trend(ctx, env, args, byLost, limit, all) })
		}
		return q.asking(cmd.Context(), func(ctx context.Context) error {
			var runs [2]*comparison.Run
			for i, name := range []string{q.run, runB} {
				if runs[i], err = q.comparable(ctx, env, args[i], name); err != nil {
					return err
				}
			}
			d := comparison.Diff(runs[0], runs[1], q.only())
			if err := q.showDiff(ctx, env, d, list(d, limit, all)); err != nil {
				return err
			}
			return failing(env, d, checks)
		})
	}
	return cmd
}

// comparable is what can be compared of the run at a place, or of a baseline.
func (q *questionFlags) comparable(ctx context.Context, env *Env, where, run string) (r *comparison.Run, err error) {
	if r, err = rundir.ReadBaseline(where); r != nil || err != nil {
		return r, err
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return nil, err
	}
	one := *q
	one.run = run
	err = one.with(ctx, env, place, func(a *query.Asker) (err error) {
		r, err = a.Comparable(ctx)
		return err
	})
	return r, err
}

func (q *questionFlags) showDiff(ctx context.Context, env *Env, d *api.Difference, rows *provdb.Rows) error {
	if q.format == "json" {
		return q.writeJSON(env, d)
	}
	if q.format != "table" {
		return q.answer(ctx, env, rows, nil)
	}
	return q.write(env, func(w io.Writer) error {
		fmt.Fprintf(w, "%s\n\nLost to anomalies: %s of %s (%.3g %%) in A, %s of %s (%.3g %%) in B. Anomalies: %s in A, %s in B.\n\n",
			d.Verdict.Sentence,
			microsText(float64(d.Lost[0])), microsText(d.Exclusive[0]), d.LostPercent[0],
			microsText(float64(d.Lost[1])), microsText(d.Exclusive[1]), d.LostPercent[1], grouped(d.Anomalies[0]), grouped(d.Anomalies[1]))
		return writeTable(w, rows)
	})
}

func (q *questionFlags) writeJSON(env *Env, v any) error {
	return q.write(env, func(w io.Writer) error {
		text, err := marshalPlain(v)
		if err == nil {
			_, err = fmt.Fprintln(w, string(text))
		}
		return err
	})
}

// diffLists are what can be listed of a difference, as tables of so many rows.
var diffLists = map[string]func(d *api.Difference, limit int, all bool) *provdb.Rows{
	"lost": lostRows, "time": timeRows, "metadata": factRows,
}

// pick is the rows of the first things that changed, or of all.
func pick[T any](list []T, limit int, row func(x *T) (values []any, same bool), all bool) [][]any {
	var rows [][]any
	for i := range list {
		if len(rows) == limit {
			break
		}
		if values, same := row(&list[i]); all || !same {
			rows = append(rows, values)
		}
	}
	return rows
}

// known is a number, or nothing.
func known(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// timesColumns are those of what is known of all calls.
var timesColumns = []provdb.Column{
	{Name: "calls_a", Type: provdb.Int},
	{Name: "calls_b", Type: provdb.Int},
	{Name: "mean_a_us", Type: provdb.Float},
	{Name: "mean_b_us", Type: provdb.Float},
	{Name: "distance", Type: provdb.Float},
	{Name: "moved_us", Type: provdb.Float},
	{Name: "program", Type: provdb.Int},
	{Name: "function", Type: provdb.Text},
}

func timesValues(t *api.CallTimes, program int64, function string) []any {
	return []any{t.Calls[0], t.Calls[1], t.Mean[0], t.Mean[1], known(t.Distance), known(t.Moved), program, function}
}

// lostRows are the changes of call paths as a table.
func lostRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	columns := slices.Concat([]provdb.Column{
		{Name: "change", Type: provdb.Text},
		{Name: "lost_a_us", Type: provdb.Int},
		{Name: "lost_b_us", Type: provdb.Int},
		{Name: "anomalies_a", Type: provdb.Int},
		{Name: "anomalies_b", Type: provdb.Int},
	}, timesColumns, []provdb.Column{{Name: "call_path", Type: provdb.Text}})
	return rowsOf(columns, pick(d.Changes, limit, func(c *api.PathChange) ([]any, bool) {
		values := []any{c.Kind, c.Lost[0], c.Lost[1], c.Anomalies[0], c.Anomalies[1]}
		return append(append(values, timesValues(&c.CallTimes, c.Program, c.Function)...), c.CallPath), c.Kind == comparison.Same
	}, all))
}

// timeRows are the changes of functions as a table.
func timeRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	columns := slices.Concat([]provdb.Column{
		{Name: "change", Type: provdb.Text},
		{Name: "time_a_us", Type: provdb.Float},
		{Name: "time_b_us", Type: provdb.Float},
	}, timesColumns)
	return rowsOf(columns, pick(d.Functions, limit, func(c *api.FunctionChange) ([]any, bool) {
		return append([]any{c.Kind, c.Exclusive[0], c.Exclusive[1]}, timesValues(&c.CallTimes, c.Program, c.Function)...), c.Kind == comparison.Same
	}, all))
}

// factRows are the differences of what is told of the runs as a table.
func factRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "change", Type: provdb.Text},
		{Name: "section", Type: provdb.Text},
		{Name: "program", Type: provdb.Int},
		{Name: "name", Type: provdb.Text},
		{Name: "a", Type: provdb.Text},
		{Name: "b", Type: provdb.Text},
	}
	return rowsOf(columns, pick(d.Metadata, limit, func(f *api.FactChange) ([]any, bool) {
		return []any{f.Kind, f.Section, f.Program, f.Name, f.Values[0], f.Values[1]}, f.Kind == comparison.Same || f.Expected
	}, all))
}

// exitDiffers is the code of a diff whose condition is true.
const exitDiffers = 3

// errDiffers ends a diff whose condition is true.
var errDiffers = errors.New("a condition of --fail-if is true")

// condition is one of --fail-if.
type condition struct {
	text, name string
	limit      float64
	percent    bool
}

var conditionForm = regexp.MustCompile(`^\s*(lost|time|anomalies|new|worse)\s*>\s*([0-9.]+)\s*(%?)\s*$`)

func parseConditions(texts []string) ([]condition, error) {
	var all []condition
	for _, text := range texts {
		m := conditionForm.FindStringSubmatch(text)
		if m == nil {
			return nil, usagef("--fail-if: %q is not of the form lost>2%%; it may name lost, time, anomalies, new and worse", text)
		}
		limit, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, usagef("--fail-if: %q: %w", text, err)
		}
		if m[3] != "" && (m[1] == "new" || m[1] == "worse") {
			return nil, usagef("--fail-if: %q: %s is a number of call paths, without %%", text, m[1])
		}
		all = append(all, condition{text, m[1], limit, m[3] != ""})
	}
	return all, nil
}

// value is what the condition is about.
func (c *condition) value(d *api.Difference) float64 {
	switch c.name {
	case "lost":
		if c.percent {
			return d.LostPercent[1] - d.LostPercent[0]
		}
		return float64(d.Lost[1] - d.Lost[0])
	case "time":
		growth := d.Exclusive[1] - d.Exclusive[0]
		if c.percent {
			return 100 * growth / max(d.Exclusive[0], 1)
		}
		return growth
	case "anomalies":
		growth := float64(d.Anomalies[1] - d.Anomalies[0])
		if c.percent {
			return 100 * growth / max(float64(d.Anomalies[0]), 1)
		}
		return growth
	}
	return float64(d.Counts.Changes[c.name])
}

// failing says which conditions are true.
func failing(env *Env, d *api.Difference, checks []condition) (err error) {
	for i := range checks {
		c := &checks[i]
		if v := c.value(d); v > c.limit {
			unit := ""
			if c.percent {
				unit = "%"
			}
			fmt.Fprintf(env.Stderr, "chimbuko: %s: it is %.4g%s\n", c.text, v, unit)
			err = errDiffers
		}
	}
	return err
}
