package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// timeParts is into how many parts the time of a run is divided.
const timeParts = 20

// funcPart is one of the tables about a function.
type funcPart struct {
	name, title string
	ask         func(ctx context.Context, a *query.Asker, f *query.Function, limit int) (*provdb.Rows, error)
}

var funcParts = []funcPart{
	{"profile", "Profile", func(ctx context.Context, a *query.Asker, f *query.Function, _ int) (*provdb.Rows, error) {
		return a.Profile(ctx, f)
	}},
	{"ranks", "Anomalies over ranks, most lost time first", func(ctx context.Context, a *query.Asker, f *query.Function,
		limit int,
	) (*provdb.Rows, error) {
		return a.OverRanks(ctx, f, limit)
	}},
	{"times", "Anomalies over time", func(ctx context.Context, a *query.Asker, f *query.Function, _ int) (*provdb.Rows, error) {
		return a.OverTime(ctx, f, timeParts)
	}},
	{"paths", "Call paths that lead here", func(ctx context.Context, a *query.Asker, f *query.Function, limit int) (*provdb.Rows, error) {
		return a.Paths(ctx, f, limit)
	}},
}

func newFuncCmd(env *Env) *cobra.Command {
	var q questionFlags
	var part string
	var limit int
	cmd := &cobra.Command{
		Use:   "func RUN NAME",
		Short: "all that is known of a function",
		Long: `Show the profile of a function, the distribution of its times, its anomalies over
ranks and time, and the call paths that lead to it. NAME is its name, a part of it,
or a pattern with * and ?. As csv and parquet one part is written, --part says
which.` + whereHelp,
		Example: `  chimbuko func run 'time_step(int)*'
  chimbuko func run MPI_Waitall --part ranks --format csv`,
		Args: args(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&part, "part", "", "only one part: profile, ranks, times or paths")
	cmd.Flags().IntVar(&limit, "limit", 20, "ranks and call paths that are listed")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, args []string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		f, err := a.Function(ctx, args[0], q.only())
		if err != nil {
			return err
		}
		if part == "" && (q.format == "csv" || q.format == "parquet") {
			part = "profile"
		}
		for _, p := range funcParts {
			if p.name == part {
				rows, err := p.ask(ctx, a, f, limit)
				return q.answer(ctx, env, rows, err)
			}
		}
		switch {
		case part != "":
			return usagef("unknown part %q (want profile, ranks, times, paths)", part)
		case q.format == "json":
			return q.funcJSON(ctx, env, a, f, limit)
		}
		return q.write(env, func(w io.Writer) error { return q.funcText(ctx, w, a, f, limit) })
	})
}

// funcJSON writes all parts as one object.
func (q *questionFlags) funcJSON(ctx context.Context, env *Env, a *query.Asker, f *query.Function, limit int) error {
	all := make(map[string]json.RawMessage)
	for _, p := range funcParts {
		rows, err := p.ask(ctx, a, f, limit)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := writeJSONRows(&b, rows); err != nil {
			return err
		}
		all[p.name] = b.Bytes()
	}
	model, err := a.Model(ctx, f)
	if err != nil {
		return err
	}
	if model != nil {
		all["model"] = model
	}
	return q.write(env, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(all)
	})
}

// funcText writes all parts for people.
func (q *questionFlags) funcText(ctx context.Context, w io.Writer, a *query.Asker, f *query.Function, limit int) error {
	heading := func(text string) { fmt.Fprintf(w, "\n%s\n\n", text) }
	if q.format == "markdown" {
		heading = func(text string) { fmt.Fprintf(w, "\n## %s\n\n", text) }
	}
	fmt.Fprintf(w, "%s\n", oneLine(f.Name))
	for _, p := range funcParts {
		rows, err := p.ask(ctx, a, f, limit)
		if err != nil {
			return err
		}
		heading(p.title)
		switch p.name {
		case "profile":
			rows, err = sideways(rows)
		case "times":
			rows, err = withBars(rows, "anomalies")
		}
		if err == nil {
			err = answerForms[q.format](w, rows)
		}
		if err != nil {
			return err
		}
	}
	model, err := a.Model(ctx, f)
	if err != nil || model == nil {
		return err
	}
	if q.format == "markdown" {
		return nil
	}
	return explain.WriteModel(w, model, explain.DefaultWidth)
}

// sideways turns an answer of one row into one with a row for each column.
func sideways(rows *provdb.Rows) (*provdb.Rows, error) {
	all, err := rows.Collect()
	if err != nil {
		return nil, err
	}
	var turned [][]any
	for _, row := range all {
		for i, v := range row {
			if c := rows.Columns[i]; c.Name != "function" {
				turned = append(turned, []any{strings.ReplaceAll(title(c), "_", " "), forPeople(c, v)})
			}
		}
	}
	return rowsOf([]provdb.Column{{Name: "what", Type: provdb.Text}, {Name: "value", Type: provdb.Text}}, turned), nil
}

// withBars adds a column of bars as long as the values of another.
func withBars(rows *provdb.Rows, column string) (*provdb.Rows, error) {
	all, err := rows.Collect()
	if err != nil {
		return nil, err
	}
	const width = 40
	most, at := int64(1), 0
	for i, c := range rows.Columns {
		if c.Name == column {
			at = i
		}
	}
	for _, row := range all {
		most = max(most, row[at].(int64))
	}
	for i, row := range all {
		n := (row[at].(int64)*width + most - 1) / most
		all[i] = append(row, strings.Repeat("█", int(n)))
	}
	return rowsOf(append(rows.Columns, provdb.Column{Name: "share", Type: provdb.Text}), all), nil
}
