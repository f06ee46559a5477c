package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/online/service"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
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
	registerBus(f, &s.Bus)
	s.modelFlags.register(f)
	registerPage(f, &s.Page)
	s.records = "db"
	f.StringVar(&s.config, "config", "", "TOML file with settings: a flag overrides it, and it overrides CHIMBUKO_* variables")
	f.StringSliceVar(&s.Roles, "roles", service.AllRoles, "parts to run in this process: nats, params (parameter server), store, web")
	f.StringVar(&s.Listen, "nats-listen", "127.0.0.1:0", "where the NATS of this process listens; 0.0.0.0:4222 lets analyzers on other "+
		"nodes come")
	f.StringVar(&s.Page.Cert, "tls-cert", "", "file with the certificate of the NATS and HTTP of this process, which then speak TLS")
	f.StringVar(&s.Page.Key, "tls-key", "", "file with its key")
	f.StringVar(&s.ClientCA, "tls-client-ca", "", "file with the certificate that must have signed those of clients of NATS")
	f.Int64Var(&s.MaxStream, "stream-size", 4096, "megabytes of records that may wait for the store")
	f.IntVar(&s.Replicas, "stream-replicas", 1, "servers of a NATS cluster that keep records which wait")
	f.IntVar(&s.Shards, "shards", 1, "processes that share the models of the parameter server")
	f.IntVar(&s.Shard, "shard", 0, "which of them this one is; the first starts the others")
	f.IntVar(&s.Ranks, "ranks", 0, "ranks of the run; 0 is those that come until all have ended and no analyzer came for --linger")
	f.DurationVar(&s.Linger, "linger", 5*time.Second, "how long to wait for further analyzers when all ranks have ended")
	f.DurationVar(&s.Snapshot, "snapshot", 5*time.Second, "time between snapshots of the parameter server")
	f.StringVar(&s.Page.Listen, "http", "127.0.0.1:0", "where HTTP listens")
	f.BoolVar(&s.Page.MetricsOpen, "metrics-open", false, "let /metrics be read without the token")
	f.StringSliceVar(&s.Page.AllowedHosts, "http-host", nil, "further host names under which HTTP is asked, as those of a proxy")
	f.BoolVar(&s.Stay, "stay", false, "when the run has ended keep its page until Ctrl-C")
	f.StringVar(&s.StatsURL, "stats-url", "", "URL to which statistics are posted")
	f.StringVar(&s.StatsDir, "stats-dir", "", "directory for statistics as files pserver_output_stats_<n>.json")
	f.DurationVar(&s.StatsPeriod, "stats-period", time.Second, "time between packets of statistics")
	f.IntVar(&s.StatsSchema, "stats-schema", 1, "layout of the statistics: 1, or 2 with a version at the top")
	f.DurationVar(&s.StatsFlush, "stats-flush", time.Minute, "how long the end of the run waits for a receiver of statistics that does "+
		"not answer")
	f.BoolVar(&s.Reopen, "reopen", false, "have a run that was cut end: analyzers that have not handed over all come again")
	f.StringSliceVar(&s.Lost, "lost", nil, "analyzers that do not")
	for _, own := range []string{"shard", "reopen", "lost"} {
		_ = f.MarkHidden(own) // only for processes that this program starts
	}
}

// check says what is wrong with the flags.
func (s *serveFlags) check() error {
	var errs []error
	for _, r := range s.Roles {
		if !slices.Contains(service.AllRoles, r) {
			errs = append(errs, fmt.Errorf("unknown role %q (want %s)", r, strings.Join(service.AllRoles, ", ")))
		}
	}
	if len(s.Roles) == 0 {
		errs = append(errs, errors.New("no role is given"))
	}
	if s.StatsSchema != 1 && s.StatsSchema != 2 {
		errs = append(errs, fmt.Errorf("statistics schema %d is neither 1 nor 2", s.StatsSchema))
	}
	if s.Shards < 1 || s.Shard < 0 || s.Shard >= s.Shards {
		errs = append(errs, fmt.Errorf("shard %d of %d cannot be", s.Shard, s.Shards))
	}
	for name, d := range map[string]time.Duration{"stats-period": s.StatsPeriod, "snapshot": s.Snapshot} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("--%s %v is not positive", name, d))
		}
	}
	if s.Ranks < 0 || s.Linger < 0 || s.StatsFlush < 0 || s.MaxStream < 1 || s.Replicas < 1 {
		errs = append(errs, errors.New("--ranks, --linger and --stats-flush cannot be negative, --stream-size and --stream-replicas must be "+
			"positive"))
	}
	if (s.Page.Cert == "") != (s.Page.Key == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key go together"))
	}
	if s.frozen && s.loadFrom == "" {
		errs = append(errs, errors.New("to freeze a model needs one to load: give --load-model"))
	}
	if s.Bus.URL != "" && slices.Contains(s.Roles, service.RoleBus) {
		if !s.rolesGiven() {
			s.Roles = slices.DeleteFunc(slices.Clone(s.Roles), func(r string) bool { return r == service.RoleBus })
		} else {
			errs = append(errs, errors.New("with --nats the role nats is somebody else's: leave it out of --roles"))
		}
	}
	if u, err := url.Parse(s.StatsURL); s.StatsURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		errs = append(errs, fmt.Errorf("--stats-url %q is not of the form http://host:port/path", s.StatsURL))
	}
	for name, addr := range map[string]string{"nats-listen": s.Listen, "http": s.Page.Listen} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("--%s %q is not of the form host:port", name, addr))
		}
	}
	return errors.Join(errs...)
}

// rolesGiven reports whether roles were chosen.
func (s *serveFlags) rolesGiven() bool { return !slices.Equal(s.Roles, service.AllRoles) }

func newServeCmd(env *Env) *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the services of a run: message bus, parameter server, database, HTTP",
		Long: `Run the services that analyzers (chimbuko ad) share: a NATS message bus, the
parameter server that merges what all of them learn, the provenance database, and
HTTP with the page that shows the run in a browser, a JSON API, /healthz and /metrics.
One process does all; --roles spreads the parts over several, and --nats uses a server
or cluster that is there already.

The run is in the directory --out, which also tells analyzers how to reach the
services. It ends by itself when all ranks have ended: all that was kept is judged
once more, and what is known over all ranks is stored. A service that was killed is
started again with the same command and goes on; nothing is lost or counted twice.
The page ends with the run unless --stay is given; chimbuko view shows it again.
--compare names earlier runs or baselines that the page compares the run with.

Everything listens on this machine only, unless told otherwise, and wants a token.`,
		Example: `  chimbuko serve --out run --ranks 4 &
  chimbuko ad --run-dir run traces/ --traces 4
  chimbuko status run --watch
  chimbuko serve --out run --nats-listen 0.0.0.0:4222 --stats-url http://viz:5002/api/anomalydata
  chimbuko serve --out run --store postgres://user@server/chimbuko --shards 4`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			origin, err := applySettings(cmd.Flags(), flags.config, env.Environ)
			if err == nil {
				err = flags.check()
			}
			if err != nil {
				return usageError{err}
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
	cfg.LoadModel, cfg.SaveModel, cfg.FreezeModel = flags.loadFrom, flags.saveTo, flags.frozen
	cfg.Version, cfg.Commit, cfg.Environ, cfg.Stderr, cfg.Log = env.Version, env.Commit, env.Environ, env.Stderr, newLog(env.Stderr)
	cfg.ShowToken, cfg.ShardArgs = isTerminal(env.Stderr), []string{"--" + supervise.Flag}
	if env.leash != nil {
		cfg.Orders = env.leash.Lines()
	}
	cfg.Print = func(info *provdb.Info) error {
		return env.show(false, nil, func(w io.Writer) { printSummary(w, info, flags.out) })
	}
	if err = service.Serve(ctx, cfg); errors.Is(err, service.ErrInterrupted) {
		fmt.Fprintf(env.Stderr, "chimbuko: the run is incomplete; the same command goes on with it, chimbuko finish %s ends it\n", flags.out)
		return errReported
	}
	return err
}

// registerBus adds the flags that say how to reach a message bus.
func registerBus(f *pflag.FlagSet, b *service.Bus) {
	f.StringVar(&b.URL, "nats", "", "URL of a NATS server or cluster (several with commas), instead of what the run directory tells")
	f.StringVar(&b.TokenFile, "nats-token-file", "", "file with the token that the NATS of --nats wants")
	f.StringVar(&b.Creds, "nats-creds", "", "file with credentials (.creds) for it")
	f.StringVar(&b.CA, "nats-ca", "", "file with the certificate that signed its own")
	f.StringVar(&b.Cert, "nats-cert", "", "file with our certificate for it")
	f.StringVar(&b.Key, "nats-key", "", "file with the key of our certificate")
}
