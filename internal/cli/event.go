package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/explain"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/question"
)

func newEventCmd(env *Env) *cobra.Command {
	var q questionFlags
	var asJSON bool
	var width int
	cmd := &cobra.Command{
		Use:   "event RUN ID",
		Short: "explain one execution",
		Long: `Explain one kept execution in words: what, where, how long against what is typical,
its call stack, what happened around it, messages, counters, the state of the node,
and how it compares with all calls of the function. ID is rank:step:row, as
chimbuko anomalies lists it. With --json it is the document of the schema; as csv,
markdown or parquet it is the calls around it.` + whereHelp,
		Example: `  chimbuko event run 3:12:225
  chimbuko event run 3:12:225 --json | jq .call_stack`,
		Args: args(cobra.ExactArgs(2)),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the document; the same as --format json")
	cmd.Flags().IntVar(&width, "width", 0, "columns of the text; 0 is 100")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *question.Asker, args []string) error {
		e, err := a.Event(ctx, args[0], q.only())
		if err != nil {
			return err
		}
		if asJSON {
			q.format = "json"
		}
		switch q.format {
		case "table":
			return q.write(env, func(w io.Writer) error {
				return explain.Write(w, e.Record, explain.Options{Width: width, Begin: a.Begin, Collection: e.Collection, Run: a.Run.Name})
			})
		case "json":
			return q.write(env, func(w io.Writer) error {
				var b bytes.Buffer
				if err := json.Indent(&b, e.Document, "", "  "); err != nil {
					return err
				}
				_, err := fmt.Fprintln(w, &b)
				return err
			})
		}
		return q.answer(ctx, env, windowRows(e), nil)
	})
}

// windowRows are the calls around an execution.
func windowRows(e *question.Event) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "event_id", Type: provdb.Text},
		{Name: "at_us", Type: provdb.Int},
		{Name: "inclusive_us", Type: provdb.Int},
		{Name: "is_anomaly", Type: provdb.Bool},
		{Name: "parent_event_id", Type: provdb.Text},
		{Name: "fid", Type: provdb.Int},
		{Name: "function", Type: provdb.Text},
	}
	var all [][]any
	for _, c := range e.Record.EventWindow.Execs {
		var took any
		if c.Exit != 0 {
			took = int64(c.Exit - c.Entry)
		}
		all = append(all, []any{c.EventID, int64(c.Entry - e.Record.Entry), took, c.IsAnomaly, c.ParentID, int64(c.FID), c.Func})
	}
	return rowsOf(columns, all)
}

// createFile makes a file and has it written.
func createFile(path string, content func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		_ = f.Close() // the first error is the one to tell
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}
