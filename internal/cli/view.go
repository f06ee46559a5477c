package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/ad"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// registerPage adds the flags of all pages.
func registerPage(f *pflag.FlagSet, p *viewer.Options) {
	f.BoolVar(&p.ReadOnly, "read-only", false, "reject notes and muting of findings on the page")
	f.StringArrayVar(&p.Compare, "compare", nil, "run or baseline to compare the run with; repeatable")
	f.StringVar(&p.Runs, "runs", "", "directory of more runs to compare with, which the page offers; view offers those beside RUN "+
		"unless other machines reach the page; \"none\" offers no others")
	registerSQLMemory(f, &p.SQLMemory)
	f.StringVar(&p.UIDir, "ui-dir", "", "directory with a built page, to develop it")
}

// viewFlags are the flags of `view`.
type viewFlags struct {
	page      viewer.Options
	run       string
	open      bool
	at, event string // part of the page to open
	own       bool   // serve a separate page even if the run has one

	replay  string // directory of packets
	speed   float64
	receive bool
}

func newViewCmd(env *Env) *cobra.Command {
	var flags viewFlags
	cmd := &cobra.Command{
		Use:   "view {RUN | --replay DIR | --receive}",
		Short: "Show a run in the browser",
		Long: `Show a run in the browser: which rank, host and function misbehaves, since when, and
why. RUN is a run directory, a database file or postgres://… with --run. The page is
served on this machine only, unless --http is given. The printed address contains a
token. Token and port stay the same for a run directory, so links to the page stay valid.

A run in progress already has a page, which chimbuko serve provides. In this case, its
address is printed. A second page is served only with --http, --read-only, --compare,
--runs or --ui-dir. Notes on findings are stored in labels.json of the run directory.

The page can compare the run with others of its store and with those of --compare: a run
directory, a database file, postgres://…, a file of chimbuko baseline, or the name of a
run of the same store. It also offers the runs in the directory that contains RUN, or in
the directory of --runs, and opens a run when you choose it. chimbuko diff does the same in
a terminal.

--replay DIR shows packets of statistics instead of a run. It reads the files
pserver_output_stats_*.json of the original's parameter server or of serve --stats-dir, at
their original pace or faster. --receive accepts such packets at api/anomalydata, from the
original's -ws_addr or from serve --stats-url. It requires no token: anyone who can reach
the address can send packets. Packets count anomalies and contain no executions.

To stop the page, press Ctrl-C.`,
		Example: `  chimbuko view run
  chimbuko view run --open
  chimbuko view run --event 3:17:1204
  chimbuko view run --compare yesterday --compare good.baseline
  chimbuko view postgres://user@server/chimbuko --run monday
  chimbuko view --replay chimbuko/pserver --speed 60
  chimbuko view --receive --http 127.0.0.1:5002  # pserver … -ws_addr http://127.0.0.1:5002/api/anomalydata`,
		Args: usage.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var bad usage.Errors
			bad.CheckAddress("http", flags.page.Listen)
			bad.AddIf(flags.page.SQLMemory < 0, "--sql-memory %d is negative", flags.page.SQLMemory)
			if err := bad.Err(); err != nil {
				return err
			}
			if flags.replay != "" || flags.receive {
				if err := flags.packetsOnly(cmd, args); err != nil {
					return err
				}
				return runPackets(cmd.Context(), env, &flags)
			}
			if len(args) != 1 {
				return usage.Errorf("no run is given (want RUN, --replay DIR or --receive)")
			}
			f := cmd.Flags()
			flags.own = f.Changed("http") || flags.page.ReadOnly || flags.page.UIDir != "" || len(flags.page.Compare) > 0 || flags.page.Runs != ""
			flags.page.Beside = true
			return runView(cmd.Context(), env, &flags, args[0])
		},
	}
	f := cmd.Flags()
	registerPage(f, &flags.page)
	registerRun(f, &flags.run)
	f.StringVar(&flags.page.Listen, "http", "127.0.0.1:0",
		"address of the page, 0 for the usual port of the run; other machines reach it over ssh, or unencrypted with 0.0.0.0:PORT")
	f.StringSliceVar(&flags.page.AllowedHosts, "allow-host", nil, "additional host names of the page, such as those of a proxy")
	f.StringVar(&flags.event, "event", "", "execution to open, [PROGRAM:]RANK:STEP:ROW as chimbuko anomalies lists it")
	f.StringVar(&flags.at, "at", "", "part of the page to open, as after #/ in its address")
	f.BoolVar(&flags.open, "open", false, "open it in the browser of this machine")
	f.StringVar(&flags.replay, "replay", "", "directory of packets of statistics to replay")
	f.Float64Var(&flags.speed, "speed", defaultSpeed, "speed of --replay, 1 is the original pace; 0 is all at once")
	f.BoolVar(&flags.receive, "receive", false, "accept packets of statistics at api/anomalydata, without a token")
	return cmd
}

// runView shows a run until ctx ends.
func runView(ctx context.Context, env *Env, flags *viewFlags, where string) (err error) {
	dir := rundir.Find(where)
	if dir != "" && !flags.own {
		if done, err := showRunning(ctx, env, flags, dir); done || err != nil {
			return err
		}
	}
	v, err := viewer.Open(ctx, where, flags.run, env.Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	with, err := flags.page.References(ctx, viewer.Subject{Name: v.Name, Version: env.Version, Place: v.Place, Reader: v.Reader()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Close()) }()
	page, err := flags.page.Serve(ctx, v, with, ad.NewLog(env.Stderr))
	if err != nil {
		return err
	}
	if info, err := v.Info(ctx); err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: cannot read the state of the run: %v\n", err)
	} else {
		fmt.Fprintf(env.Stderr, "chimbuko: run %q: %s\n", v.Name, describeRun(info, dir, v.Stopped))
	}
	if !page.Labels && !flags.page.ReadOnly {
		fmt.Fprintf(env.Stderr, "chimbuko: cannot store notes on findings without a run directory (give the directory instead of the store)\n")
	}
	printAddress(env, page.Address, page.Token, viewer.Fragment(flags.at, flags.event))
	if flags.open {
		defer openBrowser(ctx, env, page.URL()+viewer.Fragment(flags.at, flags.event))()
	}
	fmt.Fprintf(env.Stderr, "chimbuko: Ctrl-C ends the page\n")
	return page.Wait()
}

// describeRun describes the state of a run in words.
func describeRun(info *provdb.Info, dir string, stopped bool) string {
	switch {
	case info.State == provdb.Finished && info.Totals.Events > 0:
		incomplete := ""
		if len(info.Incomplete) > 0 {
			incomplete = " but incomplete (" + text.SingleSpaced(info.Incomplete[0]) + ")"
		}
		return fmt.Sprintf("finished%s, with %s anomalies in %s calls on %s", incomplete,
			text.Int(info.Totals.Anomalies), text.Int(info.Totals.Calls), text.Count(info.Totals.Ranks, "rank"))
	case info.State == provdb.Failed:
		return "failed: " + text.SingleSpaced(info.Error) + "; the page shows the data stored before"
	case stopped:
		return "incomplete: " + viewer.StopReason(dir, info) + ", after this page has ended"
	case info.State.Open():
		return "running"
	}
	return string(info.State)
}

// showRunning prints the address of the page of a run in progress. done is false if there is no such page.
func showRunning(ctx context.Context, env *Env, flags *viewFlags, dir string) (done bool, err error) {
	fragment := viewer.Fragment(flags.at, flags.event)
	s, err := runfiles.ReadServices(dir)
	if err != nil || s.Web == "" {
		return false, nil //nolint:nilerr // no services
	}
	if info, err := runfiles.ReadInfo(dir); err == nil && !info.State.Open() {
		return false, nil
	}
	if !viewer.Reachable(s) {
		fmt.Fprintf(env.Stderr, "chimbuko: run %q is running on %s, where its page is; chimbuko view %s --http 127.0.0.1:0 shows the stored "+
			"data here\n", s.Run, s.Host, dir)
		return true, printAddressOn(env, s.Host, s.Web, s.Secret, fragment)
	}
	if _, err := viewer.FetchStatus(ctx, s); err != nil {
		return false, nil //nolint:nilerr // the services have ended
	}
	fmt.Fprintf(env.Stderr, "chimbuko: run %q is running (chimbuko serve, process %d); its page is at\n", s.Run, s.PID)
	printAddress(env, s.Web, s.Secret, fragment)
	if flags.open {
		remove := openBrowser(ctx, env, viewer.WithToken(s.Web, s.Secret)+fragment)
		_ = wait.Sleep(ctx, viewer.BrowserStart) // the browser reads a file, which remove deletes
		remove()
	}
	return true, nil
}

// printAddress prints the address of a page on a separate line, for users and programs, and how to reach it from another machine.
func printAddress(env *Env, address, token, fragment string) {
	fmt.Fprintln(env.Stdout, viewer.WithToken(address, token)+fragment)
	host, _ := os.Hostname() // for display only
	if line := viewer.Tunnel(env.Environ, host, address); line != "" {
		fmt.Fprintf(env.Stderr, "chimbuko: to open it from your own machine, run: %s\n", line)
	}
}

// printAddressOn prints the address of a page on another machine.
func printAddressOn(env *Env, host, address, token, fragment string) error {
	line, err := viewer.TunnelTo(host, address)
	if err == nil {
		fmt.Fprintln(env.Stdout, viewer.WithToken(address, token)+fragment)
		fmt.Fprintf(env.Stderr, "chimbuko: to open it, run: %s\n", line)
	}
	return err
}

// openBrowser opens an address in the browser of this machine, or prints why it cannot. The caller must call remove after the
// browser has opened the address.
func openBrowser(ctx context.Context, env *Env, address string) (remove func()) {
	remove, err := viewer.OpenBrowser(ctx, env.Environ, address)
	if err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: cannot open a browser: %v (open the address yourself)\n", err)
	}
	return remove
}
