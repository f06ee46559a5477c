// Package demo runs a simulated program beside the processes that analyze it, and reports
// which of its planted troubles they find.
package demo

import (
	"context"
	_ "embed" // for found.sql
	"errors"
	"fmt"
	"io"
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

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/lab/evaluate"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Config describes a demo.
type Config struct {
	Scenario *scenario.Scenario
	Duration time.Duration // of the simulated program
	Out      string        // directory to keep the run in; "" removes it at the end
	Web      string        // address of the page
	KeepPage bool          // keep the page open at the end, until ctx ends

	Supervise supervise.Config // without Dir
	Sleep     func(context.Context, time.Duration) error
	// Summarize prints the results of the run, with its directory unless that is "".
	Summarize func(w io.Writer, info *provdb.Info, dir string)
}

// MissedError names the troubles that were not found.
type MissedError []string

func (e MissedError) Error() string { return "troubles not found: " + strings.Join(e, ", ") }

// demo is a simulated program with the processes that analyze it.
type demo struct {
	Config
	out      io.Writer // standard output; the first error ends the demo
	crew     *supervise.Crew
	services *runfiles.Services
	missing  []*truth.Trouble // not found yet
	slow     map[string]bool  // keys of slow peers that were reported
}

// Run runs a demo. It returns a MissedError if a trouble was not found.
func Run(ctx context.Context, cfg Config) (err error) {
	signal.Ignore(syscall.SIGPIPE) // clean up even if the reader of the output is gone
	defer signal.Reset(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	dir, err := makeDir(ctx, cfg.Out)
	if err != nil {
		return err
	}
	if cfg.Out == "" {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	d := &demo{Config: cfg, out: &failingWriter{cfg.Supervise.Stdout, fail}, slow: make(map[string]bool)}
	d.Supervise.Dir = filepath.Join(dir, "run")
	if d.crew, err = supervise.NewCrew(d.Supervise); err != nil {
		return err
	}
	defer d.crew.Stop()
	err = d.run(ctx)
	_, missed := errors.AsType[MissedError](err)
	switch {
	case ctx.Err() == nil, err == nil, missed:
		return err
	case !errors.Is(context.Cause(ctx), context.Canceled):
		return context.Cause(ctx)
	case cfg.Out == "":
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

// makeDir returns a new temporary directory, or the given one, from which it removes the
// run of an earlier demo. It refuses other directories with files in them.
func makeDir(ctx context.Context, given string) (string, error) {
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
	if _, missed := errors.AsType[MissedError](err); !d.KeepPage || err != nil && !missed {
		return err
	}
	page, startErr := d.crew.Start("view", "the page", "view", d.crew.Path(), "--http="+d.Web) // at the same address
	if startErr != nil {
		return startErr
	}
	d.crew.Printf("the page stays open until Ctrl-C")
	select {
	case <-ctx.Done():
	case <-page.Ended():
	}
	return err
}

// start starts the services and an analyzer for each simulated host.
func (d *demo) start(ctx context.Context) (err error) {
	var hosts, programs []string // programs are flags for those of a workflow
	for i := range d.Scenario.Programs {
		p := &d.Scenario.Programs[i]

		for rank := range p.Ranks {
			hosts = append(hosts, p.Host(rank))
		}
		if len(d.Scenario.Programs) > 1 {
			programs = append(programs, fmt.Sprintf("--program=%d=*/tau-metrics-%s-*", i, p.Name))
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	fmt.Fprintf(d.out, "Simulating %d ranks on %d hosts for %v: %s\n", d.Scenario.Ranks(), len(hosts), d.Duration, d.Scenario.Text)
	d.services, err = d.crew.StartServices(ctx, "--name=demo", "--ranks="+strconv.Itoa(d.Scenario.Ranks()),
		"--http="+d.Web, "--store-delay=200ms")
	if err != nil {
		return err
	}
	for _, host := range hosts {
		traces := filepath.Join(runfiles.EscapeGlob(filepath.Join(d.crew.Traces(), host)), "*.bp")
		d.crew.StartAnalyzer("ad-"+host, host, append(programs, "--until-notified", traces)...)
	}
	return nil
}

// simulate runs the program, and reports troubles as they are found.
func (d *demo) simulate(ctx context.Context) error {
	d.Scenario.Start = time.Now().UTC()
	program := simulate.New(d.Scenario)
	d.missing = program.Troubles()
	fmt.Fprintf(d.out, "\nPlanted troubles, unknown to the analysis:\n\n")
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	for _, p := range d.missing {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.sinceStart(p.From), text.OneLine(p.Kind), evaluate.Location(p), text.OneLine(p.Name))
	}
	_ = t.Flush() // errors stick to d.out
	fmt.Fprintln(d.out)

	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { d.watch(watching) })
	_, err := program.Write(ctx, simulate.Target{Dir: d.crew.Traces(), HostDirs: true, Speed: 1, Now: time.Now, Sleep: d.Sleep})
	stop()
	wg.Wait()
	if err == nil {
		fmt.Fprintf(d.out, "%s  the program has ended\n", d.sinceStart(trace.Ticks(time.Now().UnixMicro())))
	}
	return err
}

// sinceStart formats a time relative to the start of the program.
func (d *demo) sinceStart(t trace.Ticks) string {
	return fmt.Sprintf("%+6.1f s", float64(t-trace.Ticks(d.Scenario.Start.UnixMicro()))/1e6)
}

// watch reports totals and newly found troubles until ctx ends.
func (d *demo) watch(ctx context.Context) {
	var client http.Client
	for n := 1; d.Sleep(ctx, time.Second) == nil; n++ {
		if store, err := remotestore.Open(ctx, rundir.Owner(d.crew.Path())); err == nil {
			d.reportFound(ctx, store)
			d.reportSlow(ctx, store)
			_ = store.Close() // only read from
		}
		if n%5 > 0 {
			continue
		}
		if st, err := dashboard.Fetch(ctx, &client, d.services.Web, d.services.Secret); err == nil {
			fmt.Fprintf(d.out, "%s  %s steps, %s events, %s calls, %s anomalies\n", d.sinceStart(trace.Ticks(time.Now().UnixMicro())),
				text.Int(st.Totals.Steps), text.Int(st.Totals.Events), text.Int(st.Totals.Calls), text.Int(st.Totals.Anomalies))
		}
	}
}

//go:embed found.sql
var foundSQL string

// reportFound reports troubles with their first anomaly in the store. If the services do
// not answer, it leaves them for later.
func (d *demo) reportFound(ctx context.Context, store provdb.Reader) {
	if len(d.missing) == 0 {
		return
	}
	first := slices.MinFunc(d.missing, func(a, b *truth.Trouble) int { return int(a.From - b.From) })
	rows, err := store.Query(ctx, foundSQL, int64(first.From))
	if err != nil {
		return
	}
	for row, err := range rows.All {
		if err != nil {
			return
		}
		f := &truth.Flag{
			Program: trace.Program(row[0].(int64)), Rank: trace.Rank(row[1].(int64)), Function: fmt.Sprint(row[2]),
			Entry: trace.Ticks(row[4].(int64)), Exit: trace.Ticks(row[5].(int64)),
		}
		d.missing = slices.DeleteFunc(d.missing, func(t *truth.Trouble) bool {
			if !t.Covers(f) {
				return false
			}
			fmt.Fprintf(d.out, "%s  found: %s (%s lost in %s, rank %d on %s)\n", d.sinceStart(f.Exit), text.OneLine(t.Name),
				text.Duration(float64(row[6].(int64))), text.OneLine(f.Function), f.Rank, text.OneLine(fmt.Sprint(row[3])))
			return true
		})
	}
}

// reportSlow reports new findings about places that are slower than their peers, and how long after the
// beginning of the trouble they are known.
func (d *demo) reportSlow(ctx context.Context, store provdb.Reader) {
	q, err := query.New(ctx, store, "")
	if err != nil {
		return
	}
	result, err := q.Findings(ctx)
	if err != nil {
		return
	}
	now := trace.Ticks(time.Now().UnixMicro())
	for i, key := range findings.Keys(result.Findings) {
		f := &result.Findings[i]
		if f.Kind != provenance.SlowPlace || f.Severity != provenance.Alarm || d.slow[key] {
			continue
		}
		d.slow[key] = true
		fmt.Fprintf(d.out, "%s  named %s after it began: %s\n", d.sinceStart(now), text.Duration(float64(now-f.First)), text.OneLine(f.Summary))
	}
}

// conclude prints the summary of the run and compares it with the truth.
func (d *demo) conclude(ctx context.Context) error {
	info, err := runfiles.ReadInfo(d.crew.Path())
	if err != nil {
		return err
	}
	score, err := evaluate.Run(ctx, d.crew.Path(), []string{d.crew.Traces()})
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	if d.Out == "" {
		d.Summarize(d.out, info, "")
	} else {
		d.Summarize(d.out, info, d.crew.Dir)
		fmt.Fprintf(d.out, "Compare it with the truth: chimbuko eval %s %s\n", d.crew.Dir, runfiles.Traces(d.crew.Dir))
	}
	fmt.Fprintln(d.out)
	evaluate.PrintTroubles(d.out, score.Troubles)
	var missed MissedError
	for i := range score.Troubles {
		if t := &score.Troubles[i]; !t.Seen {
			missed = append(missed, text.OneLine(t.Name))
		}
	}
	fmt.Fprintf(d.out, "\nFound %d of %d planted troubles.\n", len(score.Troubles)-len(missed), len(score.Troubles))
	if d.Out == "" {
		fmt.Fprintln(d.out, "To keep the run and query it: chimbuko demo --keep")
	}
	if len(missed) > 0 {
		return missed
	}
	return nil
}
