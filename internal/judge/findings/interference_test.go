package findings_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Time slices of 40 ms or more are too long to be like delays of 4 ms. They are interference of their own if they hit whatever runs,
// too.
func TestLongDelaysThatHitWhateverRunsAreInterferenceOfTheirOwn(t *testing.T) {
	for _, lost := range []trace.Ticks{40_000, 150_000} {
		s, rng := interrupted()
		s.delays(900, rng)
		for i := range 60 {
			name := []string{"tiny", "short", "short", "long", "long"}[i%5]
			s.slow(name, i%4, trace.Ticks(rng.IntN(10*second)), lost+trace.Ticks(i))
		}
		got := s.conclude()
		var forms []provenance.Form
		for _, f := range got.Findings {
			forms = append(forms, f.Form)
		}
		slices.Sort(forms)
		want := []string{"interference  [0 1]", "interference  [0 1]", "interference  [2 3]", "interference  [2 3]"}
		if list := of(got); !slices.Equal(slices.Sorted(slices.Values(list)), want) ||
			!slices.Equal(forms, []provenance.Form{"", "", provenance.Long, provenance.Long}) {
			t.Errorf("60 delays of %d: got %q with the forms %q", lost, list, forms)
		}
		if keys := findings.Keys(got.Findings); len(slices.Compact(slices.Sorted(slices.Values(keys)))) != len(keys) {
			t.Errorf("60 delays of %d: two findings have the same key", lost)
		}
	}
}

// A rank that is stopped for a moment now and then is named, although shorter delays hit other ranks more.
func TestRankWithLongDelaysIsNamed(t *testing.T) {
	for ranks, want := range map[int]bool{1: true, 2: false} {
		s, rng := interrupted()
		s.Anomalies = nil
		s.delays(415, rng)
		for i := range s.Anomalies {
			a := &s.Anomalies[i]
			rank, lost := min(i%8, 1), 250*math.Exp2(6*rng.Float64())
			if i < 15 {
				rank, lost = i%ranks, 20_000*(1+rng.Float64())
			}
			*a = s.call(a.Func, rank, a.Entry, trace.Ticks(lost))
		}
		got := s.conclude()
		named := slices.ContainsFunc(got.Findings, func(f provenance.Finding) bool {
			return f.Kind == provenance.Outlier && slices.Equal(f.Ranks, []trace.Rank{0}) && f.Calls == 15
		})
		if named != want {
			t.Errorf("long delays on %d ranks: got %q", ranks, of(got))
		}
	}
}

// A rank that waits most is most often interrupted while it waits.
func TestRankThatWaitsMostIsInterruptedInWaits(t *testing.T) {
	for wait, want := range map[trace.Ticks]int{9 * second: 0, 2 * second: 1} {
		s, _ := interrupted()
		s.paths = append(s.paths, provenance.PathStats{Node: 9, Func: "MPI_Send()", Calls: 1000, Exclusive: 10_000})
		for i := range trace.Ticks(60) {
			for rank := range trace.Rank(2) {
				a := s.call("MPI_Send()", int(rank), i*second/6+100*trace.Ticks(rank), 4000-100*trace.Ticks(rank))
				a.Last = &blame.Message{Partner: 1 - rank, Sent: true, Time: a.Entry}
				s.Anomalies = append(s.Anomalies, a)
			}
		}
		all := &provenance.Peers{}
		for rank := range trace.Rank(4) {
			l := provenance.RankLoad{RID: rank, TID: provenance.AllThreads, Wait: second}
			if rank == 0 {
				l.Wait = wait
			}
			all.Loads = append(all.Loads, l)
		}
		got := findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), all)
		own := 0
		for _, f := range got.Findings {
			if f.Kind != provenance.Interference && f.Cause == 0 {
				own++
			}
		}
		if own != want {
			t.Errorf("rank 0 waits for %d: got %q, want %d findings besides interference", wait, of(got), want)
		}
	}
}

// Ranks that are held up in collective calls show interference if two other functions are hit, too.
func TestRanksHeldUpInCollectiveCallsShowInterference(t *testing.T) {
	for heldUp, want := range map[int]bool{7: true, 2: false} {
		s := newScene(2, "one 100000 40000000", "two 100000 40000000")
		s.paths = append(s.paths, provenance.PathStats{Node: 3, Func: "MPI Collective Sync", Calls: 1000, Exclusive: 10_000},
			provenance.PathStats{Node: 4, Func: "MPI_Allreduce()", Calls: 1000, Exclusive: 10_000})
		for i := range 10 {
			s.slow([]string{"one", "two"}[i%2], i/2%2, trace.Ticks(i)*second/2, 5000)
		}
		for i := range trace.Ticks(heldUp) {
			rank := int(i % 2)
			at := (2*i + 1) * second / 4
			late, early := s.call("MPI Collective Sync", rank, at, 5000), s.call("MPI_Allreduce()", 1-rank, at+50, 4900)
			early.LeftStep("MPI Collective Sync", at+40)
			s.Anomalies = append(s.Anomalies, late, early)
		}
		got := s.conclude()
		found := slices.ContainsFunc(got.Findings, func(f provenance.Finding) bool { return f.Kind == provenance.Interference })
		if found != want {
			t.Errorf("held up %d times: got %q", heldUp, of(got))
		}
	}
}

// Delays of one kind are a little longer in one function than in others. Nothing depends on where this difference lies, for
// example at a power of two.
func TestDelaysThatDifferLittleAreOfOneKind(t *testing.T) {
	for eighth := range 9 {
		s, rng := newScene(4, "long 200000 28000000", "short 100000 8000000", "tiny 400000 4000000"), rand.New(rand.NewPCG(3, 3))
		scale := math.Exp2(float64(eighth) / 8)
		s.delays(900, rng)
		for i := range s.Anomalies {
			a := &s.Anomalies[i]
			lost := 3850 + rng.IntN(230)
			if a.Func == "long" {
				lost += 130
			}
			*a = s.call(a.Func, int(a.Rank), a.Entry, trace.Ticks(scale*float64(lost)))
		}
		if list := of(s.conclude()); !slices.Equal(slices.Sorted(slices.Values(list)), []string{"interference  [0 1]", "interference  [2 3]"}) {
			t.Errorf("delays of %.0f: got %q", 3850*scale, list)
		}
	}
}

// Delays of less than 520 are not flagged in a function whose calls vary.
func TestDelaysTooShortToFlagElsewhereAreInterference(t *testing.T) {
	s, rng := newScene(4, "varying 400000 30000000", "steady 200000 15000000", "other 30000 1500000"), rand.New(rand.NewPCG(5, 5))
	for range 1500 {
		name, lost := []string{"varying", "steady"}[rng.IntN(3)/2], trace.Ticks(200*math.Exp2(3*rng.Float64()))
		if rng.IntN(30) == 0 {
			name = "other"
		}
		if name == "steady" || lost > 520 {
			s.slow(name, rng.IntN(4), trace.Ticks(rng.IntN(10*second)), lost)
		}
	}
	if list := of(s.conclude()); slices.ContainsFunc(list, func(x string) bool { return x[0] != 'i' }) {
		t.Errorf("got %q", list)
	}
}
