package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/source/replay"
)

func newTraceReplayCmd(env *Env) *cobra.Command {
	cfg := replay.Default()
	speed := strconv.FormatFloat(cfg.Speed, 'g', -1, 64)
	cmd := &cobra.Command{
		Use:   "replay SRC DST",
		Short: "Write recorded traces again as a live program would",
		Long: `Write recorded traces again into the directory DST, as if their programs were running. The
files grow as ADIOS2 grows them, and each step appears when it did in the recording. Use
this to try commands that follow running programs. SRC is a dataset, a directory (all .bp
in it are replayed) or a pattern. Datasets keep their names, and those of a directory also
keep their subdirectories.

The finished datasets equal the recorded ones byte for byte, unless --ranks or --shift-time
change their content. These two flags write BP4, whatever the format of the source.

--ranks makes a large run from a small one. Copy c of the recorded rank r of R becomes
rank c*R+r, with its name, messages and metadata; each copy has its own hosts. It needs
all ranks of one program, each in its own dataset. If the number is a multiple of R,
all partners of messages exist.

A damaged trace is replayed up to the damage, which is then reported.

Ctrl-C ends a replay like a killed program: the written part is readable, and the datasets
stay marked as being written.`,
		Example: `  chimbuko trace replay traces/ live/
  chimbuko trace replay traces/ live/ --speed 10
  chimbuko trace replay traces/ live/ --speed max --ranks 1024
  chimbuko trace replay tau-metrics-app-0.bp live/ --shift-time & chimbuko trace dump --follow live/tau-metrics-app-0.bp`,
		Args: usage.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var err error
			if cfg.Speed, err = parseSpeed(speed); err != nil {
				return err
			}
			if cmd.Flags().Changed("ranks") && cfg.Ranks < 1 {
				return usage.Errorf("--ranks %d is not positive", cfg.Ranks)
			}
			return runTraceReplay(cmd.Context(), env, paths[0], paths[1], cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&speed, "speed", speed, "speed relative to the recording; 0 or max is as fast as possible")
	f.IntVar(&cfg.Ranks, "ranks", 0, "number of ranks to write, as copies of the recorded ranks; writes BP4")
	f.BoolVar(&cfg.ShiftTime, "shift-time", false, "shift all times so that the first event is now; writes BP4")
	f.BoolVar(&cfg.Force, "force", false, "replace existing datasets")
	return cmd
}

// parseSpeed parses a factor. "max" is 0, which means without waiting.
func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(speed >= 0) || speed > 1e12 {
		return 0, usage.Errorf("--speed %q is neither a non-negative number nor max", text)
	}
	return speed, nil
}

func runTraceReplay(ctx context.Context, env *Env, from, to string, cfg replay.Config) error {
	paths, err := expandPaths([]string{from})
	if err != nil {
		return err
	}
	var sets []replay.Dataset
	for _, p := range paths {
		sets = append(sets, replay.Dataset{From: p, To: filepath.Join(to, inspect.Relative(from, p))})
	}
	cfg.Now, cfg.Sleep = time.Now, wait.Sleep
	var bar *output.Counter
	cfg.OnStep = func() { bar.Add() }
	p, err := replay.Plan(ctx, sets, cfg)
	switch {
	case errors.Is(err, replay.ErrExists):
		return fmt.Errorf("%w (use --force to replace it)", err)
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before anything was written")
	case err != nil:
		return err
	}
	bar = output.NewCounter(env.Stderr, p.Steps(), "steps")
	r, err := p.Run(ctx)
	bar.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped after %s of %s steps; the datasets in %s stay marked as being written",
			text.Int(r.Steps), text.Int(p.Steps()), to)
	}
	printWritten(env, r.Datasets, r.Steps, text.Int(r.Bytes)+" bytes", r.Time, r.MaxDelay)
	if r.OmittedAttributes > 0 {
		fmt.Fprintf(env.Stderr, "warning: %s were omitted (BP4 stores one attribute per name, and this program only strings)\n",
			text.Count(r.OmittedAttributes, "attribute"))
	}
	if r.CutAttributes > 0 {
		fmt.Fprintf(env.Stderr, "warning: %s were cut to 64 KiB, the maximum of BP4\n", text.Count(r.CutAttributes, "attribute"))
	}
	return err
}

// printWritten prints how much was written, how long it took and how late it was.
func printWritten(env *Env, datasets, steps int, more string, took, late time.Duration) {
	fmt.Fprintf(env.Stdout, "%s, %s, %s in %s", text.Count(datasets, "dataset"), text.Count(steps, "step"), more, took.Round(time.Millisecond))
	if late >= time.Millisecond {
		fmt.Fprintf(env.Stdout, "; up to %s late", late.Round(time.Millisecond))
	}
	fmt.Fprintln(env.Stdout)
}
