package paramserver

import (
	"bytes"
	"context"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

func TestRepeatedExchangeCountsOnce(t *testing.T) {
	s := newState(t, Config{})
	id := numbersOf(s, "solve")[0]
	mustRegister(t, s, "a", 1, 0)
	first := &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 1, Steps: steps(0, 0, 1), Delta: modelOf(id, 10, 11)}
	second := &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 2, Steps: steps(0, 1, 2), Delta: modelOf(id, 12)}
	for i, req := range []*protocol.ExchangeRequest{second, first, first, second, second, first} {
		want := []uint64{0, 1, 1, 2, 2, 2}[i]
		if got := exchangeOne(t, s, req).GetLast(); got != want {
			t.Errorf("message %d: the server has exchange %d, want %d", i, got, want)
		}
	}
	wantCount(t, s, id, 3)
	if s.counts.Exchanges != 2 || s.counts.Repeated != 3 || s.ranks[trace.RankKey{}].next != 2 {
		t.Errorf("counts are %+v, want 2 exchanges of 2 steps and 3 repeated", s.counts)
	}
}

func TestLateExchangeOfEarlierSessionIsRefused(t *testing.T) {
	s := newState(t, Config{})
	id := numbersOf(s, "solve")[0]
	mustRegister(t, s, "a", 1, 0)
	exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 1, Steps: steps(0, 0, 3), Delta: modelOf(id, 10)})
	if next := mustRegister(t, s, "a", 2, 0).GetNext()[0]; next != 3 {
		t.Errorf("the next session continues with step %d, want 3", next)
	}
	before := contentOf(t, s)
	late := exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 2, Steps: steps(0, 3, 4), Delta: modelOf(id, 11)})
	wantText(t, late.GetRefused(), `another analyzer named "a" was started later`)
	if reply, err := register(s, "a", 1, 0); err != nil || reply.GetNewer() != 2 || len(reply.GetNext()) > 0 {
		t.Errorf("the earlier session was registered again: %v, %v", reply, err)
	}
	if contentOf(t, s) != before {
		t.Error("what was refused changed the state")
	}
	reply := exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 2), Number: 1, Steps: steps(0, 3, 4), Delta: modelOf(id, 11)})
	if reply.GetRefused() != "" || reply.GetLast() != 1 {
		t.Errorf("the new session got %v", reply)
	}
	wantCount(t, s, id, 2)
}

func TestUnknownSessionMustRegister(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	for _, number := range []uint64{0, 1} {
		reply := exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 2), Number: number})
		if !reply.GetUnknown() || reply.GetLast() != 0 {
			t.Errorf("exchange %d of an unknown session: got %v", number, reply)
		}
	}
}

func TestFirstOfTwoAnalyzersOfARankGivesUp(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 4}
	traces := oneTrace(key, 6)
	a, b := newAnalyzer(t, w, "a", 1, traces), newAnalyzer(t, w, "b", 1, traces)
	a.readOne(key)
	a.mustTalk()
	a.readOne(key)
	b.readOne(key)
	b.mustTalk()
	wantError(t, a.talk(), `rank 4 of program 0 is also read by analyzer "b"`)
	wantError(t, a.client.Finish(t.Context()), "also read by")
	b.readAll()
	b.mustTalk()
	o := newOracle(traces, func(trace.FuncKey) int { return 0 })
	for name, want := range o.models {
		got := unionOfModels(w)[name]
		wantSameModel(t, "the server", &got, want)
	}
	wantSameLive(t, w.state(0), o)
}

func TestCountersOfEndedRankCountOnce(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 1}
	end := endContribution(key, 1)
	end.Counters = append(end.Counters, &summary.Counter{FuncKey: trace.FuncKey{Name: "bytes"}, Values: *sumsOf(5)})
	a := newAnalyzer(t, w, "a", 1, map[trace.RankKey][]*deltas.Contribution{key: {learned(key, 0, "solve", 3), end}})
	for range 3 {
		a.readAll()
		a.mustTalk()
		a.mustTalk()
		a.start()
	}
	if got := w.state(0).live.Counters()[0].Values.Count(); got != 1 {
		t.Errorf("the counter has %d values, want 1", got)
	}
}

// addingRequester adds a step during a request to a shard.
type addingRequester struct {
	paramclient.Requester
	subject string
	add     func()
}

func (m *addingRequester) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, err := m.Requester.Request(ctx, subject, data)
	if subject == m.subject && m.add != nil {
		add := m.add
		m.add = nil
		add()
	}
	return reply, err
}

func TestStepsAddedDuringRegistrationKeepOrder(t *testing.T) {
	for shard := range 2 {
		for _, what := range []string{"register", "exchange"} {
			w := newWorld(t, Config{Shards: 2})
			key := trace.RankKey{Program: 0, Rank: 1}
			slow := &addingRequester{Requester: w, subject: paramwire.Subject("run", shard, what)}
			traces := oneTrace(key, 3)
			a := newAnalyzer(t, slow, "a", 2, traces)
			slow.add = func() { a.readOne(key) }
			a.readOne(key)
			a.mustTalk()
			settle(w, a)
			a.wantModels(newOracle(traces, func(trace.FuncKey) int { return 0 }).models)
		}
	}
}

func TestUnavailableShardKeepsStepsInOrder(t *testing.T) {
	w := newWorld(t, Config{Shards: 2})
	w.kill(1)
	key := trace.RankKey{Program: 0, Rank: 1}
	traces := oneTrace(key, 4)
	a := newAnalyzer(t, w, "a", 2, traces)
	for range 3 {
		a.readOne(key)
		if err := a.talk(); err == nil {
			t.Fatal("Sync with an unavailable shard succeeds")
		}
	}
	w.start(1)
	settle(w, a)
	o := newOracle(traces, func(trace.FuncKey) int { return 0 })
	a.wantModels(o.models)
	wantSameLive(t, w.state(0), o)
}

func TestInvalidExchangesChangeNothing(t *testing.T) {
	s := newState(t, Config{})
	id := numbersOf(s, "solve")[0]
	mustRegister(t, s, "a", 1, 0, 1)
	mustRegister(t, s, "b", 1, 2)
	before := contentOf(t, s)
	f := func(req *protocol.ExchangeRequest, why string) {
		t.Helper()
		req.Sender, req.Number = sender("a", 1), 1
		req.Status = &protocol.Status{State: protocol.Status_STATE_ENDED}
		wantText(t, exchangeOne(t, s, req).GetRefused(), why)
		if contentOf(t, s) != before {
			t.Errorf("%s: the state has changed", why)
		}
	}
	f(&protocol.ExchangeRequest{Steps: steps(7, 0, 1)}, "rank 7 of program 0 was not claimed")
	f(&protocol.ExchangeRequest{Steps: steps(2, 0, 1)}, `rank 2 of program 0 is also read by analyzer "b"`)
	f(&protocol.ExchangeRequest{Steps: steps(0, 1, 2)}, "steps 1 to 2 do not continue at step 0")
	f(&protocol.ExchangeRequest{Steps: append(steps(0, 0, 5), steps(0, 0, 2)...)}, "do not continue")
	f(&protocol.ExchangeRequest{Delta: modelOf(id+1, 3)}, "no function has the id 1")
	refused := func(d summary.Delta, why string) {
		t.Helper()
		f(&protocol.ExchangeRequest{Delta: encoded(d)}, why)
	}
	damaged := modelOf(id, 3)
	f(&protocol.ExchangeRequest{Delta: damaged[:5]}, "malformed model")
	refused(summary.Delta{Functions: []summary.FunctionStats{{ID: 9}}}, "no function has the id 9")
	refused(summary.Delta{Paths: pathsOf(9, callpath.Entry{Parent: -1, Func: 9})}, "no function has the id 9")
	refused(summary.Delta{Paths: pathsOf(9, callpath.Entry{Parent: 5})}, "malformed call paths")
	load := workload.New()
	load.Work(workload.Work{Function: 9})
	refused(summary.Delta{Load: load}, "no function has the id 9")
	load = workload.New()
	load.AddWait(load.Lane(workload.LaneKey{}), 1, 2, 1, false)
	refused(summary.Delta{Load: load}, "rank 0 of program 0 has load but no steps")
	f(&protocol.ExchangeRequest{Steps: []*protocol.Steps{{To: 1, Loaded: 2}}}, "the load up to step 2 does not continue at step 0")
	load.AddWait(load.Lane(workload.LaneKey{}), 1, 2, 1<<50, false)
	refused(summary.Delta{Load: load}, "malformed load")
	profile := encoded(summary.Delta{Functions: []summary.FunctionStats{{ID: int(id), Exclusive: *sumsOf(0)}}})
	f(&protocol.ExchangeRequest{Delta: append(profile, 9)}, "trailing bytes")
	huge := bytes.Replace(profile, sumsOf(0).AppendBinary(nil), append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		sumsOf(0).AppendBinary(nil)[1:]...), 1)
	f(&protocol.ExchangeRequest{Delta: huge}, "malformed sums")
	refused(summary.Delta{Steps: []summary.StepReport{{Scores: stats.RunStats{N: -1}}}}, "malformed moments")
	if _, err := s.Exchange([]byte{0xff}, start); err == nil {
		t.Error("what is no message is accepted")
	}
}
