package ranks_test

import (
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
)

func TestEvidenceOfSlowHost(t *testing.T) {
	d := run(16)
	for i := range d.Peers.Loads {
		l := &d.Peers.Loads[i]
		for k := range l.Windows {
			w := &l.Windows[k]
			w.Useful, w.Wait = trace.Ticks(5e5**w.Ratio), 1e6-trace.Ticks(5e5**w.Ratio)
		}
	}
	s := &d.Peers.Slow[0]
	s.Peers, s.LostOwn, s.SyncShare, s.PeerSync, s.Windows = 12, 9e6, 0.02, 0.4, d.Peers.Loads[4].Windows
	s.To, s.Pattern = new(48.0), provenance.Phase
	e := ranks.Evidence(d.Peers, s, d.Links)
	if len(e.Windows) != windows || e.Windows[31].Slow || !e.Windows[32].Slow || !e.Windows[47].Slow || e.Windows[48].Slow {
		t.Errorf("windows %+v", e.Windows)
	}
	if h := e.Here; h.Place != "node0001" || h.Host != "node0001" || h.Useful != 16*95e4 || h.Wait != 16*5e4 {
		t.Errorf("slow side %+v", h)
	}
	if w := e.Twin; w == nil || w.Place != "rank 2" || w.Host != "node0000" || w.Wait < 7e6 {
		t.Errorf("twin %+v", w)
	}
	if e.Slow.Finding != 3 || e.Slow.Functions[0].FunctionID != "id of push" || e.LostOwn != 9e6 {
		t.Errorf("%+v", e)
	}
	f := func(want string, change func(s *provenance.SlowPeer)) {
		t.Helper()
		other := *s
		change(&other)
		if got := ranks.Evidence(d.Peers, &other, d.Links).Strength; !strings.HasPrefix(got, want) {
			t.Errorf("strength is %q, want %q", got, want)
		}
	}
	f("strong", func(*provenance.SlowPeer) {})
	f("fair", func(s *provenance.SlowPeer) { s.SyncShare = 0.5 })
	f("good", func(s *provenance.SlowPeer) { s.PeerSync = 0 })
	f("weak: 1 peer", func(s *provenance.SlowPeer) { s.Weak, s.Peers = true, 1 })
	f("roles have different work", func(s *provenance.SlowPeer) { s.Pattern = provenance.ByRole })
}

// At equal work a role is like itself, so its evidence is the useful time of others.
func TestEvidenceOfRole(t *testing.T) {
	d := run(8)
	for i := range d.Peers.Loads {
		for k := range d.Peers.Loads[i].Windows {
			d.Peers.Loads[i].Windows[k].Useful = 4e5
			if i/4 == 1 {
				d.Peers.Loads[i].Windows[k].Useful = 8e5
			}
		}
	}
	s := &d.Peers.Slow[0]
	s.Pattern, s.Host, s.From, s.Windows, s.Ratio = provenance.ByRole, "", 0, d.Peers.Loads[4].Windows, 2
	e := ranks.Evidence(d.Peers, s, d.Links)
	if *e.Windows[9].Ratio != 2 || !e.Windows[9].Slow || e.Twin.Place != "4 other ranks" ||
		e.Twin.Useful != windows*4e5 || e.Here.Useful != windows*8e5 {
		t.Errorf("%+v", e)
	}
}

// The twin of a thread is a thread, also of the same rank.
func TestTwinOfThread(t *testing.T) {
	d := run(4)
	for tid := range int64(3) {
		ratio := 1 + 0.5*float64(tid)
		d.Peers.Loads = append(d.Peers.Loads, provenance.RankLoad{RID: 3, TID: tid, Host: "node0000", Ratio: &ratio, Role: 1, Peers: 2})
	}
	s := &provenance.SlowPeer{Pattern: provenance.Always, Ranks: []trace.Rank{3}, TID: 2, Ratio: 2, Twin: new(trace.Rank(3))}
	e := ranks.Evidence(d.Peers, s, d.Links)
	if e.Twin == nil || e.Twin.Place != "thread 0 of rank 3" || e.Here.Place != "thread 2 of rank 3" {
		t.Errorf("%+v", e)
	}
}

func TestFunctionsOfRanks(t *testing.T) {
	d := run(8)
	for i := range d.Peers.Loads {
		d.Peers.Loads[i].Functions = []provenance.RankFunction{
			{Func: "push", Calls: 10, Time: 3e6, Peers: new(trace.Ticks(2e6))}, {Func: "sort", Calls: 1, Time: 1e6, Peers: new(trace.Ticks(1e6))},
		}
	}
	d.Peers.Loads[7].Functions[1].Peers = nil
	d.Peers.Loads = append(d.Peers.Loads, provenance.RankLoad{
		RID: 3, TID: 9, Device: true, Functions: []provenance.RankFunction{{Func: "kernel", Calls: 4, Time: 5}},
	})
	one := ranks.Functions(d, ranks.Params{By: ranks.ByThread, Ranks: []trace.Range{{First: 3, Last: 3}}, Thread: new(int64(0))})
	if f := one.Functions; one.Ranks != 1 || len(f) != 2 || f[0].Function != "push" || f[0].FunctionID != "id of push" || f[0].Share != 0.75 ||
		*f[0].Peers != 2e6 {
		t.Errorf("%+v", one)
	}
	host := ranks.Functions(d, ranks.Params{By: ranks.ByHost, Host: "node0001"})
	if f := host.Functions; host.Ranks != 4 || f[0].Calls != 40 || f[0].Time != 12e6 || *f[0].Peers != 8e6 || f[1].Peers != nil {
		t.Errorf("%+v", host)
	}
	gpu := ranks.Functions(d, ranks.Params{By: ranks.ByDevice, Thread: new(int64(9))})
	if f := gpu.Functions; len(f) != 1 || f[0].Function != "kernel" || f[0].Peers != nil {
		t.Errorf("%+v", gpu)
	}
	if none := ranks.Functions(d, ranks.Params{By: ranks.ByRank, Role: 2}); len(none.Functions) != 0 || none.Ranks != 0 {
		t.Errorf("%+v", none)
	}
}
