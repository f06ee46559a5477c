package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// rateMeter turns counts that grow into rates.
type rateMeter struct {
	mu   sync.Mutex
	last map[string]rateSample
}

type rateSample struct {
	at    time.Time
	count int64
	rate  float64
}

// meterInterval is over how long rates are taken, at least.
const meterInterval = 900 * time.Millisecond

// rate is how fast a count grew since it was last looked at.
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

// silentAfter is how long an analyzer may say nothing before it is called silent.
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
	health := api.Health{Part: "parameter server, shard " + name, OK: true, Severity: api.SeverityInfo, Sentence: "it answers"}
	if rep.Failed != nil {
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "what was learned cannot be stored, analyzers keep it: " + rep.Failed.Error()
	}
	st.Health = append(st.Health, health)
	if rep.Shard != 0 {
		return st
	}
	st.Run.State = phases[rep.Phase]
	st.Totals.RanksExpected, st.Totals.Functions = int64(rep.Expected), int64(rep.Functions)
	byRank := make(map[[2]uint32]*protocol.RankStatus)
	heard := make(map[string]time.Time)
	for i := range rep.Nodes {
		n := &rep.Nodes[i]
		heard[n.Name] = n.Heard
		st.Nodes = append(st.Nodes, nodeStatus(n, now, rates))
		addNode(st, n.Status)
		for _, r := range n.Status.GetRanks() {
			byRank[[2]uint32{r.GetProgram(), r.GetRank()}] = r
		}
	}
	silent := 0
	for i := range st.Nodes {
		if st.Nodes[i].State == api.NodeSilent {
			silent++
		}
	}
	if silent > 0 {
		st.Health = append(st.Health, api.Health{
			Part: "analyzers", Severity: api.SeverityWarning,
			Sentence: fmt.Sprintf("%d of %d say nothing; start them again with the same command, or end the run with chimbuko stop",
				silent, len(st.Nodes)),
		})
	}
	for _, r := range rep.Ranks {
		rank := api.Rank{
			Program: int64(r.Program), Rank: int64(r.Rank), Host: r.Host, Node: r.Node, Step: int64(r.Next) - 1,
			Ended: r.Ended, Anomalies: r.Anomalies, LastHeard: heard[r.Node],
		}
		if p := byRank[[2]uint32{uint32(r.Program), uint32(r.Rank)}]; p != nil {
			rank.Behind = p.GetBehindSeconds()
		}
		st.Totals.Ranks++
		if r.Ended {
			st.Totals.RanksEnded++
		}
		st.Ranks = append(st.Ranks, rank)
	}
	s.addSender(st)
	return st
}

// nodeStatus returns the status of an analyzer.
func nodeStatus(n *paramserver.NodeReport, now time.Time, rates *rateMeter) api.Node {
	p := n.Status
	node := api.Node{
		Name: n.Name, Host: p.GetHost(), PID: p.GetPid(), State: nodeStates[p.GetState()], Connected: n.Since, LastHeard: n.Heard,
		Ranks: int64(len(p.GetRanks())), StepsRead: p.GetSteps(), StepsExchanged: n.Steps, Behind: p.GetBehindSeconds(),
		Events: p.GetEvents(), EventsPerSecond: rates.rate("events "+n.Name, p.GetEvents(), now),
		Calls: p.GetCalls(), CallsPerSecond: rates.rate("calls "+n.Name, p.GetCalls(), now),
		Anomalies: p.GetFlagged(), BytesRead: p.GetBytes(), RecordsSent: p.GetRecords(),
		OutboxMessages: p.GetOutboxMessages(), OutboxBytes: p.GetOutboxBytes(), Drops: p.GetDeferred(),
		Exchange: api.Latency{
			Count: p.GetExchanges(), Last: p.GetExchangeSeconds(), Mean: p.GetExchangeMeanSeconds(), Max: p.GetExchangeMaxSeconds(),
		},
		ExchangeSent: p.GetExchangeSent(), ExchangeGot: p.GetExchangeReceived(),
		OpenCalls: p.GetOpenCalls(), RSS: p.GetRss(), CPU: p.GetCpuSeconds(),
	}
	if p.GetEvents() > 0 {
		node.EventKinds = map[string]int64{"function": p.GetFunctionEvents(), "message": p.GetMessageEvents(), "counter": p.GetCounterEvents()}
	}
	for _, stage := range p.GetStages() {
		node.Stages = append(node.Stages, api.Stage{Name: stage.GetName(), Runs: stage.GetRuns(), Seconds: stage.GetSeconds()})
	}
	switch {
	case n.Reviewed:
		node.State = api.NodeDone
	case now.Sub(n.Heard) > silentAfter:
		node.State = api.NodeSilent
	}
	for _, c := range p.GetTally() {
		if k := tally.Kind(c.GetKind()); k < tally.NumKinds {
			t := api.Tally{Name: k.Name(), Severity: k.Severity().String(), Count: c.GetCount(), Sentence: k.Sentence()}
			node.Tallies = append(node.Tallies, t)
		}
	}
	return node
}

func addNode(st *api.Status, p *protocol.Status) {
	t := &st.Totals
	t.Steps += p.GetSteps()
	t.Events += p.GetEvents()
	t.Calls += p.GetCalls()
	t.Anomalies += p.GetFlagged()
	t.BytesRead += p.GetBytes()
	t.RecordsSent += p.GetRecords()
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
			Sentence: fmt.Sprintf("%d packets wait for their receiver, which is tried again: %s", p.Pending, p.Error),
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
	health := api.Health{Part: "store", OK: true, Severity: api.SeverityInfo, Sentence: "it stores"}
	if stats.Err != nil {
		store.LastError, store.LastErrorAt = stats.Err.Error(), stats.ErrAt
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "records wait in the stream and are tried again: " + stats.Err.Error()
	}
	return &api.Status{Store: store, Health: []api.Health{health}}
}
