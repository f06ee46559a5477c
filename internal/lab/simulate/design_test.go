package simulate_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestExcessWorkMakesMoreCalls checks that an affected call makes ten times its calls,
// that its own time and that of everything else stays the same, and that the truth has
// the time of the additional calls.
func TestExcessWorkMakesMoreCalls(t *testing.T) {
	s := parse(t, busy+`
[[trouble]]
name = "it"
kind = "excess-work"
ranks = [1, 2]
functions = ["tidy"]
from = 0.06
to = 0.12
chance = 0.3
factor = 10
`)
	struck := make(map[trace.Rank]int)
	waits := waiting(s)
	compare(t, s, func(r *traced, c *compared) {
		if c.own != c.quiet.own && !waits[c.function] {
			t.Errorf("rank %d: the own time of %s is %d, without trouble %d", r.rank, c.function, c.own, c.quiet.own)
		}
		if c.excess() == 0 {
			return
		}
		struck[r.rank]++
		l := c.listed[0]
		since := c.exit - start(s)
		if c.function != "tidy" || c.quiet.inside != 1 || c.inside != 10 || len(c.listed) != 1 || l.Role != truth.Cause ||
			l.Injected != c.took()-c.quiet.took() || l.Injected < 9*10 || l.Injected > 9*30 || since < 60_000 || c.entry-start(s) >= 120_000 {
			t.Errorf("rank %d: %s makes %d calls at %d us, the truth is %+v", r.rank, c.function, c.inside, since, c.listed)
		}
	})
	if len(struck) != 2 || struck[1] < 3 || struck[2] < 3 {
		t.Errorf("it strikes ranks and calls %v, want ranks 1 and 2", struck)
	}
	checkAllLonger(t, s)
}

// TestRareCallsAreAdded checks that a trouble adds as many calls as it may, and changes nothing else but waits.
func TestRareCallsAreAdded(t *testing.T) {
	s := parse(t, strings.Replace(busy, "[program.functions]", "[program.functions]\nretry = { time = { fixed = 2000 } }", 1)+`
[[trouble]]
name = "it"
kind = "rare-call"
ranks = [1, 2]
caller = "tidy"
functions = ["retry"]
from = 0.06
to = 0.2
chance = 0.3
count = 3
`)
	for _, r := range record(t, s) {
		calls := r.of("retry")
		want := 0
		if r.rank == 1 || r.rank == 2 {
			want = 3
		}
		if len(calls) != want {
			t.Errorf("rank %d makes %d calls, want %d", r.rank, len(calls), want)
		}
		for _, c := range calls {
			if since := c.entry - start(s); c.own != 2000 || since < 60_000 || since >= 200_000 {
				t.Errorf("rank %d: a call takes %d us at %d us", r.rank, c.own, since)
			}
		}
	}
	waits := waiting(s)
	compare(t, s, func(r *traced, c *compared) {
		if c.own != c.quiet.own && !waits[c.function] || c.inside != c.quiet.inside {
			t.Errorf("rank %d: %s takes %d and makes %d calls, without trouble %d and %d", r.rank, c.function, c.own, c.inside, c.quiet.own,
				c.quiet.inside)
		}
	})
	checkAllLonger(t, s)
}

// TestRandomNoiseHitsInProportionToTime checks that longer functions are interrupted more
// often, that ranks are interrupted independently, and how much time is lost.
func TestRandomNoiseHitsInProportionToTime(t *testing.T) {
	s := parse(t, plain+"kind = \"os-noise\"\nrandom = true\nperiod = 0.004\nextra = { fixed = 500 }\n")
	s.Steps, s.Troubles[0].FromSeconds = 100, 0
	hits := make(map[string]float64)
	times := make(map[trace.Rank][]trace.Ticks)
	var ran, lost float64
	for _, r := range record(t, s) {
		for _, c := range r.calls {
			if strings.Contains("one two three launch", c.function) {
				ran += float64(c.own)
			}
		}
		for _, l := range r.truth {
			if l.Role == truth.Cause {
				hits[l.Function] += float64(l.Injected) / 500
				times[r.rank] = append(times[r.rank], l.Entry)
				lost += float64(l.Injected)
			}
		}
	}
	if share := lost / (ran - lost); math.Abs(share-0.125) > 0.01 {
		t.Errorf("the share of lost time is %.3f, want 0.125", share)
	}
	for function, millis := range map[string]float64{"one": 1, "two": 2, "three": 3} {
		// 1000 iterations of 4 ranks, and one interruption in 4 ms
		if want := 1000 * millis; math.Abs(hits[function]-want) > 5*math.Sqrt(want) {
			t.Errorf("%s is interrupted %g times, want about %g", function, hits[function], want)
		}
	}
	if slices.Equal(times[0], times[1]) || len(times) != 4 {
		t.Errorf("%d ranks are interrupted, all at the same times", len(times))
	}
}

func TestPartsOfIterations(t *testing.T) {
	s := parse(t, `
steps = 10
iterations = 5
[[program]]
name = "p"
ranks = 2
setup = ["first"]
body = ["first", "second", "odd"]
finish = ["second"]
[program.functions]
first = { part = [0, 0.3], name = "f", time = { fixed = 100 }, calls = ["g"] }
second = { part = [0.3, 1], name = "f", time = { fixed = 300 } }
odd = { every = 10, part = [0.5, 0.9], time = { fixed = 10 } }
g = { time = { fixed = 7 } }
`)
	for _, r := range record(t, s) {
		var got []trace.Ticks
		for _, c := range r.of("f") {
			got = append(got, c.own)
		}
		want := slices.Concat(slices.Repeat([]trace.Ticks{100}, 15), slices.Repeat([]trace.Ticks{300}, 35))
		if !slices.Equal(got, want) || len(r.of("g")) != 15 {
			t.Errorf("rank %d: f takes %v, and g is called %d times", r.rank, got, len(r.of("g")))
		}
		if odd := r.of("odd"); len(odd) != 2 || odd[0].step != 6 || odd[1].step != 8 {
			t.Errorf("rank %d: odd is called %d times, want in the iterations 30 and 40", r.rank, len(odd))
		}
	}
}

func TestFunctionsOfSomeRanks(t *testing.T) {
	s := parse(t, `
steps = 10
[[program]]
name = "p"
ranks = 8
setup = ["some"]
body = ["some", "uneven", "all"]
[program.functions]
some = { rank_part = [0.25, 0.5], time = { fixed = 100 } }
uneven = { spread = 0.5, time = { fixed = 1000 } }
all = { kind = "collective" }
`)
	times := make(map[trace.Ticks]bool)
	for _, r := range record(t, s) {
		want := 0
		if r.rank == 2 || r.rank == 3 {
			want = 11
		}
		if got := len(r.of("some")); got != want {
			t.Errorf("rank %d calls it %d times, want %d", r.rank, got, want)
		}
		first := r.of("uneven")[0].own
		for _, c := range r.of("uneven") {
			if c.own != first || c.own < 1000 || c.own > 1500 {
				t.Errorf("rank %d: a call takes %d us, the first takes %d us", r.rank, c.own, first)
			}
		}
		times[first] = true
	}
	if len(times) != 8 {
		t.Errorf("8 ranks have %d different times", len(times))
	}
}

// TestSavedTimeIsThatOfRunWithoutTrouble compares the end of the run with that of one whose
// scenario lacks the trouble.
func TestSavedTimeIsThatOfRunWithoutTrouble(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	end := func(t *testing.T, s *scenario.Scenario) (last trace.Ticks) {
		t.Helper()
		for _, r := range record(t, s) {
			last = max(last, r.ends[len(r.ends)-1])
		}
		return last
	}
	check := func(t *testing.T, s *scenario.Scenario) {
		t.Helper()
		for i, of := range simulate.New(s).Troubles() {
			other := *s
			other.Troubles = slices.Delete(slices.Clone(s.Troubles), i, i+1)
			if want := end(t, s) - end(t, &other); of.Saved == nil || *of.Saved != want {
				t.Errorf("%s: without it the run is %v us shorter, want %d", of.Name, of.Saved, want)
			}
		}
	}
	for _, kind := range someTroubles() {
		check(t, troubled(t, kind))
	}
	each(t, func(t *testing.T, s *scenario.Scenario) {
		if s.Name != "threads" { // both of its troubles draw random numbers on one rank
			check(t, s)
		}
	})
}

// TestLostTimeIsSumOfCauses compares the time that each trouble costs with the calls that
// the truth lists, if it lists all.
func TestLostTimeIsSumOfCauses(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	check := func(t *testing.T, s *scenario.Scenario) {
		t.Helper()
		s.NotableMicros, s.NotableShare = 0, 0
		causes := make(map[string]trace.Ticks)
		for _, r := range record(t, s) {
			for _, c := range r.truth {
				if c.Role == truth.Cause {
					causes[c.Trouble] += c.Injected
				}
			}
		}
		for _, of := range simulate.New(s).Troubles() {
			if lasting := of.Kind == "level-shift" || of.Kind == "drift"; !lasting && of.Lost != causes[of.Name] || lasting && of.Lost <= 0 {
				t.Errorf("%s costs %d us, its causes %d us", of.Kind, of.Lost, causes[of.Name])
			}
		}
	}
	for _, kind := range someTroubles() {
		check(t, troubled(t, kind))
	}
	each(t, check)
}

// TestLostTimeOfLevelShift has one rank: the trouble costs what the run takes longer.
func TestLostTimeOfLevelShift(t *testing.T) {
	s := parse(t, alone+"[[trouble]]\nname = \"it\"\nkind = \"level-shift\"\nfunctions = [\"f\"]\nfrom = 0.05\nfactor = 2\n")
	with, quiet := record(t, s)[0].ends, record(t, without(s))[0].ends
	want := with[len(with)-1] - quiet[len(quiet)-1]
	if got := simulate.New(s).Troubles()[0].Lost; got != want || want < 1000 {
		t.Errorf("it costs %d us, the run takes %d us longer", got, want)
	}
}

// TestBuiltInScenariosHaveExpectedFindings checks which kinds of finding are right, and which
// troubles are only informational.
func TestBuiltInScenariosHaveExpectedFindings(t *testing.T) {
	tracetest.SkipShort(t, "simulates large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	got := make(map[string]string)
	for _, name := range scenario.Names() {
		if name == "scale" {
			continue // as slow-rank
		}
		s, _, err := scenario.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = ""
		for _, of := range simulate.New(s).Troubles() {
			got[name] += fmt.Sprint(of.Findings)
			if of.Informational {
				got[name] += " informational"
			}
			if of.Lost == 0 {
				t.Errorf("%s: %s costs %d us", name, of.Name, of.Lost)
			}
		}
	}
	for name, want := range map[string]string{
		"slow-mode": "[recurring] informational", "slow-mode-host": "[recurring]", "excess-work": "[excess-work]",
		"preemption": "[interference]", "os-noise": "[interference]", "slow-from-start": "[slow-peer recurring]",
		"slow-rank": "[slow-peer change]", "slow-host": "[slow-peer change]", "level-shift": "[change]", "drift": "[change]",
		"clean": "", "second-mode": "", "rare-by-design": "", "rare-call": "[outlier][outlier]", "role-imbalance": "", "uneven-gpus": "", "refinement": "", "phases": "", "repeated": "[outlier recurring]",
	} {
		if got[name] != want {
			t.Errorf("%s: the right findings are %s, want %s", name, got[name], want)
		}
		delete(got, name)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] == "" || strings.Contains(got[name], "informational") {
			t.Errorf("%s: the right findings are %s", name, got[name])
		}
	}
}

// TestDesignOfWorkloads checks the figures that the comments of scenarios claim.
func TestDesignOfWorkloads(t *testing.T) {
	tracetest.SkipShort(t, "simulates large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	all := make(map[string][]*traced)
	for _, name := range []string{
		"excess-work", "phases", "preemption", "refinement", "second-mode", "slow-from-start", "slow-mode", "slow-mode-host",
	} {
		s, _, err := scenario.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = record(t, s)
		ends := all[name][0].ends
		if end := ends[len(ends)-1] - start(s); end < 10_000_000 || end > 30_000_000 {
			t.Errorf("%s takes %d us, want 10 to 30 s", name, end)
		}
	}
	for name, slow := range map[string][]trace.Rank{"slow-mode": {0, 1, 2, 3, 4, 5, 6, 7}, "slow-mode-host": {4, 5}} {
		for _, r := range all[name] {
			long, early := shareOf(r.of("integrate_cell"), 3000)
			if here := slices.Contains(slow, r.rank); here && (long < 0.03 || long > 0.05 || early < 0.005) || !here && long > 0 {
				t.Errorf("%s: rank %d: %.3f of the calls are long, %.3f in the first quarter", name, r.rank, long, early)
			}
		}
	}
	for _, r := range all["second-mode"] {
		if long, early := shareOf(r.of("lookup"), 800); long < 0.01 || long > 0.03 || early < 0.002 {
			t.Errorf("second-mode: rank %d: %.3f of the calls are long, %.3f in the first quarter", r.rank, long, early)
		}
	}
	usual, slow := all["slow-from-start"][4].of("update_block"), all["slow-from-start"][5].of("update_block")
	for _, i := range []int{0, len(slow) / 2, len(slow) - 1} {
		if slow[i].own < usual[i].own*5/4 {
			t.Errorf("slow-from-start: call %d of rank 5 takes %d, of rank 4 %d", i, slow[i].own, usual[i].own)
		}
	}
	steps := all["refinement"][0].of("time_step")
	if first, last := steps[0], steps[len(steps)-1]; last.took() < 2*first.took() || last.inside < 2*first.inside {
		t.Errorf("refinement: the first step takes %d with %d calls, the last %d with %d", first.took(), first.inside, last.took(), last.inside)
	}
	operator := all["phases"][0].of("apply_operator")
	first, middle, last := operator[0].own, operator[len(operator)/2].own, operator[len(operator)-1].own
	if first < 2*middle || middle < 2*last {
		t.Errorf("phases: apply_operator takes %d, then %d and %d", first, middle, last)
	}
}

// shareOf returns the shares of calls that are longer than a limit: of all, and of those in
// the first quarter.
func shareOf(calls []*call, limit trace.Ticks) (all, early float64) {
	for i, c := range calls {
		if c.own <= limit {
			continue
		}
		all += 1 / float64(len(calls))
		if i < len(calls)/4 {
			early += 1 / float64(len(calls))
		}
	}
	return all, early
}
