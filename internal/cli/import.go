package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func newImportCmd(env *Env) *cobra.Command {
	flags := keeperFlags{records: "db"}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import RECORDS_DIR",
		Short: "make a run of JSON record files, of ours or of the original Chimbuko",
		Long: `Read JSON record files and build a run with a database of them. RECORDS_DIR is a run
directory with records/, or what the original Chimbuko wrote without its database:
PROGRAM/RANK/STEP.{anomalies,normalexecs,metadata}.json. Files that cannot be read
to their end are imported as far as they go and named; the command then fails.`,
		Example: `  chimbuko import provdb-output --out run
  chimbuko import run-with-json --store postgres://user@server/chimbuko --name monday`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImport(cmd.Context(), env, &flags, args[0], asJSON)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary as JSON")
	return cmd
}

func runImport(ctx context.Context, env *Env, flags *keeperFlags, dir string, asJSON bool) (err error) {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	sum := provdb.NewInfo(env.Version, env.Commit, nil)
	sum.ImportedFrom, sum.Imported, sum.Review, sum.Notes = dir, new(provdb.ImportCounts), nil, []tally.Note{}
	if flags.store != "" {
		sum.Store, sum.Name = redact.URLs(flags.store), flags.runName()
	}
	switch own, err := rundir.ReadInfo(dir); {
	case err == nil:
		sum.Totals, sum.Settings, sum.Changes = own.Totals, own.Settings, own.Changes
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	store, err := flags.config()
	if err != nil {
		return err
	}
	k, err := rundir.New(ctx, store, sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	err = readRecords(ctx, env, sum, k, dir)
	if err == nil {
		err = k.Dir.RemoveSpool()
	}
	sum.State = provdb.Finished
	if err != nil {
		sum.State = provdb.Failed
	}
	if err := errors.Join(err, k.End(context.WithoutCancel(ctx), sum), k.Close()); err != nil {
		return err
	}
	for _, b := range sum.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", b)
	}
	err = env.show(asJSON, sum, func(w io.Writer) { printImport(w, sum, flags.out, k.Size()) })
	if err == nil && len(sum.Broken) > 0 {
		return errReported
	}
	return err
}

// readRecords stores all records in a directory, and counts them in s.
func readRecords(ctx context.Context, env *Env, s *provdb.Info, k *rundir.Keeper, dir string) error {
	var notes recordfile.Notes
	progress := newProgress(env.Stderr, 0, "steps")
	defer progress.clear()
	for step, err := range recordfile.Steps(ctx, dir, &notes) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.Broken = append(s.Broken, err.Error())
			continue
		}
		batch := &provdb.Batch{Anomalies: step.Anomalies, Typical: step.Typical}
		if len(step.Metadata) > 0 {
			batch.Metadata = []provdb.StepMetadata{{Program: step.Program, Rank: step.Rank, Step: step.Step, Facts: step.Metadata}}
		}
		s.Imported.Steps++
		s.Imported.Anomalies += int64(len(step.Anomalies))
		s.Imported.Typical += int64(len(step.Typical))
		s.Imported.Metadata += int64(len(step.Metadata))
		if err := k.Buffer.Add(ctx, batch); err != nil {
			return err
		}
		progress.done()
	}
	global, err := recordfile.Global(ctx, dir, &notes)
	if err != nil {
		s.Broken = append(s.Broken, err.Error())
	}
	if global != nil {
		s.Imported.Functions, s.Imported.Counters, s.Imported.Models = int64(len(global.FuncStats)), int64(len(global.CounterStats)),
			int64(len(global.ADModels))
		s.Imported.Paths = int64(len(global.PathStats))
		batch := &provdb.Batch{Functions: global.FuncStats, Counters: global.CounterStats, Models: global.ADModels, Paths: global.PathStats}
		if err := k.Buffer.Add(ctx, batch); err != nil {
			return err
		}
	}
	for sentence, n := range notes.All() {
		s.Notes = append(s.Notes, tally.Note{Severity: tally.Info.String(), Count: n, Sentence: sentence})
	}
	if s.Imported.Steps == 0 && len(s.Broken) == 0 {
		return fmt.Errorf("%s: no files named PROGRAM/RANK/STEP.anomalies.json, normalexecs or metadata are in it", dir)
	}
	if err := k.Buffer.Flush(ctx); err != nil {
		return err
	}
	_, err = k.FindIssues(ctx, s)
	return err
}

// printImport writes the results of an import for people.
func printImport(w io.Writer, s *provdb.Info, out string, size int64) {
	c := s.Imported
	fmt.Fprintf(w, "%s anomalies, %s typical executions, %s metadata of %s steps; %s functions, %s counters, %s models\n",
		grouped(c.Anomalies), grouped(c.Typical), grouped(c.Metadata), grouped(c.Steps), grouped(c.Functions), grouped(c.Counters),
		grouped(c.Models))
	for _, n := range s.Notes {
		fmt.Fprintf(w, "note: %s %s\n", grouped(n.Count), n.Sentence)
	}
	if s.Store == "" {
		fmt.Fprintf(w, "\nThe run is in %s: %s.\n", out, sizeText(size))
		return
	}
	fmt.Fprintf(w, "\nThe run is in %s, its records are on %s.\n", out, s.Store)
}
