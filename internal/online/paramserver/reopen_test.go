package paramserver

import (
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

func TestReopenedRunWaitsForAnalyzersWithoutResultsExceptLostOnes(t *testing.T) {
	dir := t.TempDir()
	s := newState(t, Config{})
	for i, node := range []string{"a", "b", "c"} {
		req := &protocol.RegisterRequest{
			Sender: sender(node, 1), Shards: 1, Ranks: []*protocol.Rank{{Rank: uint32(i)}},
			Command: &protocol.Command{Args: []string{"--sigma=8", node + ".bp"}, Host: "here"},
		}
		if _, err := s.Register(req, start); err != nil {
			t.Fatal(err)
		}
		sendEnd(t, s, node, 1, 1, uint32(i), hasEnded, start)
	}
	s.Stop(start)
	wantPhase(t, s, start, reviewing)
	if _, err := s.Save(StatePath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	if refused := outcome(t, s, "a", 1, 0); refused != "" {
		t.Error(refused)
	}
	if _, err := s.Save(StatePath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	known, err := Analyzers(dir)
	if err != nil || len(known) != 3 || !known[0].Done || known[1].Done || known[1].Name != "b" ||
		!slices.Equal(known[1].Command.GetArgs(), []string{"--sigma=8", "b.bp"}) || known[2].Ranks[0] != 2 {
		t.Errorf("the analyzers are %v, %v", known, err)
	}

	again := newState(t, Config{})
	if err := again.Restore(StatePath(dir, 0)); err != nil {
		t.Fatal(err)
	}
	again.Reopen([]string{"c"})
	later := start.Add(time.Hour)
	wantPhase(t, again, later, running) // b is to come
	if reply := mustRegister(t, again, "b", 2, 1); reply.GetNext()[0] != 1 || reply.GetPhase() != running {
		t.Errorf("b receives %v", reply)
	}
	reply := exchangeAt(t, again, &protocol.ExchangeRequest{
		Sender: sender("b", 2), Number: 1, Steps: []*protocol.Steps{{Rank: 1, From: 1, To: 3, Ended: true}},
		Status: &protocol.Status{State: hasEnded},
	}, later)
	if reply.GetRefused() != "" || reply.GetStop() {
		t.Errorf("b, which read more than before, receives %v", reply)
	}
	wantPhase(t, again, later, reviewing)
	if again.Reviewed(later) {
		t.Error("it is reviewed before b has handed over all")
	}
	if refused := outcome(t, again, "b", 2, 1); refused != "" {
		t.Error(refused)
	}
	if !again.Reviewed(later) {
		t.Error("it is not reviewed when all but the lost have handed over all")
	}
	names, ranks, totals := again.LostAnalyzers()
	if !slices.Equal(names, []string{"c"}) || len(ranks) != 1 || ranks[0].Rank != 2 || totals.Ranks != 1 {
		t.Errorf("lost are %v with %v, %+v", names, ranks, totals)
	}
}

func TestAnalyzersWithoutSnapshot(t *testing.T) {
	if known, err := Analyzers(t.TempDir()); err != nil || len(known) > 0 {
		t.Errorf("the analyzers are %v, %v", known, err)
	}
}
