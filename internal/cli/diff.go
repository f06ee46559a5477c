package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/question"
)

func newDiffCmd(env *Env) *cobra.Command {
	var q questionFlags
	var runB string
	var conditions []string
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:   "diff RUN_A RUN_B",
		Short: "what became better or worse from one run to another",
		Long: `Compare the anomalies of two runs by program, function and call path, also those
that only one of them has. A path is worse or better if its lost time changed by
more than a tenth. Distance tells how much the distribution of the function's times
changed: the largest difference of the shares of calls up to any time, from 0 (the
same) to 1.

--fail-if makes the command end with code 3 if a condition is true. A condition is
NAME>NUMBER or NAME>NUMBER%, and NAME is one of
  lost       growth of the lost time; with % growth of its share of all time, in
             percentage points
  anomalies  growth of the number of anomalies; with % of that of run A
  new        call paths with anomalies in run B alone
  worse      call paths that became worse` + whereHelp,
		Example: `  chimbuko diff yesterday today
  chimbuko diff yesterday today --fail-if 'lost>2%' --fail-if 'new>10'
  chimbuko diff postgres://user@server/chimbuko postgres://user@server/chimbuko --run monday --run-b tuesday`,
		Args: args(cobra.ExactArgs(2)),
	}
	f := cmd.Flags()
	f.StringVar(&runB, "run-b", "", "name of the second run, where its store holds several; by default the latest")
	f.StringArrayVar(&conditions, "fail-if", nil, "condition such as lost>2% that makes the command end with code 3")
	f.IntVar(&limit, "limit", 20, "call paths that are listed")
	f.BoolVar(&all, "all", false, "list also what stayed the same")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *question.Asker, args []string) (err error) {
		checks, err := parseConditions(conditions)
		if err != nil {
			return err
		}
		var d *question.Difference
		err = q.withSecond(ctx, env, a, args[0], runB, func(b *question.Asker) (err error) {
			d, err = question.Diff(ctx, a, b, q.only())
			return err
		})
		if err != nil {
			return err
		}
		if err := q.showDiff(ctx, env, d, limit, all); err != nil {
			return err
		}
		return failing(env, d, checks)
	})
}

// withSecond opens the store of the second run for f, unless it is that of the
// first, a.
func (q *questionFlags) withSecond(ctx context.Context, env *Env, a *question.Asker, where, run string, f func(b *question.Asker) error) error {
	second, err := findStore(where)
	if err != nil {
		return err
	}
	if q.where.sameFile(second) {
		b, err := a.Other(ctx, run)
		if err != nil {
			return fmt.Errorf("%s: %w", second.file, err)
		}
		return f(b)
	}
	qb := *q
	qb.run = run
	return qb.with(ctx, env, second, f)
}

func (q *questionFlags) showDiff(ctx context.Context, env *Env, d *question.Difference, limit int, all bool) error {
	if q.format == "json" {
		return q.write(env, func(w io.Writer) error {
			text, err := marshalPlain(d)
			if err == nil {
				_, err = fmt.Fprintln(w, string(text))
			}
			return err
		})
	}
	rows := diffRows(d, limit, all)
	if q.format != "table" {
		return q.answer(ctx, env, rows, nil)
	}
	return q.write(env, func(w io.Writer) error {
		fmt.Fprintf(w, "Lost to anomalies: %s of %s (%.3g %%) in A, %s of %s (%.3g %%) in B. Anomalies: %s in A, %s in B.\n\n",
			microsText(float64(d.Lost[0])), microsText(d.Exclusive[0]), d.LostPercent[0],
			microsText(float64(d.Lost[1])), microsText(d.Exclusive[1]), d.LostPercent[1], grouped(d.Anomalies[0]), grouped(d.Anomalies[1]))
		return writeTable(w, rows)
	})
}

// diffRows are the changes as a table.
func diffRows(d *question.Difference, limit int, all bool) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "change", Type: provdb.Text},
		{Name: "lost_a_us", Type: provdb.Int},
		{Name: "lost_b_us", Type: provdb.Int},
		{Name: "anomalies_a", Type: provdb.Int},
		{Name: "anomalies_b", Type: provdb.Int},
		{Name: "calls_a", Type: provdb.Int},
		{Name: "calls_b", Type: provdb.Int},
		{Name: "mean_a_us", Type: provdb.Float},
		{Name: "mean_b_us", Type: provdb.Float},
		{Name: "distance", Type: provdb.Float},
		{Name: "program", Type: provdb.Int},
		{Name: "function", Type: provdb.Text},
		{Name: "call_path", Type: provdb.Text},
	}
	var rows [][]any
	for _, c := range d.Changes {
		if c.Kind == "same" && !all {
			continue
		}
		if len(rows) == limit {
			break
		}
		var distance any
		if c.Distance != nil {
			distance = *c.Distance
		}
		rows = append(rows, []any{
			c.Kind, c.Lost[0], c.Lost[1], c.Anomalies[0], c.Anomalies[1], c.Calls[0], c.Calls[1], c.Mean[0], c.Mean[1], distance,
			c.Program, c.Function, c.CallPath,
		})
	}
	return rowsOf(columns, rows)
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

var conditionForm = regexp.MustCompile(`^\s*(lost|anomalies|new|worse)\s*>\s*([0-9.]+)\s*(%?)\s*$`)

func parseConditions(texts []string) ([]condition, error) {
	var all []condition
	for _, text := range texts {
		m := conditionForm.FindStringSubmatch(text)
		if m == nil {
			return nil, usagef("--fail-if: %q is not of the form lost>2%%; it may name lost, anomalies, new and worse", text)
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
func (c *condition) value(d *question.Difference) float64 {
	switch c.name {
	case "lost":
		if c.percent {
			return d.LostPercent[1] - d.LostPercent[0]
		}
		return float64(d.Lost[1] - d.Lost[0])
	case "anomalies":
		growth := float64(d.Anomalies[1] - d.Anomalies[0])
		if c.percent {
			return 100 * growth / max(float64(d.Anomalies[0]), 1)
		}
		return growth
	}
	n := 0
	for i := range d.Changes {
		if d.Changes[i].Kind == c.name {
			n++
		}
	}
	return float64(n)
}

// failing says which conditions are true.
func failing(env *Env, d *question.Difference, checks []condition) (err error) {
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
