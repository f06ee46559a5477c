package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// FinishOptions describes how to complete a run.
type FinishOptions struct {
	Traces []string // where the traces are now, if they were moved
	Listen string   // address of the page
	Force  bool     // finish a run that another machine may be working on
	// End makes the services end the run with the current results. It is called if no traces are
	// left to read.
	End func(context.Context, *runfiles.Services) error
}

// ErrIncomplete means that a run is still incomplete, for reasons that were printed.
var ErrIncomplete = errors.New("the run is still incomplete")

// Finish completes the run in cfg.Dir, which was stopped before its end: it reads the remaining
// traces with their analyzers and settings, and reviews and stores all records.
func Finish(ctx context.Context, cfg Config, u *FinishOptions) error {
	info, err := runfiles.ReadInfo(cfg.Dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s holds no run: %w", cfg.Dir, err)
		}
		return err
	}
	switch {
	case info.State == provdb.Finished:
		if err := checkStore(ctx, cmp.Or(cfg.Store, info.Store), cfg.Dir); err != nil {
			return fmt.Errorf("%s has finished, but its results cannot be read: %w", cfg.Dir, err)
		}
		fmt.Fprintf(cfg.Stderr, "chimbuko: %s has already finished\n", cfg.Dir)
		for _, why := range info.Incomplete {
			fmt.Fprintf(cfg.Stderr, "chimbuko: data is missing: %q\n", why)
		}
		return nil
	case !info.Online:
		return fmt.Errorf("%s is of recorded traces and cannot be resumed (analyze them again: chimbuko analyze --out %s --force)",
			cfg.Dir, cfg.Dir)
	}
	if err := checkIdle(ctx, cfg.Dir, info, u.Force); err != nil {
		return err
	}
	cfg.Store = cmp.Or(cfg.Store, info.Store)
	c, err := joinCrew(cfg)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := c.finish(ctx, info, u); err != nil {
		return err
	}
	if c.report(true); !runfiles.HasFinished(c.dir) {
		return ErrIncomplete
	}
	return nil
}

// checkStore returns an error if the store of a finished run is missing or damaged.
func checkStore(ctx context.Context, server, dir string) error {
	place, err := rundir.FindStore(dir)
	if err != nil {
		if _, statErr := os.Stat(filepath.Join(dir, "records")); statErr == nil { // the run has only these
			return nil
		}
		return err
	}
	if server != "" {
		place.Server = server
	}
	r, err := place.Open(ctx)
	if err != nil {
		return err
	}
	_, err = query.New(ctx, r, place.Run)
	if c, ok := r.(interface {
		Check(ctx context.Context) error
	}); ok && err == nil {
		err = c.Check(ctx)
	}
	return errors.Join(err, r.Close())
}

// finish starts the services and analyzers again and waits until they end.
func (c *Crew) finish(ctx context.Context, info *provdb.Info, u *FinishOptions) error {
	signals := catchSignals()
	defer signals.stop()
	resumed, lost, err := c.plan(u.Traces)
	if err != nil {
		return err
	}
	flags := []string{"--http=" + u.Listen, "--reopen", "--lost=" + strings.Join(lost, ",")}
	for _, name := range []string{"name", "shards", "load-model", "freeze-model", "save-model", "store-delay"} {
		if value := info.Settings[name]; value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	services, err := c.StartServices(ctx, flags...)
	if err != nil {
		return err
	}
	for i, a := range resumed {
		c.StartAnalyzer(fmt.Sprintf("ad-%d", i+1), a.name, a.args...)
	}
	if len(resumed) == 0 {
		if err := u.End(ctx, services); err != nil {
			return err
		}
	}
	c.conclude(signals, nil)
	return nil
}

// checkIdle returns an error if a process may be working on the run.
func checkIdle(ctx context.Context, dir string, info *provdb.Info, force bool) error {
	if info.State == provdb.Incomplete { // a process that works on it changes the state
		return nil
	}
	place, err := rundir.FindStore(dir)
	if err != nil {
		return err
	}
	if s, err := runfiles.ReadServices(dir); err == nil && s.Web != "" && !viewer.Reachable(s) {
		if force {
			return nil
		}
		return fmt.Errorf("%s may be running on %s, which is not reachable (use chimbuko stop there, or --force if that job is over)",
			dir, s.Host)
	}
	stopped, err := viewer.IsStopped(ctx, dir, place)
	if err == nil && !stopped {
		err = fmt.Errorf("%s is running (chimbuko stop %s ends it with the current results)", dir, dir)
	}
	return err
}

// analyzer is an analyzer to start.
type analyzer struct {
	name string
	args []string
}

// plan returns the analyzers that have not delivered all results, and the names of those whose
// traces are lost. If traces are given, it returns one new analyzer for them.
func (c *Crew) plan(traces []string) (resumed []analyzer, lost []string, err error) {
	all, err := paramserver.Analyzers(runfiles.Parameters(c.dir))
	if err != nil {
		return nil, nil, err
	}
	if len(traces) > 0 {
		return []analyzer{{args: traces}}, nil, nil
	}
	for _, a := range all {
		args := a.Command.GetArgs()
		switch {
		case a.Done:
		case slices.ContainsFunc(args, hasTraces):
			resumed = append(resumed, analyzer{a.Name, args})
		default:
			lost = append(lost, a.Name)
			c.warn("the traces of %s (ranks %s, host %s) are missing; if they are elsewhere: chimbuko finish %s TRACE",
				a.Name, strings.Trim(fmt.Sprint(a.Ranks), "[]"), cmp.Or(a.Command.GetHost(), "unknown"), c.Dir)
		}
	}
	if pattern := filepath.Join(runfiles.EscapeGlob(c.Traces()), "*.bp"); len(all) == 0 && hasTraces(pattern) { // no analyzer had registered
		resumed = []analyzer{{args: []string{pattern}}}
	}
	return resumed, lost, nil
}

// hasTraces reports whether an argument of an analyzer stands for an existing dataset: by
// its name, by a pattern, or in a directory.
func hasTraces(arg string) bool {
	if strings.HasPrefix(arg, "--") {
		return false
	}
	return slices.ContainsFunc([]string{filepath.Clean(arg), filepath.Join(arg, "*.bp")}, func(pattern string) bool {
		matches, err := filepath.Glob(pattern)
		return err == nil && slices.ContainsFunc(matches, func(path string) bool { return strings.HasSuffix(path, ".bp") })
	})
}
