package ranks

import (
	"fmt"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// row returns the row of a group of units of one program.
func (t *table) row(group []unit) api.RankRow {
	r := api.RankRow{
		Program: int64(group[0].Program), FirstRank: math.MaxInt64, Host: group[0].host, Ratios: make([]*float64, len(t.answer.Windows)),
	}
	var lost int64
	ranks := make([]trace.Rank, 0, len(group))
	roles := make(map[int]bool)
	for i := range group {
		u := &group[i]
		if len(ranks) == 0 || ranks[len(ranks)-1] != u.Rank {
			ranks = append(ranks, u.Rank)
			lost += int64(t.Lost[u.RankKey])
		}
		r.FirstRank, r.LastRank = min(r.FirstRank, int64(u.Rank)), max(r.LastRank, int64(u.Rank))
		if u.host != r.Host {
			r.Host = ""
		}
		if u.load == nil {
			r.Missing++
			continue
		}
		roles[u.load.Role] = true
		t.add(&r, u.load)
	}
	if len(roles) == 1 {
		for role := range roles {
			r.Role = role
		}
	}
	if r.Ranks = int64(len(ranks)); t.By != ByThread && t.By != ByDevice {
		r.Lost = &lost
	} else if tid := group[0].tid(); len(group) == 1 && tid != provenance.AllThreads {
		r.Thread = &tid
	}
	t.addSlow(&r, group)
	r.Place = t.place(&r, ranks, group[0].host)
	return r
}

// add adds the times of a unit, and its ratios if they are the worst.
func (t *table) add(r *api.RankRow, l *provenance.RankLoad) {
	r.Useful += int64(l.Useful)
	r.Wait += int64(l.Wait)
	if l.Ratio != nil && (r.Ratio == nil || *l.Ratio > *r.Ratio) {
		r.Ratio, r.Peers = rounded(l.Ratio), int64(l.Peers)
	}
	if r.Ratio == nil {
		r.Peers = max(r.Peers, int64(l.Peers))
	}
	if l.Saved > trace.Micros(r.Saved) || l.Pattern != "" && r.Pattern == "" {
		r.Pattern, r.From, r.To, r.Saved, r.Share = string(l.Pattern), l.From, l.To, int64(l.Saved), l.Share
	}
	for i := range l.Windows {
		to := &r.Ratios[t.columns[micros(l.Windows[i].From)]]
		if ratio := rounded(l.Windows[i].Ratio); *to == nil || *ratio > **to {
			*to = ratio
		}
	}
}

// noRatio is the ratio of data that cannot be compared.
var noRatio = new(float64)

// rounded returns a ratio with two digits, which is enough for colors and keeps answers small.
func rounded(ratio *float64) *float64 {
	if ratio == nil {
		return noRatio
	}
	v := max(0.01, math.Round(*ratio*100)/100)
	return &v
}

// addSlow adds the costliest slow peer that covers one of the units.
func (t *table) addSlow(r *api.RankRow, group []unit) {
	best := -1
	for i := range group {
		u := &group[i]
		key := thread{u.RankKey, u.tid(), t.By == ByDevice}
		at, ok := t.slow[key]
		if !ok && t.By == ByDevice { // found for all GPUs of the rank
			key.tid = provenance.AllThreads
			at, ok = t.slow[key]
		}
		if ok && (best < 0 || at < best) {
			best = at
		}
	}
	if best < 0 {
		return
	}
	s := &t.Peers.Slow[best]
	r.Pattern, r.From, r.To = string(s.Pattern), &s.From, s.To
	if len(group) > 1 || r.Saved == 0 && len(s.Ranks) == 1 {
		r.Saved, r.Share = int64(s.Saved), s.Share
	}
	r.Finding, r.FindingKey = t.Finding(s)
}

// place names a row.
func (t *table) place(r *api.RankRow, ranks []trace.Rank, host string) string {
	slices.Sort(ranks)
	words := "ranks " + text.Ranges(slices.Compact(ranks))
	if len(ranks) == 1 {
		words = fmt.Sprintf("rank %d", ranks[0])
	}
	switch {
	case t.By == ByHost && host == "":
		words = "unknown host"
	case t.By == ByHost && r.Host != "":
		words = text.OneLine(host)
	case t.By == ByRole && r.Role > 0:
		words = fmt.Sprintf("role %d", r.Role)
	case t.By == ByRole:
		words = "no data"
	case r.Thread != nil && t.By == ByDevice:
		words += fmt.Sprintf(", GPU thread %d", *r.Thread)
	case r.Thread != nil:
		words += fmt.Sprintf(", thread %d", *r.Thread)
	}
	if t.programs {
		return fmt.Sprintf("program %d, %s", r.Program, words)
	}
	return words
}
