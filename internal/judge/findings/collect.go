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

// Collector collects the final records of a run, in any order, and concludes findings from them. The zero value is ready to
// use. It is not safe for concurrent use.
type Collector struct {
	run   blame.Run
	ranks map[trace.RankKey]bool
}

// Add adds a rank and its records. It does not retain the records.
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

// Ranks returns the ranks passed to Add, in any order.
func (c *Collector) Ranks() []trace.RankKey { return slices.Collect(maps.Keys(c.ranks)) }

// Conclude returns the findings of a run with an outcome, call paths and a comparison of peers, which may be nil. It adds the
// slow peers that only calls show to the comparison. It may be called once.
func (c *Collector) Conclude(o *summary.Outcome, paths []provenance.PathStats, all *provenance.Peers) *Result {
	c.run.Unit, c.run.Begin, c.run.End = o.Unit, o.Totals.Begin, max(c.run.End, o.Totals.End)
	p := NewProfile(paths, c.Ranks(), o.Modes)
	c.run.Ranks = p.Ranks()
	result := Conclude(&c.run, blame.Find(&c.run), o.Changes, p, all)
	c.run = blame.Run{}
	if all != nil {
		peers.Add(all, result.Slow...)
	}
	return result
}
