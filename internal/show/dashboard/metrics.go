package dashboard

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// maxRankSeries is the number of ranks with their own series.
const maxRankSeries = 2000

// metrics answers a scrape with the metrics of one status and of this process.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	pipeline := prometheus.NewRegistry()
	status, err := s.Source.Status(r.Context())
	o := s.quickOverview(r.Context())
	pipeline.MustRegister(collectorFunc(func(ch chan<- prometheus.Metric) {
		c := &collector{ch, make(map[string]bool)}
		add(c, buildInfo, 1, s.Version)
		add(c, up, err == nil)
		if err == nil {
			c.status(status)
		}
		if o != nil {
			c.peers(o)
		}
	}))
	promhttp.HandlerFor(prometheus.Gatherers{pipeline, s.process}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// overviewTimeout bounds the wait for an overview that is part of another answer.
const overviewTimeout = time.Second

// quickOverview returns the overview of the watched run, or nil if it is not available soon.
func (s *server) quickOverview(ctx context.Context) *api.Overview {
	ctx, cancel := context.WithTimeout(ctx, overviewTimeout)
	defer cancel()
	o, err := s.views.Overview(ctx, s.Run, insight.OverviewParams{Columns: insight.DefaultColumns})
	if err != nil {
		return nil // it has notices of its own
	}
	return o
}

// collectorFunc is a prometheus.Collector whose metrics depend on the status.
type collectorFunc func(ch chan<- prometheus.Metric)

// Collect sends the metrics.
func (f collectorFunc) Collect(ch chan<- prometheus.Metric) { f(ch) }

// Describe sends nothing.
func (collectorFunc) Describe(chan<- *prometheus.Desc) {}

// collector sends metrics, each series once: a repeated one would invalidate the scrape.
type collector struct {
	ch   chan<- prometheus.Metric
	seen map[string]bool
}

func (c *collector) status(s *api.Status) {
	c.run(s)
	for i := range s.Nodes {
		c.node(&s.Nodes[i])
	}
	c.ranks(s.Ranks)
	for i := range s.Shards {
		c.shard(&s.Shards[i])
	}
	if s.Store != nil {
		all(c, storeMetrics, s.Store)
	}
	if s.Sender != nil {
		all(c, senderMetrics, s.Sender)
	}
}

// peers adds the efficiency of programs and the slow peers.
func (c *collector) peers(o *api.Overview) {
	for i := range o.Efficiency {
		all(c, efficiencyMetrics, &o.Efficiency[i], strconv.FormatInt(o.Efficiency[i].Program, 10))
	}
	for i := range o.Slow {
		s := &o.Slow[i]
		add(c, slowPeer, s.Ratio, strconv.FormatInt(s.Program, 10), s.Place, s.Pattern)
	}
}

func (c *collector) run(s *api.Status) {
	add(c, runInfo, 1, s.Run.Name)
	for _, state := range api.States {
		add(c, runState, s.Run.State == state, string(state))
	}
	all(c, statusMetrics, s)
	for _, h := range s.Health {
		add(c, healthy, h.OK, h.Part, h.Severity)
	}
}

func (c *collector) node(n *api.Node) {
	if !c.isNew("node", n.Name) {
		return
	}
	add(c, nodeInfo, 1, n.Name, n.Host, strconv.FormatInt(n.PID, 10))
	add(c, nodeState, 1, n.Name, string(n.State))
	all(c, nodeMetrics, n, n.Name)
	for _, kind := range slices.Sorted(maps.Keys(n.EventKinds)) {
		add(c, nodeKindEvents, n.EventKinds[kind], n.Name, kind)
	}
	for _, g := range n.Stages {
		add(c, nodeStageSeconds, g.Seconds, n.Name, g.Name)
		add(c, nodeStageRuns, g.Runs, n.Name, g.Name)
	}
	for _, t := range n.Tallies {
		add(c, nodeTallies, t.Count, n.Name, t.Name, t.Severity)
	}
	c.latency(nodeExchange, n.Exchange, n.Name)
}

func (c *collector) shard(s *api.Shard) {
	if !c.isNew("shard", s.Name) {
		return
	}
	all(c, shardMetrics, s, s.Name)
	if s.Snapshot != nil {
		all(c, snapshotMetrics, s.Snapshot, s.Name)
	}
	c.latency(shardExchange, s.Latency, s.Name)
}

// ranks adds series of the first ranks. They do not depend on the state of the ranks, so that
// series do not come and go.
func (c *collector) ranks(ranks []api.Rank) {
	slowest := 0.0
	for i := range ranks {
		slowest = max(slowest, ranks[i].Behind)
	}
	add(c, rankLagMax, slowest)
	add(c, ranksWithout, max(0, len(ranks)-maxRankSeries))
	if len(ranks) > maxRankSeries {
		ranks = slices.SortedFunc(slices.Values(ranks), compareRanks)[:maxRankSeries]
	}
	for i := range ranks {
		r := &ranks[i]
		program, rank := strconv.FormatInt(r.Program, 10), strconv.FormatInt(r.Rank, 10)
		if c.isNew("rank", program, rank) {
			all(c, rankMetrics, r, program, rank)
		}
	}
}

// isNew reports whether names are new.
func (c *collector) isNew(names ...string) bool {
	key := strings.Join(names, "\x00")
	old := c.seen[key]
	c.seen[key] = true
	return !old
}

// add adds a value, unless its series exists.
func add[T any](c *collector, m metric[T], value any, labels ...string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	if c.isNew(append([]string{m.name}, labels...)...) {
		c.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, number(value), labels...)
	}
}

// latency adds a summary, if there are values.
func (c *collector) latency(m metric[any], l api.Latency, name string) {
	if l.Count <= 0 {
		return
	}
	quantiles := make(map[float64]float64)
	if l.P50 > 0 || l.P99 > 0 {
		quantiles[0.5], quantiles[0.99] = l.P50, l.P99
	}
	sum := l.Mean * float64(l.Count)
	c.ch <- prometheus.MustNewConstSummary(m.desc, uint64(l.Count), sum, quantiles, strings.ToValidUTF8(name, "\uFFFD"))
}

// all adds the metrics of a table.
func all[T any](c *collector, table []metric[T], from *T, labels ...string) {
	for _, m := range table {
		add(c, m, m.value(from), slices.Clone(labels)...)
	}
}
