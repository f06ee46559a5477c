package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/output"
)

var diffHelp = `Compare two runs: print a verdict, then one of
  --show lost      anomalies by program, function and call path, also those of one run
                   only; the largest change of lost time first
  --show time      all calls by program and function, the largest change of own time
                   first; a function that is slower in all its calls need not have
                   anomalies
  --show metadata  hosts, settings, versions and metadata of ranks
A change of more than a tenth counts as worse or better. DISTANCE is the largest difference
between the cumulative distributions of a function's times, from 0 (equal) to 1. MOVED is
the mean difference of the time of a call if the calls of both runs are sorted by time
(earth mover's distance).

Each run may also be a file of chimbuko baseline. chimbuko view RUN_B --compare RUN_A
shows the same in a browser.

More than two runs, or one store with several, are sorted by their start and compared with
the newest. The output has a verdict and the lost time of each run. Then --show time or
--show lost lists the functions that differ most between any two runs. BEFORE is the run in
which a function was best, or worst if it improved; the newest run and all runs from SINCE on
differ from it by the same rule. Only the newest ` + strconv.Itoa(comparison.MaxTrend) + ` finished runs
count; --run limits those of a store to names that contain its value. JSON has the values of each run.

With --fail-if the command exits with code 3 if a condition is true. A condition is
NAME>NUMBER or NAME>NUMBER%, and NAME is one of
  lost       growth of the lost time; with % growth of its share of all time, in
             percentage points
  time       growth of the time of all calls; with % relative to run A
  anomalies  growth of the number of anomalies; with % relative to run A
  new        call paths with anomalies in run B only
  worse      call paths that became worse` + runHelp

// exitDiffers is the exit code of a diff if a condition is true.
const exitDiffers = 3

var errDiffers = errors.New("a condition of --fail-if is true")

// diffFlags are the flags of diff in addition to those of all queries.
type diffFlags struct {
	queryFlags
	runB, show string
	conditions []*comparison.Condition
	limit      int
	all        bool
}

func newDiffCmd(env *Env) *cobra.Command {
	var flags diffFlags
	cmd := &cobra.Command{
		Use:   "diff RUN_A [RUN_B…]",
		Short: "Compare runs",
		Long:  diffHelp,
		Example: `  chimbuko diff yesterday today
  chimbuko diff yesterday today --show time
  chimbuko diff good.baseline today --fail-if 'lost>2%' --fail-if 'new>10'
  chimbuko diff postgres://user@server/chimbuko postgres://user@server/chimbuko --run monday --run-b tuesday
  chimbuko diff nightly/* --show time
  chimbuko diff postgres://user@server/chimbuko --run nightly-`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
	}
	f := cmd.Flags()
	flags.register(f)
	f.StringVar(&flags.runB, "run-b", "", "name of the second run if its store contains several; the latest by default")
	f.StringVar(&flags.show, "show", "lost", "list: lost, time or metadata; JSON contains all of them")
	f.Func("fail-if", "condition such as lost>2% for exit code 3; may be repeated", func(text string) error {
		c, err := comparison.ParseCondition(text)
		flags.conditions = append(flags.conditions, c)
		return err
	})
	f.IntVar(&flags.limit, "limit", 20, "number of rows")
	f.BoolVar(&flags.all, "all", false, "include unchanged rows")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.show != "lost" && flags.show != "time" && flags.show != "metadata" {
			return usage.Errorf("--show: unknown value %q (want lost, time, metadata)", flags.show)
		}
		if len(args) != 2 && (len(flags.conditions) > 0 || flags.runB != "" || flags.show == "metadata") {
			return usage.Errorf("--fail-if, --run-b and --show metadata need exactly two runs")
		}
		return flags.limited(cmd, func(ctx context.Context) error {
			if len(args) == 2 {
				return flags.diff(ctx, env, args)
			}
			return flags.trend(ctx, env, args, flags.show == "lost" && f.Changed("show"))
		})
	}
	return cmd
}

// diff compares two runs.
func (d *diffFlags) diff(ctx context.Context, env *Env, where []string) error {
	places := d.places(env)
	a, err := places.Comparable(ctx, where[0], d.run)
	if err != nil {
		return err
	}
	b, err := places.Comparable(ctx, where[1], d.runB)
	if err != nil {
		return err
	}
	difference := comparison.Diff(a, b, d.chosenProgram())
	if err := d.write(ctx, env, output.Difference(difference, d.show, d.limit, d.all)); err != nil {
		return err
	}
	for _, c := range d.conditions {
		if why, exceeded := c.Exceeded(difference); exceeded {
			fmt.Fprintf(env.Stderr, "chimbuko: %s\n", why)
			err = errDiffers
		}
	}
	return err
}

// trend compares many runs.
func (d *diffFlags) trend(ctx context.Context, env *Env, where []string, byLost bool) error {
	t, leftOut, err := d.places(env).Trend(ctx, where, d.run, d.chosenProgram(), d.limit)
	if err != nil {
		return err
	}
	for _, sentence := range leftOut {
		fmt.Fprintln(env.Stderr, "chimbuko:", sentence)
	}
	return d.write(ctx, env, output.Trend(t, byLost, d.all))
}
