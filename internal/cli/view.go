package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// pageFlags say what the page in the browser is, and what it may do.
type pageFlags struct {
	readOnly bool
	dir      string
	compare  []string
}

func (p *pageFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&p.readOnly, "read-only", false, "let nobody mute issues or write notes on the page")
	f.StringArrayVar(&p.compare, "compare", nil, "what the run can be compared with: another run or a baseline; may be given several times")
	f.StringVar(&p.dir, "ui-dir", "", "directory with the built page instead of the one in this program, for those who develop it")
}

// viewFlags are the flags of `view`.
type viewFlags struct {
	pageFlags
	run   string
	web   string
	hosts []string
	open  bool
	own   bool // a page of our own is wanted even if there is another

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
			if _, _, err := net.SplitHostPort(flags.web); err != nil {
				return usagef("--http %q is not of the form host:port", flags.web)
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
			flags.own = f.Changed("http") || flags.readOnly || flags.dir != "" || len(flags.compare) > 0
			return runView(cmd.Context(), env, &flags, given[0])
		},
	}
	f := cmd.Flags()
	flags.register(f)
	f.StringVar(&flags.run, "run", "", "name of the run, where the store holds several; by default the latest")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "where HTTP listens; other machines reach it over ssh, or in the clear with 0.0.0.0:PORT")
	f.StringSliceVar(&flags.hosts, "allow-host", nil, "further host names under which it is asked, as those of a proxy")
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
	v := &viewRun{dir: dir, run: flags.run, version: env.Version}
	if v.place, err = rundir.FindStore(where); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.find(ctx); err != nil {
		return err
	}
	with, err := flags.references(ctx, compared{v.name, v.version, v.place, v.Reader()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.close()) }()
	page := &viewPage{pageFlags: flags.pageFlags, listen: flags.web, hosts: flags.hosts, log: newLog(env.Stderr), references: with.list}
	if err := page.start(ctx, v); err != nil {
		return err
	}
	v.tell(ctx, env)
	if page.labels == nil && !flags.readOnly {
		fmt.Fprintf(env.Stderr, "chimbuko: what people say of issues cannot be kept without a run directory: give that instead of the store\n")
	}
	tellAddress(env, page.address, page.token)
	if flags.open {
		defer openBrowser(ctx, env, page.visit())()
	}
	fmt.Fprintf(env.Stderr, "chimbuko: Ctrl-C ends it\n")
	return page.wait()
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
	if !reachable(s) {
		fmt.Fprintf(env.Stderr, "chimbuko: the run %q goes on on %s, where its page is; chimbuko view %s --http 127.0.0.1:0 shows here what is stored of it\n", s.Run, s.Host, dir)
		return true, tellAddressOn(env, s.Host, s.Web, s.Secret)
	}
	if _, err := askServices(ctx, s); err != nil {
		return false, nil //nolint:nilerr // nobody is there
	}
	fmt.Fprintf(env.Stderr, "chimbuko: the run %q goes on (chimbuko serve, process %d); its page is at\n", s.Run, s.PID)
	tellAddress(env, s.Web, s.Secret)
	if flags.open {
		remove := openBrowser(ctx, env, visitOf(s.Web, s.Secret))
		_ = sleep(ctx, openPatience) // the browser reads a file that is removed
		remove()
	}
	return true, nil
}

// reachable reports whether the services can be asked from this machine: an address
// of the loopback interface of another would be that of somebody else here.
func reachable(s *rundir.Services) bool {
	host, _ := os.Hostname() // without a name it is another
	return s.Host == host || !isLoopback(hostPort(s.Web))
}

// isLoopback reports whether an address host:port is of this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// askServices asks the services of a run how they fare.
func askServices(ctx context.Context, s *rundir.Services) (*api.Status, error) {
	client, err := trusting(s.CA)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return dashboard.Fetch(ctx, client, s.Web, s.Secret)
}

// find finds out which run of the store is shown.
func (v *viewRun) find(ctx context.Context) (err error) {
	v.reader.Find = v.open
	if v.cut, err = v.isCut(ctx); err != nil {
		return err
	}
	a, err := query.New(ctx, &v.reader, cmp.Or(v.run, v.place.Run))
	switch {
	case err == nil:
		v.name = a.Run.Name
		return nil
	case errors.Is(err, provdb.ErrNotFound) && v.dir != "" && v.run == "": // nothing is stored yet
		if info, err := rundir.ReadInfo(v.dir); err == nil {
			v.name = cmp.Or(info.Name, (&keeperFlags{out: v.dir}).runName())
			return nil
		}
	}
	return fmt.Errorf("%s: %w", cmp.Or(redact.URLs(v.place.Server), v.place.File), err)
}
