package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/children"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// demoFlags are the flags of `demo`.
type demoFlags struct {
	duration time.Duration
	ranks    int
	scenario string
	keep     bool
	out      string
	web      string
	stay     bool // when all has ended, until it is interrupted
}

// check says what is wrong with the flags.
func (f *demoFlags) check() error {
	var errs []error
	if f.duration < shortestDemo {
		errs = append(errs, fmt.Errorf("--duration %v is too short to see anything: give %v or more", f.duration, shortestDemo))
	}
	if f.ranks < 0 {
		errs = append(errs, fmt.Errorf("--ranks %d is negative", f.ranks))
	}
	if _, _, err := net.SplitHostPort(f.web); err != nil {
		errs = append(errs, fmt.Errorf("--http %q is not of the form host:port", f.web))
	}
	return errors.Join(errs...)
}

// shortestDemo is how long a demo lasts at least.
const shortestDemo = 3 * time.Second

func newDemoCmd(env *Env) *cobra.Command {
	var flags demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "see it all work in one minute, with a simulated program",
		Long: `Show the whole of Chimbuko at work, without a program, MPI or TAU: a simulated
program writes the traces of all its ranks while you watch, an analyzer for each of
its hosts follows them, and the services merge what all of them learn and store what
is anomalous. All of them are processes of this program, as they are in earnest.

Some troubles are planted in the program, of which the analysis knows nothing. In the
end you see what it found by itself, and which of the troubles that was. The exit
status is 0 if all of them were found, else 1.

The page of the run, whose address is the first thing to be printed, shows the same in
the browser. At a terminal it stays when all is over, until Ctrl-C.

Everything is in a temporary directory and is removed, unless --keep or --out says
otherwise. Ctrl-C ends all processes at any time.`,
		Example: `  chimbuko demo
  chimbuko demo --duration 20s --ranks 32
  chimbuko demo --keep && chimbuko view chimbuko-demo/run`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return usageError{err}
			}
			if flags.keep && flags.out == "" {
				flags.out = "chimbuko-demo"
			}
			if !cmd.Flags().Changed("stay") {
				flags.stay = env.isInteractive()
			}
			return runDemo(cmd.Context(), env, &flags)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&flags.duration, "duration", time.Minute, "how long the simulated program runs")
	f.IntVar(&flags.ranks, "ranks", 0, "ranks of the simulated program; 0 is those of the scenario, which are 16 for demo")
	f.StringVar(&flags.scenario, "scenario", "demo", "what is simulated: one of chimbuko simulate --list, or a TOML file")
	f.BoolVar(&flags.keep, "keep", false, "keep the run, the traces and the logs in the directory chimbuko-demo")
	f.StringVarP(&flags.out, "out", "o", "", "keep them in this directory, which is made; that of an earlier demo is replaced")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "where HTTP listens")
	f.BoolVar(&flags.stay, "stay", false, "keep the page of the finished run until Ctrl-C; at a terminal that is the default")
	return cmd
}

// demo is a demo that goes on.
type demo struct {
	flags    *demoFlags
	plan     *demoPlan
	dir      *demoDir
	children *children.Group
	view     *demoView
	services *rundir.Services
	began    time.Time // when the program was started

	server    *children.Child
	analyzers []*children.Child
	program   *children.Child
	page      *children.Child // of the finished run; nil: there is none
	address   string          // of the page
}

func runDemo(ctx context.Context, env *Env, flags *demoFlags) (err error) {
	plan, err := newDemoPlan(flags)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of the output who goes away must not keep this from cleaning up
	defer signal.Reset(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // and neither must a terminal that is closed
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	dir, err := newDemoDir(flags.out, demoInfo{env.Version, time.Now().UTC(), flags.scenario, flags.duration.String()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	group, err := children.New(dir.logs(), childEnviron(env.Environ, dir.temporary()), func(f *children.Failure) { fail(f) })
	if err != nil {
		return err
	}
	defer group.Stop()
	d := &demo{flags: flags, plan: plan, dir: dir, children: group, view: newDemoView(env, fail)}
	err = d.show(ctx)
	d.view.clear()
	if err == nil || errors.Is(err, errMissed) {
		return err
	}
	return d.giveUp(env, cmp.Or(context.Cause(ctx), err))
}

// giveUp ends a demo that did not come to its end, and says why.
func (d *demo) giveUp(env *Env, err error) error {
	d.children.Stop()
	if failed, ok := errors.AsType[*children.Failure](err); ok {
		err = fmt.Errorf("%w; its log ends with\n%s", err, children.LastLines(failed.Child.Log, oneLine))
	} else if errors.Is(err, context.Canceled) {
		err = errors.New("the demo was interrupted")
	}
	if closeErr := d.dir.close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	left := "nothing is left behind"
	if d.dir.kept {
		left = "what there is so far is in " + d.dir.path
	}
	fmt.Fprintf(env.Stderr, "chimbuko: %s\nAll processes have ended, and %s.\n", strings.TrimSuffix(err.Error(), "\n"), left)
	return errReported
}

// show starts everything, tells how it fares, and what came of it.
func (d *demo) show(ctx context.Context) error {
	d.view.introduce(d.plan, d.flags.duration)
	if err := d.start(ctx); err != nil {
		return err
	}
	troubles, err := d.troubles(ctx)
	if err != nil {
		return err
	}
	d.view.announce(troubles, d.began)
	if err := d.watch(ctx); err != nil {
		return err
	}
	if d.flags.stay {
		if err := d.startPage(ctx); err != nil {
			return err
		}
	}
	err = d.conclude(ctx)
	if d.page != nil && (err == nil || errors.Is(err, errMissed)) {
		return cmp.Or(d.stay(ctx), err)
	}
	return err
}

// start starts the services, the analyzers and then the program.
func (d *demo) start(ctx context.Context) (err error) {
	d.server, err = d.children.Start(ctx, "serve", "the process of the services", "serve", "--out", d.dir.run(), "--name", "demo",
		"--ranks", strconv.Itoa(d.plan.ranks), "--http", d.flags.web, "--store-delay", "200ms")
	if err != nil {
		return err
	}
	if d.services, err = d.waitForServices(ctx); err != nil {
		return err
	}
	d.view.point(d.services, d.dir.run())
	for _, h := range d.plan.hosts {
		args := []string{"ad", "--run-dir", d.dir.run(), "--node", h.name, "--traces", strconv.Itoa(h.traces), "--spool", d.dir.spool(h.name)}
		ad, err := d.children.Start(ctx, "ad-"+h.name, "the analyzer of "+h.name, slices.Concat(args, d.plan.programs, []string{d.dir.tracesOf(h.name)})...)
		if err != nil {
			return err
		}
		d.analyzers = append(d.analyzers, ad)
	}
	args := []string{"simulate", "--scenario", d.flags.scenario, "--out", d.dir.traces(), "--live", "--host-dirs", "--duration", d.flags.duration.String()}
	if d.flags.ranks > 0 {
		args = append(args, "--ranks", strconv.Itoa(d.flags.ranks))
	}
	d.began = time.Now()
	d.program, err = d.children.Start(ctx, "simulate", "the simulated program", args...)
	return err
}

// startPatience is how long processes may take to start.
const startPatience = 30 * time.Second

// waitForServices waits until the services say where they are.
func (d *demo) waitForServices(ctx context.Context) (found *rundir.Services, err error) {
	err = d.until(ctx, d.server, "tell where they are", func() (bool, error) {
		found, err = rundir.ReadServices(d.dir.run())
		return err == nil, nil
	})
	return found, err
}

// until waits until f is true, which a process brings about.
func (d *demo) until(ctx context.Context, p *children.Child, what string, f func() (bool, error)) error {
	for begin := time.Now(); ; {
		ok, err := f()
		if err != nil || ok {
			return err
		}
		select {
		case <-p.Ended():
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if ok, err := f(); err != nil || ok {
				return err
			}
			return fmt.Errorf("%s ended and did not %s; its log ends with\n%s", p.What, what, children.LastLines(p.Log, oneLine))
		default:
		}
		if time.Since(begin) > startPatience {
			return fmt.Errorf("%s did not %s within %v; its log ends with\n%s", p.What, what, startPatience, children.LastLines(p.Log, oneLine))
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}
