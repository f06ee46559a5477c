package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/record/tracefile"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newExportCmd(env *Env) *cobra.Command {
	var q questionFlags
	var to, event string
	cmd := &cobra.Command{
		Use:   "export RUN TARGET",
		Short: "write a run, or what happened around one anomaly, for other tools",
		Long: `Write a run into the directory TARGET, one file for each table: as parquet, csv, or
json (the documents of the schema, one array for each collection). Or, with --event,
write what happened around an execution into the file TARGET as a trace: perfetto
for ui.perfetto.dev, chrome for chrome://tracing and other viewers.` + whereHelp,
		Example: `  chimbuko export run tables --to parquet
  chimbuko export run anomaly.pftrace --event 3:12:225 --to perfetto`,
		Args: args(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&to, "to", "parquet", "form: parquet, csv or json; with --event perfetto or chrome")
	cmd.Flags().StringVar(&event, "event", "", "id of an execution, as chimbuko anomalies lists it")
	cmd = newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, args []string) error {
		if event != "" {
			return exportEvent(ctx, env, a, &q, event, to, args[0])
		}
		return exportRun(ctx, env, a, to, args[0])
	})
	q.timeout = 0 // a large run takes its time
	cmd.Flags().Lookup("timeout").DefValue = "0s"
	for _, name := range []string{"format", "output"} {
		_ = cmd.Flags().MarkHidden(name) // known flags can be hidden
	}
	return cmd
}

func exportEvent(ctx context.Context, env *Env, a *query.Asker, q *questionFlags, id, to, path string) error {
	write := tracefile.WritePerfetto
	switch to {
	case "perfetto":
	case "chrome":
		write = tracefile.WriteChrome
	default:
		return usagef("an event is exported --to perfetto or chrome, not %q", to)
	}
	e, err := a.Event(ctx, id, q.only())
	if err != nil {
		return err
	}
	if err := createFile(path, func(w io.Writer) error { return write(w, e.Record) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: event %s and what happened around it; search the viewer for \"anomaly\"\n", path, e.Record.EventID)
	return err
}

func exportRun(ctx context.Context, env *Env, a *query.Asker, to, dir string) error {
	var write func(path string, rows *provdb.Rows) error
	switch to {
	case "parquet":
		write = func(path string, rows *provdb.Rows) error { return duckstore.WriteParquet(ctx, path, rows) }
	case "csv":
		write = func(path string, rows *provdb.Rows) error {
			return createFile(path, func(w io.Writer) error { return provdb.WriteCSV(w, rows) })
		}
	case "json":
		return exportDocuments(ctx, env, a, dir)
	default:
		return usagef("a run is exported --to parquet, csv or json, not %q; perfetto and chrome need --event ID", to)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range query.Tables {
		rows, err := a.Table(ctx, name)
		if err != nil {
			return err
		}
		n := 0
		all := rows.All
		rows.All = func(yield func([]any, error) bool) {
			for row, err := range all {
				n++
				if !yield(row, err) {
					return
				}
			}
		}
		path := filepath.Join(dir, name+"."+to)
		if err := errors.Join(write(path, rows), rows.Close()); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "%s: %s rows\n", path, grouped(int64(n)))
	}
	return nil
}

// exportDocuments writes the documents of each collection as an array.
func exportDocuments(ctx context.Context, env *Env, a *query.Asker, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, collection := range query.Collections {
		path := filepath.Join(dir, collection+".json")
		n := 0
		err := createFile(path, func(w io.Writer) error {
			n = 0
			return writeDocuments(w, a.Documents(ctx, collection), &n)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "%s: %s documents\n", path, grouped(int64(n)))
	}
	return nil
}

// writeDocuments writes an array, one document in a line, and counts them.
func writeDocuments(w io.Writer, documents func(yield func(json.RawMessage, error) bool), n *int) error {
	var err error
	for doc, docErr := range documents {
		if docErr != nil {
			return docErr
		}
		_, writeErr := fmt.Fprintf(w, "%s\n%s", "[,"[min(*n, 1):min(*n, 1)+1], doc)
		if err = errors.Join(err, writeErr); err != nil {
			return err
		}
		*n++
	}
	if *n == 0 {
		fmt.Fprint(w, "[")
	}
	_, err = fmt.Fprintln(w, "\n]")
	return err
}
