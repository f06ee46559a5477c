// Package dashboard is the HTTP side of a run: whether it is well (/healthz), numbers for
// Prometheus (/metrics), answers in JSON (/api/v1/) and event streams; docs/api.md lists all of
// it. Package insight finds the answers. It changes nothing but the labels of issues.
package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/compare"

	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Config says what is served and to whom. Zero values of limits mean the default
// in brackets.
type Config struct {
	Source     insight.Source
	Run        string              // name of the run that Status is about
	Version    string              // of this program
	Place      string              // of the runs, as commands name it: a directory, a file or an address without secrets; empty: not known
	Labels     insight.Labels      // what people say of issues; nil: nobody can say anything here
	Page       Page                // what a browser shows; nil: there is no page
	References []compare.Reference // what runs can be compared with besides those of the store
	// ReadOnly shows labels, but lets nobody set any.
	ReadOnly bool
	// Packets is the run where there is no more of it than packets of statistics; nil: it
	// is that of the store.
	Packets *legacy.Packets

	// Token is what a client must show; without one everybody is answered.
	Token string
	// MetricsOpen lets /metrics be read without the token.
	MetricsOpen bool
	// AllowedHosts are names, without port, that the Host header may have on a
	// connection over the loopback interface besides localhost and loopback
	// addresses: those of proxies on this machine. "*" allows all.
	AllowedHosts []string
	// Log gets who was refused, the same of an address once in a while, and never
	// what was shown for a token; nil discards it.
	Log *slog.Logger

	Tick      time.Duration // between two ticks of a stream [1 s]
	Timeout   time.Duration // of one question to the store [30 s]
	Questions int           // asked of the store at once; others wait [4]
	Streams   int           // open at once; others are refused [256]

	// How often one client may ask in SQL [120 a minute, 60 at once], and export
	// [12 a minute, 6 at once].
	Asks, Exports Rate
	// Cache makes the database into which a run is copied, so that queries over many executions
	// are fast; nil: the store answers them.
	Cache func(ctx context.Context) (provdb.Cache, error)
	// Parquet writes an answer to a file; nil: there are no exports of that format.
	Parquet func(ctx context.Context, path string, rows *provdb.Rows) error
}

// Validate says what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Source == nil {
		errs = append(errs, errors.New("the dashboard has no source"))
	}
	if c.Run == "" {
		errs = append(errs, errors.New("the dashboard needs the name of the run"))
	}
	if c.Tick < 0 || c.Timeout < 0 || c.Questions < 0 || c.Streams < 0 {
		errs = append(errs, fmt.Errorf("limits of the dashboard cannot be negative: tick %v, timeout %v, questions %d, streams %d",
			c.Tick, c.Timeout, c.Questions, c.Streams))
	}
	return errors.Join(errs...)
}

// server is what the handlers share.
type server struct {
	Config
	hub   *hub
	board *board
	guard *guard

	asks, exports *limiter
	writing       chan struct{} // one for each export that is being written

	insight  *insight.Insight
	views    views
	compared *compare.Runs
	answers  lasting
	process  *prometheus.Registry // of this process, not of the pipeline
}

// views are the answers that statistics packets give, too.
type views interface {
	Overview(ctx context.Context, run string, of insight.OverviewParams) (*api.Overview, error)
	Heatmap(ctx context.Context, run string, of insight.HeatmapParams) (*api.Heatmap, error)
	Functions(ctx context.Context, run string, of insight.FunctionsParams) (*api.FunctionTable, error)
	Counters(ctx context.Context, run string, of insight.CountersParams) (*api.List, error)
	Search(ctx context.Context, run string, of insight.SearchParams) (*api.FoundList, error)
}

// New returns the handler of all that docs/api.md lists. The configuration must
// be valid. Streams end with the context of their request, so a server that is
// to shut down in time gives its connections a context that it cancels.
func New(cfg Config) http.Handler {
	cfg.Tick = cmp.Or(cfg.Tick, time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Questions = cmp.Or(cfg.Questions, 4)
	cfg.Streams = cmp.Or(cfg.Streams, 256)
	s := &server{
		Config: cfg, process: prometheus.NewRegistry(), guard: newGuard(cfg),
		hub: &hub{source: cfg.Source, every: cfg.Tick, most: cfg.Streams},
		insight: insight.New(insight.Config{
			Source: cfg.Source, Run: cfg.Run, Place: cfg.Place, Labels: cfg.Labels, ReadOnly: cfg.ReadOnly, Cache: cfg.Cache,
			Timeout: cfg.Timeout, Questions: cfg.Questions,
		}),
	}
	s.compared = compare.New(s.insight, cfg.References)
	s.asks = newLimiter("questions in SQL", cmp.Or(cfg.Asks, Rate{PerMinute: 120, AtOnce: 60}))
	s.exports = newLimiter("exports", cmp.Or(cfg.Exports, Rate{PerMinute: 12, AtOnce: 6}))
	s.writing = make(chan struct{}, maxWriting)
	s.views = s.insight
	if s.Packets != nil {
		s.views = s.Packets
	}
	s.board = &board{make: s.overviewJSON, every: max(boardLeast, cfg.Tick)}
	s.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s.guard.protect(s.routes())
}

// routes returns the handler of all paths. They work below the prefix of a proxy, too.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	get := func(pattern string, h http.Handler) { mux.Handle(pattern, only(http.MethodGet, h)) }
	get("/healthz", http.HandlerFunc(s.healthz))
	get("/metrics", http.HandlerFunc(s.metrics))
	get(base+"status", s.answer(s.status))
	get(base+"runs", s.answer(s.runs))
	get(run+"/pipeline", s.answer(s.pipeline))
	get(run+"/stream", http.HandlerFunc(s.stream))
	mux.Handle("/", s.pageOr(nothingThere))
	if s.Packets != nil {
		s.packetRoutes(mux, get)
	} else {
		s.runRoutes(mux, get)
	}
	return mux
}

// Prefixes of paths.
const (
	base = "/api/v1/"
	run  = base + "runs/{run}"
)

// packetRoutes adds the paths of a run of which only statistics packets exist.
func (s *server) packetRoutes(mux *http.ServeMux, get func(pattern string, h http.Handler)) {
	for path, h := range map[string]handler{
		"/overview": s.overview, "/heatmap": s.heatmap, "/functions": s.functions, "/counters": s.counters, "/search": s.search,
	} {
		get(run+path, s.answer(func(r *http.Request, p *params) (any, error) {
			if err := s.watched(r.PathValue("run")); err != nil {
				return nil, err
			}
			return h(r, p)
		}))
	}
	mux.Handle(run+"/", s.answer(func(*http.Request, *params) (any, error) { return nil, legacy.ErrNotInPackets }))
	mux.Handle(legacy.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Packets.Receives(r) {
			nothingThere(w, r)
			return
		}
		only(http.MethodPost, http.HandlerFunc(s.takePacket)).ServeHTTP(w, r)
	}))
}

// takePacket adds a packet, and answers as the original does.
func (s *server) takePacket(w http.ResponseWriter, r *http.Request) {
	if err := s.Packets.Receive(r.Body); err != nil {
		writeProblem(w, r, err)
		return
	}
	s.board.wake()
	writeJSON(w, r, http.StatusCreated, struct{}{})
}

// runRoutes adds the paths of runs of a store.
func (s *server) runRoutes(mux *http.ServeMux, get func(pattern string, h http.Handler)) {
	get(base+"comparable", s.answer(s.comparables))
	get(base+"compare", s.answer(s.compare))
	get(base+"compare/flame", s.answer(s.compareFlame))
	get(base+"compare/histograms", s.answer(s.compareHistograms))
	get(base+"compare/trend", s.answer(s.trend))
	get(run, s.answer(s.keep(plain(s.insight.OneRun))))
	get(run+"/snapshot", s.answer(s.snapshot))
	get(run+"/top", s.answer(s.top))
	get(run+"/events", s.answer(s.keep(s.events)))
	get(run+"/events/{id}", s.answer(s.event))
	get(run+"/events/{id}/evidence", s.answer(s.evidence))
	get(run+"/events/{id}/window", s.answer(s.window))
	get(run+"/functions", s.answer(s.keep(s.functions)))
	get(run+"/functions/{id}", s.answer(s.keep(s.function)))
	get(run+"/overview", s.answer(s.overview))
	get(run+"/heatmap", s.answer(s.heatmap))
	get(run+"/issues", s.answer(plain(s.insight.Issues)))
	get(run+"/issues/{key}/plot", s.answer(s.keep(s.plot)))
	get(run+"/explain", s.answer(s.explain))
	get(run+"/explain/groups", s.answer(s.keep(s.groups)))
	get(run+"/flame", s.answer(s.keep(s.flame)))
	get(run+"/search", s.answer(s.search))
	get(run+"/labels/ignore", s.answer(s.ignoreFile))
	mux.Handle(run+"/labels/{key}", only(http.MethodPut, s.answer(s.setLabel)))
	get(run+"/counters", s.answer(s.keep(s.counters)))
	get(run+"/metadata", s.answer(s.keep(s.metadata)))
	mux.Handle(run+"/sql", only(http.MethodPost, s.asks.limit(s.answer(s.sql))))
	mux.Handle(run+"/sql/export", only(http.MethodPost, s.exports.limit(s.answer(s.export))))
	get("/events/query_executions_pdb", s.answer(s.executionsPDB))
}

func nothingThere(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, r, &problem{http.StatusNotFound, "nothing is at " + r.URL.Path, "docs/api.md lists the paths; begin with api/v1/runs"})
}

// only answers one method, and HEAD where that is GET.
func only(method string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
			w.Header().Set("Allow", method)
			writeProblem(w, r, &problem{http.StatusMethodNotAllowed, r.Method + " is not answered here", "use " + method})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// healthz tells whether the pipeline is well. It needs no token, so it says
// nothing but which parts are not, and why.
func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	var wrong []api.Health
	status, err := s.Source.Status(r.Context())
	if err != nil {
		wrong = []api.Health{{Part: "status", Severity: api.SeverityError, Sentence: err.Error()}}
	} else {
		wrong = status.Wrong()
	}
	if len(wrong) == 0 {
		writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	writeJSON(w, r, http.StatusServiceUnavailable, map[string]any{"status": "failing", "wrong": wrong})
}

// status is the state of the run that this process watches, whatever its name.
func (s *server) status(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	return s.Source.Status(r.Context())
}

// pipeline is the state of the pipeline of a run.
func (s *server) pipeline(r *http.Request, p *params) (any, error) {
	if err := s.watched(r.PathValue("run")); err != nil {
		return nil, err
	}
	return s.status(r, p)
}

// watched says whether a run is the one that Status is about.
func (s *server) watched(run string) error {
	if run == s.Run {
		return nil
	}
	return &problem{
		http.StatusNotFound, fmt.Sprintf("run %q is not the one that this process watches", run),
		"the state of the pipeline is known of runs/" + url.PathEscape(s.Run) + " only",
	}
}
