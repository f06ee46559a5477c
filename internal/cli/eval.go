package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func newEvalCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval RUN TRUTH...",
		Short: "compare the anomalies of an analyzed run with planted ones",
		Long: `Compare the anomalies of an analyzed run with those that were planted in the
program, and count how many were found, and how many other calls were flagged.
RUN is a run directory or a store. A TRUTH is a file, a directory (all files named
truth.* in it are read) or a pattern. Such a file tells of anomalies either by place
and time, one in each line, as programs write them that plant some:

  RANK ITERATION FUNCTION ENTRY_US EXIT_US INJECTED_US
  TRUTH kind=host_sleep func=NAME start_us=US end_us=US [rank=RANK]
  TRUTH kind=gpu_slow kernel=NAME launch_us=US [rank=RANK]

or exactly, if it begins with {. Then each line is a JSON object: first the troubles,
each with what, where and when, then the calls that they made longer, each with its
event. docs/formats/truth.md describes both.

By place and time, a flagged call accounts for at most one planted anomaly, the
closest. Blank lines and those that begin with # say nothing.

Where the truth is exact, a call is planted if it causes a trouble of which each call
is to be found. Flags are excused that are neither demanded nor wrong: on calls that
suffer from a trouble elsewhere, and on calls where and when there was a trouble of
which it suffices that it is found. A second table tells of each trouble how many
flags are on its causes, or in its place and time; how many are on calls that suffer;
and how long after its begin the first of its flags came. A call that was flagged
during the run was so at its exit, a promoted one at the end of the run, which is
taken to be the exit of the last flagged call.

Withdrawn flags do not count, provisional ones do. Recall is 1 where nothing was
planted, and precision is 1 where nothing was flagged but what is excused.`,
		Example: `  chimbuko eval run-directory truth.0 truth.1
  chimbuko eval run-directory trace-directory
  chimbuko eval run-directory truth.jsonl
  chimbuko eval --json run-directory 'truth.*' | jq .recall`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return runEval(cmd.Context(), env, paths[0], paths[1:], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs instead of a table for people")
	return cmd
}

func runEval(ctx context.Context, env *Env, run string, paths []string, asJSON bool) error {
	planted, err := truth.Read(paths)
	if errors.Is(err, filepath.ErrBadPattern) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	flags := planted.Matcher()
	calls, err := readRun(ctx, run, flags)
	if err != nil {
		return err
	}
	if calls == 0 && flags.Flags() > 0 {
		return fmt.Errorf("%s: %d calls are flagged, but totals.calls in run.json is 0", run, flags.Flags())
	}
	score := flags.Score(calls)
	return env.show(asJSON, score, func(w io.Writer) {
		printEval(w, score)
	})
}

// readRun adds what was flagged in a run to flags, and returns how many of its calls
// were analyzed.
func readRun(ctx context.Context, run string, flags *truth.Matcher) (calls float64, err error) {
	if onlyFiles(run) {
		info, err := rundir.ReadInfo(run)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("%s is not the directory of an analyzed run: %w", run, err)
		}
		if err != nil {
			return 0, err
		}
		if calls, err = addChanges(flags, info); err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Join(run, "run.json"), err)
		}
		for step, err := range recordfile.Steps(ctx, run, nil) {
			if err != nil {
				return 0, err
			}
			for _, r := range step.Anomalies {
				if err := addFlag(flags, r); err != nil {
					return 0, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
				}
			}
		}
		return calls, nil
	}
	where, err := rundir.FindStore(run)
	if err != nil {
		return 0, err
	}
	r, closeStore, err := where.Open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	a, err := query.New(ctx, r, where.Run)
	if err != nil {
		return 0, err
	}
	if calls, err = addChanges(flags, a.Run.Decoded()); err != nil {
		return 0, fmt.Errorf("%s: run %s: %w", run, a.Run.Name, err)
	}
	for doc, err := range a.Documents(ctx, "anomalies") {
		var r provenance.Record
		if err == nil {
			err = json.Unmarshal(doc, &r)
		}
		if err == nil {
			err = addFlag(flags, &r)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: event %s: %w", run, r.EventID, err)
		}
	}
	return calls, nil
}

// onlyFiles reports whether a run has records as files and no database.
func onlyFiles(run string) bool {
	_, errFiles := os.Stat(filepath.Join(run, "records"))
	_, errStore := os.Stat(filepath.Join(run, duckstore.FileName))
	return errFiles == nil && errStore != nil
}

// addChanges adds the lasting changes of a run, and returns how many of its calls were
// analyzed.
func addChanges(flags *truth.Matcher, info *provdb.Info) (calls float64, err error) {
	if info.Totals.Calls < 0 {
		return 0, fmt.Errorf("totals.calls is %d", info.Totals.Calls)
	}
	for _, c := range info.Changes {
		flags.AddChange(c.Program, c.Function, c.Since, truth.AtEnd)
	}
	return float64(info.Totals.Calls), nil
}

// addFlag adds a record, unless it is withdrawn.
func addFlag(flags *truth.Matcher, r *provenance.Record) error {
	f := truth.Flag{
		Program: r.PID, Rank: r.RID, Event: r.EventID, Function: r.Func, Entry: r.Entry, Exit: r.Exit, Found: r.Exit,
	}
	switch r.Status {
	case "", provenance.Confirmed, provenance.Provisional:
	case provenance.Promoted:
		f.Found = truth.AtEnd
	case provenance.Withdrawn:
		return nil
	default:
		return fmt.Errorf("unknown status %q (want confirmed, promoted, provisional, withdrawn)", r.Status)
	}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok && len(p.CallStack) > 0 {
		f.Launched, f.LaunchEntry, f.LaunchExit = true, p.CallStack[0].Entry, p.CallStack[0].Exit
	}
	flags.Add(&f)
	return nil
}
