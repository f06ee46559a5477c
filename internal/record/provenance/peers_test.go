package provenance_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestPlaceOfSlowPeer(t *testing.T) {
	f := func(want string, s provenance.SlowPeer) {
		t.Helper()
		if got := s.Place(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	one, two, all := []trace.Rank{4}, []trace.Rank{4, 5}, int64(provenance.AllThreads)
	var odd []trace.Rank
	for r := trace.Rank(1); r < 99; r += 2 {
		odd = append(odd, r)
	}
	f("rank 4", provenance.SlowPeer{Ranks: one, TID: all})
	f("ranks 4-5", provenance.SlowPeer{Ranks: two, TID: all})
	f("ranks 1,3,5,7,9,11,13,15,... (49)", provenance.SlowPeer{Ranks: odd, TID: all})
	f("node2", provenance.SlowPeer{Ranks: two, TID: all, Host: "node2"})
	f("thread 3 of rank 4", provenance.SlowPeer{Ranks: one, TID: 3})
	f("GPU thread 9 of rank 4", provenance.SlowPeer{Ranks: one, TID: 9, Device: true})
	f("GPU thread 10 of rank 4", provenance.SlowPeer{Ranks: one, TID: 10, Device: true})
	f("the GPU of rank 4", provenance.SlowPeer{Ranks: one, TID: all, Device: true})
	f("the GPUs of ranks 4-5", provenance.SlowPeer{Ranks: two, TID: all, Device: true, Host: "node2"})
	f("role 2 (ranks 4-5)", provenance.SlowPeer{Ranks: two, TID: all, Pattern: provenance.ByRole, Role: 2})
	stage := []provenance.SlowFunction{{Func: "forward [PP rank 3]"}, {Func: "backward [PP rank 3]"}}
	f("pipeline stage 3 (ranks 4-5)", provenance.SlowPeer{Ranks: two, TID: all, Pattern: provenance.ByRole, Role: 2, Functions: stage})
	stage[1].Func = "backward [PP rank 2]"
	f("role 2 (ranks 4-5)", provenance.SlowPeer{Ranks: two, TID: all, Pattern: provenance.ByRole, Role: 2, Functions: stage})
	f("changing ranks", provenance.SlowPeer{Ranks: two, TID: all, Pattern: provenance.Roaming})
}

// Findings about two GPUs of one rank have the same ranks.
func TestSlowPeerOfFinding(t *testing.T) {
	slow := []provenance.SlowPeer{
		{Ranks: []trace.Rank{4}, TID: 9, Device: true, LostOwn: 900}, {Ranks: []trace.Rank{4}, TID: 10, Device: true, LostOwn: 500},
	}
	x := provenance.Finding{Kind: provenance.SlowPlace, Ranks: []trace.Rank{4}, LostOwn: 500}
	if got := provenance.SlowPeerOf(&x, slow); got != &slow[1] {
		t.Errorf("got %+v", got)
	}
	x.Ranks = []trace.Rank{5}
	if got := provenance.SlowPeerOf(&x, slow); got != nil {
		t.Errorf("got %+v for another rank", got)
	}
}
