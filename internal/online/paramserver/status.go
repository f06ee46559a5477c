package paramserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// silentAfter is the time without messages after which an analyzer is silent.
const silentAfter = 10 * time.Second

var phases = map[protocol.Phase]api.State{
	protocol.Phase_PHASE_WAITING: api.Waiting, protocol.Phase_PHASE_RUNNING: api.Running,
	protocol.Phase_PHASE_REVIEWING: api.Reviewing, protocol.Phase_PHASE_FINISHED: api.Finished,
}

var nodeStates = map[protocol.Status_State]api.NodeState{
	protocol.Status_STATE_WAITING: api.NodeWaiting, protocol.Status_STATE_READING: api.NodeReading,
	protocol.Status_STATE_ENDED: api.NodeWaitingForReview, protocol.Status_STATE_REVIEWING: api.NodeReviewing,
	protocol.Status_STATE_DONE: api.NodeDone,
}

// Status returns the status of the server. The status of the first shard includes the run. rate
// returns the growth of a count per second.
func (s *Server) Status(now time.Time, rate func(name string, count int64) float64) *api.Status {
	st := s.state.status(now, rate)
	shard := &st.Shards[0]
	health := api.Health{Part: "parameter server, shard " + shard.Name, OK: true, Severity: api.SeverityInfo, Sentence: "responding"}
	s.mu.Lock()
	defer s.mu.Unlock()
	const micro = 1e-6
	shard.BytesIn, shard.BytesOut = s.in, s.out
	shard.Latency = api.Latency{
		Count: int64(s.handled.Total()), Mean: s.handled.Moments().Mean * micro,
		P50: s.handled.Quantile(0.5) * micro, P99: s.handled.Quantile(0.99) * micro,
	}
	shard.ExchangesPerSecond = rate("exchanges", shard.Latency.Count)
	if !s.snapAt.IsZero() {
		snap := s.snap
		snap.Age = now.Sub(s.snapAt).Seconds()
		shard.Snapshot = &snap
	}
	if s.failed != nil {
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "cannot store a snapshot, analyzers keep their data: " + s.failed.Error()
	}
	st.Health = slices.Insert(st.Health, 0, health)
	return st
}

// status returns the status without the part of the Server.
func (s *State) status(now time.Time, rate func(name string, count int64) float64) *api.Status {
	s.mu.Lock()
	shard := s.counts
	shard.Name, shard.Models, shard.Functions = fmt.Sprint(s.cfg.Shard), int64(len(s.models)), int64(len(s.names))
	shard.Version = int64(s.version)
	enough := uint64(outlier.Default().MinSamples)
	for _, e := range s.models {
		if e.model.Count() >= enough {
			shard.Warm++
		}
	}
	st := &api.Status{Shards: []api.Shard{shard}}
	if s.cfg.Shard != 0 {
		s.mu.Unlock()
		return st
	}
	st.Run.State = phases[s.phase]
	st.Totals.RanksExpected, st.Totals.Functions = int64(s.cfg.Ranks), shard.Functions
	st.Ranks = s.rankStatus()
	var reports []*protocol.Status
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		node := api.Node{Name: name, State: nodeStates[n.GetStatus().GetState()], Connected: n.since, LastHeard: n.lastContact}
		switch {
		case s.outcomes[name] != nil:
			node.State = api.NodeDone
		case now.Sub(n.lastContact) > silentAfter:
			node.State = api.NodeSilent
		}
		st.Nodes = append(st.Nodes, node)
		reports = append(reports, n.GetStatus())
	}
	s.mu.Unlock()
	addReports(st, reports, rate)
	return st
}

// rankStatus returns the status of all ranks that have registered.
func (s *State) rankStatus() []api.Rank {
	anomalies := make(map[trace.RankKey]uint64)
	for _, r := range s.live.Ranks() {
		anomalies[r.RankKey] = r.Anomalies
	}
	all := make([]api.Rank, 0, len(s.ranks))
	for _, key := range slices.SortedFunc(maps.Keys(s.ranks), trace.RankKey.Compare) {
		r := s.ranks[key]
		rank := api.Rank{
			Program: int64(r.Program), Rank: int64(r.Rank), Host: r.host, Node: r.node, Step: int64(r.next) - 1,
			Ended: r.ended, Anomalies: int64(anomalies[key]),
		}
		if n := s.nodes[r.node]; n != nil {
			rank.LastHeard = n.lastContact
		}
		all = append(all, rank)
	}
	return all
}

// addReports completes the nodes and ranks by the reports of the analyzers, and sums them up.
func addReports(st *api.Status, reports []*protocol.Status, rate func(name string, count int64) float64) {
	type rankID struct{ program, rank int64 }
	behind := make(map[rankID]float64)
	silent := 0
	t := &st.Totals
	for i, report := range reports {
		n, own := &st.Nodes[i], st.Nodes[i]
		_ = json.Unmarshal(report.GetNode(), n) // empty before the first exchange
		n.Name, n.State, n.Connected, n.LastHeard = own.Name, own.State, own.Connected, own.LastHeard
		n.EventsPerSecond, n.CallsPerSecond = rate("events "+n.Name, n.Events), rate("calls "+n.Name, n.Calls)
		if n.State == api.NodeSilent {
			silent++
		}
		t.Steps += n.StepsRead
		t.Events += n.Events
		t.Calls += n.Calls
		t.Anomalies += n.Anomalies
		t.BytesRead += n.BytesRead
		t.RecordsSent += n.RecordsSent
		var ranks []api.Rank
		_ = json.Unmarshal(report.GetRanks(), &ranks)
		for _, r := range ranks {
			behind[rankID{r.Program, r.Rank}] = r.Behind
		}
	}
	if silent > 0 {
		st.Health = append(st.Health, api.Health{
			Part: "analyzers", Severity: api.SeverityWarning,
			Sentence: fmt.Sprintf("%d of %d are silent; restart them with the same command, or end the run with chimbuko stop",
				silent, len(reports)),
		})
	}
	steps := make(map[string]int64)
	for i := range st.Ranks {
		r := &st.Ranks[i]
		r.Behind = behind[rankID{r.Program, r.Rank}]
		steps[r.Node] += r.Step + 1
		t.Ranks++
		if r.Ended {
			t.RanksEnded++
		}
	}
	for i := range st.Nodes {
		st.Nodes[i].StepsExchanged = steps[st.Nodes[i].Name]
	}
}

// Settings returns the settings of the analyzers, by name.
func (s *State) Settings() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		all = append(all, s.nodes[name].GetSettings())
	}
	return all
}
