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

// Evidence returns the evidence that a place is slower than its peers. s is one of the slow peers of p.
func Evidence(p *provenance.Peers, s *provenance.SlowPeer, links Links) *api.SlowEvidence {
	e := &api.SlowEvidence{
		Slow: slowPlace(p.Unit, s, links), Measure: "Time divided by that of peers at equal work", Windows: []api.RatioWindow{},
		LostOwn: p.Unit.Micros(s.LostOwn), LostCaused: p.Unit.Micros(s.LostCaused),
		SyncShare: s.SyncShare, PeerSync: s.PeerSync, Confidence: s.Confidence, Strength: strength(s), WrongIf: WrongIf(s),
	}
	var here, others []*provenance.RankLoad // others: ranks outside of the place
	for i := range p.Loads {
		l := &p.Loads[i]
		if includes(s, l) {
			here = append(here, l)
		} else if l.PID == s.PID && l.TID == provenance.AllThreads && !l.Device {
			others = append(others, l)
		}
	}
	e.Here = side(p.Unit, s, here)
	e.Here.Place = s.Place()
	if s.Pattern == provenance.ByRole { // at equal work its ratio is 1
		e.Measure = "Useful time divided by that of other ranks"
		e.Windows = usefulRatios(s, here, others)
		if len(others) > 0 {
			t := side(p.Unit, s, others)
			t.Place = text.Count(len(others), "other rank")
			e.Twin = &t
		}
		return e
	}
	if s.Extra() {
		e.Measure = "Time divided by that without extra work"
	}
	for i := range s.Windows {
		w := &s.Windows[i]
		e.Windows = append(e.Windows, api.RatioWindow{From: w.From, To: w.To, Ratio: w.Ratio, Slow: isSlowIn(s, w)})
	}
	if twin := twinOf(p, s); twin != nil {
		e.Twin = new(side(p.Unit, s, []*provenance.RankLoad{twin}))
	}
	return e
}

// usefulRatios returns the mean useful time of some ranks divided by that of others, by window.
func usefulRatios(s *provenance.SlowPeer, here, others []*provenance.RankLoad) []api.RatioWindow {
	type mean struct{ sum, n float64 }
	means := func(loads []*provenance.RankLoad) map[int64]mean {
		all := make(map[int64]mean)
		for _, l := range loads {
			for i := range l.Windows {
				m := all[micros(l.Windows[i].From)]
				all[micros(l.Windows[i].From)] = mean{m.sum + float64(l.Windows[i].Useful), m.n + 1}
			}
		}
		return all
	}
	of, than := means(here), means(others)
	windows := []api.RatioWindow{}
	for i := range s.Windows {
		w := api.RatioWindow{From: s.Windows[i].From, To: s.Windows[i].To, Slow: isSlowIn(s, &s.Windows[i])}
		a, b := of[micros(w.From)], than[micros(w.From)]
		if a.n > 0 && b.sum > 0 {
			w.Ratio = new(a.sum / a.n / (b.sum / b.n))
		}
		windows = append(windows, w)
	}
	return windows
}

// isSlowIn reports whether at least half of a window is within the time for which a place is slow.
func isSlowIn(s *provenance.SlowPeer, w *provenance.LoadWindow) bool {
	to := w.To
	if s.To != nil {
		to = min(to, *s.To)
	}
	return 2*(to-max(w.From, s.From)) >= w.To-w.From
}

// includes reports whether a load is one of those of a slow peer.
func includes(s *provenance.SlowPeer, l *provenance.RankLoad) bool {
	anyStream := s.Device && s.TID == provenance.AllThreads
	return l.PID == s.PID && l.Device == s.Device && (l.TID == s.TID || anyStream) && slices.Contains(s.Ranks, l.RID)
}

// twinOf returns the load of the typical peer of a slow one, or nil: of the threads of its rank the one with a ratio
// nearest to 1.
func twinOf(p *provenance.Peers, s *provenance.SlowPeer) (twin *provenance.RankLoad) {
	if s.Twin == nil {
		return nil
	}
	entireRank := s.TID == provenance.AllThreads && !s.Device
	distance := func(l *provenance.RankLoad) float64 { return math.Abs(math.Log(*l.Ratio)) }
	for i := range p.Loads {
		l := &p.Loads[i]
		if l.PID != s.PID || l.RID != *s.Twin || l.Device != s.Device || entireRank != (l.TID == provenance.AllThreads) ||
			l.Ratio == nil || *l.Ratio <= 0 || includes(s, l) {
			continue
		}
		if twin == nil || distance(l) < distance(twin) {
			twin = l
		}
	}
	return twin
}

// side returns the mean of loads while a place was slow.
func side(unit trace.Unit, s *provenance.SlowPeer, loads []*provenance.RankLoad) api.Side {
	var a api.Side
	if len(loads) == 0 {
		return a
	}
	var useful, wait trace.Ticks
	a.Place, a.Host = unitName(loads[0]), loads[0].Host
	for _, l := range loads {
		if l.Host != a.Host {
			a.Host = ""
		}
		for i := range l.Windows {
			w := &l.Windows[i]
			if isSlowIn(s, w) {
				useful, wait = useful+w.Useful, wait+w.Wait
			}
		}
	}
	n := trace.Ticks(len(loads))
	a.Useful, a.Wait = unit.Micros(useful/n), unit.Micros(wait/n)
	return a
}

// unitName names a rank, thread or GPU.
func unitName(l *provenance.RankLoad) string {
	switch {
	case l.Device:
		return fmt.Sprintf("GPU thread %d of rank %d", l.TID, l.RID)
	case l.TID != provenance.AllThreads:
		return fmt.Sprintf("thread %d of rank %d", l.TID, l.RID)
	}
	return fmt.Sprintf("rank %d", l.RID)
}

// strength describes how strong the evidence of a slow peer is. Its time at equal work and how long it waits in
// collective calls are independent signals.
func strength(s *provenance.SlowPeer) string {
	sync := fmt.Sprintf("it spends %s of the time in collective calls, and they %s", text.Percent(100*s.SyncShare),
		text.Percent(100*s.PeerSync))
	peers := text.Count(s.Peers, "peer")
	switch {
	case s.Pattern == provenance.ByRole:
		return "roles have different work, so this shows how the work is divided, not that a rank is slow"
	case s.Pattern == provenance.Roaming:
		return "each of these ranks was slow for a while only, so none of them is to blame"
	case s.Extra() && s.Weak:
		return fmt.Sprintf("weak: %s, too few to know by how much the calls of healthy ones differ; before, it made as many calls as they", peers)
	case s.Extra():
		return fmt.Sprintf("good: more calls than each of %s, and before it made as many as they", peers)
	case s.Weak:
		return fmt.Sprintf("weak: %s, too few to know by how much healthy ones differ; it is also slower than its own past, or by far slower "+
			"than they are", peers)
	case s.PeerSync <= 0:
		return fmt.Sprintf("good: slower than %s at equal work; there are no waits in collective calls that could confirm it", peers)
	case s.SyncShare < s.PeerSync:
		return fmt.Sprintf("strong: slower than %s at equal work, and they wait for it: %s", peers, sync)
	}
	return fmt.Sprintf("fair: slower than %s at equal work, but they do not wait for it: %s", peers, sync)
}

// WrongIf returns in which case the finding about a slow peer is wrong.
func WrongIf(s *provenance.SlowPeer) string {
	switch {
	case s.Pattern == provenance.ByRole:
		return "these ranks are meant to have more work, such as a master among workers"
	case s.Pattern == provenance.Roaming:
		return "the work moves from rank to rank, in a way that the trace does not show"
	case s.Extra():
		return "it is meant to do more than its peers from that time on, such as writing output for all"
	case s.Weak:
		return "its work changed at that time, or its few peers became faster"
	}
	return "it has more work in the same calls than its peers, such as a larger part of the data, which the trace does not show"
}
