package paramserver

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// reported returns the encoded operations of an analyzer that has read some of a program.
func reported(t *testing.T, program trace.Program, logged int64) []byte {
	t.Helper()
	c := breakdown.Collectives{Logged: logged, Programs: []breakdown.ProgramComparison{{Program: program}}}
	c.Programs[0].Operations = []breakdown.OperationStats{{Operation: breakdown.Operation{Name: "AllReduce"}, Count: logged}}
	text, err := c.Encode(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCollectivesOfAnalyzers reports those of two analyzers, one of which is restarted, and of one that has ended.
func TestCollectivesOfAnalyzers(t *testing.T) {
	s := newState(t, Config{})
	report := func(node string, session uint64, text []byte) {
		t.Helper()
		exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender(node, session), Status: &protocol.Status{Steps: 1, Collectives: text}})
	}
	want := func(logged int64, counts ...int64) {
		t.Helper()
		all, n := s.Collectives()
		if len(all) != len(counts) || n != logged {
			t.Fatalf("%d programs with %d operations, want %d with %d", len(all), n, len(counts), logged)
		}
		for i, p := range all {
			if p.Program != trace.Program(i) || p.Operations[0].Count != counts[i] {
				t.Errorf("program %d has %d operations, want %d", p.Program, p.Operations[0].Count, counts[i])
			}
		}
	}
	mustRegister(t, s, "a", 1, 0)
	mustRegister(t, s, "b", 1, 1)
	want(0)
	report("b", 1, reported(t, 1, 5))
	report("a", 1, reported(t, 0, 7))
	want(12, 7, 5)
	report("a", 1, []byte("rubbish"))
	report("a", 1, nil)
	want(12, 7, 5)
	if n := s.nodes["a"]; n.GetStatus().GetSteps() != 1 || len(n.GetStatus().GetCollectives()) > 0 {
		t.Errorf("the status that snapshots keep is %+v", n.GetStatus())
	}

	mustRegister(t, s, "a", 2, 0)
	report("a", 2, reported(t, 0, 3)) // it reads the beginning again
	want(12, 7, 5)
	report("a", 2, reported(t, 0, 8))
	want(13, 8, 5)

	outcome := func(collectives []byte) string {
		t.Helper()
		h := summary.Handover{}
		reply, err := s.SetOutcome(&protocol.OutcomeRequest{Sender: sender("a", 2), Handover: h.AppendBinary(nil), Collectives: collectives}, start)
		if err != nil {
			t.Fatal(err)
		}
		return reply.GetRefused()
	}
	wantText(t, outcome([]byte("rubbish")), "collective operations")
	if refused := outcome(reported(t, 0, 9)); refused != "" {
		t.Fatal(refused)
	}
	want(13, 9, 5)
	o, err := s.Outcome(nil)
	if err != nil || len(o.Breakdown.Collectives) != 2 || o.Breakdown.Collectives[0].Operations[0].Count != 9 {
		t.Errorf("the outcome has %+v, error %v", o.Breakdown, err)
	}
}
