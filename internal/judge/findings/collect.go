package findings

import (
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Collector collects the final records of a run, in any order, and concludes findings from
// them. The zero value is ready to use. It must not be shared.
type Collector struct {
	run   blame.Run
	ranks map[trace.RankKey]bool
}

// Add adds records of a rank, and the rank itself. It does not retain them.
func (c *Collector) Add(rank trace.RankKey, anomalies, typical []*provenance.Record) {
	if c.ranks == nil {
		c.ranks = make(map[trace.RankKey]bool)
	}
	c.ranks[rank] = true
	for _, r := range anomalies {
		c.run.Add(r)
	}
	for _, r := range typical {
		c.run.Extend(r)
	}
}

// Ranks returns the ranks that records were added of, in any order.
func (c *Collector) Ranks() []trace.RankKey { return slices.Collect(maps.Keys(c.ranks)) }

// Conclude returns the findings of a run with this outcome, these call paths and this comparison of peers, which may be
// nil, and adds the slow peers that calls show to it. It may be called once.
func (c *Collector) Conclude(o *summary.Outcome, paths []provenance.PathStats, all *provenance.Peers) *Result {
	c.run.Unit, c.run.Begin, c.run.End = o.Unit, o.Totals.Begin, max(c.run.End, o.Totals.End)
	p := NewProfile(paths, c.Ranks(), o.Modes)
	c.run.Ranks = p.Ranks()
	found := Conclude(&c.run, blame.Find(&c.run), o.Changes, p, all)
	c.run = blame.Run{}
	if all != nil {
		peers.Add(all, found.Slow...)
	}
	return found
}
