package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/ad"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/service"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// serveFlags are the flags of `serve`.
type serveFlags struct {
	keeperFlags
	modelFlags
	service.Config
	config string
}

func (s *serveFlags) register(f *pflag.FlagSet) {
	s.keeperFlags.register(f)
	option.RegisterBus(f, &s.Bus)
	s.modelFlags.register(f)
	registerPage(f, &s.Page)
	s.records = "db"
	f.StringVar(&s.config, "config", "", "TOML file with settings: a flag overrides it, and it overrides CHIMBUKO_* variables")
	f.StringSliceVar(&s.Roles, "roles", service.AllRoles, "services in this process: nats, params (parameter server), store, web")
	f.StringVar(&s.Listen, "nats-listen", "127.0.0.1:0", "address of NATS in this process; 0.0.0.0:4222 admits analyzers on other nodes")
	f.StringVar(&s.Page.Cert, "tls-cert", "", "file with the certificate for TLS of NATS and HTTP in this process")
	f.StringVar(&s.Page.Key, "tls-key", "", "file with the key of that certificate")
	f.StringVar(&s.ClientCA, "tls-client-ca", "", "file with the certificate authority of NATS clients, which then need a certificate")
	f.Int64Var(&s.MaxStream, "stream-size", 4096, "megabytes of records that may wait for the store")
	f.IntVar(&s.Replicas, "stream-replicas", 1, "servers of a NATS cluster that keep waiting records")
	f.IntVar(&s.Shards, "shards", 1, "processes that share the models of the parameter server")
	f.IntVar(&s.Shard, "shard", 0, "number of this process among them; the first starts the others")
	f.IntVar(&s.Ranks, "ranks", 0, "ranks of the run; 0 ends it when all ranks have ended and no analyzer has joined for --linger")
	f.DurationVar(&s.Linger, "linger", 5*time.Second, "time to wait for more analyzers after all ranks have ended")
	f.DurationVar(&s.Snapshot, "snapshot", 5*time.Second, "shortest time between snapshots of the parameter server")
	f.StringVar(&s.Page.Listen, "http", "127.0.0.1:0", "address of HTTP")
	f.BoolVar(&s.Page.MetricsOpen, "metrics-open", false, "serve /metrics without a token")
	f.StringSliceVar(&s.Page.AllowedHosts, "http-host", nil, "additional host names for HTTP, such as those of a proxy")
	registerOnFinding(f, &s.OnFinding)
	f.BoolVar(&s.KeepPage, "stay", false, "keep the page after the end of the run until Ctrl-C")
	f.StringVar(&s.StatsURL, "stats-url", "", "URL to post statistics to")
	f.StringVar(&s.StatsDir, "stats-dir", "", "directory for statistics as files pserver_output_stats_<n>.json")
	f.DurationVar(&s.StatsPeriod, "stats-period", time.Second, "time between packets of statistics")
	f.IntVar(&s.StatsSchema, "stats-schema", 1, "layout of the statistics: 1, or 2 with a version at the top")
	f.DurationVar(&s.StatsFlush, "stats-flush", time.Minute, "time to wait for a receiver of statistics at the end of the run")
	f.BoolVar(&s.Reopen, "reopen", false, "resume an interrupted run, whose analyzers without results return")
	f.StringSliceVar(&s.Lost, "lost", nil, "analyzers that will not return")
	for _, own := range []string{"shard", "reopen", "lost"} {
		_ = f.MarkHidden(own) // for processes that this program starts
	}
}

// check reports all errors in the flags.
func (s *serveFlags) check() error {
	var bad usage.Errors
	for _, r := range s.Roles {
		bad.AddIf(!slices.Contains(service.AllRoles, r), "unknown role %q (want %s)", r, strings.Join(service.AllRoles, ", "))
	}
	bad.AddIf(len(s.Roles) == 0, "--roles is empty")
	bad.AddIf(s.StatsSchema != 1 && s.StatsSchema != 2, "--stats-schema %d: want 1 or 2", s.StatsSchema)
	bad.AddIf(s.Shards < 1 || s.Shard < 0 || s.Shard >= s.Shards, "invalid shard %d of %d", s.Shard, s.Shards)
	bad.AddIf(s.StatsPeriod <= 0, "--stats-period %v must be positive", s.StatsPeriod)
	bad.AddIf(s.Snapshot <= 0, "--snapshot %v must be positive", s.Snapshot)
	bad.AddIf(s.Ranks < 0 || s.Linger < 0 || s.StatsFlush < 0 || s.MaxStream < 1 || s.Replicas < 1,
		"--ranks, --linger and --stats-flush must not be negative, --stream-size and --stream-replicas must be positive")
	bad.AddIf((s.Page.Cert == "") != (s.Page.Key == ""), "--tls-cert and --tls-key need each other")
	bad.AddIf(s.frozen && s.loadFrom == "", "--freeze-model needs --load-model")
	if s.Bus.URL != "" && slices.Equal(s.Roles, service.AllRoles) {
		s.Roles = slices.DeleteFunc(slices.Clone(s.Roles), func(r string) bool { return r == service.RoleBus })
	}
	bad.AddIf(s.Bus.URL != "" && slices.Contains(s.Roles, service.RoleBus), "--nats replaces the role nats (remove it from --roles)")
	u, err := url.Parse(s.StatsURL)
	bad.AddIf(s.StatsURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""),
		"--stats-url %q is not of the form http://host:port/path", s.StatsURL)
	bad.AddIf(s.Page.SQLMemory < 0, "--sql-memory %d is negative", s.Page.SQLMemory)
	bad.CheckAddress("nats-listen", s.Listen)
	bad.CheckAddress("http", s.Page.Listen)
	return bad.Err()
}

func newServeCmd(env *Env) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the services of a run",
		Long: `Run the services that analyzers (chimbuko ad) share: a NATS message bus, the
parameter server that merges their models, the provenance database, and HTTP with the
page of the run, a JSON API, /healthz and /metrics. One process runs all of them;
--roles distributes them over several, and --nats uses an existing server or cluster.

The run is in the directory --out, where analyzers also find the addresses of the
services. It ends when all ranks have ended: all records are reviewed with the final
model, and the results of all ranks are stored. After a crash, repeat the command: the
services resume, and nothing is lost or counted twice. The page ends with the run unless
--stay is given; chimbuko view shows it again. --compare adds earlier runs or baselines to
the page. If data is missing, such as the end of a trace that was not closed, the run is
marked incomplete, and the exit code is 1.

By default, all services listen on this machine only. Clients need a token.`,
		Example: `  chimbuko serve --out run --ranks 4 &
  chimbuko ad --run-dir run traces/ --traces 4
  chimbuko status run --watch
  chimbuko serve --out run --nats-listen 0.0.0.0:4222 --stats-url http://viz:5002/api/anomalydata
  chimbuko serve --out run --store postgres://user@server/chimbuko --shards 4`,
		Args: usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			origin, err := applySettings(cmd.Flags(), flags.config, env.Environ)
			if err != nil {
				return usage.Error{Err: err}
			}
			if err := flags.check(); err != nil {
				return err
			}
			return runServe(cmd.Context(), env, &flags, settingsOf(cmd.Flags(), origin))
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// runServe runs the services.
func runServe(ctx context.Context, env *Env, flags *serveFlags, settings map[string]string) error {
	store, err := flags.keeperFlags.config()
	if err != nil {
		return err
	}
	cfg := &flags.Config
	cfg.Store, cfg.Settings = *store, settings
	cfg.LoadModel, cfg.SaveModel, cfg.Frozen = flags.loadFrom, flags.saveTo, flags.frozen
	cfg.Version, cfg.Commit, cfg.Environ, cfg.Stderr, cfg.Log = env.Version, env.Commit, env.Environ, env.Stderr, ad.NewLog(env.Stderr)
	cfg.ShowToken, cfg.ShardArgs = output.IsTerminal(env.Stderr), []string{"--" + supervise.Flag}
	cfg.Commands = env.leash
	missing := false
	cfg.PrintResults = func(info *provdb.Info) error {
		missing = len(info.Incomplete) > 0
		return env.show(false, nil, func(w io.Writer) { output.Summary(w, info, flags.target.Dir) })
	}
	if err = service.Serve(ctx, cfg); errors.Is(err, node.ErrInterrupted) {
		fmt.Fprintf(env.Stderr, "chimbuko: the run is incomplete; the same command resumes it, chimbuko finish %s completes it\n", store.Dir)
		return usage.ErrReported
	}
	if err == nil && missing && env.leash == nil { // otherwise the parent process reports it
		return usage.ErrReported
	}
	return err
}

// registerOnFinding adds the flag for the command to run for findings.
func registerOnFinding(f *pflag.FlagSet, command *string) {
	f.StringVar(command, "on-finding", "", "shell command to run for each new finding, which is on its standard input as JSON")
}
