package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
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

// importSummary is run.json of an imported run, where the run has none of its own.
type importSummary struct {
	State    provdb.State     `json:"state"`
	Version  string           `json:"version"`
	Commit   string           `json:"commit"`
	Started  time.Time        `json:"started"`
	Imported string           `json:"imported_from"`
	Store    string           `json:"store,omitempty"`
	Name     string           `json:"name,omitempty"` // of the run on the server
	Counts   importCounts     `json:"imported"`
	Notes    map[string]int64 `json:"notes"`
	Broken   []string         `json:"broken,omitempty"`
	// What the imported run said of itself.
	Totals   json.RawMessage `json:"totals,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Changes  json.RawMessage `json:"changes,omitempty"`
}

type importCounts struct {
	Steps     int64 `json:"steps"`
	Anomalies int64 `json:"anomalies"`
	Typical   int64 `json:"normalexecs"`
	Metadata  int64 `json:"metadata"`
	Functions int64 `json:"func_stats"`
	Counters  int64 `json:"counter_stats"`
	Models    int64 `json:"ad_model"`
	Paths     int64 `json:"path_stats"`
}

func runImport(ctx context.Context, env *Env, flags *keeperFlags, dir string, asJSON bool) (err error) {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	sum := &importSummary{State: provdb.Running, Version: env.Version, Commit: env.Commit, Started: time.Now().UTC(), Imported: dir, Notes: map[string]int64{}}
	if flags.store != "" {
		sum.Store, sum.Name = withoutSecrets(flags.store), flags.runName()
	}
	if text, err := os.ReadFile(filepath.Join(dir, "run.json")); err == nil {
		var own struct{ Totals, Settings, Changes json.RawMessage }
		if err := json.Unmarshal(text, &own); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, "run.json"), err)
		}
		sum.Totals, sum.Settings, sum.Changes = own.Totals, own.Settings, own.Changes
	}
	k, err := newKeeper(ctx, flags, sum.Started, sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	err = sum.read(ctx, env, k, dir)
	if err == nil {
		err = k.dir.RemoveSpool()
	}
	sum.State = provdb.Finished
	if err != nil {
		sum.State = provdb.Failed
	}
	if err := errors.Join(err, k.end(context.WithoutCancel(ctx), sum.State, sum), k.close()); err != nil {
		return err
	}
	for _, b := range sum.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %s\n", b)
	}
	err = env.show(asJSON, sum, func(w io.Writer) { sum.print(w, flags.out, k.size()) })
	if err == nil && len(sum.Broken) > 0 {
		return errReported
	}
	return err
}

// read stores all that the directory holds.
func (s *importSummary) read(ctx context.Context, env *Env, k *keeper, dir string) error {
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
		s.Counts.Steps++
		s.Counts.Anomalies += int64(len(step.Anomalies))
		s.Counts.Typical += int64(len(step.Typical))
		s.Counts.Metadata += int64(len(step.Metadata))
		if err := k.buffer.Add(ctx, batch); err != nil {
			return err
		}
		progress.done()
	}
	global, err := recordfile.Global(ctx, dir, &notes)
	if err != nil {
		s.Broken = append(s.Broken, err.Error())
	}
	if global != nil {
		s.Counts.Functions, s.Counts.Counters, s.Counts.Models = int64(len(global.FuncStats)), int64(len(global.CounterStats)), int64(len(global.ADModels))
		s.Counts.Paths = int64(len(global.PathStats))
		batch := &provdb.Batch{Functions: global.FuncStats, Counters: global.CounterStats, Models: global.ADModels, Paths: global.PathStats}
		if err := k.buffer.Add(ctx, batch); err != nil {
			return err
		}
	}
	maps.Insert(s.Notes, notes.All())
	if s.Counts.Steps == 0 && len(s.Broken) == 0 {
		return fmt.Errorf("%s: no files named PROGRAM/RANK/STEP.anomalies.json, normalexecs or metadata are in it", dir)
	}
	if err := k.buffer.Flush(ctx); err != nil {
		return err
	}
	info, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = k.findOut(ctx, &runSummary{}, info)
	return err
}

func (s *importSummary) print(w io.Writer, out string, size int64) {
	c := s.Counts
	fmt.Fprintf(w, "%s anomalies, %s typical executions, %s metadata of %s steps; %s functions, %s counters, %s models\n",
		grouped(c.Anomalies), grouped(c.Typical), grouped(c.Metadata), grouped(c.Steps), grouped(c.Functions), grouped(c.Counters), grouped(c.Models))
	for _, sentence := range slices.Sorted(maps.Keys(s.Notes)) {
		fmt.Fprintf(w, "note: %s %s\n", grouped(s.Notes[sentence]), sentence)
	}
	if s.Store == "" {
		fmt.Fprintf(w, "\nThe run is in %s: %s.\n", out, sizeText(size))
		return
	}
	fmt.Fprintf(w, "\nThe run is in %s, its records are on %s.\n", out, s.Store)
}
