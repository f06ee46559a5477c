package dashboard

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxRankSeries is of how many ranks there are series of their own.
const maxRankSeries = 2000

// metrics answers a scrape with the numbers of one Status and of this process.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	pipeline := prometheus.NewRegistry()
	pipeline.MustRegister(&collector{s: s, ctx: r.Context()})
	promhttp.HandlerFor(prometheus.Gatherers{pipeline, s.process}, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// collector makes metrics of a Status. It serves one scrape.
type collector struct {
	s    *server
	ctx  context.Context //nolint:containedctx // that of the scrape, which Collect is not given
	ch   chan<- prometheus.Metric
	seen map[string]bool
}

// Describe tells nothing: which metrics there are depends on the Status.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect takes the Status. If there is none, chimbuko_up says so.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.ch, c.seen = ch, make(map[string]bool)
	c.add(buildInfo, 1, c.s.Version)
	status, err := c.s.Source.Status(c.ctx)
	if err != nil {
		c.add(up, 0)
		return
	}
	c.add(up, 1)
	c.run(status)
	for i := range status.Nodes {
		c.node(&status.Nodes[i])
	}
	c.ranks(status.Ranks)
	for i := range status.Shards {
		c.shard(&status.Shards[i])
	}
	if status.Store != nil {
		all(c, storeMetrics, status.Store)
	}
	if status.Sender != nil {
		all(c, senderMetrics, status.Sender)
	}
}

func (c *collector) run(s *api.Status) {
	c.add(runInfo, 1, s.Run.Name)
	for _, state := range api.States {
		c.add(runState, flag(s.Run.State == state), string(state))
	}
	all(c, statusMetrics, s)
	for _, h := range s.Health {
		c.add(healthy, flag(h.OK), h.Part, h.Severity)
	}
}

func (c *collector) node(n *api.Node) {
	if !c.first("node", n.Name) {
		return
	}
	c.add(nodeInfo, 1, n.Name, n.Host, strconv.FormatInt(n.PID, 10))
	c.add(nodeState, 1, n.Name, string(n.State))
	all(c, nodeMetrics, n, n.Name)
	for _, kind := range slices.Sorted(maps.Keys(n.EventKinds)) {
		c.add(nodeKindEvents, float64(n.EventKinds[kind]), n.Name, kind)
	}
	for _, g := range n.Stages {
		c.add(nodeStageSeconds, g.Seconds, n.Name, g.Name)
		c.add(nodeStageRuns, float64(g.Runs), n.Name, g.Name)
	}
	for _, t := range n.Tallies {
		c.add(nodeTallies, float64(t.Count), n.Name, t.Name, t.Severity)
	}
	c.latency(nodeExchange, n.Exchange, n.Name)
}

func (c *collector) shard(s *api.Shard) {
	if !c.first("shard", s.Name) {
		return
	}
	all(c, shardMetrics, s, s.Name)
	if s.Snapshot != nil {
		all(c, snapshotMetrics, s.Snapshot, s.Name)
	}
	c.latency(shardExchange, s.Latency, s.Name)
}

// ranks gives the first ranks series of their own. These do not depend on how the
// ranks are doing, so that series do not come and go.
func (c *collector) ranks(ranks []api.Rank) {
	slowest := 0.0
	for i := range ranks {
		slowest = max(slowest, ranks[i].Behind)
	}
	c.add(rankLagMax, slowest)
	c.add(ranksWithout, float64(max(0, len(ranks)-maxRankSeries)))
	if len(ranks) > maxRankSeries {
		ranks = slices.SortedFunc(slices.Values(ranks), compareRanks)[:maxRankSeries]
	}
	for i := range ranks {
		r := &ranks[i]
		program, rank := strconv.FormatInt(r.Program, 10), strconv.FormatInt(r.Rank, 10)
		if c.first("rank", program, rank) {
			all(c, rankMetrics, r, program, rank)
		}
	}
}

// first tells whether names come for the first time: a series that is there twice
// would spoil the whole scrape.
func (c *collector) first(names ...string) bool {
	key := strings.Join(names, "\x00")
	old := c.seen[key]
	c.seen[key] = true
	return !old
}

// add adds a value, unless it is there already.
func (c *collector) add(m named, value float64, labels ...string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	if c.first(append([]string{m.name}, labels...)...) {
		c.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	}
}

// latency adds a summary; what was never done has none.
func (c *collector) latency(m named, l api.Latency, name string) {
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
		c.add(m.named, m.value(from), slices.Clone(labels)...)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unix is a time in seconds, 0 for none.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMicro()) / 1e6
}
