package cli

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// registerPage adds the flags that all pages have.
func registerPage(f *pflag.FlagSet, p *viewer.Options) {
	f.BoolVar(&p.ReadOnly, "read-only", false, "let nobody mute issues or write notes on the page")
	f.StringArrayVar(&p.Compare, "compare", nil, "what the run can be compared with: another run or a baseline; may be given several times")
	f.StringVar(&p.UIDir, "ui-dir", "", "directory with the built page instead of the one in this program, for those who develop it")
}

// viewFlags are the flags of `view`.
type viewFlags struct {
	page viewer.Options
	run  string
	open bool
	own  bool // serve a page even if the run has one

	replay  string // directory of packets
	speed   float64
	receive bool
}

func newViewCmd(env *Env) *cobra.Command {
	var flags viewFlags
	cmd := &cobra.Command{
		Use:   "view {RUN | --replay DIR | --receive}",
		Short: "show a run in the browser",
		Long: `Show a run in the browser: which rank, host and function misbehaves, since when, and
why. RUN is a run directory, a database file or postgres://… with --run. It is served
on this machine only, unless --http says otherwise, to whoever has the address that
is printed: it holds a token, which stays the same for a run directory.

A run that goes on has a page already, that of chimbuko serve: its address is printed,
and no second page is made unless --http, --read-only, --compare or --ui-dir asks for one.
What people say of issues on the page is kept in labels.json of the run directory.

The page compares the run with others of its store, and with what --compare names: a
run directory, a database file, postgres://…, a file of chimbuko baseline, or the name
of a run of the same store. chimbuko diff tells the same in a terminal.

--replay DIR shows packets of statistics instead, the files pserver_output_stats_*.json
that the original's parameter server and serve --stats-dir write, as they were made or
faster. --receive takes such packets as they are made, at api/anomalydata, where the
original's -ws_addr or serve --stats-url sends them: without a token, so that whoever
reaches the address can send some. Packets count anomalies and hold no executions.

Ctrl-C ends it.`,
		Example: `  chimbuko view run
  chimbuko view run --open
  chimbuko view run --http 127.0.0.1:8080        # the same address each time
  chimbuko view run --compare yesterday --compare good.baseline
  chimbuko view postgres://user@server/chimbuko --run monday
  chimbuko view --replay chimbuko/pserver --speed 60
  chimbuko view --receive --http 127.0.0.1:5002  # pserver … -ws_addr http://127.0.0.1:5002/api/anomalydata`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if _, _, err := net.SplitHostPort(flags.page.Listen); err != nil {
				return usagef("--http %q is not of the form host:port", flags.page.Listen)
			}
			if flags.replay != "" || flags.receive {
				if err := flags.packetsOnly(cmd, given); err != nil {
					return err
				}
				return runPackets(cmd.Context(), env, &flags)
			}
			if len(given) != 1 {
				return usagef("which run is to be shown? give RUN, --replay DIR or --receive")
			}
			f := cmd.Flags()
			flags.own = f.Changed("http") || flags.page.ReadOnly || flags.page.UIDir != "" || len(flags.page.Compare) > 0
			return runView(cmd.Context(), env, &flags, given[0])
		},
	}
	f := cmd.Flags()
	registerPage(f, &flags.page)
	f.StringVar(&flags.run, "run", "", "name of the run, where the store holds several; by default the latest")
	f.StringVar(&flags.page.Listen, "http", "127.0.0.1:0", "where HTTP listens; other machines reach it over ssh, or in the clear with "+
		"0.0.0.0:PORT")
	f.StringSliceVar(&flags.page.AllowedHosts, "allow-host", nil, "further host names under which it is asked, as those of a proxy")
	f.BoolVar(&flags.open, "open", false, "open it in the browser of this machine")
	f.StringVar(&flags.replay, "replay", "", "directory of packets of statistics to be shown as if they came now")
	f.Float64Var(&flags.speed, "speed", usualSpeed, "with --replay: how many times as fast as they were made; 0 is all at once")
	f.BoolVar(&flags.receive, "receive", false, "take packets of statistics at api/anomalydata from whoever sends them, without a token")
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
	page, err := flags.page.Serve(ctx, v, with.List, newLog(env.Stderr))
	if err != nil {
		return err
	}
	if info, err := v.Info(ctx); err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: cannot read the state of the run: %v\n", err)
	} else {
		fmt.Fprintf(env.Stderr, "chimbuko: run %q: %s\n", v.Name, describeRun(info, dir, v.Stopped))
	}
	if !page.Labels && !flags.page.ReadOnly {
		fmt.Fprintf(env.Stderr, "chimbuko: notes on issues cannot be stored without a run directory: give that instead of the store\n")
	}
	tellAddress(env, page.Address, page.Token)
	if flags.open {
		defer openBrowser(ctx, env, page.URL())()
	}
	fmt.Fprintf(env.Stderr, "chimbuko: Ctrl-C ends it\n")
	return page.Wait()
}

// describeRun says how a run ended, or that it runs.
func describeRun(info *provdb.Info, dir string, stopped bool) string {
	switch {
	case info.State == provdb.Finished && info.Totals.Events > 0:
		incomplete := ""
		if len(info.Incomplete) > 0 {
			incomplete = " but incomplete (" + oneLine(info.Incomplete[0]) + ")"
		}
		return fmt.Sprintf("finished%s, with %s anomalies in %s calls on %s", incomplete,
			grouped(info.Totals.Anomalies), grouped(info.Totals.Calls), counted(info.Totals.Ranks, "rank"))
	case info.State == provdb.Failed:
		return "failed: " + oneLine(info.Error) + "; what was stored before is shown"
	case stopped:
		return "incomplete: " + viewer.WhyStopped(dir, info) + ", when this page has been ended"
	case info.State.Open():
		return "goes on"
	}
	return string(info.State)
}

// showRunning tells where the page of a run is that goes on; done if there is one.
func showRunning(ctx context.Context, env *Env, flags *viewFlags, dir string) (done bool, err error) {
	s, err := rundir.ReadServices(dir)
	if err != nil || s.Web == "" {
		return false, nil //nolint:nilerr // no services, or somebody else's
	}
	if info, err := rundir.ReadInfo(dir); err == nil && !info.State.Open() {
		return false, nil
	}
	if !viewer.Reachable(s) {
		fmt.Fprintf(env.Stderr, "chimbuko: the run %q goes on on %s, where its page is; chimbuko view %s --http 127.0.0.1:0 shows here what "+
			"is stored of it\n", s.Run, s.Host, dir)
		return true, tellAddressOn(env, s.Host, s.Web, s.Secret)
	}
	if _, err := viewer.FetchStatus(ctx, s); err != nil {
		return false, nil //nolint:nilerr // nobody is there
	}
	fmt.Fprintf(env.Stderr, "chimbuko: the run %q goes on (chimbuko serve, process %d); its page is at\n", s.Run, s.PID)
	tellAddress(env, s.Web, s.Secret)
	if flags.open {
		remove := openBrowser(ctx, env, viewer.WithToken(s.Web, s.Secret))
		_ = sleep(ctx, openPatience) // the browser reads a file that is removed
		remove()
	}
	return true, nil
}
