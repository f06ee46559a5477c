package paramserver

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// sendEnd sends the end of an analyzer's rank, or only its status.
func sendEnd(tb testing.TB, s *State, node string, session, number uint64, rank uint32, state protocol.Status_State,
	now time.Time,
) *protocol.ExchangeReply {
	tb.Helper()
	req := &protocol.ExchangeRequest{Sender: sender(node, session), Number: number, Status: &protocol.Status{State: state}}
	if number > 0 {
		req.Steps = []*protocol.Steps{{Rank: rank, From: 0, To: 1, Ended: true}}
	}
	return exchangeAt(tb, s, req, now)
}

const (
	notBegun  = protocol.Phase_PHASE_WAITING
	running   = protocol.Phase_PHASE_RUNNING
	reviewing = protocol.Phase_PHASE_REVIEWING
	reading   = protocol.Status_STATE_READING
	hasEnded  = protocol.Status_STATE_ENDED
)

func wantPhase(tb testing.TB, s *State, now time.Time, want protocol.Phase) {
	tb.Helper()
	if got := s.Tick(now); got != want {
		tb.Errorf("%v after the start: the phase is %v, want %v", now.Sub(start), got, want)
	}
}

func TestReviewBeginsWhenAllAnalyzersAndExpectedRanksHaveEnded(t *testing.T) {
	s := newState(t, Config{Ranks: 2})
	wantPhase(t, s, start, notBegun)
	mustRegister(t, s, "a", 1, 0)
	wantPhase(t, s, start, running)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	wantPhase(t, s, start.Add(time.Hour), running) // one rank is missing
	mustRegister(t, s, "b", 1, 1)
	wantPhase(t, s, start, running)
	sendEnd(t, s, "b", 1, 1, 1, reading, start)
	wantPhase(t, s, start, running) // its rank has ended, but its analyzer has not
	sendEnd(t, s, "b", 1, 0, 1, hasEnded, start)
	wantPhase(t, s, start, reviewing)
}

func TestRunLingersWithoutExpectedRanks(t *testing.T) {
	s := newState(t, Config{Linger: 10 * time.Second})
	mustRegister(t, s, "a", 1, 0)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	wantPhase(t, s, start.Add(9*time.Second), running)
	again := newState(t, Config{Linger: 10 * time.Second}) // started again just then
	if err := again.restore(s.snapshot().message); err != nil {
		t.Fatal(err)
	}
	wantPhase(t, again, start.Add(20*time.Second), running)
	wantPhase(t, again, start.Add(30*time.Second), reviewing)
	wantPhase(t, s, start.Add(10*time.Second), reviewing)
}

func TestKilledAnalyzerKeepsRunOpenUntilRestartedAndEnded(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	mustRegister(t, s, "b", 1, 1)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	sendEnd(t, s, "b", 1, 1, 1, reading, start)
	wantPhase(t, s, start.Add(24*time.Hour), running)
	mustRegister(t, s, "a", 2, 0) // even the one that had ended
	sendEnd(t, s, "b", 1, 0, 1, hasEnded, start)
	wantPhase(t, s, start.Add(24*time.Hour), running)
	sendEnd(t, s, "a", 2, 0, 0, hasEnded, start)
	wantPhase(t, s, start.Add(24*time.Hour), reviewing)
}

func TestReviewIsAnnouncedWhenDurable(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	wantPhase(t, s, start, reviewing)
	if got := sendEnd(t, s, "a", 1, 0, 0, hasEnded, start).GetPhase(); got != running {
		t.Errorf("before the snapshot analyzers receive %v, want %v", got, running)
	}
	if _, err := s.saveWith(func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := sendEnd(t, s, "a", 1, 0, 0, hasEnded, start).GetPhase(); got != reviewing {
		t.Errorf("after the snapshot analyzers receive %v, want %v", got, reviewing)
	}
}

func TestRequestsAfterTheEndAreRefused(t *testing.T) {
	s := newState(t, Config{})
	id := numbersOf(s, "solve")[0]
	mustRegister(t, s, "a", 1, 0)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	wantPhase(t, s, start, reviewing)
	before := contentOf(t, s)
	_, err := register(s, "b", 1, 5)
	wantError(t, err, "rank 5 of program 0 comes too late", "--ranks")
	_, err = register(s, "b", 1, 0)
	wantError(t, err, `rank 0 of program 0 was read by analyzer "a"`)
	late := exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 2, Steps: steps(0, 1, 2), Delta: modelOf(id, 4)})
	wantText(t, late.GetRefused(), "step 1 comes too late")
	late = exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 2, Delta: modelOf(id, 4)})
	wantText(t, late.GetRefused(), "its models are final")
	if contentOf(t, s) != before {
		t.Error("what came too late changed the state")
	}
	mustRegister(t, s, "a", 2, 0) // it reads its traces again, for the review
	again := &protocol.ExchangeRequest{Sender: sender("a", 2), Number: 1, Steps: []*protocol.Steps{{From: 1, To: 1, Ended: true}}}
	if reply := exchangeOne(t, s, again); reply.GetRefused() != "" || reply.GetLast() != 1 {
		t.Errorf("an analyzer that was started again got %v", reply)
	}
}

func TestRankThatJoinsTooLateEndsItsAnalyzer(t *testing.T) {
	w := newWorld(t, Config{})
	a := newAnalyzer(t, w, "a", 1, oneTrace(trace.RankKey{Program: 0, Rank: 0}, 2))
	settle(w, a)
	late := newAnalyzer(t, w, "b", 1, oneTrace(trace.RankKey{Program: 0, Rank: 1}, 2))
	late.readAll()
	wantError(t, late.talk(), "comes too late")
	wantError(t, late.client.Finish(t.Context()), "comes too late")
	if w.state(0).nodes["b"] != nil {
		t.Error("the server waits for what comes of an analyzer that it refused")
	}
}

func TestStopEndsRunWithoutAnalyzers(t *testing.T) {
	s := newState(t, Config{})
	s.Stop(start)
	wantPhase(t, s, start, reviewing)
	if !s.Reviewed(start) {
		t.Error("there is no analyzer to wait for")
	}
}

func TestStopReachesAnalyzersAndIgnoresSilentOnes(t *testing.T) {
	s := newState(t, Config{Ranks: 100})
	mustRegister(t, s, "a", 1, 0)
	mustRegister(t, s, "silent", 1, 1)
	s.Stop(start)
	if !sendEnd(t, s, "a", 1, 1, 0, reading, start).GetStop() {
		t.Error("the analyzer does not receive the stop")
	}
	later := start.Add(silence + time.Second)
	sendEnd(t, s, "a", 1, 0, 0, reading, later)
	wantPhase(t, s, later, running)
	sendEnd(t, s, "a", 1, 0, 0, hasEnded, later)
	wantPhase(t, s, start.Add(silence), running)
	wantPhase(t, s, later, reviewing)
	if s.Reviewed(later) {
		t.Error("reviewed before the outcome of the analyzer that speaks")
	}
	outcome(t, s, "a", 1, 0)
	if !s.Reviewed(later) {
		t.Error("not reviewed: it waits for the silent one")
	}
}

func TestEndDoesNotWaitForReplacedAnalyzer(t *testing.T) {
	s := newState(t, Config{Ranks: 1})
	mustRegister(t, s, "first", 1, 0)
	mustRegister(t, s, "second", 1, 0)
	sendEnd(t, s, "first", 1, 0, 0, reading, start)
	sendEnd(t, s, "second", 1, 1, 0, hasEnded, start)
	s.ranks[trace.RankKey{Program: 0, Rank: 0}].ended = true
	wantPhase(t, s, start, reviewing)
	outcome(t, s, "second", 1, 0)
	if !s.Reviewed(start) {
		t.Error("it waits for the outcome of the first analyzer, which no longer has ranks")
	}
}

func TestStopSurvivesServerRestart(t *testing.T) {
	s := newState(t, Config{})
	s.Stop(start)
	path := filepath.Join(t.TempDir(), "state")
	if _, err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	again := newState(t, Config{})
	if err := again.Restore(path); err != nil {
		t.Fatal(err)
	}
	wantPhase(t, again, start, reviewing)
}

// outcome sends the results of a rank.
func outcome(tb testing.TB, s *State, node string, session uint64, rank uint32) string {
	tb.Helper()
	var scores summary.Metrics
	scores.Count.Add(1)
	scores.Add(int32(rank), 10, 20, 0.1*float64(rank+1), 7)
	var counts tally.Tally
	counts.Add(tally.Kind(0), int64(rank))
	h := summary.Handover{
		Totals: summary.Totals{Steps: 1, Calls: int64(rank), Ranks: 1, Begin: 5}, Tally: counts, Broken: []string{node + " is broken"},
		Ranks: []*summary.RankOutcome{{
			RankKey: trace.RankKey{Rank: trace.Rank(rank)}, Host: node, Review: summary.Review{Anomalies: 1},
			Functions: []summary.FunctionStats{{FuncKey: trace.FuncKey{Name: "solve"}, Anomalies: scores, LostTime: 3}},
		}},
	}
	reply, err := s.SetOutcome(&protocol.OutcomeRequest{
		Sender: sender(node, session), Handover: h.AppendBinary(nil), Traces: []string{node + ".bp"}, TraceBytes: 10,
	}, start)
	if err != nil {
		tb.Fatal(err)
	}
	return reply.GetRefused()
}

func TestOutcomeDoesNotDependOnOrderOfAnalyzers(t *testing.T) {
	all := func(order []uint32) *summary.Outcome {
		s := newState(t, Config{})
		id := numbersOf(s, "solve")[0]
		for i := range uint32(5) {
			node := string('a' + rune(4-i))
			mustRegister(t, s, node, 1, i)
		}
		profile := encoded(summary.Delta{Functions: []summary.FunctionStats{{ID: int(id), Exclusive: *sumsOf(3)}}})
		exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 1, Delta: profile})
		for _, i := range order {
			node := string('a' + rune(4-i))
			if refused := outcome(t, s, node, 1, i); refused != "" {
				t.Fatal(refused)
			}
		}
		o, err := s.Outcome(s.Models())
		if err != nil {
			t.Fatal(err)
		}
		paths, size := s.Traces()
		if !slices.Equal(paths, []string{"a.bp", "b.bp", "c.bp", "d.bp", "e.bp"}) || size != 50 {
			t.Errorf("got the traces %v of %d bytes", paths, size)
		}
		return o
	}
	want := all([]uint32{0, 1, 2, 3, 4})
	got := all([]uint32{3, 1, 4, 0, 2})
	if got.Functions[0].Anomalies != want.Functions[0].Anomalies || got.Review != want.Review || got.Totals != want.Totals {
		t.Errorf("got %+v, want %+v", got.Functions[0].Anomalies, want.Functions[0].Anomalies)
	}
	if !slices.Equal(got.Functions[0].Hosts, []string{"e", "d", "c", "b", "a"}) || got.Totals.Calls != 10 || len(got.Broken) != 5 {
		t.Errorf("hosts %v, %+v, %d broken", got.Functions[0].Hosts, got.Totals, len(got.Broken))
	}
}

func TestRestartedAnalyzerWithStoredResultsIsDone(t *testing.T) {
	s := newState(t, Config{Ranks: 1})
	mustRegister(t, s, "a", 1, 0)
	sendEnd(t, s, "a", 1, 1, 0, protocol.Status_STATE_ENDED, start)
	wantPhase(t, s, start, reviewing)
	if got := mustRegister(t, s, "a", 2, 0); got.GetPhase() == protocol.Phase_PHASE_FINISHED {
		t.Error("an analyzer that reported nothing has to review")
	}
	if refused := outcome(t, s, "a", 2, 0); refused != "" {
		t.Fatal(refused)
	}
	for _, ranks := range [][]uint32{nil, {0}} {
		if got := mustRegister(t, s, "a", 3, ranks...); got.GetPhase() != protocol.Phase_PHASE_FINISHED || len(got.GetNext()) != len(ranks) {
			t.Errorf("an analyzer that reported everything receives %v", got)
		}
	}
	if !s.Reviewed(start) || s.nodes["a"].Session != 2 {
		t.Error("its reports are lost")
	}
	if _, err := register(s, "a", 3, 7); err == nil {
		t.Error("a rank that comes too late was taken")
	}

	c := paramclient.New(paramclient.Config{Run: s.cfg.Run, Node: "a", Session: 3, Shards: 1, Period: time.Second, Timeout: time.Second},
		answers(func(data []byte) ([]byte, error) {
			return answer(data, new(protocol.RegisterRequest), func(req *protocol.RegisterRequest) (*protocol.RegisterReply,
				error,
			) {
				return s.Register(req, start)
			})
		}))
	c.Number(0, "solve") // which it must not get: nothing is to be sent
	wantError(t, c.Sync(t.Context()), paramclient.ErrReviewed.Error())
	if !c.Stopped() || !errors.Is(c.Finish(t.Context()), paramclient.ErrReviewed) {
		t.Error("the analyzer continues")
	}
	if _, ok := c.Number(0, "solve"); ok {
		t.Error("it got numbers for records that will not be stored")
	}
}

// answers is a server that answers all requests in one way.
type answers func(data []byte) ([]byte, error)

func (a answers) Request(_ context.Context, _ string, data []byte) ([]byte, error) { return a(data) }

func TestOutcomeOfEarlierSessionOrForeignRankIsRefused(t *testing.T) {
	s := newState(t, Config{})
	mustRegister(t, s, "a", 1, 0)
	if refused := outcome(t, s, "a", 1, 0); refused != "" {
		t.Error(refused)
	}
	mustRegister(t, s, "a", 2)
	if len(s.outcomes) != 0 {
		t.Error("the outcome of the earlier session is kept")
	}
	wantText(t, outcome(t, s, "a", 1, 0), "started later")
	mustRegister(t, s, "b", 1, 0)
	wantText(t, outcome(t, s, "a", 2, 0), `also read by analyzer "b"`)
}
