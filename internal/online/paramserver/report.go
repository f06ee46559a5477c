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

// Report is the status of a server.
type Report struct {
	Shard     int
	Phase     protocol.Phase
	Expected  int // ranks
	Counts    Counts
	Models    int
	Warm      int // models with enough samples for the default settings
	Functions int // with ids; only of the first shard
	Version   uint64
	In, Out   int64   // bytes
	P50, P99  float64 // seconds per exchange
	Handled   uint64  // exchanges
	Mean      float64
	Snapshot  SnapshotReport
	Failed    error // of the last snapshot
	Nodes     []NodeReport
	Ranks     []RankReport
}

// NodeReport is the status of an analyzer.
type NodeReport struct {
	Name     string
	Since    time.Time
	Heard    time.Time
	Steps    int64 // merged
	Settings string
	Reviewed bool // it has sent its results
	Status   *protocol.Status
}

// RankReport is the status of a rank.
type RankReport struct {
	trace.RankKey
	Host      string
	Node      string
	Next      int // first unknown step
	Ended     bool
	Anomalies int64
}

// Report returns the status of the server.
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
		Counts: s.counts, Models: len(s.models), Version: s.version, Functions: len(s.names),
	}
	enough := uint64(outlier.Default().MinSamples)
	for _, e := range s.models {
		if e.model.Count() >= enough {
			r.Warm++
		}
	}
	steps := make(map[string]int64)
	status := make(map[trace.RankKey]summary.RankStatus)
	for _, st := range s.live.Ranks() {
		status[st.RankKey] = st
	}
	for _, k := range s.ranks {
		steps[k.node] += int64(k.next)
		r.Ranks = append(r.Ranks, RankReport{k.RankKey, k.host, k.node, int(k.next), k.ended, int64(status[k.RankKey].Anomalies)})
	}
	slices.SortFunc(r.Ranks, func(a, b RankReport) int { return a.Compare(b.RankKey) })
	for _, n := range s.nodes {
		r.Nodes = append(r.Nodes, NodeReport{n.Name, n.since, n.heard, steps[n.Name], n.Settings, s.outcomes[n.Name] != nil, n.Status})
	}
	slices.SortFunc(r.Nodes, func(a, b NodeReport) int { return cmp.Compare(a.Name, b.Name) })
	return r
}
