package paramserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Report tells how a server fares.
type Report struct {
	Shard     int
	Phase     protocol.Phase
	Expected  int // ranks
	Counts    Counts
	Models    int
	Warm      int // models that suffice to judge by, with the usual settings
	Functions int // with numbers; only of the first shard
	Version   uint64
	In, Out   int64   // bytes
	P50, P99  float64 // seconds that an exchange takes
	Handled   uint64  // exchanges
	Mean      float64
	Snapshot  SnapshotReport
	Failed    error // of the last snapshot
	Nodes     []NodeReport
	Ranks     []RankReport
}

// NodeReport is an analyzer.
type NodeReport struct {
	Name     string
	Since    time.Time
	Heard    time.Time
	Steps    int64 // that the server knows
	Settings string
	Reviewed bool // what came of its ranks is known
	Status   *protocol.Status
}

// RankReport is a rank.
type RankReport struct {
	trace.RankKey
	Host      string
	Node      string
	Next      int // first step that is not known
	Ended     bool
	Anomalies int64
}

// Report tells how the server fares.
func (s *Server) Report() Report {
	r := s.state.report()
	s.mu.Lock()
	defer s.mu.Unlock()
	const micro = 1e-6
	r.In, r.Out, r.Handled = s.in, s.out, s.handled.Total()
	r.P50, r.P99, r.Mean = s.handled.Quantile(0.5)*micro, s.handled.Quantile(0.99)*micro, s.handled.Moments().Mean*micro
	r.Snapshot, r.Failed = s.snap, s.failed
	return r
}

func (s *State) report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{
		Shard: s.cfg.Shard, Phase: s.phase, Expected: s.cfg.Ranks,
		Counts: s.counts, Models: len(s.models), Version: s.version,
	}
	enough := uint64(outlier.Default().MinSamples)
	for _, e := range s.models {
		if e.model.Count() >= enough {
			r.Warm++
		}
	}
	if s.index != nil {
		r.Functions = s.index.Len()
	}
	steps := make(map[string]int64)
	found := make(map[trace.RankKey]summary.RankStatus)
	for _, st := range s.live.Ranks() {
		found[st.RankKey] = st
	}
	for _, k := range s.ranks {
		steps[k.node] += int64(k.next)
		r.Ranks = append(r.Ranks, RankReport{k.RankKey, k.host, k.node, int(k.next), k.ended, int64(found[k.RankKey].Anomalies)})
	}
	slices.SortFunc(r.Ranks, func(a, b RankReport) int { return a.Compare(b.RankKey) })
	for _, n := range s.nodes {
		r.Nodes = append(r.Nodes, NodeReport{n.name, n.since, n.heard, steps[n.name], n.settings, s.outcomes[n.name] != nil, n.status})
	}
	slices.SortFunc(r.Nodes, func(a, b NodeReport) int { return cmp.Compare(a.Name, b.Name) })
	return r
}
