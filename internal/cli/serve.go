package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

// The roles of `serve`.
const (
	roleBus    = "nats"
	roleParams = "params"
	roleStore  = "store"
	roleWeb    = "web"
)

var allRoles = []string{roleBus, roleParams, roleStore, roleWeb}

// serveFlags are the flags of `serve`.
type serveFlags struct {
	keeperFlags
	busFlags
	modelFlags
	page      viewer.Options
	config    string
	roles     []string
	listen    string
	tlsCA     string
	maxStream int64
	replicas  int
	shards    int
	shard     int
	ranks     int
	linger    time.Duration
	snapshot  time.Duration
	stay      bool
	statsURL  string
	statsDir  string
	period    time.Duration
	schema    int
	flush     time.Duration
	reopen    bool
	lost      []string
}

func (s *serveFlags) register(f *pflag.FlagSet) {
	s.keeperFlags.register(f)
	s.busFlags.register(f)
	s.modelFlags.register(f)
	registerPage(f, &s.page)
	s.records = "db"
	f.StringVar(&s.config, "config", "", "TOML file with settings: a flag overrides it, and it overrides CHIMBUKO_* variables")
	f.StringSliceVar(&s.roles, "roles", allRoles, "parts to run in this process: nats, params (parameter server), store, web")
	f.StringVar(&s.listen, "nats-listen", "127.0.0.1:0", "where the NATS of this process listens; 0.0.0.0:4222 lets analyzers on other nodes come")
	f.StringVar(&s.page.Cert, "tls-cert", "", "file with the certificate of the NATS and HTTP of this process, which then speak TLS")
	f.StringVar(&s.page.Key, "tls-key", "", "file with its key")
	f.StringVar(&s.tlsCA, "tls-client-ca", "", "file with the certificate that must have signed those of clients of NATS")
	f.Int64Var(&s.maxStream, "stream-size", 4096, "megabytes of records that may wait for the store")
	f.IntVar(&s.replicas, "stream-replicas", 1, "servers of a NATS cluster that keep records which wait")
	f.IntVar(&s.shards, "shards", 1, "processes that share the models of the parameter server")
	f.IntVar(&s.shard, "shard", 0, "which of them this one is; the first starts the others")
	f.IntVar(&s.ranks, "ranks", 0, "ranks of the run; 0 is those that come until all have ended and no analyzer came for --linger")
	f.DurationVar(&s.linger, "linger", 5*time.Second, "how long to wait for further analyzers when all ranks have ended")
	f.DurationVar(&s.snapshot, "snapshot", 5*time.Second, "time between snapshots of the parameter server")
	f.StringVar(&s.page.Listen, "http", "127.0.0.1:0", "where HTTP listens")
	f.BoolVar(&s.page.MetricsOpen, "metrics-open", false, "let /metrics be read without the token")
	f.StringSliceVar(&s.page.AllowedHosts, "http-host", nil, "further host names under which HTTP is asked, as those of a proxy")
	f.BoolVar(&s.stay, "stay", false, "when the run has ended keep its page until Ctrl-C")
	f.StringVar(&s.statsURL, "stats-url", "", "URL to which statistics are posted")
	f.StringVar(&s.statsDir, "stats-dir", "", "directory for statistics as files pserver_output_stats_<n>.json")
	f.DurationVar(&s.period, "stats-period", time.Second, "time between packets of statistics")
	f.IntVar(&s.schema, "stats-schema", 1, "layout of the statistics: 1, or 2 with a version at the top")
	f.DurationVar(&s.flush, "stats-flush", time.Minute, "how long the end of the run waits for a receiver of statistics that does not answer")
	f.BoolVar(&s.reopen, "reopen", false, "have a run that was cut end: analyzers that have not handed over all come again")
	f.StringSliceVar(&s.lost, "lost", nil, "analyzers that do not")
	for _, own := range []string{"shard", "reopen", "lost"} {
		_ = f.MarkHidden(own) // only for processes that this program starts
	}
}

func (s *serveFlags) has(role string) bool { return slices.Contains(s.roles, role) }

// check says what is wrong with the flags.
func (s *serveFlags) check() error {
	var errs []error
	for _, r := range s.roles {
		if !slices.Contains(allRoles, r) {
			errs = append(errs, fmt.Errorf("role %q is none of %s", r, strings.Join(allRoles, ", ")))
		}
	}
	if len(s.roles) == 0 {
		errs = append(errs, errors.New("no role is given"))
	}
	if s.schema != 1 && s.schema != 2 {
		errs = append(errs, fmt.Errorf("statistics schema %d is neither 1 nor 2", s.schema))
	}
	if s.shards < 1 || s.shard < 0 || s.shard >= s.shards {
		errs = append(errs, fmt.Errorf("shard %d of %d cannot be", s.shard, s.shards))
	}
	for name, d := range map[string]time.Duration{"stats-period": s.period, "snapshot": s.snapshot} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("--%s %v is not positive", name, d))
		}
	}
	if s.ranks < 0 || s.linger < 0 || s.flush < 0 || s.maxStream < 1 || s.replicas < 1 {
		errs = append(errs, errors.New("--ranks, --linger and --stats-flush cannot be negative, --stream-size and --stream-replicas must be positive"))
	}
	if (s.page.Cert == "") != (s.page.Key == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key go together"))
	}
	if s.frozen && s.loadFrom == "" {
		errs = append(errs, errors.New("to freeze a model needs one to load: give --load-model"))
	}
	if s.url != "" && s.has(roleBus) {
		if !s.rolesGiven() {
			s.roles = slices.DeleteFunc(slices.Clone(s.roles), func(r string) bool { return r == roleBus })
		} else {
			errs = append(errs, errors.New("with --nats the role nats is somebody else's: leave it out of --roles"))
		}
	}
	if u, err := url.Parse(s.statsURL); s.statsURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		errs = append(errs, fmt.Errorf("--stats-url %q is not of the form http://host:port/path", s.statsURL))
	}
	for name, addr := range map[string]string{"nats-listen": s.listen, "http": s.page.Listen} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("--%s %q is not of the form host:port", name, addr))
		}
	}
	return errors.Join(errs...)
}

// rolesGiven reports whether roles were chosen.
func (s *serveFlags) rolesGiven() bool { return !slices.Equal(s.roles, allRoles) }

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
