package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/source/replay"
)

func newTraceReplayCmd(env *Env) *cobra.Command {
	cfg := replay.Default()
	speed := strconv.FormatFloat(cfg.Speed, 'g', -1, 64)
	cmd := &cobra.Command{
		Use:   "replay SRC DST",
		Short: "write recorded traces once more, as if their programs were running again",
		Long: `Write recorded traces once more into the directory DST, as if their programs were
running again: the files grow as ADIOS2 makes them grow, each step at the time at
which it was recorded, so that all that follows running programs can be tried on
recordings. SRC is a dataset, a directory (all .bp inside it are replayed) or a
pattern; the datasets keep their names, those of a directory also the directories
they lie in.

The finished datasets are equal to the recorded ones, byte for byte, unless
--ranks or --shift-time change what they hold: these read the traces and write
them anew as BP4, whatever they were.

--ranks makes a larger run of a small one. Copy c of the recorded rank r of R
becomes rank c*R+r, with its name, its messages and its metadata; copies are on
hosts of their own. It needs all ranks of one program, each in a dataset of its
own. With a multiple of R all partners of messages are there.

Damaged traces are replayed as far as they can be read, and then reported.

Ctrl-C ends a replay as a killed program ends: what was written can be read, and
the datasets stay marked as being written.`,
		Example: `  chimbuko trace replay traces/ live/
  chimbuko trace replay traces/ live/ --speed 10
  chimbuko trace replay traces/ live/ --speed max --ranks 1024
  chimbuko trace replay tau-metrics-app-0.bp live/ --shift-time & chimbuko trace dump --follow live/tau-metrics-app-0.bp`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var err error
			if cfg.Speed, err = parseSpeed(speed); err != nil {
				return err
			}
			if cmd.Flags().Changed("ranks") && cfg.Ranks < 1 {
				return usagef("--ranks %d is not positive", cfg.Ranks)
			}
			return runTraceReplay(cmd.Context(), env, paths[0], paths[1], cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&speed, "speed", speed, "how many times faster than recorded; 0 or max is as fast as possible")
	f.IntVar(&cfg.Ranks, "ranks", 0, "write so many ranks, by copies of the recorded ones; as BP4")
	f.BoolVar(&cfg.ShiftTime, "shift-time", false, "move all times so that the first event is now; as BP4")
	f.BoolVar(&cfg.Force, "force", false, "replace datasets that are there already")
	return cmd
}

// parseSpeed reads a factor; "max" means without any wait.
func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return 0, nil
	}
	speed, err := strconv.ParseFloat(text, 64)
	if err != nil || !(speed >= 0) || speed > 1e12 {
		return 0, usagef("--speed %q is neither a number from 0 on nor max", text)
	}
	return speed, nil
}

func runTraceReplay(ctx context.Context, env *Env, from, to string, cfg replay.Config) error {
	sets, err := replayedDatasets(from, to)
	if err != nil {
		return err
	}
	cfg.Now, cfg.Sleep = time.Now, sleep
	var bar *progress
	cfg.Stepped = func() { bar.done() }
	p, err := replay.Plan(ctx, sets, cfg)
	switch {
	case errors.Is(err, replay.ErrExists):
		return fmt.Errorf("%w; use --force to replace it", err)
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before anything was written")
	case err != nil:
		return err
	}
	bar = newProgress(env.Stderr, p.Steps(), "steps")
	result, err := p.Run(ctx)
	bar.clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped after %s of %s steps; the datasets in %s stay marked as being written",
			grouped(int64(result.Steps)), grouped(int64(p.Steps())), to)
	}
	printReplay(env, result)
	return err
}

func printReplay(env *Env, r replay.Result) {
	fmt.Fprintf(env.Stdout, "%s datasets, %s steps, %s bytes in %s",
		grouped(int64(r.Datasets)), grouped(int64(r.Steps)), grouped(r.Bytes), r.Took.Round(time.Millisecond))
	if r.Late >= time.Millisecond {
		fmt.Fprintf(env.Stdout, "; up to %s late", r.Late.Round(time.Millisecond))
	}
	fmt.Fprintln(env.Stdout)
	if r.Attributes > 0 {
		fmt.Fprintf(env.Stderr, "warning: %s attributes were left out: BP4 holds one of a name, and here strings only\n",
			grouped(int64(r.Attributes)))
	}
	if r.Cut > 0 {
		fmt.Fprintf(env.Stderr, "warning: %s attributes were cut to 64 KiB, the most that BP4 holds\n", grouped(int64(r.Cut)))
	}
}

// replayedDatasets returns the datasets at from, and where in the directory to
// each of them is written.
func replayedDatasets(from, to string) ([]replay.Dataset, error) {
	paths, err := expandPaths([]string{from})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(from)
	below := err == nil && info.IsDir() && !isDataset(filepath.Clean(from))
	sets := make([]replay.Dataset, 0, len(paths))
	for _, p := range paths {
		name := filepath.Base(filepath.Clean(p))
		if below {
			if rel, err := filepath.Rel(from, p); err == nil && !strings.HasPrefix(rel, "..") {
				name = rel
			}
		}
		sets = append(sets, replay.Dataset{From: p, To: filepath.Join(to, name)})
	}
	return sets, nil
}
