package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// finishFlags are the flags of `finish`.
type finishFlags struct {
	store string
	web   string
	force bool
	quiet bool
}

func newFinishCmd(env *Env) *cobra.Command {
	var flags finishFlags
	cmd := &cobra.Command{
		Use:   "finish RUN [TRACE...]",
		Short: "complete a run that was cut: read what is left, review, store what is known over all ranks",
		Long: `Complete a run whose services or analyzers were ended before it was: by a crash, a
batch system, a full disk or a second Ctrl-C. Traces that are still there are read once
more, from where they were, by the analyzers that had them and with their settings;
everything that was kept is judged once more with all that is known, and what is known
over all ranks is stored. Nothing counts twice. Of ranks whose traces are gone, what had
been sent before is judged.

TRACE says where the traces are now, if that is not where they were.`,
		Example: `  chimbuko finish run
  chimbuko finish run /scratch/saved-traces`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return runFinish(cmd.Context(), env, &flags, given[0], given[1:])
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.store, "store", "", "postgres://… where the run is kept, with the password that the run directory does not hold")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "where the page of the run listens meanwhile")
	f.BoolVar(&flags.force, "force", false, "also if the run seems to go on on another machine, whose job is over")
	f.BoolVar(&flags.quiet, "quiet", false, "say nothing but what went wrong")
	return cmd
}

func runFinish(ctx context.Context, env *Env, flags *finishFlags, dir string, traces []string) error {
	info, err := rundir.ReadInfo(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s holds no run: %w", dir, err)
		}
		return err
	}
	switch {
	case info.State == provdb.Finished:
		fmt.Fprintf(env.Stderr, "chimbuko: %s has finished already\n", dir)
		for _, why := range info.Incomplete {
			fmt.Fprintf(env.Stderr, "chimbuko: it is incomplete for good: %s\n", oneLine(why))
		}
		return nil
	case !info.Online:
		return fmt.Errorf("%s is of recorded traces and cannot be gone on with; analyze them again, with chimbuko analyze --out %s --force", dir, dir)
	}
	if err := checkIdle(ctx, dir, info, flags.force); err != nil {
		return err
	}
	crew, err := joinCrew(env, dir, cmp.Or(flags.store, info.Store), flags.quiet)
	if err != nil {
		return err
	}
	defer crew.stop()
	signals := catchSignals()
	defer signals.stop()
	plan, err := planFinish(crew, traces)
	if err != nil {
		return err
	}
	services, err := crew.startServices(ctx, append(serveAgain(info), "--out="+crew.dir, "--http="+flags.web, "--reopen", "--linger=0s", "--lost="+strings.Join(plan.lost, ",")))
	if err != nil {
		return err
	}
	crew.greet(services)
	for i, a := range plan.again {
		crew.startAnalyzer(fmt.Sprintf("ad-%d", i+1), a.Name, a.args...)
	}
	if len(plan.again) == 0 {
		if err := stopRun(ctx, &busFlags{}, services); err != nil {
			return err
		}
	}
	crew.conclude(signals, nil)
	if crew.report(true); !rundir.HasFinished(dir) {
		return errReported
	}
	return nil
}

// checkIdle says why a run cannot be gone on with: somebody is at work on it.
func checkIdle(ctx context.Context, dir string, info *provdb.Info, force bool) error {
	if info.State == provdb.Incomplete { // who goes on with it changes that
		return nil
	}
	place, err := rundir.FindStore(dir)
	if err != nil {
		return err
	}
	if s, err := rundir.ReadServices(dir); err == nil && s.Web != "" && !viewer.Reachable(s) {
		if force {
			return nil
		}
		return fmt.Errorf("%s may go on on %s, which cannot be asked from here; chimbuko stop ends it there; if that job is over, give --force", dir, s.Host)
	}
	stopped, err := viewer.IsStopped(ctx, dir, place)
	if err == nil && !stopped {
		err = fmt.Errorf("%s goes on; chimbuko stop %s ends it with what is known", dir, dir)
	}
	return err
}

// servedAgain are the settings of services that hold for those that finish the run.
var servedAgain = []string{"name", "shards", "load-model", "freeze-model", "save-model", "store-delay"}

// serveAgain are the flags of the services of a run, as far as they hold again.
func serveAgain(info *provdb.Info) (args []string) {
	for _, name := range servedAgain {
		if value := info.Settings[name]; value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}

// finishPlan is who reads traces once more, and who is lost.
type finishPlan struct {
	again []finisher
	lost  []string
}

// finisher is an analyzer to start.
type finisher struct {
	Name string
	args []string
}

// planFinish finds the analyzers of a run that have not handed over all, and their
// traces.
func planFinish(c *crew, traces []string) (*finishPlan, error) {
	known, err := paramserver.Analyzers(rundir.Parameters(c.dir))
	if err != nil {
		return nil, err
	}
	plan := new(finishPlan)
	if len(traces) > 0 {
		plan.again = []finisher{{args: traces}}
		return plan, nil
	}
	for _, a := range known {
		if a.Done {
			continue
		}
		args := a.Command.GetArgs()
		there := false
		for _, arg := range args {
			if !strings.HasPrefix(arg, "--") {
				paths, _, err := tracesOf(arg, engineBP)
				there = there || err == nil && slices.ContainsFunc(paths, isThere)
			}
		}
		if !there {
			plan.lost = append(plan.lost, a.Name)
			c.warn("the traces of %s (ranks %s, on %s) are not here; what was sent of them before is judged. If they are elsewhere: chimbuko finish %s TRACE",
				a.Name, rankList(a.Ranks), cmp.Or(a.Command.GetHost(), "an unknown machine"), c.shown)
			continue
		}
		plan.again = append(plan.again, finisher{a.Name, args})
	}
	if paths, _, err := tracesOf(c.traces(), engineBP); len(known) == 0 && err == nil && len(paths) > 0 { // no analyzer had come so far
		plan.again = []finisher{{args: []string{c.traces()}}}
	}
	return plan, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
