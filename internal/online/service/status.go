package service

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// rateMeter turns growing counts into rates.
type rateMeter struct {
	mu   sync.Mutex
	last map[string]rateSample
}

type rateSample struct {
	at    time.Time
	count int64
	rate  float64
}

// meterInterval is the shortest time over which a rate is measured.
const meterInterval = 900 * time.Millisecond

// rate returns the growth of a count per second since the last measurement.
func (m *rateMeter) rate(name string, count int64, now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = make(map[string]rateSample)
	}
	old, ok := m.last[name]
	if since := now.Sub(old.at); ok && since < meterInterval {
		return old.rate
	} else if ok {
		old.rate = float64(count-old.count) / since.Seconds()
	}
	m.last[name] = rateSample{now, count, old.rate}
	return old.rate
}

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

// paramsStatus returns the status of the parameter server of this process.
func (s *server) paramsStatus(rates *rateMeter) *api.Status {
	rep, now := s.params.Report(), time.Now()
	name := fmt.Sprint(rep.Shard)
	shard := api.Shard{
		Name: name, Exchanges: rep.Counts.Exchanges, Repeated: rep.Counts.Repeated, Refused: rep.Counts.Refused,
		ExchangesPerSecond: rates.rate("exchanges", int64(rep.Handled), now), BytesIn: rep.In, BytesOut: rep.Out,
		Models: int64(rep.Models), Warm: int64(rep.Warm), Functions: int64(rep.Functions), Version: int64(rep.Version),
		Latency: api.Latency{Count: int64(rep.Handled), Mean: rep.Mean, P50: rep.P50, P99: rep.P99},
	}
	if !rep.Snapshot.At.IsZero() {
		shard.Snapshot = &api.Snapshot{
			Age: now.Sub(rep.Snapshot.At).Seconds(), Duration: rep.Snapshot.Took.Seconds(), Bytes: int64(rep.Snapshot.Bytes),
		}
	}
	st := &api.Status{Shards: []api.Shard{shard}}
	health := api.Health{Part: "parameter server, shard " + name, OK: true, Severity: api.SeverityInfo, Sentence: "responding"}
	if rep.Failed != nil {
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "cannot store a snapshot, analyzers keep their data: " + rep.Failed.Error()
	}
	st.Health = append(st.Health, health)
	if rep.Shard != 0 {
		return st
	}
	st.Run.State = phases[rep.Phase]
	st.Totals.RanksExpected, st.Totals.Functions = int64(rep.Expected), int64(rep.Functions)
	addNodes(st, rep.Nodes, now, rates)
	heard, behind := make(map[string]time.Time), make(map[trace.RankKey]float64)
	for i := range rep.Nodes {
		n := &rep.Nodes[i]
		heard[n.Name] = n.Heard
		var ranks []api.Rank
		_ = json.Unmarshal(n.Status.GetRanks(), &ranks) // none before the first exchange
		for _, r := range ranks {
			behind[trace.RankKey{Program: trace.Program(r.Program), Rank: trace.Rank(r.Rank)}] = r.Behind
		}
	}
	for _, r := range rep.Ranks {
		st.Ranks = append(st.Ranks, api.Rank{
			Program: int64(r.Program), Rank: int64(r.Rank), Host: r.Host, Node: r.Node, Step: int64(r.Next) - 1,
			Ended: r.Ended, Anomalies: r.Anomalies, LastHeard: heard[r.Node], Behind: behind[r.RankKey],
		})
		st.Totals.Ranks++
		if r.Ended {
			st.Totals.RanksEnded++
		}
	}
	s.addSender(st)
	return st
}

// addNodes adds the status of analyzers.
func addNodes(st *api.Status, nodes []paramserver.NodeReport, now time.Time, rates *rateMeter) {
	silent := 0
	for i := range nodes {
		n := nodeStatus(&nodes[i], now, rates)
		st.Nodes = append(st.Nodes, n)
		if n.State == api.NodeSilent {
			silent++
		}
		t := &st.Totals
		t.Steps += n.StepsRead
		t.Events += n.Events
		t.Calls += n.Calls
		t.Anomalies += n.Anomalies
		t.BytesRead += n.BytesRead
		t.RecordsSent += n.RecordsSent
	}
	if silent > 0 {
		st.Health = append(st.Health, api.Health{
			Part: "analyzers", Severity: api.SeverityWarning,
			Sentence: fmt.Sprintf("%d of %d are silent; restart them with the same command, or end the run with chimbuko stop", silent, len(nodes)),
		})
	}
}

// nodeStatus returns the status of an analyzer: its own report, completed by the server.
func nodeStatus(n *paramserver.NodeReport, now time.Time, rates *rateMeter) (node api.Node) {
	_ = json.Unmarshal(n.Status.GetNode(), &node) // none before the first exchange
	node.Name, node.Connected, node.LastHeard, node.StepsExchanged = n.Name, n.Since, n.Heard, n.Steps
	node.EventsPerSecond = rates.rate("events "+n.Name, node.Events, now)
	node.CallsPerSecond = rates.rate("calls "+n.Name, node.Calls, now)
	node.State = nodeStates[n.Status.GetState()]
	switch {
	case n.Reviewed:
		node.State = api.NodeDone
	case now.Sub(n.Heard) > silentAfter:
		node.State = api.NodeSilent
	}
	return node
}

// addSender adds the status of the delivery of statistics.
func (s *server) addSender(st *api.Status) {
	if s.sender == nil {
		return
	}
	stats := s.sender.Stats()
	p := stats.Receiver
	if s.cfg.StatsURL == "" {
		p = stats.Files
	}
	st.Sender = &api.Sender{
		Sent: int64(p.Sent), Pending: int64(p.Pending), Retries: int64(p.Retries), LastStatus: p.Status, LastError: p.Error, LastSent: p.LastSent,
	}
	if p.Error != "" {
		st.Health = append(st.Health, api.Health{
			Part: "statistics", Severity: api.SeverityWarning,
			Sentence: fmt.Sprintf("%d packets wait for their receiver, retrying: %s", p.Pending, p.Error),
		})
	}
}

// storeStatus returns the status of the store of this process.
func (s *server) storeStatus(ctx context.Context, rates *rateMeter) *api.Status {
	stats, now := s.storer.Stats(), time.Now()
	store := &api.StoreStatus{Kind: "DuckDB", Records: stats.Records, RecordsPerSecond: rates.rate("records", stats.Records, now)}
	if s.cfg.Store.Store != "" {
		store.Kind = "PostgreSQL"
	}
	if messages, size, err := s.stream.Pending(ctx); err == nil {
		store.PendingMessages, store.PendingBytes = int64(messages), int64(size)
		if messages > 0 && !stats.Newest.IsZero() {
			store.Lag = now.Sub(stats.Newest).Seconds()
		}
	}
	health := api.Health{Part: "store", OK: true, Severity: api.SeverityInfo, Sentence: "storing records"}
	if stats.Err != nil {
		store.LastError, store.LastErrorAt = stats.Err.Error(), stats.ErrAt
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "records wait in the stream, retrying: " + stats.Err.Error()
	}
	return &api.Status{Store: store, Health: []api.Health{health}}
}
