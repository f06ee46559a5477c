package findings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// slowHost returns a host that is slow from 3 s to 5 s.
func slowHost() provenance.SlowPeer {
	to := 5.
	return provenance.SlowPeer{
		Pattern: provenance.Phase, Host: "node2", Ranks: []trace.Rank{4, 5}, Hosts: []string{"node2"}, TID: provenance.AllThreads, Role: 1,
		Peers: 6, Ratio: 1.9, From: 3, To: &to, LostOwn: 1_800_000, LostCaused: 5_400_000, Saved: 900_000, Share: 0.09, Confidence: 0.99,
		Windows: []provenance.LoadWindow{{From: 3, To: 3.25}},
		Functions: []provenance.SlowFunction{
			{Func: "long", Calls: 2000, Mean: 1500, Peers: 800, Beyond: 1_400_000}, {Func: "short", Calls: 2000, Mean: 400, Peers: 200, Beyond: 400_000},
		},
	}
}

func (s *scene) concludeWith(slow ...provenance.SlowPeer) *findings.Result {
	return findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), &provenance.Peers{Slow: slow})
}

func TestSlowPeerIsAFinding(t *testing.T) {
	s := quiet()
	r := s.concludeWith(slowHost())
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4 5]"}) {
		t.Fatal(got)
	}
	x := &r.Findings[0]
	if x.LostOwn != 1_800_000 || x.LostCaused != 5_400_000 || x.Lost != 7_200_000 || x.From != 3 || *x.To != 5 || x.Confidence != 0.99 ||
		x.Expected != 800 || x.Actual != 1500 || x.Severity != provenance.Alarm || x.Status != provenance.Confirmed || x.Share != 0.09 {
		t.Errorf("got %+v", x)
	}
}

func TestSummaryOfSlowPeer(t *testing.T) {
	tests := map[string]func(*provenance.SlowPeer){
		"node2 (ranks 4-5) computed 1.90× slower than its 6 peers from 3.00 s to 5.00 s; without it the run would be 9.0 % shorter": func(
			*provenance.SlowPeer,
		) {
		},
		"node2 (ranks 4-5) computes 1.90× slower than its 6 peers since 3.00 s; without it the run would be 9.0 % shorter": func(
			s *provenance.SlowPeer,
		) {
			s.Pattern, s.To = provenance.Since, nil
		},
		"Rank 4 (node2) computes 1.90× slower than its 1 peer since 3.00 s; without it the run would be 9.0 % shorter (weak evidence: 1 peer; 1.0 % by chance)": func(
			s *provenance.SlowPeer,
		) {
			s.Pattern, s.To, s.Ranks, s.Host, s.Peers, s.Weak = provenance.Since, nil, s.Ranks[:1], "", 1, true
		},
		"GPU thread 3 of rank 4 (node2) computes 1.90× slower than its 6 peers throughout the run": func(s *provenance.SlowPeer) {
			s.Pattern, s.To, s.Ranks, s.Host, s.Device, s.TID, s.Share = provenance.Always, nil, s.Ranks[:1], "", true, 3, 0
		},
		"Rank 4 (node2) computes 1.90× slower than its 3 peers throughout the run (weak evidence: 3 peers, and no past to compare with; " +
			"1.0 % by chance)": func(s *provenance.SlowPeer) {
			s.Pattern, s.To, s.Ranks, s.Host, s.Share, s.Peers, s.Weak = provenance.Always, nil, s.Ranks[:1], "", 0, 3, true
		},
		"Thread 3 of rank 4 (node2) computes 1.90× slower than its 6 peers throughout the run": func(s *provenance.SlowPeer) {
			s.Pattern, s.To, s.Ranks, s.Host, s.TID, s.Share = provenance.Always, nil, s.Ranks[:1], "", 3, 0
		},
		"node2 (ranks 4-5) took 2.00× as long for short as its 6 peers from 3.00 s to 5.00 s; without it the run would be 9.0 % shorter": func(
			s *provenance.SlowPeer,
		) {
			s.Ratio, s.LostOwn, s.Functions = 1.1, 400_000, s.Functions[1:]
		},
		"Role 1 (ranks 4-5) takes 1.90× as long as the 6 others: the work is uneven, and no single rank is responsible; " +
			"without that the run would be 9.0 % shorter": func(s *provenance.SlowPeer) {
			s.Pattern, s.To, s.Host = provenance.ByRole, nil, ""
		},
		"Of 2 ranks, one after another computes 1.90× slower than its peers; without that the run would be 9.0 % shorter": func(
			s *provenance.SlowPeer,
		) {
			s.Pattern, s.Host = provenance.Roaming, ""
		},
	}
	for want, change := range tests {
		s := slowHost()
		change(&s)
		x := &quiet().concludeWith(s).Findings[0]
		if x.Summary != want {
			t.Errorf("summary is\n%s\nwant\n%s", x.Summary, want)
		}
		if note := s.Pattern == provenance.ByRole || s.Pattern == provenance.Roaming; (x.Severity == provenance.Note) != note {
			t.Errorf("%s: severity is %s", s.Pattern, x.Severity)
		}
	}
}

// extraWork returns a rank that does extra work from 3 s on.
func extraWork() provenance.SlowPeer {
	return provenance.SlowPeer{
		Pattern: provenance.Since, Ranks: []trace.Rank{4}, Hosts: []string{"node2"}, TID: provenance.AllThreads, Role: 2, Peers: 7, Ratio: 1.5,
		From: 3, LostOwn: 900_000, LostCaused: 400_000, Saved: 600_000, Share: 0.06, Confidence: 0.99,
		Functions: []provenance.SlowFunction{
			{Func: "long", Calls: 3000, Mean: 800, Peers: 500, Beyond: 900_000, PeerCalls: new(1000.)},
			{Func: "short", Calls: 300, Mean: 200, Peers: 150, Beyond: 15_000, PeerCalls: new(200.)},
		},
	}
}

func TestSummaryOfExtraWork(t *testing.T) {
	tests := map[string]func(*provenance.SlowPeer, *provenance.Peers){
		"Rank 4 (node2) does extra work since 3.00 s: 3,000 calls of long instead of 1,000, as its 7 peers make, and more of 1 other function; " +
			"900 ms in all; without it the run would be 6.0 % shorter": func(*provenance.SlowPeer, *provenance.Peers) {},
		"GPU thread 3 of rank 4 (node2) does extra work from 3.00 s to 5.00 s, about step 17: 3,000 calls of long that its 3 peers do not " +
			"make; 900 ms in all, 450 ms a step (weak evidence: 3 peers; 1.0 % by chance)": func(s *provenance.SlowPeer, all *provenance.Peers) {
			s.Pattern, s.To, s.Device, s.TID, s.Peers, s.Weak, s.Share = provenance.Phase, new(5.), true, 3, 3, true, 0
			s.Functions = s.Functions[:1]
			s.Functions[0].PeerCalls = new(0.)
			var steps []provenance.StepStart
			for i, start := range []trace.Ticks{1, 3, 4, 6} {
				steps = append(steps, provenance.StepStart{Number: int64(16 + i), Start: quiet().Begin + start*second})
			}
			all.Steps = map[trace.RankKey][]provenance.StepStart{{Rank: 4}: steps}
		},
	}
	for want, change := range tests {
		scene, s, all := quiet(), extraWork(), new(provenance.Peers)
		change(&s, all)
		all.Slow = append(all.Slow, s)
		x := &findings.Conclude(&scene.Run, blame.Find(&scene.Run), nil, scene.profile(), all).Findings[0]
		if x.Summary != want {
			t.Errorf("summary is\n%s\nwant\n%s", x.Summary, want)
		}
		if x.Kind != provenance.ExcessWork || x.Form != provenance.Lasting || !x.OfPeers() || x.Expected != 0 || x.Actual != 800 || x.Severity != provenance.Alarm {
			t.Errorf("got %+v", x)
		}
		if provenance.SlowPeerOf(x, all.Slow) != &all.Slow[0] {
			t.Error("the finding has no slow peer")
		}
	}
}

// TestExtraWorkExplainsItsAnomalies expects that slow calls of a function belong to extra work if most of its calls do, and that calls
// elsewhere, and of other functions, do not.
func TestExtraWorkExplainsItsAnomalies(t *testing.T) {
	s := quiet()
	for i := range trace.Ticks(12) {
		s.slow("long", 4, 3*second+i*second/2, 4000)
		s.slow("short", 4, 3*second+i*second/2+1000, 4000)
	}
	s.slow("long", 6, 4*second, 4000)
	s.slow("long", 4, second, 4000)
	r := s.concludeWith(extraWork())
	found := of(r)
	if len(found) != 3 || found[0] != "excess-work long [4]" || !slices.Contains(found, "recurring short [4]") || !slices.Contains(found, "outlier long [4 6]") {
		t.Fatal(found)
	}
	if x := &r.Findings[0]; x.LostOwn != 900_000 || len(x.Examples) == 0 {
		t.Errorf("got %+v", x)
	}
}

// TestHiddenWaitsBelongToTheSlowPeer expects that the calls of the only slow function of a rank, and a change of the function in which
// others wait for it, belong to the rank.
func TestHiddenWaitsBelongToTheSlowPeer(t *testing.T) {
	slow := provenance.SlowPeer{
		Pattern: provenance.Since, Ranks: []trace.Rank{4}, Hosts: []string{"node2"}, TID: provenance.AllThreads, Role: 1, Peers: 7, Ratio: 1.2,
		From: 3, LostOwn: 900_000, LostCaused: 6_000_000, Saved: 850_000, Share: 0.085, Confidence: 0.99,
		Functions: []provenance.SlowFunction{{Func: "long", Calls: 1000, Mean: 1700, Peers: 800, Beyond: 900_000}},
	}
	slow.HiddenWaits = []string{"short"}
	s := quiet()
	for i := range trace.Ticks(400) {
		s.slow("long", 4, 3*second+(i+1)*second/60, 1700)
	}
	changes := []summary.Change{{Function: "short", Kind: "shift", Since: s.Begin + 3*second, Before: 200, After: 900, Calls: 8000, Lost: 5_600_000}}
	r := findings.Conclude(&s.Run, blame.Find(&s.Run), changes, s.profile(), &provenance.Peers{Slow: []provenance.SlowPeer{slow}})
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4]", "change short []"}) || r.Findings[1].Cause != 1 {
		t.Errorf("got %v, %+v", got, r.Findings)
	}
}

func TestSlowPeerExplainsItsAnomalies(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 4, 5)
	s.slow("long", 4, 9*second, 4000)
	r := s.concludeWith(slowHost())
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4 5]", "outlier long [4]"}) {
		t.Fatal(got)
	}
	if x := &r.Findings[0]; x.LostOwn != 1_800_000 || len(x.Examples) == 0 || x.OverTime[7] == 0 {
		t.Errorf("got %+v", x)
	}
}

func TestDelaysDoNotMakeAPlaceSlow(t *testing.T) {
	f := func(what string, delays int, lost trace.Ticks, slow bool) {
		t.Helper()
		s := quiet()
		for i := range delays {
			s.slow("long", 4+i%2, 3*second+trace.Ticks(i)*2*second/trace.Ticks(delays), lost)
		}
		r := s.concludeWith(slowHost())
		if got := slices.Contains(of(r), "slow-peer long [4 5]"); got != slow {
			t.Errorf("%s: got %q", what, of(r))
		}
	}
	f("a few delays have most of the lost time", 6, 300_000, false)
	f("a few delays have little of it", 6, 10_000, true)
	f("most calls are delays", 1500, 900, true)
}

func TestSlowPeerDoesNotExplainOthers(t *testing.T) {
	t.Run("not delays as frequent elsewhere", func(t *testing.T) {
		s := quiet()
		for at := trace.Ticks(second); at < 9*second; at += second / 4 {
			s.slow("long", int(at/(second/4))%8, at, 3000)
		}
		got := of(s.concludeWith(slowHost()))
		if !slices.Equal(got, []string{"slow-peer long [4 5]", "recurring long [0 1 2 3 4 5 6 7]"}) {
			t.Error(got)
		}
	})
	t.Run("not delays that are too long", func(t *testing.T) {
		s := quiet()
		s.slowed(3, 5, 4, 5)
		s.slow("short", 4, 4*second, 3_000_000)
		if got := of(s.concludeWith(slowHost())); !slices.Equal(got, []string{"slow-peer long [4 5]", "outlier short [4]"}) {
			t.Error(got)
		}
	})
	t.Run("not places slow at another time", func(t *testing.T) {
		s := quiet()
		s.slowed(7, 9, 4, 5)
		if got := of(s.concludeWith(slowHost())); !slices.Equal(got, []string{"slow-peer long [4 5]", "slow-peer long [4 5]"}) {
			t.Error(got)
		}
	})
	t.Run("not uneven work", func(t *testing.T) {
		s, p := quiet(), slowHost()
		p.Pattern = provenance.ByRole
		s.slowed(3, 5, 4, 5)
		if got := of(s.concludeWith(p)); len(got) != 2 || got[0] != got[1] {
			t.Error(got)
		}
	})
}

// TestSlowCallsOfOneFunctionAreNotASlowPeer has a host on which some calls of one function are slow, and nothing else.
func TestSlowCallsOfOneFunctionAreNotASlowPeer(t *testing.T) {
	s, p := quiet(), slowHost()
	p.Pattern, p.To, p.From, p.Ratio, p.LostOwn = provenance.Always, nil, 0, 1.12, 750_000
	p.Functions = []provenance.SlowFunction{{Func: "short", Calls: 10_000, Mean: 275, Peers: 200, Beyond: 750_000}}
	if got := of(s.concludeWith(p)); !slices.Equal(got, []string{"slow-peer short [4 5]"}) {
		t.Error(got)
	}
	for i := range trace.Ticks(250) {
		s.slow("short", 4+int(i%2), i*second/25, 3000+i%100)
	}
	if got := of(s.concludeWith(p)); !slices.Equal(got, []string{"recurring short [4 5]"}) {
		t.Error(got)
	}
}

// TestSlowFunctionOfAPlaceExplainsItsCallsOnly has a host on which one function is slow, so much that most of its calls are anomalies.
func TestSlowFunctionOfAPlaceExplainsItsCallsOnly(t *testing.T) {
	s, p := quiet(), slowHost()
	p.Ratio, p.LostOwn, p.Functions = 1.2, 600_000, []provenance.SlowFunction{{Func: "short", Calls: 2000, Mean: 500, Peers: 200, Beyond: 600_000}}
	for i := range trace.Ticks(1000) {
		s.slow("short", 4+int(i%2), 3*second+i*second/500, 500)
	}
	s.slow("short", 4, 4*second, 300_000)
	s.slow("long", 5, 4*second, 4000)
	if got := of(s.concludeWith(p)); !slices.Equal(got, []string{"slow-peer short [4 5]", "outlier short [4]", "outlier long [5]"}) {
		t.Error(got)
	}
}

func TestSlowPeerExplainsChangeOfFunction(t *testing.T) {
	s, p := quiet(), slowHost()
	changes := []summary.Change{
		{Function: "long", Kind: "shift", Since: 3*second + 1, Before: 800, After: 1500, Calls: 3000, Lost: 2_100_000},
		{Function: "short", Kind: "shift", Since: 8 * second, Before: 200, After: 300, Calls: 3000, Lost: 300_000},
	}
	r := findings.Conclude(&s.Run, blame.Find(&s.Run), changes, s.profile(), &provenance.Peers{Slow: []provenance.SlowPeer{p}})
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4 5]", "change short []"}) {
		t.Error(got)
	}
}

func TestChangeOfWaitsHasACause(t *testing.T) {
	s := quiet()
	waits := summary.Change{Function: "MPI_Wait()", Kind: "shift", Since: 3*second + 1, Before: 10, After: 800, Calls: 8000, Lost: 6_000_000}
	work := summary.Change{Function: "long", Kind: "shift", Since: 3*second + 1, Before: 800, After: 1500, Calls: 8000, Lost: 6_000_000}
	f := func(what string, cause int, p *provenance.Peers, changes ...summary.Change) {
		t.Helper()
		r := findings.Conclude(&s.Run, blame.Find(&s.Run), changes, s.profile(), p)
		for i := range r.Findings {
			if x := &r.Findings[i]; x.Func == "MPI_Wait()" && (x.Cause != cause || x.Listed() != (cause == 0)) {
				t.Errorf("%s: got %+v", what, x)
			}
		}
	}
	slow := slowHost()
	slow.Pattern, slow.To = provenance.Since, nil
	f("waits alone", 0, nil, waits)
	f("a function that computes longer", 1, nil, waits, work)
	f("a slow host", 1, &provenance.Peers{Slow: []provenance.SlowPeer{slow}}, waits)
	f("a host that was slow before", 0, &provenance.Peers{Slow: []provenance.SlowPeer{slowHost()}}, waits)
	work.Lost = 1_000_000
	f("a function that computes a little longer", 0, nil, waits, work)
}

func TestSlowPeerIsTheCauseOfWaits(t *testing.T) {
	s := quiet()
	s.slowed(3, 5, 4, 5)
	for at := trace.Ticks(3 * second); at < 5*second; at += 20_000 {
		s.slow("MPI_Wait()", 1, at, 2500)
	}
	r := s.concludeWith(slowHost())
	if got := of(r); !slices.Equal(got, []string{"slow-peer long [4 5]", "wait MPI_Wait() [1]"}) {
		t.Fatal(got)
	}
	if r.Findings[0].Waits == 0 || r.Findings[0].LostCaused != 5_400_000 || r.Findings[1].Cause != 1 {
		t.Errorf("got %+v", r.Findings)
	}
}

// TestSlowPeerCausesEvenFewWaits has so few waits that only the late sender shows their cause.
func TestSlowPeerCausesEvenFewWaits(t *testing.T) {
	f := func(sender trace.Rank, at trace.Ticks, want int) {
		t.Helper()
		s := quiet()
		s.slowed(3, 5, 4, 5)
		s.slow("MPI_Wait()", 1, at, 2_500_000)
		w := &s.Anomalies[len(s.Anomalies)-1]
		w.Last = &blame.Message{Partner: sender, Time: w.Exit - 1}
		r := s.concludeWith(slowHost())
		if i := slices.IndexFunc(r.Findings, func(x provenance.Finding) bool { return x.Func == "MPI_Wait()" }); r.Findings[i].Cause != want {
			t.Errorf("a wait for rank %d at %d us: the cause is finding %d, want %d", sender, at, r.Findings[i].Cause, want)
		}
	}
	f(4, 4*second, 1)
	f(2, 4*second, 0)
	f(4, 8*second, 0)
}

// TestSlowPeerExplainsWaitsThatAreNotLonger has waits in collective calls without a known late rank.
func TestSlowPeerExplainsWaitsThatAreNotLonger(t *testing.T) {
	f := func(name string, at, lost trace.Ticks, want int) {
		t.Helper()
		s := quiet()
		s.slowed(3, 5, 4, 5)
		s.slow(name, 1, at, lost)
		s.slow(name, 1, at+600_000, lost)
		r := s.concludeWith(slowHost()) // each of its ranks loses 900 ms
		if i := slices.IndexFunc(r.Findings, func(x provenance.Finding) bool { return x.Func == name }); r.Findings[i].Cause != want {
			t.Errorf("two waits of %d us in %s from %d us on: the cause is finding %d, want %d", lost, name, at, r.Findings[i].Cause, want)
		}
	}
	f("MPI_Allreduce()", 4*second, 440_000, 1)
	f("MPI_Allreduce()", 4*second, 460_000, 0)
	f("MPI_Allreduce()", 8*second, 440_000, 0)
	f("cudaDeviceSynchronize", 4*second, 440_000, 0)
}

// waitForSlowHost has a rank that waits for one of slowHost, and another one that waits for both.
func waitForSlowHost() *scene {
	s := quiet()
	s.slow("MPI_Wait()", 1, 4*second, 25_000)
	w := &s.Anomalies[0]
	w.Last = &blame.Message{Partner: 4, Time: w.Exit - 1}
	s.slow("MPI_Allreduce()", 2, 4*second-500, 25_600)
	return s
}

// TestSlowPeerCausesIndirectWaits has a rank that waits for a slow one, and others that wait for both, one since
// before and one since later.
func TestSlowPeerCausesIndirectWaits(t *testing.T) {
	s := waitForSlowHost()
	s.slow("MPI_Allreduce()", 3, 4*second+500, 24_600)
	r := s.concludeWith(slowHost())
	want := []string{"slow-peer long [4 5]", "wait MPI_Allreduce() [2 3]", "wait MPI_Wait() [1]"}
	if got := of(r); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if r.Findings[1].Cause != 1 || r.Findings[2].Cause != 1 {
		t.Errorf("got %+v", r.Findings)
	}
}

// TestSlowCallIsNotAWaitForASlowPeer has a slow call that is a culprit of the same waits as a larger one, which waits for a slow rank.
func TestSlowCallIsNotAWaitForASlowPeer(t *testing.T) {
	s := waitForSlowHost()
	s.slow("long", 3, 4*second, 20_000)
	r := s.concludeWith(slowHost())
	if got := of(r); !slices.Contains(got, "outlier long [3]") {
		t.Errorf("got %q", got)
	}
}

// TestSlowModeOfARoleIsANote has a rank whose calls are slow throughout its program, which ends before the run.
func TestSlowModeOfARoleIsANote(t *testing.T) {
	s := quiet()
	for i := range trace.Ticks(200) {
		s.slow("long", 0, i*second/40, 3000+i%100)
	}
	s.End = 10 * second
	roles := func(of func(rank trace.Rank) int) *provenance.Peers {
		p := &provenance.Peers{Efficiency: []provenance.Efficiency{{Entire: true, Begin: s.Begin, To: 5}, {PID: 1, Entire: true, To: 10}}}
		for rank := range trace.Rank(8) {
			p.Loads = append(p.Loads, provenance.RankLoad{RID: rank, TID: provenance.AllThreads, Role: of(rank)})
		}
		return p
	}
	for name, test := range map[string]struct {
		peers    *provenance.Peers
		severity provenance.Severity
		place    string
	}{
		"alone has its role": {roles(func(rank trace.Rank) int { return min(2, 1+int(rank)) }), provenance.Note, ", which alone has its role, throughout the run"},
		"one of many":        {roles(func(trace.Rank) int { return 1 }), provenance.Alarm, ", on rank 0 (node0) throughout the run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), test.peers)
			x := &r.Findings[0]
			if x.Kind != provenance.RecurringMode || x.Severity != test.severity || !strings.Contains(x.Summary, test.place) {
				t.Error(x.Kind, x.Severity, x.Summary)
			}
		})
	}
}
