// Package dashboard serves a run over HTTP: its health (/healthz), metrics for Prometheus
// (/metrics), answers in JSON (/api/v1/), event streams and the page. docs/api.md lists all
// paths. Package insight computes the answers. Only labels of findings can be changed.
package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/compare"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Config configures a dashboard. Zero limits mean the defaults in parentheses.
type Config struct {
	insight.Config // its Build is set to Version

	Version    string              // of this program
	Page       Page                // nil: no page
	References []compare.Reference // runs to compare with besides those of the store
	Neighbors  compare.Neighbors   // further runs, opened only for a comparison; nil: none
	Packets    *legacy.Packets     // of a run without other data; otherwise nil

	// Token must be presented by clients; "" admits all.
	Token string
	// MetricsOpen serves /metrics without the token.
	MetricsOpen bool
	// AllowedHosts are names without port that the Host header may contain on a loopback
	// connection besides localhost and loopback addresses, such as those of proxies on this
	// machine. "*" allows all.
	AllowedHosts []string
	// Log receives rejected requests, limited by client, without their tokens; nil discards them.
	Log *slog.Logger

	Tick    time.Duration // between two ticks of a stream (1 s)
	Streams int           // open at once (256)

	// Queries and Exports limit the SQL queries (120 per minute, 60 at once) and exports (12 per
	// minute, 6 at once) of a client.
	Queries, Exports Rate
	// Parquet writes an answer to a file; nil disables exports in that format.
	Parquet func(ctx context.Context, path string, rows *provdb.Rows) error
}

// Page serves the files of a page, with index.html at /. It must be safe for concurrent use.
type Page interface {
	// Has reports whether a file is at the path of a request.
	Has(path string) bool
	http.Handler
}

// Validate returns an error if the configuration is incomplete or out of range.
func (c Config) Validate() error {
	var errs []error
	if c.Source == nil {
		errs = append(errs, errors.New("dashboard: no source"))
	}
	if c.Run == "" {
		errs = append(errs, errors.New("dashboard: no name of the run"))
	}
	if c.Tick < 0 || c.Timeout < 0 || c.MaxQueries < 0 || c.Streams < 0 {
		errs = append(errs, fmt.Errorf("dashboard: limits must be ≥ 0: tick %v, timeout %v, queries %d, streams %d",
			c.Tick, c.Timeout, c.MaxQueries, c.Streams))
	}
	return errors.Join(errs...)
}

// views are the answers that statistics packets provide as well.
type views interface {
	Overview(ctx context.Context, run string, of insight.OverviewParams) (*api.Overview, error)
	Heatmap(ctx context.Context, run string, of heatmap.Params) (*api.Heatmap, error)
	Functions(ctx context.Context, run string, of query.FunctionTable) (*api.FunctionTable, error)
	Counters(ctx context.Context, run string, of insight.CountersParams) (*api.List, error)
	Search(ctx context.Context, run string, of insight.SearchParams) (*api.FoundList, error)
}

type server struct {
	Config
	guard *guard

	ticks     *feed[tick]
	overviews *feed[[]byte]
	seq       atomic.Int64 // of the last tick

	queries, exports *limiter
	writing          chan struct{} // one element for each export being written

	insight  *insight.Insight
	views    views
	compared *compare.Runs
	answers  *answerCache
	process  *prometheus.Registry // of this process, not of the pipeline
}

// New returns the handler of all paths that docs/api.md lists. The configuration must be valid.
// Streams end with the contexts of their requests, which a server cancels to shut down in time.
func New(cfg Config) http.Handler {
	cfg.Tick = cmp.Or(cfg.Tick, time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.Streams = cmp.Or(cfg.Streams, 256)
	cfg.Build = cfg.Version
	s := &server{
		Config: cfg, process: prometheus.NewRegistry(), guard: newGuard(cfg), insight: insight.New(cfg.Config), answers: newAnswerCache(),
		queries: newLimiter("SQL queries", cmp.Or(cfg.Queries, Rate{PerMinute: 120, Burst: 60})),
		exports: newLimiter("exports", cmp.Or(cfg.Exports, Rate{PerMinute: 12, Burst: 6})),
		writing: make(chan struct{}, maxWriting),
	}
	s.compared = compare.New(s.insight, cfg.References, cfg.Neighbors)
	s.views = s.insight
	if s.Packets != nil {
		s.views = s.Packets
	}
	s.ticks = &feed[tick]{make: s.tick, every: cfg.Tick, most: cfg.Streams}
	s.overviews = &feed[[]byte]{make: s.changedOverview, every: max(minOverview, cfg.Tick), most: cfg.Streams}
	s.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s.guard.protect(s.routes())
}

// Prefixes of paths.
const (
	base = "/api/v1/"
	run  = base + "runs/{run}"
)

// routes returns the handler of all paths. They work below the prefix of a proxy, too.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	get := func(pattern string, f handler) { mux.Handle(pattern, allowMethod(http.MethodGet, answer(f))) }
	mux.Handle("/healthz", allowMethod(http.MethodGet, http.HandlerFunc(s.healthz)))
	mux.Handle("/metrics", allowMethod(http.MethodGet, http.HandlerFunc(s.metrics)))
	mux.Handle(run+"/stream", allowMethod(http.MethodGet, http.HandlerFunc(s.stream)))
	mux.Handle("/", http.HandlerFunc(s.page))
	get(base+"status", withoutRun(noParams(s.Source.Status), readNothing))
	get(base+"runs", withoutRun(noParams(s.insight.Runs), readNothing))
	get(run+"/pipeline", s.watchedOnly(withoutRun(noParams(s.Source.Status), readNothing)))
	if s.Packets != nil {
		s.packetRoutes(mux, get)
	} else {
		s.runRoutes(mux, get)
	}
	return mux
}

// packetRoutes adds the paths of a run that has only statistics packets.
func (s *server) packetRoutes(mux *http.ServeMux, get func(pattern string, f handler)) {
	get(run+"/overview", s.watchedOnly(ofRun(s, s.views.Overview, (*params).overview)))
	get(run+"/heatmap", s.watchedOnly(ofRun(s, s.views.Heatmap, (*params).heatmap)))
	get(run+"/functions", s.watchedOnly(ofRun(s, s.views.Functions, (*params).functions)))
	get(run+"/counters", s.watchedOnly(ofRun(s, s.views.Counters, (*params).counters)))
	get(run+"/search", s.watchedOnly(ofRun(s, s.views.Search, (*params).search)))
	mux.Handle(run+"/", answer(func(*params) (any, error) { return nil, legacy.ErrNotInPackets }))
	mux.Handle(legacy.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Packets.Receives(r) {
			notFound(w, r)
			return
		}
		allowMethod(http.MethodPost, http.HandlerFunc(s.takePacket)).ServeHTTP(w, r)
	}))
}

// takePacket adds a packet, and answers as the original does.
func (s *server) takePacket(w http.ResponseWriter, r *http.Request) {
	if err := s.Packets.Receive(r.Body); err != nil {
		writeProblem(w, err)
		return
	}
	s.overviews.wake()
	writeJSON(w, http.StatusCreated, struct{}{})
}

// runRoutes adds the paths of runs of a store.
func (s *server) runRoutes(mux *http.ServeMux, get func(pattern string, f handler)) {
	get(base+"comparable", withoutRun(noParams(s.compared.Comparables), readNothing))
	get(base+"compare", withoutRun(s.compared.Compare, (*params).compare))
	get(base+"compare/flame", withoutRun(s.compared.CompareFlame, (*params).compareFlame))
	get(base+"compare/histograms", withoutRun(s.compared.CompareHistograms, (*params).compareHistograms))
	get(base+"compare/trend", withoutRun(s.compared.Trend, (*params).trend))
	get(run, s.cached(ofRun(s, runOnly(s.insight.OneRun), readNothing)))
	get(run+"/snapshot", ofRun(s, s.insight.Snapshot, (*params).snapshot))
	get(run+"/top", ofRun(s, s.insight.Top, (*params).top))
	get(run+"/events", s.cached(ofRun(s, s.insight.Events, (*params).events)))
	get(run+"/events/{id}", ofRun(s, s.document, (*params).event))
	get(run+"/events/{id}/evidence", ofRun(s, s.insight.Evidence, (*params).event))
	get(run+"/events/{id}/window", ofRun(s, s.window, (*params).window))
	get(run+"/functions", s.cached(ofRun(s, s.insight.Functions, (*params).functions)))
	get(run+"/functions/{id}", s.cached(ofRun(s, s.insight.Function, (*params).function)))
	get(run+"/overview", ofRun(s, s.insight.Overview, (*params).overview))
	get(run+"/heatmap", ofRun(s, s.insight.Heatmap, (*params).heatmap))
	get(run+"/timeline", s.cached(ofRun(s, s.insight.Timeline, (*params).timeline)))
	get(run+"/timeline/counters", s.cached(ofRun(s, s.insight.CounterTimeline, (*params).counterTimeline)))
	get(run+"/ranks", ofRun(s, s.insight.Ranks, (*params).rankTable))
	get(run+"/ranks/functions", ofRun(s, s.insight.RankFunctions, (*params).rankFunctions))
	get(run+"/breakdown", s.cached(ofRun(s, s.insight.Breakdown, (*params).breakdown)))
	get(run+"/breakdown/steps", s.cached(ofRun(s, s.insight.RankSteps, (*params).rankSteps)))
	get(run+"/findings", ofRun(s, runOnly(s.insight.Findings), readNothing))
	get(run+"/findings/{key}/plot", s.cached(ofRun(s, s.insight.Plot, (*params).plot)))
	get(run+"/findings/{key}/slow-peer", ofRun(s, s.insight.SlowPeer, (*params).finding))
	get(run+"/explain", ofRun(s, s.insight.Explain, (*params).explain))
	get(run+"/explain/groups", s.cached(ofRun(s, s.insight.Groups, (*params).groups)))
	get(run+"/flame", s.cached(ofRun(s, s.insight.Flame, (*params).flame)))
	get(run+"/search", ofRun(s, s.insight.Search, (*params).search))
	get(run+"/labels/ignore", ofRun(s, runOnly(s.ignoreFile), readNothing))
	mux.Handle(run+"/labels/{key}", allowMethod(http.MethodPut, answer(s.setLabel)))
	get(run+"/counters", s.cached(ofRun(s, s.insight.Counters, (*params).counters)))
	get(run+"/metadata", s.cached(ofRun(s, s.insight.Metadata, (*params).metadata)))
	mux.Handle(run+"/sql", allowMethod(http.MethodPost, s.queries.limit(answer(s.sql))))
	mux.Handle(run+"/sql/export", allowMethod(http.MethodPost, s.exports.limit(answer(s.export))))
	get("/events/query_executions_pdb", s.executionsPDB)
}

// page serves a file of the page.
func (s *server) page(w http.ResponseWriter, r *http.Request) {
	if s.Page == nil || !s.Page.Has(r.URL.Path) {
		notFound(w, r)
		return
	}
	allowMethod(http.MethodGet, s.Page).ServeHTTP(w, r)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, problem(http.StatusNotFound, "nothing is at "+r.URL.Path, "docs/api.md lists the paths; begin with api/v1/runs"))
}

// allowMethod admits one method, and HEAD with GET.
func allowMethod(method string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
			w.Header().Set("Allow", method)
			writeProblem(w, problem(http.StatusMethodNotAllowed, "method "+r.Method+" is not allowed", "use "+method))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// healthz reports whether the pipeline is healthy. It needs no token, so it names the failing parts without
// the reasons, which may contain paths.
func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	failing := []api.Health{{Part: "status", Severity: api.SeverityError}}
	if status, err := s.Source.Status(r.Context()); err == nil {
		failing = status.Wrong()
	}
	for i := range failing {
		failing[i].Sentence = "chimbuko status has the reason"
	}
	if len(failing) == 0 {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	writeJSON(w, http.StatusServiceUnavailable, map[string]any{"status": "failing", "wrong": failing})
}

// watchedOnly rejects all runs but the one that this process watches.
func (s *server) watchedOnly(f handler) handler {
	return func(p *params) (any, error) {
		if err := s.checkWatched(p.path("run")); err != nil {
			return nil, err
		}
		return f(p)
	}
}

func (s *server) checkWatched(run string) error {
	if run == s.Run {
		return nil
	}
	return problem(http.StatusNotFound, fmt.Sprintf("run %q is not the one that this process watches", run),
		"only runs/"+url.PathEscape(s.Run)+" has a pipeline")
}
