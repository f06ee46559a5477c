package cli

import (
	"context"
	_ "embed" // for demo_found.sql
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
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
	stay     bool
}

func (f *demoFlags) check() error {
	const shortest = 3 * time.Second
	var errs []error
	if f.duration < shortest {
		errs = append(errs, fmt.Errorf("--duration %v is too short (want at least %v)", f.duration, shortest))
	}
	if f.ranks < 0 {
		errs = append(errs, fmt.Errorf("--ranks %d is negative", f.ranks))
	}
	if _, _, err := net.SplitHostPort(f.web); err != nil {
		errs = append(errs, fmt.Errorf("--http %q is not of the form host:port", f.web))
	}
	return errors.Join(errs...)
}

// load returns the scenario with the number of ranks and the duration of the flags.
func (f *demoFlags) load() (*scenario.Scenario, error) {
	s, _, err := loadScenario(f.scenario)
	if err != nil {
		return nil, err
	}
	if f.ranks > 0 {
		if err := s.Resize(f.ranks); err != nil {
			return nil, usagef("--ranks %d: %w", f.ranks, err)
		}
	}
	if err := simulate.Stretch(s, f.duration); err != nil {
		return nil, usagef("--duration %v: %w", f.duration, err)
	}
	return s, nil
}

func newDemoCmd(env *Env) *cobra.Command {
	var flags demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "analyze a simulated program, in one minute",
		Long: `Show Chimbuko at work without a program, MPI or TAU. A simulated program writes the
traces of all its ranks in real time. As with chimbuko run, services and analyzers run
beside it, here one analyzer for each simulated host.

The program has planted troubles that the analysis does not know of. The demo reports
when each of them is found, and at the end prints the summary of the run and compares it
with the truth, like chimbuko eval. The exit status is 0 if all troubles were found,
else 1.

The page of the run shows the same in the browser. At a terminal the page stays open
after the end, until Ctrl-C.

The run is written to a temporary directory and removed, unless --keep or --out is
given. Ctrl-C ends the demo and all its processes at any time.`,
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
	f.DurationVar(&flags.duration, "duration", time.Minute, "run time of the simulated program")
	f.IntVar(&flags.ranks, "ranks", 0, "ranks of the simulated program; 0 is the number in the scenario, 16 for demo")
	f.StringVar(&flags.scenario, "scenario", "demo", "built-in scenario (see chimbuko simulate --list) or TOML file")
	f.BoolVar(&flags.keep, "keep", false, "keep the run, its traces and logs in the directory chimbuko-demo")
	f.StringVarP(&flags.out, "out", "o", "", "keep them in this directory; replaces an earlier demo there")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "address the page listens on")
	f.BoolVar(&flags.stay, "stay", false, "keep the page open after the end, until Ctrl-C; default at a terminal")
	return cmd
}

// demo is a simulated program with the processes that analyze it.
type demo struct {
	env      *Env
	flags    *demoFlags
	out      io.Writer // standard output; the first error ends the demo
	scenario *scenario.Scenario
	program  *simulate.Run
	crew     *supervise.Crew
	services *rundir.Services
	missing  []*truth.Trouble // not found so far
}

func runDemo(ctx context.Context, env *Env, flags *demoFlags) (err error) {
	s, err := flags.load()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // clean up even if the reader of the output is gone
	defer signal.Reset(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	dir, err := makeDemoDir(ctx, flags.out)
	if err != nil {
		return err
	}
	if flags.out == "" {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	d := &demo{env: env, flags: flags, out: &failingWriter{env.Stdout, fail}, scenario: s}
	d.crew, err = supervise.NewCrew(superviseConfig(env, filepath.Join(dir, "run"), false))
	if err != nil {
		return err
	}
	defer d.crew.Stop()
	err = d.run(ctx)
	switch {
	case ctx.Err() == nil, err == nil, errors.Is(err, errReported):
		return err
	case !errors.Is(context.Cause(ctx), context.Canceled):
		return context.Cause(ctx)
	case flags.out == "":
		return errors.New("demo interrupted; nothing is left behind")
	}
	return fmt.Errorf("demo interrupted; its unfinished run is in %s", d.crew.Dir)
}

// failingWriter calls fail when it cannot write.
type failingWriter struct {
	io.Writer
	fail context.CancelCauseFunc
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.fail(fmt.Errorf("write output: %w", err))
	}
	return n, err
}

// makeDemoDir returns a new temporary directory, or the given one, from which it removes
// the run of an earlier demo. It refuses other directories with files in them.
func makeDemoDir(ctx context.Context, given string) (string, error) {
	if given == "" {
		return os.MkdirTemp("", "chimbuko-demo-")
	}
	if err := os.MkdirAll(given, 0o755); err != nil {
		return "", err
	}
	mark := filepath.Join(given, "demo.json")
	if entries, err := os.ReadDir(given); err != nil {
		return "", err
	} else if _, err := os.Stat(mark); err != nil && len(entries) > 0 {
		return "", fmt.Errorf("%s: the directory is not empty and not that of a demo (choose another with --out, or remove it)", given)
	}
	run := filepath.Join(given, "run")
	if c, err := remotestore.Open(ctx, rundir.Owner(run)); err == nil {
		return "", errors.Join(fmt.Errorf("%s: a demo is running there (wait for it to end, or choose another directory with --out)", given),
			c.Close())
	}
	return given, errors.Join(os.RemoveAll(run), os.WriteFile(mark, []byte("{}\n"), 0o644)) //nolint:gosec // meant to be read by all
}

// run starts everything and reports until the end.
func (d *demo) run(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	if err := d.simulate(ctx); err != nil {
		return err
	}
	d.crew.Conclude()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.conclude(ctx)
	if !d.flags.stay || err != nil && !errors.Is(err, errReported) {
		return err
	}
	page, startErr := d.crew.Start("view", "the page", "view", d.crew.Path(), "--http="+d.flags.web) // at the same address
	if startErr != nil {
		return startErr
	}
	d.crew.Say("the page stays open until Ctrl-C")
	select {
	case <-ctx.Done():
	case <-page.Ended():
	}
	return err
}

// start starts the services and an analyzer for each simulated host.
func (d *demo) start(ctx context.Context) (err error) {
	ranks, hosts := 0, []string(nil)
	var programs []string // flags that tell analyzers the programs of a workflow apart
	for i := range d.scenario.Programs {
		p := &d.scenario.Programs[i]
		ranks += p.Ranks
		for rank := range p.Ranks {
			hosts = append(hosts, p.Host(rank))
		}
		if len(d.scenario.Programs) > 1 {
			programs = append(programs, fmt.Sprintf("--program=%d=*/tau-metrics-%s-*", i, p.Name))
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	fmt.Fprintf(d.out, "Simulating %d ranks on %d hosts for %v: %s\n", ranks, len(hosts), d.flags.duration, d.scenario.Text)
	d.services, err = d.crew.StartServices(ctx, "--name=demo", "--ranks="+strconv.Itoa(ranks), "--http="+d.flags.web, "--store-delay=200ms")
	if err != nil {
		return err
	}
	for _, host := range hosts {
		traces := filepath.Join(rundir.EscapeGlob(filepath.Join(d.crew.Traces(), host)), "*.bp")
		d.crew.StartAnalyzer("ad-"+host, host, append(programs, "--until-told", traces)...)
	}
	return nil
}

// simulate runs the program, and reports troubles as they are found.
func (d *demo) simulate(ctx context.Context) error {
	d.scenario.Start = time.Now().UTC()
	d.program = simulate.New(d.scenario)
	d.missing = d.program.Troubles()
	fmt.Fprintf(d.out, "\nPlanted troubles, unknown to the analysis:\n\n")
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	for _, p := range d.missing {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.sinceStart(p.From), oneLine(p.Kind), whereText(p), oneLine(p.Name))
	}
	_ = t.Flush() // errors stick to d.out
	fmt.Fprintln(d.out)

	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { d.watch(watching) })
	_, err := d.program.Write(ctx, simulate.Target{Dir: d.crew.Traces(), HostDirs: true, Speed: 1, Now: time.Now, Sleep: sleep})
	stop()
	wg.Wait()
	if err == nil {
		fmt.Fprintf(d.out, "%s  the program has ended\n", d.sinceStart(trace.Micros(time.Now().UnixMicro())))
	}
	return err
}

// sinceStart formats a time relative to the start of the program.
func (d *demo) sinceStart(t trace.Micros) string {
	return fmt.Sprintf("%+6.1f s", float64(t-trace.Micros(d.scenario.Start.UnixMicro()))/1e6)
}

// watch reports totals and newly found troubles until ctx ends.
func (d *demo) watch(ctx context.Context) {
	var client http.Client
	for n := 1; sleep(ctx, time.Second) == nil; n++ {
		d.reportFound(ctx)
		if n%5 > 0 {
			continue
		}
		if st, err := dashboard.Fetch(ctx, &client, d.services.Web, d.services.Secret); err == nil {
			fmt.Fprintf(d.out, "%s  %s steps, %s events, %s calls, %s anomalies\n", d.sinceStart(trace.Micros(time.Now().UnixMicro())),
				grouped(st.Totals.Steps), grouped(st.Totals.Events), grouped(st.Totals.Calls), grouped(st.Totals.Anomalies))
		}
	}
}

//go:embed demo_found.sql
var demoFoundSQL string

// reportFound reports troubles with their first anomaly in the store. It leaves those
// for later that the services cannot tell now.
func (d *demo) reportFound(ctx context.Context) {
	store, err := remotestore.Open(ctx, rundir.Owner(d.crew.Path()))
	if err != nil || len(d.missing) == 0 {
		return
	}
	defer store.Close() //nolint:errcheck // only read from
	first := slices.MinFunc(d.missing, func(a, b *truth.Trouble) int { return int(a.From - b.From) })
	rows, err := store.Query(ctx, demoFoundSQL, int64(first.From))
	if err != nil {
		return
	}
	for row, err := range rows.All {
		if err != nil {
			return
		}
		f := &truth.Flag{
			Program: trace.Program(row[0].(int64)), Rank: trace.Rank(row[1].(int64)), Function: fmt.Sprint(row[2]),
			Entry: trace.Micros(row[4].(int64)), Exit: trace.Micros(row[5].(int64)),
		}
		d.missing = slices.DeleteFunc(d.missing, func(t *truth.Trouble) bool {
			if !t.Covers(f) {
				return false
			}
			fmt.Fprintf(d.out, "%s  found: %s (%s lost in %s, rank %d on %s)\n", d.sinceStart(f.Exit), oneLine(t.Name),
				microsText(float64(row[6].(int64))), oneLine(f.Function), f.Rank, oneLine(fmt.Sprint(row[3])))
			return true
		})
	}
}

// conclude prints the summary of the run and compares it with the truth. It returns
// errReported if a trouble was not found.
func (d *demo) conclude(ctx context.Context) error {
	info, err := rundir.ReadInfo(d.crew.Path())
	if err != nil {
		return err
	}
	planted, err := truth.Read([]string{d.crew.Traces()})
	if err != nil {
		return err
	}
	flags := planted.Matcher()
	calls, err := readRun(ctx, d.crew.Path(), flags)
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	score := flags.Score(calls)
	if d.flags.out == "" {
		printSummary(d.out, info, "")
	} else {
		printSummary(d.out, info, d.crew.Dir)
		fmt.Fprintf(d.out, "Compare it with the truth: chimbuko eval %s %s\n", d.crew.Dir, rundir.Traces(d.crew.Dir))
	}
	printTroubles(d.out, score.Troubles)
	var missed []string
	for i := range score.Troubles {
		if t := &score.Troubles[i]; !t.Seen {
			missed = append(missed, oneLine(t.Name))
		}
	}
	fmt.Fprintf(d.out, "\nFound %d of %d planted troubles.\n", len(score.Troubles)-len(missed), len(score.Troubles))
	if d.flags.out == "" {
		fmt.Fprintln(d.out, "To keep the run and query it: chimbuko demo --keep")
	}
	if len(missed) > 0 {
		fmt.Fprintf(d.env.Stderr, "chimbuko: troubles not found: %s\n", strings.Join(missed, ", "))
		return errReported
	}
	return nil
}
