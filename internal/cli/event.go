package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newEventCmd(env *Env) *cobra.Command {
	var q questionFlags
	var asJSON bool
	var width int
	cmd := &cobra.Command{
		Use:   "event RUN ID",
		Short: "explain one execution",
		Long: `Explain one kept execution in words: what, where, how long against what is typical,
what it waited for or who waited because of it, its call stack, what happened around
it, messages, counters, the state of the node, and how it compares with all calls of the function. ID is rank:step:row, as
chimbuko anomalies lists it. With --json it is the document of the schema; as csv,
markdown or parquet it is the calls around it.` + whereHelp,
		Example: `  chimbuko event run 3:12:225
  chimbuko event run 3:12:225 --json | jq .call_stack`,
		Args: args(cobra.ExactArgs(2)),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the document; the same as --format json")
	cmd.Flags().IntVar(&width, "width", 0, "columns of the text; 0 is 100")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, args []string) error {
		e, err := a.Event(ctx, args[0], q.only())
		if err != nil {
			return err
		}
		if asJSON {
			q.format = "json"
		}
		switch q.format {
		case "table":
			others, err := othersText(ctx, a, e)
			if err != nil {
				return err
			}
			return q.write(env, func(w io.Writer) error {
				return explain.Write(w, e.Record, explain.Options{
					Width: width, Begin: a.Begin, Collection: e.Collection, Run: a.Run.Name,
					Others: others,
				})
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

// othersText says what an anomaly has to do with others.
func othersText(ctx context.Context, a *query.Asker, e *query.Event) (string, error) {
	if e.Collection != "anomalies" || e.Record.Status == provenance.Withdrawn {
		return "", nil
	}
	l, err := a.Link(ctx, e.Record.PID, e.Record.EventID)
	if err != nil || l == nil {
		return "", err
	}
	culprit := fmt.Sprintf("%s %s on %s", l.CulpritCalled, l.Culprit, l.CulpritHost)
	if l.CulpritPID != l.PID {
		culprit += fmt.Sprintf(" (program %d)", l.CulpritPID)
	}
	var texts []string
	switch {
	case l.Role == provenance.Victim && l.Culprit != "" && l.CulpritRank == l.RID && l.CulpritPID == l.PID:
		texts = append(texts, fmt.Sprintf("Victim: it waited for %s.", culprit))
	case l.Role == provenance.Victim && l.Culprit != "":
		texts = append(texts, fmt.Sprintf("Victim: it waited for rank %d, %s.", l.CulpritRank, culprit))
	case l.Role == provenance.Victim && l.LateRank != nil:
		texts = append(texts, fmt.Sprintf("Victim: it waited for rank %d; why that was late is not known.", *l.LateRank))
	case l.Role == provenance.Culprit && l.Waits > 0:
		texts = append(texts, fmt.Sprintf("Culprit: %s on %s lost %s because of it.",
			counted(int(l.Waits), "wait"), counted(int(l.WaitRanks), "rank"), microsText(float64(l.WaitTime))))
	case l.Role == provenance.Culprit && l.Culprit != "":
		texts = append(texts, fmt.Sprintf("Culprit, beside %s, which others waited for.", culprit))
	}
	if l.Role == provenance.Culprit && l.LateRank != nil {
		texts = append(texts, fmt.Sprintf("What it waited for came late from rank %d, which was not late itself as far as is known.",
			*l.LateRank))
	}
	if l.Hops > 1 {
		texts = append(texts, fmt.Sprintf("There are %s between them.", counted(l.Hops-1, "other wait")))
	}
	return strings.Join(append(texts, fmt.Sprintf("Issue %d.", l.Issue)), " "), nil
}

// windowRows are the calls around an execution.
func windowRows(e *query.Event) *provdb.Rows {
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
