package simulate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
)

// plain is a program of four ranks on two hosts that never wait; its calls
// take 1, 2 and 3 ms.
const plain = `
name = "plain"
seed = 3
steps = 20
iterations = 10
notable_us = 0
notable_share = 0
[[program]]
name = "plain"
ranks = 4
hosts = ["left", "right"]
body = ["one", "launch", "two", "three", "sync"]
[program.functions]
one = { time = { fixed = 1000 } }
two = { time = { fixed = 2000 } }
three = { time = { fixed = 3000 } }
launch = { kind = "launch", kernel = "kernel", time = { fixed = 10 } }
kernel = { time = { fixed = 700 } }
sync = { kind = "device-sync" }
[[program.counter]]
name = "memory"
seconds = 0.01
value = { fixed = 100 }
[[program.counter]]
name = "clock"
seconds = 0.01
value = { fixed = 1400 }
[[trouble]]
name = "it"
from = 0.3
`

// want is the expected effect of a trouble of the plain program.
type want struct {
	ranks     []trace.Rank
	functions []string
	to        trace.Ticks // since the start; 0: it does not end
	calls     [2]int      // from, to: that are longer, over all ranks
	longer    func(c *compared, since trace.Ticks) bool
	counter   string // that shows it
	reading   uint64 // at most, or at least if it is higher than usual
	unlisted  bool   // the truth lists no call
}

func factor(f float64) func(*compared, trace.Ticks) bool {
	return func(c *compared, _ trace.Ticks) bool {
		return c.own == trace.Ticks(math.Round(f*float64(c.quiet.own)))
	}
}

func extra(d trace.Ticks) func(*compared, trace.Ticks) bool {
	return func(c *compared, _ trace.Ticks) bool { return c.longer() == d }
}

// TestEffectsOfTroubleKinds checks for each kind where, when and how
// often it strikes, by how much, and which counters show it. An iteration takes
// about 6 ms, all 200 about 1.2 s, so 150 are left when it begins.
func TestEffectsOfTroubleKinds(t *testing.T) {
	everywhere := []trace.Rank{0, 1, 2, 3}
	f := func(kind scenario.TroubleKind, rest string, w want) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			checkKind(t, parse(t, fmt.Sprintf("%skind = %q\n%s", plain, kind, rest)), &w)
		})
	}
	f(scenario.SlowCall, `functions = ["one"]`+"\nto = 0.9\nchance = 0.25\nfactor = 3", want{
		ranks: everywhere, functions: []string{"one"}, to: 900_000, calls: [2]int{60, 120}, longer: factor(3),
	})
	f(scenario.SlowMode, `hosts = ["right"]`+"\n"+`functions = ["one"]`+"\nto = 0.9\nchance = 0.25\nfactor = 3", want{
		ranks: []trace.Rank{2, 3}, functions: []string{"one"}, to: 900_000, calls: [2]int{25, 65}, longer: factor(3),
	})
	f(scenario.SlowRank, "ranks = [1, 2]\nto = 0.6\nfactor = 2", want{
		ranks: []trace.Rank{1, 2}, functions: []string{"one", "two", "three", "kernel"}, to: 600_000, calls: [2]int{190, 220}, longer: factor(2),
	})
	f(scenario.SlowHost, `hosts = ["right"]`+"\n"+`functions = ["three"]`+"\nto = 0.6\nfactor = 1.5", want{
		ranks: []trace.Rank{2, 3}, functions: []string{"three"}, to: 600_000, calls: [2]int{70, 90}, longer: factor(1.5),
	})
	f(scenario.OSNoise, "ranks = [3]\nto = 0.7\nperiod = 0.05\nextra = { fixed = 800 }", want{
		ranks: []trace.Rank{3}, functions: []string{"one", "two", "three", "launch"}, to: 700_000, calls: [2]int{8, 8}, longer: extra(800),
	})
	f(scenario.OSNoise, "ranks = [3]\nto = 0.7\nperiod = 0.02\nrandom = true\nextra = { fixed = 800 }", want{
		ranks: []trace.Rank{3}, functions: []string{"one", "two", "three", "launch"}, to: 700_000, calls: [2]int{8, 32},
		longer: func(c *compared, _ trace.Ticks) bool { return c.longer()%800 == 0 },
	})
	f(scenario.MemoryPressure, `hosts = ["left"]`+"\n"+`functions = ["one", "two"]`+"\nto = 0.7\nfactor = "+
		"5\n"+`counter = "memory"`+"\nreading = 900", want{
		ranks: []trace.Rank{0, 1}, functions: []string{"one", "two"}, to: 700_000, calls: [2]int{80, 200},
		longer: func(c *compared, since trace.Ticks) bool {
			x := float64(since) / 400_000
			strength := min(1, 4*x, 4*(1-x))
			return c.own == trace.Ticks(math.Round(float64(c.quiet.own)*(1+4*strength)))
		},
		counter: "memory", reading: 900,
	})
	f(scenario.IOStall, `functions = ["two", "three"]`+"\nextra = { fixed = 9000 }", want{
		ranks: everywhere, functions: []string{"two", "three"}, calls: [2]int{4, 4}, longer: extra(9000),
	})
	f(scenario.GPUClockDrop, "ranks = [0]\n"+`functions = ["kernel"]`+"\nto = 0.6\nfactor = 10\n"+`counter = "clock"`+"\nreading = 210", want{
		ranks: []trace.Rank{0}, functions: []string{"kernel", "sync"}, to: 600_000, calls: [2]int{50, 90},
		longer: func(c *compared, s trace.Ticks) bool { return c.function == "sync" || factor(10)(c, s) }, counter: "clock", reading: 210,
	})
	f(scenario.LevelShift, "ranks = [1]\n"+`functions = ["two"]`+"\nfactor = 2", want{
		ranks: []trace.Rank{1}, functions: []string{"two"}, calls: [2]int{145, 151}, longer: factor(2), unlisted: true,
	})
	f(scenario.Drift, "ranks = [1]\n"+`functions = ["two"]`+"\nto = 0.8\nfactor = 2", want{
		ranks: []trace.Rank{1}, functions: []string{"two"}, calls: [2]int{145, 151}, unlisted: true,
		longer: func(c *compared, since trace.Ticks) bool {
			return c.own == trace.Ticks(math.Round(float64(c.quiet.own)*(1+min(1, float64(since)/500_000))))
		},
	})
	f(scenario.HugeValue, "ranks = [2]\n"+`functions = ["one"]`+"\nvalue = { fixed = 7e6 }", want{
		ranks: []trace.Rank{2}, functions: []string{"one"}, calls: [2]int{1, 1},
		longer: func(c *compared, _ trace.Ticks) bool { return c.own == 7_000_000 },
	})
	f(scenario.Burst, `hosts = ["left"]`+"\n"+`functions = ["one"]`+"\ncount = 6\nextra = { fixed = 400 }", want{
		ranks: []trace.Rank{0, 1}, functions: []string{"one"}, calls: [2]int{12, 12}, longer: extra(400),
	})
}

func checkKind(t *testing.T, s *scenario.Scenario, w *want) {
	t.Helper()
	from := start(s) + 300_000
	calls, last := 0, make(map[trace.Rank]int)
	places := make(map[string]bool)
	compare(t, s, func(r *traced, c *compared) {
		if c.longer() == 0 {
			if n := last[r.rank]; c.function == "one" && n > 0 && n < 6 && s.Troubles[0].Kind == scenario.Burst {
				t.Errorf("rank %d: the burst pauses after %d calls", r.rank, n)
			}
			return
		}
		calls++
		last[r.rank]++
		places[fmt.Sprintf("rank %d", r.rank)], places[c.function] = true, true
		since := c.entry - from
		began := since
		if s.Troubles[0].Kind == scenario.OSNoise {
			began += c.own // it strikes whatever runs
		}
		if began < 0 || w.to > 0 && since >= w.to-300_000 && c.function != "sync" || !w.longer(c, since) {
			t.Errorf("rank %d: %s takes %d instead of %d, %d after the trouble begins", r.rank, c.function, c.own, c.quiet.own, since)
		}
		if w.unlisted != (len(c.listed) == 0) {
			t.Errorf("rank %d: the truth of %s is %+v", r.rank, c.function, c.listed)
		}
	})
	if calls < w.calls[0] || calls > w.calls[1] {
		t.Errorf("%d calls are longer, want %d to %d", calls, w.calls[0], w.calls[1])
	}
	for _, r := range w.ranks {
		delete(places, fmt.Sprintf("rank %d", r))
	}
	for _, f := range w.functions {
		delete(places, f)
	}
	if len(places) > 0 {
		t.Errorf("calls are longer at %v, want none there", places)
	}
	checkReadings(t, s, w)
	checkTold(t, s, w)
}

// checkReadings looks at counters of the node: one shows the trouble, and only
// where and when it is.
func checkReadings(t *testing.T, s *scenario.Scenario, w *want) {
	t.Helper()
	usual := map[string]uint64{"memory": 100, "clock": 1400}
	for _, r := range record(t, s) {
		for name, value := range usual {
			shown, full := 0, false
			for _, e := range r.readings("monitoring: " + name) {
				since := e.Time - start(s)
				if e.Value != value {
					shown++
					if since < 300_000 || since >= w.to {
						t.Errorf("rank %d: %s is %d at %d us", r.rank, name, e.Value, since)
					}
				}
				full = full || e.Value == w.reading
			}
			here := name == w.counter && strings.Contains(fmt.Sprint(w.ranks), fmt.Sprint(r.rank))
			if here != (shown >= 15 && full) || !here && shown > 0 {
				t.Errorf("rank %d: %s shows the trouble %d times, and in full: %v", r.rank, name, shown, full)
			}
		}
	}
}

// checkTold checks the line that the truth has of the trouble.
func checkTold(t *testing.T, s *scenario.Scenario, w *want) {
	t.Helper()
	all := simulate.New(s).Troubles()
	if len(all) != 1 {
		t.Fatalf("%d troubles, want 1", len(all))
	}
	got, of := all[0], &s.Troubles[0]
	to := trace.Ticks(0)
	if w.to > 0 {
		to = start(s) + w.to
	}
	if got.Name != "it" || got.Kind != string(of.Kind) || got.Each != of.Each() || fmt.Sprint(got.Ranks) != fmt.Sprint(w.ranks) ||
		got.From != start(s)+300_000 || got.To != to || strings.Join(got.Functions, " ") != strings.Join(of.Functions, " ") || got.Text == "" {
		t.Errorf("the truth is %+v", got)
	}
	hosts := map[bool][]string{true: {"left"}}[w.ranks[0] < 2]
	if w.ranks[len(w.ranks)-1] >= 2 {
		hosts = append(hosts, "right")
	}
	if fmt.Sprint(got.Hosts) != fmt.Sprint(hosts) {
		t.Errorf("it is on hosts %v, want %v", got.Hosts, hosts)
	}
}

// TestSlowLinkDelaysMessagesBetweenTwoRanksOnly compares the times that
// messages travel.
func TestSlowLinkDelaysMessagesBetweenTwoRanksOnly(t *testing.T) {
	s := parse(t, `
name = "link"
steps = 10
iterations = 5
notable_us = 100
[[program]]
name = "link"
ranks = 6
setup = ["all"]
body = ["work", "swap", "all"]
[program.functions]
work = { time = { fixed = 1000 } }
swap = { kind = "exchange", neighbors = [-1, 1] }
all = { kind = "collective", time = { fixed = 2 } }
[[trouble]]
name = "cable"
kind = "slow-link"
link = [2, 3]
from = 0.02
to = 0.04
extra = { integers = [3000, 4000] }
`)
	all := record(t, s)
	checkMessages(t, s, all)
	delayed := 0
	for _, r := range all {
		for _, c := range r.of("MPI_Waitall()") {
			since := c.entry - start(s)
			long := c.took() > 1500
			between := r.rank == 2 || r.rank == 3
			if long && (!between || since < 15_000 || since > 40_000) {
				t.Errorf("rank %d waits %d at %d us", r.rank, c.took(), since)
			}
			if long {
				delayed++
				late := 0
				for _, e := range c.sides {
					if e.Partner() == 5-r.rank && e.Time-c.entry > 1500 {
						late++
					}
				}
				if late != 1 {
					t.Errorf("rank %d: %d messages of its partner are late", r.rank, late)
				}
			}
		}
		for _, c := range r.truth {
			cause := c.Function == "MPI_Waitall()" && (c.Rank == 2 || c.Rank == 3)
			if (c.Role == truth.Cause) != cause || c.Trouble != "cable" {
				t.Errorf("rank %d: the truth is %+v", r.rank, c)
			}
		}
	}
	if delayed < 6 {
		t.Errorf("%d waits are long", delayed)
	}
	checkAllLonger(t, s)
	trouble := simulate.New(s).Troubles()[0]
	if fmt.Sprint(trouble.Ranks, trouble.Functions, trouble.Each) != "[2 3] [MPI_Waitall()] true" {
		t.Errorf("the truth is %+v", trouble)
	}
}

// TestTroubleMayAffectAnyFunction puts it where functions wait, launch or publish:
// it makes their own time longer.
func TestTroubleMayAffectAnyFunction(t *testing.T) {
	for _, function := range []string{"work", "swap", "all", "region", "launch", "kernel", "sync", "publish", "await"} {
		t.Run(function, func(t *testing.T) {
			program := "first"
			if function == "await" {
				program = "second"
			}
			s := parse(t, fmt.Sprintf(`
steps = 4
iterations = 5
notable_us = 0
notable_share = 0
[[program]]
name = "first"
ranks = 3
body = ["work", "swap", "all", "region", "launch", "sync", "publish"]
[program.functions]
work = { time = { fixed = 100 } }
swap = { kind = "exchange", neighbors = [1], time = { fixed = 8 } }
all = { kind = "collective", time = { fixed = 100 } }
region = { kind = "parallel", threads = 2, time = { fixed = 8 }, calls = ["work"] }
launch = { kind = "launch", kernel = "kernel", time = { fixed = 8 } }
kernel = { time = { fixed = 100 } }
sync = { kind = "device-sync", time = { fixed = 8 } }
publish = { kind = "publish", time = { fixed = 100 } }
[[program]]
name = "second"
ranks = 2
body = ["await"]
[program.functions]
await = { kind = "await", from = "first", time = { fixed = 100 } }
[[trouble]]
name = "it"
kind = "burst"
program = %q
ranks = [1]
functions = [%q]
count = 3
extra = { fixed = 50000 }
`, program, function))
			checkAllLonger(t, s)
			struck := 0
			for _, r := range record(t, s) {
				for _, c := range r.truth {
					if c.Role == truth.Cause {
						struck++
						if c.Function != function || c.Rank != 1 || c.Injected < 50_000 || c.Injected > 50_010 {
							t.Errorf("the truth is %+v", c)
						}
					}
				}
			}
			if struck != 3 {
				t.Errorf("it strikes %d times, want 3", struck)
			}
		})
	}
}
