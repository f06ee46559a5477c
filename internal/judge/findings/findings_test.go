package findings_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// second is a second of trace time.
const second = 1_000_000

// scene is a program whose functions are called evenly by all ranks for ten seconds.
type scene struct {
	blame.Run
	paths []provenance.PathStats
	ranks int
	modes []summary.Mode
}

// newScene returns a scene of functions, each described as "name calls exclusive_us" over all ranks.
func newScene(ranks int, functions ...string) *scene {
	s := &scene{Run: blame.Run{Begin: 1, End: 1 + 10*second}, ranks: ranks}
	for i, text := range functions {
		p := provenance.PathStats{Node: i + 1}
		if _, err := fmt.Sscanf(text, "%s %d %d", &p.Func, &p.Calls, &p.Exclusive); err != nil {
			panic(err)
		}
		s.paths = append(s.paths, p)
	}
	return s
}

// slow adds a slow call.
func (s *scene) slow(name string, rank int, at, lost trace.Ticks) {
	s.Anomalies = append(s.Anomalies, s.call(name, rank, at, lost))
}

func (s *scene) call(name string, rank int, at, lost trace.Ticks) blame.Anomaly {
	const usual = 10
	return blame.Anomaly{
		Event: fmt.Sprintf("%d:%s:%d", rank, name, at), Rank: trace.Rank(rank), Host: fmt.Sprint("node", rank/2), Func: name, Path: name,
		Kind: provenance.Slow, Status: provenance.Confirmed, Wait: s.WaitOf(name), Entry: at, Exit: at + lost + usual, Exclusive: lost + usual,
		Lost: lost,
	}
}

func (s *scene) profile() *findings.Profile {
	var ranks []trace.RankKey
	for r := range s.ranks {
		ranks = append(ranks, trace.RankKey{Rank: trace.Rank(r)})
	}
	return findings.NewProfile(s.paths, ranks, s.modes)
}

func (s *scene) conclude() *findings.Result {
	return findings.Conclude(&s.Run, blame.Find(&s.Run), nil, s.profile(), nil)
}

// of returns the findings as "kind function ranks", in order.
func of(r *findings.Result) (list []string) {
	for i := range r.Findings {
		x := &r.Findings[i]
		list = append(list, fmt.Sprint(x.Kind, " ", x.Func, " ", x.Ranks))
	}
	return list
}

func TestLateParty(t *testing.T) {
	const usual = 10
	s := newScene(4, "f 1000 10000", "kernel 1000 10000", "ncclDevKernel_AllReduce 1000 10000", "MPI_Send 1000 10000")
	want := map[string]provenance.Late{
		"f": provenance.LateHost, "kernel": provenance.LateDevice, "ncclDevKernel_AllReduce": provenance.LateCommunication,
		"cudaDeviceSynchronize": provenance.LateDevice, "MPI_Isend": provenance.LateCommunication, "MPI_File_write": provenance.LateHost,
		"forward [PP rank 1]": provenance.LateHost, // because others run on GPUs
	}
	at := trace.Ticks(second)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		s.slow(name, 1, at, 50_000)
		s.Anomalies[len(s.Anomalies)-1].OnDevice = strings.Contains(strings.ToLower(name), "kernel")
		at += second
	}
	change := func(name string) summary.Change {
		return summary.Change{Function: name, Kind: "shift", Since: 5 * second, Before: usual, After: 3 * usual, Calls: 1000, Lost: 20_000}
	}
	changes := []summary.Change{change("gemm"), change("copy"), change("MPI_Allreduce")}
	all := &provenance.Peers{DeviceFunctions: map[trace.FuncKey]bool{{Name: "gemm"}: true}}
	want["gemm"], want["copy"] = provenance.LateDevice, provenance.LateHost
	want["MPI_Allreduce"] = provenance.LateDevice // it waits for gemm
	found := findings.Conclude(&s.Run, blame.Find(&s.Run), changes, s.profile(), all).Findings
	if len(found) != len(want) {
		t.Errorf("%d findings, want %d", len(found), len(want))
	}
	for i := range found {
		if x := &found[i]; x.Late != want[x.Func] {
			t.Errorf("%s of %s: late is %q, want %q", x.Kind, x.Func, x.Late, want[x.Func])
		}
	}
	t.Run("victim has the late party of its cause", func(t *testing.T) {
		s := newScene(2, "f 1000 10000", "MPI_Barrier() 1000 10000")
		s.slow("f", 0, second, 50_000)
		s.slow("MPI_Barrier()", 1, second, 50_000)
		for _, x := range s.conclude().Findings {
			if x.Late != provenance.LateHost {
				t.Errorf("%s: late is %q", x.Summary, x.Late)
			}
		}
	})
	t.Run("empty if unknown", func(t *testing.T) {
		s := newScene(4)
		s.slow("forward [PP rank 1]", 1, second, 50_000) // may be its GPU
		found := findings.Conclude(&s.Run, blame.Find(&s.Run), nil, nil, nil).Findings
		loads := &provenance.Peers{Loads: []provenance.RankLoad{{Device: true}}}
		found = append(found, findings.Conclude(new(blame.Run), nil, changes[:1], nil, loads).Findings...)
		for _, x := range found {
			if x.Late != "" {
				t.Errorf("%s: late is %q", x.Summary, x.Late)
			}
		}
		if len(found) != 2 {
			t.Errorf("%d findings", len(found))
		}
	})
}

func TestUnknownHostsAreLeftOut(t *testing.T) {
	s := newScene(4, "f 1000 10000")
	s.slow("f", 0, second, 5000)
	s.slow("f", 2, 2*second, 5000)
	s.Anomalies[0].Host = "Unknown" // as records have it
	found := s.conclude().Findings
	if len(found) != 1 || !slices.Equal(found[0].Hosts, []string{"node1"}) || len(found[0].Ranks) != 2 {
		t.Errorf("found %+v, want one finding on node1", found)
	}
	s.Anomalies[1].Host = "Unknown"
	if found := s.conclude().Findings; len(found) != 1 || found[0].Hosts == nil || len(found[0].Hosts) != 0 {
		t.Errorf("found %+v, want one finding with an empty list of hosts", found)
	}
}

// delays adds n delays at random times that hit three functions in proportion to their time.
func (s *scene) delays(n int, rng *rand.Rand) {
	for range n {
		name := "long"
		switch x := rng.IntN(100); {
		case x < 10:
			name = "tiny"
		case x < 30:
			name = "short"
		}
		s.slow(name, rng.IntN(s.ranks), trace.Ticks(rng.IntN(10*second)), 3000+trace.Ticks(rng.IntN(2000)))
	}
}

func interrupted() (*scene, *rand.Rand) {
	rng := rand.New(rand.NewPCG(7, 7))
	s := newScene(4, "long 200000 28000000", "short 100000 8000000", "tiny 400000 4000000", "guilty 2000 40000")
	s.delays(100, rng)
	return s, rng
}

func TestInterferenceIsNotBlamedOnFunctions(t *testing.T) {
	s, rng := interrupted()
	for i := range 30 {
		s.slow("guilty", rng.IntN(4), trace.Ticks(rng.IntN(10*second)), 500<<(i%6))
	}
	got := s.conclude()
	want := []string{"interference  [0 1]", "interference  [2 3]", "outlier guilty [0 1 2 3]"}
	if list := of(got); !slices.Equal(slices.Sorted(slices.Values(list)), want) {
		t.Fatalf("got %q, want %q", list, want)
	}
	for i := range got.Findings {
		x := &got.Findings[i]
		if x.Kind == provenance.Interference && (x.Actual < 3000 || x.Actual > 5000 || x.Func != "" || x.Severity != provenance.Alarm) {
			t.Errorf("got %+v", x)
		}
	}
}

func TestPathDelayedMoreOftenThanEachOtherIsToBlame(t *testing.T) {
	f := func(more int, want bool) {
		t.Helper()
		s, rng := interrupted()
		for range more { // of 70 on average
			s.slow("long", rng.IntN(4), trace.Ticks(rng.IntN(10*second)), 3000+trace.Ticks(rng.IntN(2000)))
		}
		if list := of(s.conclude()); slices.Contains(list, "outlier long [0 1 2 3]") != want || slices.Contains(list, "recurring long [0 1 2 3]") {
			t.Errorf("%d more: got %q", more, list)
		}
	}
	f(0, false)
	f(50, false)
	f(250, true)
}

func TestSendsAreInterruptedByWhatTheyWake(t *testing.T) {
	f := func(what, function string, interference bool, want string) {
		t.Helper()
		s, rng := interrupted()
		if !interference {
			s.Anomalies = nil
		}
		s.paths = append(s.paths, provenance.PathStats{Node: len(s.paths) + 1, Func: function, Calls: 20_000, Exclusive: 60_000})
		for range 40 {
			s.slow(function, rng.IntN(4), trace.Ticks(rng.IntN(10*second)), 1000<<rng.IntN(4))
		}
		list := slices.DeleteFunc(of(s.conclude()), func(x string) bool { return strings.HasPrefix(x, "interference ") })
		if got := strings.Join(list, ", "); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	f("a send", "MPI_Isend()", true, "")
	f("a send without interference", "MPI_Isend()", false, "outlier MPI_Isend() [0 1 2 3]")
	f("a file", "MPI_File_write()", true, "outlier MPI_File_write() [0 1 2 3]")
	f("a function", "pack", true, "outlier pack [0 1 2 3]")
}

func TestCostliestDelaysAreNamed(t *testing.T) {
	s, rng := newScene(2, "a 40000 10000000", "b 40000 10000000", "c 40000 10000000"), rand.New(rand.NewPCG(1, 1))
	for i := range 120 {
		s.slow(string("abc"[i%3]), i%2, trace.Ticks(rng.IntN(10*second)), trace.Ticks(1000*math.Pow(1.04, float64(i))))
	}
	got := s.conclude().Findings
	if len(got) != 1 || got[0].Kind != provenance.Interference || !strings.Contains(got[0].Summary, "half of it in 18 delays of at least 54.6 ms") {
		t.Errorf("got %+v", got)
	}
}

// A function that is hit by interference has longer delays of its own.
func TestFunctionIsToBlameForDelaysOfOtherLength(t *testing.T) {
	s, rng := interrupted()
	for range 25 {
		s.slow("short", rng.IntN(4), trace.Ticks(rng.IntN(10*second)), 30_000+trace.Ticks(rng.IntN(3000)))
	}
	got := s.conclude()
	want := []string{"interference  [0 1]", "interference  [2 3]", "outlier short [0 1 2 3]"}
	if list := of(got); !slices.Equal(slices.Sorted(slices.Values(list)), want) {
		t.Fatalf("got %q, want %q", list, want)
	}
	for i := range got.Findings {
		if x := &got.Findings[i]; x.Func == "short" && x.Calls != 25 {
			t.Errorf("%d calls of short are outliers, want 25", x.Calls)
		}
	}
}

// Most of the time is in calls so long that the delays do not show.
func TestHiddenDelaysAreEstimated(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := newScene(1, "long 200000 7000000", "short 100000 2000000", "tiny 400000 1000000", "huge 6000 30000000")
	s.delays(100, rng)
	got := s.conclude().Findings
	if len(got) != 1 || got[0].Kind != provenance.Interference || got[0].Calls != 400 || got[0].LostOwn < 1_500_000 || got[0].LostOwn > 1_700_000 ||
		!strings.Contains(got[0].Summary, "about 400 times (100 visible, the others in long calls), 1") {
		t.Errorf("got %+v", got)
	}
}

// Two delays of a function may have a cause of their own.
func TestInterferenceHitsFunctionsSeveralTimes(t *testing.T) {
	for each, want := range map[int]provenance.FindingKind{2: provenance.Outlier, 3: provenance.Interference} {
		s := newScene(4, "long 200000 28000000", "short 100000 28000000", "tiny 400000 28000000")
		rng := rand.New(rand.NewPCG(7, 8))
		for i := range 6 {
			s.slow("long", i%4, trace.Ticks(rng.IntN(10*second)), 3000)
		}
		for i := range each {
			s.slow("short", i, trace.Ticks(rng.IntN(10*second)), 3000)
			s.slow("tiny", i, trace.Ticks(rng.IntN(10*second)), 3000)
		}
		if got := s.conclude().Findings[0]; got.Kind != want {
			t.Errorf("%d delays: got %s", each, got.Kind)
		}
	}
}

// A function that is hit often does not hide that others are hit as well.
func TestInterferenceHitsOthersThanTheFunctionHitMost(t *testing.T) {
	for n, want := range map[int]provenance.FindingKind{9: provenance.Outlier, 10: provenance.Interference} {
		s := newScene(4, "most 200000 80000000", "often 100000 40000000", "once 50000 2000000", "twice 50000 4000000")
		rng := rand.New(rand.NewPCG(7, 8))
		for i := range 30 + n {
			name := "most"
			switch {
			case i == 0:
				name = "once"
			case i <= 2:
				name = "twice"
			case i < n:
				name = "often"
			}
			s.slow(name, i%4, trace.Ticks(rng.IntN(10*second)), 5000)
		}
		if got := s.conclude().Findings[0]; got.Kind != want {
			t.Errorf("%d delays outside: got %s", n, got.Kind)
		}
	}
}

func TestInterferenceHitsManyFunctionsOnce(t *testing.T) {
	for n, want := range map[int]provenance.FindingKind{9: provenance.Outlier, 10: provenance.Interference} {
		var functions []string
		for i := range n {
			functions = append(functions, fmt.Sprintf("f%d 100000 10000000", i))
		}
		s := newScene(4, functions...)
		for i := range n {
			s.slow(fmt.Sprint("f", i), i%4, trace.Ticks(i)*second/2, 3000)
		}
		s.slow("f0", 0, 9*second, 3000)
		if got := s.conclude().Findings[0]; got.Kind != want {
			t.Errorf("%d functions: got %s", n, got.Kind)
		}
	}
}

// What interrupts one host does not explain a single delay on another.
func TestInterferenceIsOfHostsThatAreInterrupted(t *testing.T) {
	f := func(what string, first trace.Rank, delays int, want ...string) {
		t.Helper()
		s, _ := interrupted()
		s.Anomalies = slices.DeleteFunc(s.Anomalies, func(a blame.Anomaly) bool { return a.Rank < first })
		s.Anomalies = s.Anomalies[:min(delays, len(s.Anomalies))]
		s.slow("long", 0, 5*second, 4000)
		if list := of(s.conclude()); !slices.Equal(slices.Sorted(slices.Values(list)), want) {
			t.Errorf("%s: got %q, want %q", what, list, want)
		}
	}
	f("one of two hosts", 2, 100, "interference  [2 3]", "outlier long [0]")
	f("few delays on each of two hosts", 0, 40, "interference  [0 1]", "interference  [2 3]")
}

// Delays of one function on a rank do not hit whatever runs there, although those on other ranks do.
func TestSlowFunctionOfRankIsNotInterference(t *testing.T) {
	for function, want := range map[string]string{"long": "outlier long [0]", "short": "interference  [0]"} {
		s, rng := interrupted()
		s.Anomalies = nil
		for i := range 26 {
			name := []string{"long", "long", "long", "long", "short", "tiny"}[i%6]
			s.slow(name, 2+i%2, trace.Ticks(rng.IntN(10*second)), 3000+trace.Ticks(rng.IntN(2000)))
		}
		for i := range 10 {
			name := "long"
			if i < 3 {
				name = function
			}
			s.slow(name, 0, 4*second+trace.Ticks(rng.IntN(second)), 5500+trace.Ticks(rng.IntN(500)))
		}
		if list := of(s.conclude()); !slices.Contains(list, want) {
			t.Errorf("7 delays of long and 3 of %s: got %q, want %q", function, list, want)
		}
	}
}

func TestRankWithMoreInterferenceIsNamed(t *testing.T) {
	s, rng := interrupted()
	for range 100 {
		s.slow("long", 1, trace.Ticks(rng.IntN(10*second)), 3000+trace.Ticks(rng.IntN(2000)))
	}
	got := s.conclude()
	if list := of(got); list[0] != "interference  [1]" {
		t.Errorf("got %q", list)
	}
}

// What interrupts one rank does not explain a few delays on another of its host.
func TestInterferenceIsOfRanksThatAreInterrupted(t *testing.T) {
	s, rng := interrupted()
	for i := range s.Anomalies {
		s.Anomalies[i].Rank, s.Anomalies[i].Host = 1, "node0"
	}
	for range 2 {
		s.slow("short", 0, trace.Ticks(rng.IntN(10*second)), 4000)
	}
	want := []string{"interference  [1]", "outlier short [0]"}
	if list := of(s.conclude()); !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
}

// TestInterferenceInsideWaits has a rank that is delayed inside a send, while its partner
// sends to it.
func TestInterferenceInsideWaits(t *testing.T) {
	s, _ := interrupted()
	s.paths = append(s.paths, provenance.PathStats{Node: 9, Func: "MPI_Send()", Calls: 1000, Exclusive: 10_000})
	for rank := range trace.Rank(2) {
		a := s.call("MPI_Send()", int(rank), 5*second+100*trace.Ticks(rank), 4000-100*trace.Ticks(rank))
		a.Last = &blame.Message{Partner: 1 - rank, Sent: true, Time: a.Entry}
		s.Anomalies = append(s.Anomalies, a)
	}
	got := s.conclude()
	if list := of(got); len(list) != 3 || got.Findings[2].Kind != provenance.Waiting || got.Findings[2].Cause == 0 ||
		!slices.Equal(got.Findings[2].Ranks, []trace.Rank{1}) {
		t.Errorf("got %q, %+v", list, got.Findings[2])
	}
}

// Interference inside waits hits ranks as often as elsewhere. If it is always the same one, what it waits for is late.
func TestWaitsOfOneRankAreNotInterference(t *testing.T) {
	for ranks, want := range map[int][]string{
		4: {"interference  [0 1]", "interference  [2 3]"}, 1: {"interference  [0 1]", "interference  [2 3]", "recurring MPI_Send() [0]"},
	} {
		s, _ := interrupted()
		s.paths = append(s.paths, provenance.PathStats{Node: 9, Func: "MPI_Send()", Calls: 1000, Exclusive: 10_000})
		for i := range 60 {
			late := i % ranks
			for k, rank := range []int{late, (late + 1) % 4} {
				a := s.call("MPI_Send()", rank, trace.Ticks(i)*second/6+100*trace.Ticks(k), 4000-100*trace.Ticks(k))
				a.Last = &blame.Message{Partner: trace.Rank(2*late + 1 - rank), Sent: true, Time: a.Entry}
				if late == 3 {
					a.Last.Partner = trace.Rank(3 - rank)
				}
				s.Anomalies = append(s.Anomalies, a)
			}
		}
		got := s.conclude()
		var list []string
		for i, text := range of(got) {
			if got.Findings[i].Cause == 0 {
				list = append(list, text)
			}
		}
		if slices.Sort(list); !slices.Equal(list, want) {
			t.Errorf("delays inside waits of %d ranks: got %q, want %q", ranks, list, want)
		}
	}
}

func TestLongestDelayIsAnOutlier(t *testing.T) {
	s, _ := interrupted()
	s.slow("short", 2, 5*second, 900_000)
	if list := of(s.conclude()); list[0] != "outlier short [2]" || len(list) != 3 {
		t.Errorf("got %q", list)
	}
}

func TestLongDelaysOfARankCountTheirFunctions(t *testing.T) {
	s, _ := interrupted()
	s.slow("short", 2, 5*second, 900_000)
	s.slow("long", 2, 6*second, 800_000)
	x := &s.conclude().Findings[0]
	const want = "short and 1 other function: 2 calls on rank 2 (node1) took about 900 ms longer than usual"
	if !strings.HasPrefix(x.Summary, want) {
		t.Errorf("got %q, want %q", x.Summary, want)
	}
}

func TestSummaryNamesGPUs(t *testing.T) {
	f := func(want string, ranks ...int) {
		t.Helper()
		s := newScene(4, "kernel 20000 2000000")
		for _, rank := range ranks {
			s.slow("kernel", rank, 5*second, 900_000)
			s.Anomalies[len(s.Anomalies)-1].OnDevice = true
		}
		if got := s.conclude().Findings[0].Summary; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	f(" on the GPU of rank 2 (node1) took ", 2)
	f(" on the GPUs of 2 ranks (node0, node1) took ", 1, 2)
}

func TestDelaysOfFewFunctionsAreNotInterference(t *testing.T) {
	s := newScene(2, "long 100000 10000000", "short 100000 5000000")
	for i := range 20 {
		s.slow([]string{"long", "short"}[i%2], i%2, trace.Ticks(i)*second/2, trace.Ticks(1000*(i+1)))
	}
	for _, x := range of(s.conclude()) {
		if strings.HasPrefix(x, "interference") {
			t.Errorf("got %s", x)
		}
	}
}

func TestInterferenceRequiresProfile(t *testing.T) {
	s, _ := interrupted()
	for _, x := range findings.Conclude(&s.Run, blame.Find(&s.Run), nil, nil, nil).Findings {
		if x.Kind != provenance.Outlier {
			t.Errorf("got %+v", x)
		}
	}
}

func TestRecurringMode(t *testing.T) {
	f := func(what string, severity provenance.Severity, period bool, hit func(s *scene, i int) (rank int, at trace.Ticks)) {
		t.Helper()
		s := newScene(4, "work 4000 40000", "rest 1000 30000000")
		for i := range 40 {
			rank, at := hit(s, i)
			s.slow("work", rank, at, 5000+trace.Ticks(i%7))
		}
		got := s.conclude().Findings
		if len(got) != 1 || got[0].Kind != provenance.RecurringMode || got[0].Severity != severity || (got[0].Period != nil) != period {
			t.Fatalf("%s: got %+v", what, got)
		}
		if x := &got[0]; x.Calls != 40 || x.OfCalls != 4000 || x.Expected != 10 || x.Actual < 5000 || x.Actual > 5020 || len(x.Examples) != 5 {
			t.Errorf("%s: got %+v", what, x)
		}
	}
	f("on all ranks", provenance.Note, true, func(_ *scene, i int) (int, trace.Ticks) { return i % 4, trace.Ticks(i/4) * second })
	f("on one rank", provenance.Alarm, true, func(_ *scene, i int) (int, trace.Ticks) { return 2, trace.Ticks(i) * second / 4 })
	f("irregularly", provenance.Note, false, func(_ *scene, i int) (int, trace.Ticks) {
		return i % 4, trace.Ticks(i/4)*second + trace.Ticks(i*i%17)*second/20
	})
	f("in the second half", provenance.Alarm, true, func(_ *scene, i int) (int, trace.Ticks) {
		return i % 4, 5*second + trace.Ticks(i/4)*second/2
	})
}

func TestRareCallsAreOutliersHoweverManyThereAre(t *testing.T) {
	f := func(what string, calls int, kind provenance.FindingKind, severity provenance.Severity, period bool) {
		t.Helper()
		s := newScene(4, fmt.Sprintf("work %d 40000000", calls), "rest 1000 30000000")
		for i := range 40 {
			at := trace.Ticks(i/4) * second
			if !period {
				at += trace.Ticks(i*i%17) * second / 20
			}
			s.slow("work", i%4, at, 5000+trace.Ticks(i%7))
		}
		if got := s.conclude().Findings; len(got) != 1 || got[0].Kind != kind || got[0].Severity != severity {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	f("1 % of the calls", 4000, provenance.RecurringMode, provenance.Note, false)
	f("0.5 % of the calls", 8000, provenance.Outlier, provenance.Alarm, false)
	f("0.01 % of the calls", 400_000, provenance.Outlier, provenance.Alarm, false)
	f("0.01 % of the calls at regular intervals", 400_000, provenance.RecurringMode, provenance.Note, true)
}

func TestLongestOfRecurringCallsIsAnOutlier(t *testing.T) {
	s := newScene(4, "work 4000 40000", "rest 1000 30000000")
	for i := range 40 {
		s.slow("work", i%4, trace.Ticks(i/4)*second, 5000+trace.Ticks(i%7))
	}
	s.slow("work", 3, 4*second+second/2, 2*second)
	got := s.conclude().Findings
	if len(got) != 2 || got[0].Kind != provenance.Outlier || got[0].Calls != 1 || got[0].Actual < 2*second || !slices.Equal(got[0].Ranks, []trace.Rank{3}) ||
		got[1].Kind != provenance.RecurringMode || got[1].Calls != 40 {
		t.Errorf("got %+v", got)
	}
}

func TestExcessWork(t *testing.T) {
	f := func(what string, severity provenance.Severity, words string, rank func(i int) int) {
		t.Helper()
		s := newScene(4, "work 4000 40000", "rest 1000 30000000")
		for i := range 40 {
			s.slow("work", rank(i), trace.Ticks(i/4)*second, 5000)
			a := &s.Anomalies[i]
			a.Kind, a.Calls, a.Exclusive, a.Children, a.UsualChildren = provenance.TooManyCalls, true, 10, 60, 6
		}
		got := s.conclude().Findings
		if len(got) != 1 || got[0].Kind != provenance.ExcessWork || got[0].Severity != severity || got[0].Calls != 40 ||
			!strings.Contains(got[0].Summary, words) {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	f("on all ranks", provenance.Note, "1.0 % of the calls made 60 calls instead of 6 and took 5.01 ms instead of 10 us", func(i int) int { return i % 4 })
	f("on one rank", provenance.Alarm, "on rank 2", func(int) int { return 2 })
}

func TestNonRecurringCallsAreOutliers(t *testing.T) {
	f := func(what string, n int, at func(i int) (at, lost trace.Ticks)) {
		t.Helper()
		s := newScene(1, "work 4000 40000", "rest 1000 9000000")
		for i := range n {
			entry, lost := at(i)
			s.slow("work", 0, entry, lost)
		}
		if got := of(s.conclude()); !slices.Equal(got, []string{"outlier work [0]"}) {
			t.Errorf("%s: got %q", what, got)
		}
	}
	f("nine are too few", 9, func(i int) (trace.Ticks, trace.Ticks) { return trace.Ticks(i) * second, 5000 })
	f("at one time", 40, func(i int) (trace.Ticks, trace.Ticks) { return 3*second + trace.Ticks(i)*10_000, 5000 })
	f("of different lengths", 40, func(i int) (trace.Ticks, trace.Ticks) { return trace.Ticks(i) * second / 4, 500 << (i % 8) })
}

func TestAddressesInNamesDoNotSplitFindings(t *testing.T) {
	s := newScene(2, "work 4000 40000")
	for rank, address := range []string{"0x7f4d9b8d4490", "0x7f0801ed4490"} {
		a := s.call("work", rank, second, 5000)
		a.Path = "[PTHREAD] addr=<" + address + "> > work"
		s.Anomalies = append(s.Anomalies, a)
	}
	if got := s.conclude().Findings; len(got) != 1 || got[0].Path != "[PTHREAD] addr=<0x…> > work" || got[0].Func != "work" {
		t.Errorf("got %+v", got)
	}
}

func TestCostIncludesCausedWaits(t *testing.T) {
	s := newScene(2, "work 4000 1000000", "MPI_Barrier() 4000 1000000")
	s.slow("work", 0, second, 500_000)
	s.slow("MPI_Barrier()", 1, second, 510_000)
	s.slow("MPI_Recv()", 1, second/2, 100_000)
	got := s.conclude().Findings
	if len(got) != 3 {
		t.Fatalf("got %+v", got)
	}
	if x := &got[0]; x.Func != "work" || x.LostOwn != 500_000 || x.LostCaused != 510_000 || x.Lost != 1_010_000 || x.Waits != 1 ||
		x.Share < 0.0504 || x.Share > 0.0506 || !x.Listed() {
		t.Errorf("got %+v", x)
	}
	if x := &got[1]; x.Kind != provenance.Waiting || x.Func != "MPI_Recv()" || x.Cause != 0 || !x.Noted() {
		t.Errorf("got %+v", x)
	}
	if x := &got[2]; x.Kind != provenance.Waiting || x.Cause != 1 || x.Listed() {
		t.Errorf("got %+v", x)
	}
}

func TestCheapFindingsAreMinor(t *testing.T) {
	f := func(lost trace.Ticks, minor bool) {
		t.Helper()
		s := newScene(10, "work 4000 40000")
		s.slow("work", 0, second, lost)
		if x := s.conclude().Findings[0]; x.Minor() != minor || x.Listed() == minor {
			t.Errorf("%d us lost: got %+v", lost, x)
		}
	}
	f(9_900, true) // of 100 s
	f(10_100, false)
}

func TestWithdrawnAnomaliesAreFindings(t *testing.T) {
	s := newScene(2, "work 200 40000")
	s.slow("work", 1, second, 200_000)
	for i := range 50 {
		a := s.call("work", 0, trace.Ticks(i)*second/10, 9000)
		a.Status = provenance.Withdrawn
		s.Withdrawn = append(s.Withdrawn, a)
	}
	got := s.conclude()
	if len(got.Links) != 1 || len(got.Findings) != 2 {
		t.Fatalf("got %+v", got)
	}
	x := got.Findings[1]
	if x.Status != provenance.Withdrawn || x.Calls != 50 || x.Lost != 450_000 || x.Listed() || !strings.Contains(x.Reason, "25.0 %") {
		t.Errorf("got %+v", x)
	}
}

func TestFindingLastsUntilItEnds(t *testing.T) {
	s := newScene(1, "work 4000 40000")
	s.slow("work", 0, 9_900_000, 50_000)
	if x := s.conclude().Findings[0]; x.To == nil || *x.To < 9.9 || x.From < 9.8 || x.Status != provenance.Confirmed {
		t.Errorf("got %+v", x)
	}
	s.Anomalies[0].Status = provenance.Provisional
	if x := s.conclude().Findings[0]; x.To != nil || x.Status != provenance.Provisional {
		t.Errorf("got %+v", x)
	}
	s.End = 20 * second
	if x := s.conclude().Findings[0]; x.To == nil {
		t.Errorf("got %+v", x)
	}
}

func TestFindingsDoNotDependOnOrder(t *testing.T) {
	s, rng := interrupted()
	for i := range 40 {
		s.slow("guilty", i%4, trace.Ticks(i)*second/4, 4000)
		s.slow("MPI_Barrier()", i%4, trace.Ticks(rng.IntN(10*second)), 2000)
		a := s.call("long", i%4, trace.Ticks(i)*second/4, 700)
		a.Status = provenance.Withdrawn
		s.Withdrawn = append(s.Withdrawn, a)
	}
	want := s.conclude().Findings
	for range 20 {
		rng.Shuffle(len(s.Anomalies), func(i, j int) { s.Anomalies[i], s.Anomalies[j] = s.Anomalies[j], s.Anomalies[i] })
		rng.Shuffle(len(s.Withdrawn), func(i, j int) { s.Withdrawn[i], s.Withdrawn[j] = s.Withdrawn[j], s.Withdrawn[i] })
		if got := s.conclude().Findings; !reflect.DeepEqual(got, want) {
			t.Fatalf("in another order:\n got %+v\nwant %+v", got, want)
		}
	}
}

func TestVictimsNameTheirCulprits(t *testing.T) {
	r := run(t, `
		w1 0 - 100..200 90
		w2 1 - 100..220 110
		a1 2 group 110..225 100
		a2 3 group 112..225 98
		w3 1 - 800..880 70
		other 4 - 300..400 50`)
	r.Begin, r.End = 1, 1001
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		a.Func = strings.TrimRight(a.Event, "0123456789")
		a.Path = "main > " + a.Func
	}
	found := findings.Conclude(r, blame.Find(r), nil, nil, nil)
	got := []string{}
	for i := range found.Findings {
		x := &found.Findings[i]
		got = append(got, fmt.Sprintf("%d %s %s %s cause %d: %d calls lost %d, caused %d by %d waits on %d ranks, %v worst %d lost %d, %s",
			x.Number, x.Kind, x.Func, x.Role, x.Cause, x.Calls, x.LostOwn, x.LostCaused, x.Waits, x.WaitRanks, x.Ranks, x.WorstRank, x.WorstTime,
			x.Example()))
	}
	want := []string{
		"1 outlier w culprit cause 0: 3 calls lost 270, caused 198 by 2 waits on 2 ranks, [0 1] worst 1 lost 180, w2",
		"2 outlier other  cause 0: 1 calls lost 50, caused 0 by 0 waits on 0 ranks, [4] worst 4 lost 50, other",
		"3 wait a victim cause 1: 2 calls lost 198, caused 0 by 0 waits on 0 ranks, [2 3] worst 2 lost 100, a1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	one := trace.Rank(1)
	links := []provenance.Link{
		{EventID: "w1", RID: 0, Finding: 1, Role: provenance.Culprit, Culprit: "w2"},
		{EventID: "w2", RID: 1, Finding: 1, Role: provenance.Culprit, Waits: 2, WaitRanks: 2, WaitTime: 198},
		{EventID: "a1", RID: 2, Finding: 3, Role: provenance.Victim, Culprit: "w2", LateRank: &one, Hops: 1},
		{EventID: "a2", RID: 3, Finding: 3, Role: provenance.Victim, Culprit: "w2", LateRank: &one, Hops: 1},
		{EventID: "w3", RID: 1, Finding: 1},
		{EventID: "other", RID: 4, Finding: 2},
	}
	if !reflect.DeepEqual(found.Links, links) {
		t.Errorf("links:\n got %+v\nwant %+v", found.Links, links)
	}
}

func TestLastingChangesAreFindings(t *testing.T) {
	r := run(t, "slow 0 - 100..200 90")
	r.Begin, r.End = 50, 1000
	found := findings.Conclude(r, blame.Find(r), []summary.Change{
		{Program: 1, Function: "solve", Kind: "shift", Since: 500, Before: 10, After: 30, Calls: 40, Lost: 800},
		{Function: "better", Kind: "drift", Since: 600, Before: 30, After: 10, Calls: 7},
	}, nil, nil)
	want := []string{
		"1 change shift alarm solve 800 40 10 30 500..1000", "2 outlier  alarm slow 90 1 10 100 100..200",
		"3 change drift info better 0 7 30 10 600..1000",
	}
	var got []string
	for _, x := range found.Findings {
		got = append(got, fmt.Sprintf("%d %s %s %s %s %d %d %g %g %d..%d", x.Number, x.Kind, x.Form, x.Severity, x.Func, x.Lost, x.Calls, x.Expected,
			x.Actual, x.First, x.Last))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(found.Links) != 1 || found.Findings[0].To != nil {
		t.Errorf("got %d links, want 1; the change must last: %+v", len(found.Links), found.Findings[0])
	}
}

// spread returns slow calls of 10 us at these times of a run of a second.
func spread(rank trace.Rank, times ...trace.Ticks) *blame.Run {
	r := &blame.Run{End: 1_000_000, Begin: 1}
	for i, at := range times {
		r.Anomalies = append(r.Anomalies, blame.Anomaly{
			Event: fmt.Sprint(i), Rank: rank, Func: "f", Path: "f", Kind: provenance.Slow, Entry: at, Exit: at + 10, Lost: 5,
		})
	}
	return r
}

func TestBurst(t *testing.T) {
	every := func(n int, from, step trace.Ticks) (times []trace.Ticks) {
		for i := range n {
			times = append(times, from+trace.Ticks(i)*step)
		}
		return times
	}
	f := func(what string, r *blame.Run, form provenance.Form, trend provenance.Trend) {
		t.Helper()
		found := findings.Conclude(r, blame.Find(r), nil, nil, nil)
		if len(found.Findings) != 1 || found.Findings[0].Form != form || found.Findings[0].Trend != trend {
			t.Errorf("%s: got %+v, want %q, %q", what, found.Findings, form, trend)
		}
	}
	f("five in a row", spread(0, every(5, 300_000, 100)...), provenance.Burst, provenance.Fewer)
	f("four are too few", spread(0, every(4, 300_000, 100)...), "", "")
	f("twice five in a row", spread(0, append(every(5, 100_000, 100), every(5, 900_000, 100)...)...), provenance.Burst, provenance.Steady)
	f("for a tenth of the run", spread(0, every(20, 500_000, 5_000)...), provenance.Burst, provenance.More)
	f("for a third of the run", spread(0, every(70, 500_000, 5_000)...), "", provenance.More)
	f("now and then", spread(0, every(20, 1, 50_000)...), "", provenance.Steady)
	f("mostly in a row", spread(0, append(every(19, 600_000, 100), 100)...), provenance.Burst, provenance.More)
	f("half of them in a row", spread(0, append(every(10, 100, 40_000), every(10, 600_000, 100)...)...), "", provenance.Steady)

	ranks := spread(0, every(8, 300_000, 100)...)
	for i := range ranks.Anomalies {
		ranks.Anomalies[i].Rank = trace.Rank(i)
	}
	f("one on each of eight ranks", ranks, "", provenance.Fewer)

	f("nothing is known of the run", &blame.Run{Anomalies: spread(0, 7).Anomalies}, "", "")
}

func TestManyAnomaliesAreFewFindings(t *testing.T) {
	r := many(1000, 50, 20)
	found := findings.Conclude(r, blame.Find(r), nil, nil, nil)
	if len(r.Anomalies) < 50_000 || len(found.Findings) > 20 {
		t.Errorf("%d anomalies became %d findings", len(r.Anomalies), len(found.Findings))
	}
	if first := found.Findings[0]; first.Func != "compute" || first.WaitRanks != 999 || first.WorstRank != 500 {
		t.Errorf("got %+v", first)
	}
}

// many returns the anomalies of a program in which rank 500 is slow: of so many ranks
// all others wait for it in each of so many iterations, in which it makes so many
// slow calls; its neighbors also wait for its messages.
func many(ranks, iterations, slow int) *blame.Run {
	r := new(blame.Run)
	const late = 500
	add := func(rank int, name string, wait blame.Wait, entry, exit trace.Ticks, last *blame.Message) {
		r.Anomalies = append(r.Anomalies, blame.Anomaly{
			Event: fmt.Sprintf("%d:%d:%d", rank, entry, len(r.Anomalies)), Rank: trace.Rank(rank), Func: name, Path: "main > " + name,
			Host: fmt.Sprint("node", rank/64), Kind: provenance.Slow, Wait: wait, Entry: entry, Exit: exit, Lost: (exit - entry) * 9 / 10,
			Last: last,
		})
	}
	for i := range iterations {
		begin := trace.Ticks(1_000_000 + i*10_000)
		for j := range slow {
			at := begin + trace.Ticks(j*400)
			add(late, "compute", blame.Nothing, at, at+400, nil)
		}
		end := begin + trace.Ticks(slow*400)
		add(late-1, "MPI_Waitall()", blame.Ranks, begin+50, end, &blame.Message{Partner: late, Time: end - 1})
		add(late+1, "MPI_Waitall()", blame.Ranks, begin+50, end, &blame.Message{Partner: late, Time: end - 1})
		for rank := range ranks {
			if rank != late && rank != late-1 && rank != late+1 {
				add(rank, "MPI_Allreduce()", blame.Group, begin+trace.Ticks(100+rank%7), end+100+trace.Ticks(rank%5), nil)
			}
		}
	}
	return r
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []struct{ ranks, iterations, slow int }{{1000, 50, 20}, {1000, 5, 20}, {504, 100, 20}} {
		r := many(c.ranks, c.iterations, c.slow)
		b.Run(fmt.Sprint(len(r.Anomalies)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				blame.Find(r)
			}
			b.ReportMetric(float64(len(r.Anomalies))*float64(b.N)/b.Elapsed().Seconds(), "anomalies/s")
		})
	}
}

func BenchmarkConclude(b *testing.B) {
	r := many(1000, 50, 20)
	links := blame.Find(r)
	b.ReportAllocs()
	for b.Loop() {
		findings.Conclude(r, links, nil, nil, nil)
	}
	b.ReportMetric(float64(len(r.Anomalies))*float64(b.N)/b.Elapsed().Seconds(), "anomalies/s")
}

// anomaly reads one of the form
//
//	NAME rank[.thread][@program] WAIT entry..exit lost [<partner/tag@time] [>partner/tag@time] [gpu] [calls] [after time]
//
// in which WAIT is -, ranks, group, device, threads or program.
func anomaly(t testing.TB, text string) blame.Anomaly {
	t.Helper()
	words := strings.Fields(text)
	a := blame.Anomaly{Event: words[0], Func: words[0], Path: "main > " + words[0], Host: "node", Kind: provenance.Slow}
	scan := func(text, format string, into ...any) {
		if _, err := fmt.Sscanf(text, format, into...); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	place, program, ok := strings.Cut(words[1], "@")
	if ok {
		scan(program, "%d", &a.Program)
	}
	if rank, thread, ok := strings.Cut(place, "."); ok {
		place = rank
		scan(thread, "%d", &a.Thread)
	}
	scan(place, "%d", &a.Rank)
	a.Wait = blame.Wait(slices.Index([]string{"-", "ranks", "group", "device", "threads", "program"}, words[2]))
	scan(words[3], "%d..%d", &a.Entry, &a.Exit)
	scan(words[4], "%d", &a.Lost)
	for i := 5; i < len(words); i++ {
		switch w := words[i]; w {
		case "gpu":
			a.OnDevice = true
		case "calls":
			a.Calls = true
		case "after":
			i++
			scan(words[i], "%d", &a.InStep)
		default:
			a.Last = &blame.Message{Sent: w[0] == '>'}
			scan(w[1:], "%d/%d@%d", &a.Last.Partner, &a.Last.Tag, &a.Last.Time)
		}
	}
	return a
}

// run reads anomalies, one per line; a line that begins with send is a message: send
// from>to/tag@time until time.
func run(t testing.TB, text string) *blame.Run {
	t.Helper()
	r := new(blame.Run)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		var s blame.Send
		switch n, _ := fmt.Sscanf(line, "send %d>%d/%d@%d until %d", &s.From, &s.To, &s.Tag, &s.Time, &s.Until); {
		case n == 5:
			r.Sends = append(r.Sends, s)
		case line != "":
			r.Anomalies = append(r.Anomalies, anomaly(t, line))
		}
	}
	return r
}

// FuzzConclude groups anomalies of any kind and checks that the result is consistent and does not
// depend on their order.
func FuzzConclude(f *testing.F) {
	f.Add(uint64(1), uint8(30))
	f.Add(uint64(2), uint8(200))
	f.Add(uint64(99), uint8(228)) // delays that hide in longer calls are estimated
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := new(blame.Run)
		for i := range int(n) {
			a := blame.Anomaly{
				Event: fmt.Sprint(i), Program: trace.Program(rng.IntN(2)), Rank: trace.Rank(rng.IntN(4)), Thread: trace.Thread(rng.IntN(3)),
				Func: fmt.Sprint("f", rng.IntN(5)), Path: fmt.Sprint("f", rng.IntN(5)), Wait: blame.Wait(rng.IntN(6)), OnDevice: rng.IntN(4) == 0, Calls: rng.IntN(4) == 0,
				Entry: trace.Ticks(rng.IntN(1000)), Lost: trace.Ticks(rng.IntN(200)), InStep: trace.Ticks(rng.IntN(1000)),
			}
			a.Exit = a.Entry + trace.Ticks(rng.IntN(300)) - 10
			if rng.IntN(2) == 0 {
				a.Last = &blame.Message{
					Partner: trace.Rank(rng.IntN(4)), Sent: rng.IntN(3) == 0, Tag: int32(rng.IntN(2)),
					Time: trace.Ticks(rng.IntN(1300)),
				}
				r.Sends = append(r.Sends, blame.Send{
					From: trace.Rank(rng.IntN(4)), To: trace.Rank(rng.IntN(4)), Tag: int32(rng.IntN(2)),
					Time: trace.Ticks(rng.IntN(1300)), Until: 1500,
				})
			}
			r.Anomalies = append(r.Anomalies, a)
		}
		paths := []provenance.PathStats{}
		for i := range 5 {
			paths = append(paths, provenance.PathStats{
				Node: i + 1, Func: fmt.Sprint("f", i), Calls: int64(rng.IntN(10000)), Exclusive: trace.Ticks(rng.IntN(100_000)),
			})
		}
		profile := findings.NewProfile(paths, []trace.RankKey{{Rank: 0}, {Rank: 1}, {Rank: 2}, {Rank: 3}}, nil)
		links := blame.Find(r)
		found := findings.Conclude(r, links, nil, profile, nil)
		var anomalies, waits int64
		for i, finding := range found.Findings {
			own := int64(0)
			for _, l := range found.Links {
				if l.Finding == finding.Number {
					own++
				}
			}
			if finding.Calls < own || slices.Max(finding.OverTime) > own {
				t.Fatalf("%d calls with %d anomalies: %+v", finding.Calls, own, finding)
			}
			anomalies += own
			waits += finding.Waits
			if finding.Number != i+1 || finding.Cause > 0 && found.Findings[finding.Cause-1].Role != provenance.Culprit || finding.Cause >= finding.Number {
				t.Fatalf("%+v", finding)
			}
		}
		for _, l := range found.Links {
			waits -= l.Waits
		}
		if anomalies != int64(n) || waits != 0 {
			t.Fatalf("%d anomalies, want %d; %d waits are missing", anomalies, n, waits)
		}
		rng.Shuffle(len(r.Anomalies), func(i, j int) { r.Anomalies[i], r.Anomalies[j] = r.Anomalies[j], r.Anomalies[i] })
		if got := findings.Conclude(r, blame.Find(r), nil, profile, nil); !reflect.DeepEqual(got.Findings, found.Findings) {
			t.Fatalf("in another order:\n got %+v\nwant %+v", got.Findings, found.Findings)
		}
	})
}

func TestSlowModeDoesNotHideInterferenceOfItsPath(t *testing.T) {
	s, rng := interrupted()
	before := of(s.conclude())
	for range 400 {
		s.slow("short", rng.IntN(s.ranks), trace.Ticks(rng.IntN(10*second)), 300)
		s.Anomalies[len(s.Anomalies)-1].Kind = provenance.Recurring
	}
	got := of(s.conclude())
	for _, x := range before {
		if !slices.Contains(got, x) {
			t.Errorf("%q is missing in %q", x, got)
		}
	}
	if len(got) != len(before)+1 || !slices.ContainsFunc(got, func(x string) bool { return strings.HasPrefix(x, "recurring short") }) {
		t.Errorf("%q", got)
	}
}
