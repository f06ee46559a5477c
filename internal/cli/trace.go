package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

func newTraceCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Inspect and replay traces",
		Long: `Inspect traces that TAU wrote with ADIOS2 (BP3, BP4 and BP5), finished or still being
written, or that it streams live (SST). ADIOS2 itself is not needed. The commands also read
files of PyTorch's profiler (Kineto), other Chrome traces, SQLite exports of Nsight Systems,
rocpd databases of rocprofv3, OTF2 archives, and logs of NCCL Inspector.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOnly,
	}
	cmd.AddCommand(newTraceInfoCmd(env), newTraceDumpCmd(env), newTraceMetadataCmd(env), newTraceReplayCmd(env))
	return cmd
}

// expandPaths returns the datasets that files, directories and patterns select.
func expandPaths(patterns []string) ([]string, error) {
	paths, err := inspect.Expand(patterns...)
	if errors.Is(err, filepath.ErrBadPattern) {
		err = usage.Error{Err: err}
	}
	return paths, err
}

func newTraceInfoCmd(env *Env) *cobra.Command {
	var asJSON bool
	var connect time.Duration
	cmd := &cobra.Command{
		Use:   "info PATH...",
		Short: "Summarize traces",
		Long: `Summarize traces. A PATH is a dataset, an OTF2 archive, a Chrome trace, a SQLite database of
a profiler, a directory (all traces in it are read) or a pattern. A trace that is still being
written is read up to its last step. A damaged trace is read up to the damage; the error then
names the file and the byte, and the exit code is 1.

A PATH may also be the contact file of a live stream, X.bp.sst. The stream is read to its
end, so its steps are lost to other readers.`,
		Example: `  chimbuko trace info tau-metrics-app-0.bp
  chimbuko trace info run-directory
  chimbuko trace info --json 'run-*/' | jq .totals`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			paths, err := expandPaths(paths)
			if err != nil {
				return err
			}
			defer collectEarlier(50)()
			progress := output.NewCounter(env.Stderr, len(paths), "traces")
			info, err := inspect.Summarize(cmd.Context(), paths, connect, progress.Add)
			progress.Clear()
			if err != nil {
				return err
			}
			if err := env.show(asJSON, info, info.Print); err != nil {
				return err
			}
			for _, f := range info.Files {
				err = errors.Join(err, reportError(env, f.Error))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of a table")
	option.RegisterConnect(cmd.Flags(), &connect)
	return cmd
}

// reportError prints an error message, unless it is empty.
func reportError(env *Env, message string) error {
	if message == "" {
		return nil
	}
	fmt.Fprintf(env.Stderr, "chimbuko: %s\n", message)
	return usage.ErrReported
}

func newTraceDumpCmd(env *Env) *cobra.Command {
	cfg := inspect.DumpConfig{Format: "text", Poll: bp.Default().Poll, Sleep: wait.Sleep}
	cmd := &cobra.Command{
		Use:   "dump PATH",
		Short: "Print the events of a trace as text, JSON lines or CSV",
		Long: `Print the events of a trace: entries and exits of functions, messages and counters,
by step, rank and thread, and in order of time on each thread. Numbers in filters may
be ranges such as 3-7. If the size of a message in the trace is impossible (more than 2^48
bytes), it is printed as "unknown" (text), null (JSON lines) or empty (CSV).

With --follow, a trace that is still being written is printed as it grows, until its writer
closes it. With --idle, it also ends after that long without a new step.

A live stream, named by its contact file X.bp.sst, is printed as it arrives. Its steps
are then lost to other readers.`,
		Example: `  chimbuko trace dump tau-metrics-app-0.bp | less
  chimbuko trace dump --kind send,recv --format csv tau-metrics-app-0.bp > messages.csv
  chimbuko trace dump --function 'MPI_*' --step 0-9 --format jsonl tau-metrics-app-0.bp
  chimbuko trace dump --follow --idle 1m tau-metrics-app-0.bp
  chimbuko trace dump tau-metrics-app-0.bp.sst`,
		Args: usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error { return runTraceDump(cmd.Context(), env, paths, cfg) },
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Format, "format", cfg.Format, "text, jsonl or csv")
	f.StringSliceVar(&cfg.Steps, "step", nil, "only these steps (numbers from 0, ranges)")
	f.StringSliceVar(&cfg.Threads, "thread", nil, "only these threads (numbers, ranges)")
	f.StringSliceVar(&cfg.Ranks, "rank", nil, "only these ranks (numbers, ranges)")
	f.StringSliceVar(&cfg.Kinds, "kind", nil, "only these kinds: enter, exit, send, recv, counter; or function, message")
	f.StringArrayVar(&cfg.Functions, "function", nil, "only functions with this name; * and ? match any text and any character")
	f.Int64Var(&cfg.Limit, "limit", 0, "maximum number of events; 0 is no limit")
	f.BoolVar(&cfg.Follow, "follow", false, "wait for new steps, and for the trace if it does not exist yet")
	f.DurationVar(&cfg.Poll, "poll", cfg.Poll, "with --follow: interval between checks for new steps")
	f.DurationVar(&cfg.Idle, "idle", 0, "with --follow: end after this long without a new step; 0 waits forever")
	option.RegisterConnect(f, &cfg.Connect)
	return cmd
}

func runTraceDump(ctx context.Context, env *Env, paths []string, cfg inspect.DumpConfig) (err error) {
	path := paths[0]
	if !cfg.Follow {
		if paths, err = expandPaths(paths); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(paths, sst.IsContact) {
		if len(paths) > 1 {
			return usage.Errorf("%s has contact files of %d live streams, whose program waits until all are read (name one of them, or use "+
				"chimbuko trace info)", path, len(paths))
		}
		cfg.Follow = true
	}
	d, err := inspect.NewDump(cfg)
	if err != nil {
		return usage.Error{Err: err}
	}
	err = d.Run(ctx, env.Stdout, paths)
	for _, n := range d.Tally.Notes() {
		fmt.Fprintf(env.Stderr, "%s: %s %s\n", n.Severity, text.Int(n.Count), n.Sentence)
	}
	switch {
	case errors.Is(err, context.Canceled) && cfg.Follow: // the usual end of --follow
		return nil
	case errors.Is(err, bp.ErrIdle):
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", err)
		return nil
	}
	return err
}

func newTraceMetadataCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "metadata PATH...",
		Short: "Print the attributes of traces",
		Long: `Print the attributes of traces: TAU's metadata for each rank and thread, such as host,
command line and settings, then all other attributes, including the names of programs,
event types, functions ("timer") and counters. Each attribute is printed once, with the
step in which it appeared.`,
		Example: `  chimbuko trace metadata tau-metrics-app-0.bp
  chimbuko trace metadata --json tau-metrics-app-0.bp | jq '.[0].metadata[] | select(.key=="Hostname")'`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			paths, err := expandPaths(paths)
			if err != nil {
				return err
			}
			files := make([]*inspect.Attributes, len(paths))
			for i, p := range paths {
				files[i] = inspect.ReadAttributes(cmd.Context(), p)
			}
			if err := env.show(asJSON, files, func(w io.Writer) {
				for _, f := range files {
					f.Print(w)
				}
			}); err != nil {
				return err
			}
			for _, f := range files {
				err = errors.Join(err, reportError(env, f.Error))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of tables")
	return cmd
}
