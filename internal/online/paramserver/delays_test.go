package paramserver

import (
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// A wait on rank 0, analyzed by a, for a call on rank 1, analyzed by b.
var (
	delaysOfA = blame.Run{Anomalies: []blame.Anomaly{{
		Event: "0:0:1", Func: "MPI_Recv()", Wait: blame.Ranks, Entry: 100, Exit: 1010, Lost: 900,
		Last: &blame.Message{Partner: 1, Tag: 1, Time: 1005},
	}}}
	delaysOfB = blame.Run{Anomalies: []blame.Anomaly{
		{Event: "1:0:1", Rank: 1, Func: "fast", Entry: 1, Exit: 20, Lost: 10, Candidate: true, Share: 0.001},
		{Event: "1:0:2", Rank: 1, Func: "slow", Entry: 20, Exit: 1000, Lost: 900, Candidate: true, Share: 0.001},
	}}
)

func sendDelays(t *testing.T, s *State, node string, session uint64, run *blame.Run, now time.Time) *protocol.DelaysReply {
	t.Helper()
	req := &protocol.DelaysRequest{Poll: true}
	if run != nil {
		req = paramwire.Delays(run)
	}
	req.Sender = sender(node, session)
	reply, err := s.AddDelays(req, now)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// reviewed returns a state in which the ranks of analyzers a and b have ended.
func reviewed(t *testing.T) *State {
	t.Helper()
	s := newState(t, Config{Ranks: 2})
	mustRegister(t, s, "a", 1, 0)
	mustRegister(t, s, "b", 1, 1)
	sendEnd(t, s, "a", 1, 1, 0, hasEnded, start)
	sendEnd(t, s, "b", 1, 1, 1, hasEnded, start)
	wantPhase(t, s, start, reviewing)
	return s
}

func wantPromoted(t *testing.T, reply *protocol.DelaysReply, want ...uint32) {
	t.Helper()
	if !reply.GetComplete() || !slices.Equal(reply.GetPromoted(), want) {
		t.Errorf("got %v, want all delays, of which %v are promoted", reply, want)
	}
}

func wantIncomplete(t *testing.T, reply *protocol.DelaysReply) {
	t.Helper()
	if reply.GetComplete() || reply.GetUnknown() || reply.GetRefused() != "" {
		t.Errorf("got %v, want a reply to wait", reply)
	}
}

func TestDelaysOfAllAnalyzersExplainWaits(t *testing.T) {
	s := reviewed(t)
	wantIncomplete(t, sendDelays(t, s, "a", 1, &delaysOfA, start))
	wantIncomplete(t, sendDelays(t, s, "a", 1, nil, start))
	if !sendDelays(t, s, "b", 1, nil, start).GetUnknown() {
		t.Error("the server claims to know delays that were not sent")
	}
	wantPromoted(t, sendDelays(t, s, "b", 1, &delaysOfB, start), 1)
	wantPromoted(t, sendDelays(t, s, "b", 1, &delaysOfB, start), 1) // it was repeated
	wantPromoted(t, sendDelays(t, s, "a", 1, nil, start))
}

// Rank 0 is held up in a wait while the only other rank of the run waits for it.
func TestRankOfOneAnalyzerHoldsUpThatOfAnother(t *testing.T) {
	s := reviewed(t)
	sendDelays(t, s, "a", 1, &blame.Run{Anomalies: []blame.Anomaly{
		{Event: "0:0:1", Func: "MPI_Waitall()", Entry: 90, Exit: 1000, Lost: 900, Candidate: true, Share: 0.02},
	}}, start)
	wantPromoted(t, sendDelays(t, s, "b", 1, &blame.Run{Anomalies: []blame.Anomaly{
		{Event: "1:0:1", Rank: 1, Func: "MPI_Allreduce()", Entry: 100, Exit: 1010, Lost: 890, Candidate: true, Share: 0.02},
	}}, start), 0)
	wantPromoted(t, sendDelays(t, s, "a", 1, nil, start), 0)
}

func TestDelaysSurviveCrashOfServer(t *testing.T) {
	s := reviewed(t)
	sendDelays(t, s, "a", 1, &delaysOfA, start)
	again := newState(t, Config{Ranks: 2})
	if err := again.restore(s.snapshot().message); err != nil {
		t.Fatal(err)
	}
	wantPromoted(t, sendDelays(t, again, "b", 1, &delaysOfB, start), 1)
	wantPromoted(t, sendDelays(t, again, "a", 1, nil, start))
}

func TestRestartedAnalyzerSendsDelaysAgain(t *testing.T) {
	s := reviewed(t)
	sendDelays(t, s, "a", 1, &delaysOfA, start)
	sendDelays(t, s, "b", 1, &delaysOfB, start)
	mustRegister(t, s, "b", 2, 1)
	if why := sendDelays(t, s, "b", 1, &delaysOfB, start).GetRefused(); why == "" {
		t.Error("the server accepts delays of an earlier session")
	}
	wantIncomplete(t, sendDelays(t, s, "a", 1, nil, start))
	wantPromoted(t, sendDelays(t, s, "b", 2, &delaysOfB, start), 1)
	wantPromoted(t, sendDelays(t, s, "a", 1, nil, start))
}

func TestStoppedRunDoesNotWaitForDelaysOfSilentAnalyzer(t *testing.T) {
	s := reviewed(t)
	s.Stop(start)
	wantIncomplete(t, sendDelays(t, s, "a", 1, &delaysOfA, start))
	late := start.Add(silence + time.Second)
	wantPromoted(t, sendDelays(t, s, "a", 1, nil, late))
}
