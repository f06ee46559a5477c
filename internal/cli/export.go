package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newExportCmd(env *Env) *cobra.Command {
	var q queryFlags
	var to, event string
	cmd := &cobra.Command{
		Use:   "export RUN TARGET",
		Short: "Export a run or one anomaly for other tools",
		Long: `Write a run into the directory TARGET, one file per table: as parquet, csv, or json (the
documents of the schema, one array per collection). With --event, write the calls around
one execution into the file TARGET as a trace: perfetto for ui.perfetto.dev, or chrome for
chrome://tracing and other viewers.` + runHelp,
		Example: `  chimbuko export run tables --to parquet
  chimbuko export run anomaly.pftrace --event 3:12:225 --to perfetto`,
		Args: usage.Args(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&to, "to", "parquet", "format: parquet, csv or json; with --event perfetto or chrome")
	cmd.Flags().StringVar(&event, "event", "", "ID of an execution, as chimbuko anomalies lists it")
	cmd = newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error) {
		if event != "" {
			return nil, exportEvent(ctx, env, a, &q, event, to, args[0])
		}
		if !slices.Contains([]string{"parquet", "csv", "json"}, to) {
			return nil, usage.Errorf("cannot export a run to %q (want parquet, csv or json; perfetto and chrome need --event ID)", to)
		}
		return nil, output.Export(ctx, env.Stdout, a, to, args[0], duckstore.WriteParquet)
	})
	q.timeout = 0 // large runs take long
	cmd.Flags().Lookup("timeout").DefValue = "0s"
	for _, name := range []string{"format", "output"} {
		_ = cmd.Flags().MarkHidden(name) // fails for unknown flags only
	}
	return cmd
}

func exportEvent(ctx context.Context, env *Env, a *query.Queries, q *queryFlags, id, to, path string) error {
	write := tracefile.WritePerfetto
	switch to {
	case "perfetto":
	case "chrome":
		write = tracefile.WriteChrome
	default:
		return usage.Errorf("cannot export an event to %q (want perfetto or chrome)", to)
	}
	e, err := a.Event(ctx, id, q.chosenProgram())
	if err != nil {
		return err
	}
	if err := output.WriteFile(path, func(w io.Writer) error { return write(w, e.Record) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: event %s and the calls around it; search the viewer for \"anomaly\"\n", path, e.Record.EventID)
	return err
}
