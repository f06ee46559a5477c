package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/explain"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newEventCmd(env *Env) *cobra.Command {
	var q queryFlags
	var asJSON bool
	var width int
	cmd := &cobra.Command{
		Use:   "event RUN ID",
		Short: "Explain one execution",
		Long: `Explain one stored execution: its function, place, duration and typical duration, its
culprit or victims, the call stack, the calls and messages around it, counters, the state
of the node, and the distribution of all calls of the function. ID is rank:step:row, as
chimbuko anomalies lists it. JSON is the document of the schema; CSV, Markdown and Parquet
contain the calls around the execution.` + runHelp,
		Example: `  chimbuko event run 3:12:225
  chimbuko event run 3:12:225 --json | jq .call_stack`,
		Args: usage.Args(cobra.ExactArgs(2)),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "short for --format json")
	cmd.Flags().IntVar(&width, "width", 0, "width of the text in columns; 0 for 100")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error) {
		e, err := a.Event(ctx, args[0], q.chosenProgram())
		if err != nil {
			return nil, err
		}
		if asJSON {
			q.format = "json"
		}
		others := ""
		if q.format == "table" && e.Collection == "anomalies" && e.Record.Status != provenance.Withdrawn {
			link, err := a.Link(ctx, e.Record.PID, e.Record.EventID)
			if err != nil {
				return nil, err
			}
			if link != nil {
				culprit, err := a.Related(ctx, link.CulpritPID, link.Culprit)
				if err != nil {
					return nil, err
				}
				others = output.LinkText(a.Unit, link, culprit)
			}
		}
		threads, err := a.ThreadNames(ctx, trace.RankKey{Program: e.Record.PID, Rank: e.Record.RID})
		return output.Event(e, explain.Options{
			Width: width, Begin: a.Begin, Collection: e.Collection, Run: a.Run.Name, Others: others, Threads: threads,
		}), err
	})
}
