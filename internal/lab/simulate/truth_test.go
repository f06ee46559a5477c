package simulate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// compared is a call with and without trouble, and its lines in the truth.
type compared struct {
	*call
	quiet  *call
	listed []truth.Call
}

// longer is how much longer the call itself takes than without trouble, or the calls in it
// if that is its trouble.
func (c *compared) longer() trace.Ticks {
	if c.excess() > 0 {
		return c.took() - c.quiet.took()
	}
	return c.own - c.quiet.own
}

// excess is how many more calls it makes because of its trouble.
func (c *compared) excess() int {
	if len(c.listed) == 0 {
		return 0
	}
	return c.inside - c.quiet.inside
}

// compare runs a scenario with and without its troubles, and calls f for each call of each
// rank, except those that only happen because of trouble. Each line of the truth must
// belong to a call.
func compare(t *testing.T, s *scenario.Scenario, f func(r *traced, c *compared)) {
	t.Helper()
	quiet := record(t, without(s))
	for i, r := range record(t, s) {
		listed := make(map[string][]truth.Call)
		for _, c := range r.truth {
			listed[c.Event] = append(listed[c.Event], c)
		}
		rest := withoutRare(t, s, r, listed)
		skip := make(map[int]int) // additional calls, by the number of usual ones before them
		for j, of := range quiet[i].calls {
			if rest = rest[min(skip[j], len(rest)):]; len(rest) == 0 {
				t.Fatalf("rank %d makes %d calls, without trouble %d", r.rank, len(r.calls), len(quiet[i].calls))
			}
			c := rest[0]
			rest = rest[1:]
			if c.function != of.function || c.thread != of.thread || c.step != of.step {
				t.Fatalf("rank %d calls %s on thread %d in step %d, without trouble %s on %d in %d", r.rank, c.function, c.thread, c.step,
					of.function, of.thread, of.step)
			}
			lines := listed[c.id]
			delete(listed, c.id)
			checkLines(t, r, c, lines)
			both := &compared{c, of, lines}
			if n := both.excess(); n > 0 {
				skip[j+1+of.inside] = n
			}
			f(r, both)
		}
		if n := len(rest) - skip[len(quiet[i].calls)]; n != 0 {
			t.Fatalf("rank %d makes %d more calls than without trouble", r.rank, n)
		}
		for id, lines := range listed {
			t.Errorf("rank %d: the truth has %+v for %s, which is not a call", r.rank, lines[0], id)
		}
	}
}

// withoutRare returns the calls of a rank without those of rare-call troubles, of which the truth must list the entire time.
// It removes their lines.
func withoutRare(t *testing.T, s *scenario.Scenario, r *traced, listed map[string][]truth.Call) (rest []*call) {
	t.Helper()
	rare := make(map[string]string)
	for i := range s.Troubles {
		x := &s.Troubles[i]
		if p, at := s.Find(x); x.Kind == scenario.RareCall && trace.Program(at) == r.program {
			for _, key := range x.Functions {
				rare[cmp.Or(p.Functions[key].Name, key)] = x.Name
			}
		}
	}
	for _, c := range r.calls {
		trouble, ok := rare[c.function]
		if !ok {
			rest = append(rest, c)
			continue
		}
		lines := listed[c.id]
		delete(listed, c.id)
		checkLines(t, r, c, lines)
		sum := (&compared{listed: lines}).injected()
		if own := slices.ContainsFunc(lines, func(l truth.Call) bool { return l.Trouble == trouble && l.Role == truth.Cause }); !own && c.own > 0 ||
			sum != c.own {
			t.Errorf("rank %d: %s takes %d, the truth has %+v", r.rank, c.function, c.own, lines)
		}
		for _, o := range rest {
			if o.thread == c.thread && o.entry <= c.entry && o.exit >= c.exit {
				o.inside--
			}
		}
	}
	return rest
}

// checkLines checks the lines of a call in the truth, but for the injected time.
func checkLines(t *testing.T, r *traced, c *call, lines []truth.Call) {
	t.Helper()
	troubles := make(map[string]bool)
	for _, s := range lines {
		if s.Program != r.program || s.Rank != r.rank || s.Thread != c.thread || s.Function != c.function || s.Entry != c.entry ||
			s.Exit != c.exit {
			t.Errorf("the truth has %+v, but the call is %+v", s, c)
		}
		if troubles[s.Trouble] {
			t.Errorf("the truth has %s twice in trouble %q", c.id, s.Trouble)
		}
		troubles[s.Trouble] = true
		if (s.Role == truth.Cause) == (s.Culprit != nil) && s.Role == truth.Cause || s.Role != truth.Cause && s.Role != truth.Victim {
			t.Errorf("%s has the role %q and a culprit: %v", c.id, s.Role, s.Culprit != nil)
		}
	}
}

func (c *compared) isVictim() bool {
	return slices.ContainsFunc(c.listed, func(l truth.Call) bool { return l.Role == truth.Victim })
}

// injected returns the time that was added to a call, by the truth.
func (c *compared) injected() (sum trace.Ticks) {
	for _, s := range c.listed {
		sum += s.Injected
	}
	return sum
}

// TestTruthListsAllDelays compares every call of every scenario. The truth does not list
// calls that a level shift or drift lengthens.
func TestTruthListsAllDelays(t *testing.T) {
	each(t, func(t *testing.T, s *scenario.Scenario) {
		s.NotableMicros, s.NotableShare = 0, 0
		checkAllLonger(t, s) // how many there are depends on chance
	})
}

// checkAllLonger checks that the truth has the exact added time of each call, and returns
// the number of its lines. The truth does not list waits that are shorter, or less than
// 2 us longer.
func checkAllLonger(t *testing.T, s *scenario.Scenario) (listed int) {
	t.Helper()
	waits, lasting := waiting(s), lastingFunctions(s)
	compare(t, s, func(r *traced, c *compared) {
		longer, injected := c.longer(), c.injected()
		listed += len(c.listed)
		switch {
		case longer == injected:
		case waits[c.function] && longer < injected+2 && !c.isVictim():
		case lasting[c.function] && longer > 0:
		default:
			t.Errorf("rank %d: %s %s takes %d longer, the truth has %d: %+v", r.rank, c.id, c.function, longer, injected, c.listed)
		}
	})
	return listed
}

// waiting returns the names of functions that wait.
func waiting(s *scenario.Scenario) map[string]bool {
	names := map[string]bool{"MPI_Waitall()": true}
	for _, p := range s.Programs {
		for key, f := range p.Functions {
			switch f.Kind {
			case scenario.Collective, scenario.DeviceSync, scenario.Await, scenario.Parallel:
				names[nameOf(key, &f)] = true
			}
		}
	}
	return names
}

func nameOf(key string, f *scenario.Function) string {
	if f.Name != "" {
		return f.Name
	}
	return key
}

// lastingFunctions returns the names of functions that take longer for good.
func lastingFunctions(s *scenario.Scenario) map[string]bool {
	names := make(map[string]bool)
	for i := range s.Troubles {
		tr := &s.Troubles[i]
		p, _ := s.Find(tr)
		for _, key := range tr.Functions {
			if f := p.Functions[key]; tr.Kind == scenario.LevelShift || tr.Kind == scenario.Drift {
				names[nameOf(key, &f)] = true
			}
		}
	}
	return names
}

func TestTruthListsAllDelaysOfBusyProgram(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	for _, kind := range someTroubles() {
		t.Run(string(kind), func(t *testing.T) {
			if listed := checkAllLonger(t, troubled(t, kind)); listed < 3 {
				t.Errorf("the truth lists %d calls", listed)
			}
		})
	}
}

// TestCallMayHaveSeveralTroubles has troubles of several kinds strike the
// same calls: each has a line, and those that last hide none.
func TestCallMayHaveSeveralTroubles(t *testing.T) {
	s := parse(t, alone+`
[[trouble]]
name = "slow"
kind = "slow-call"
functions = ["f"]
chance = 0.3
factor = 4
[[trouble]]
name = "noise"
kind = "os-noise"
period = 0.003
extra = { fixed = 250 }
[[trouble]]
name = "burst"
kind = "burst"
functions = ["f", "g"]
from = 0.02
count = 20
extra = { fixed = 1000 }
`)
	several := 0
	compare(t, s, func(_ *traced, c *compared) {
		if c.injected() != c.longer() {
			t.Errorf("%s %s takes %d longer, the truth has %+v", c.id, c.function, c.longer(), c.listed)
		}
		if len(c.listed) > 1 {
			several++
		}
		for _, l := range c.listed {
			switch {
			case l.Trouble == "noise" && l.Injected%250 == 0:
			case l.Trouble == "burst" && l.Injected == 1000:
			case l.Trouble == "slow" && c.function == "f" && l.Injected == 3*c.quiet.own:
			default:
				t.Errorf("%s: %s takes %d, without trouble %d; the truth has %+v", c.id, c.function, c.own, c.quiet.own, l)
			}
		}
	})
	if several < 5 {
		t.Errorf("%d calls have several troubles; this proves nothing", several)
	}
	s.Troubles = append(s.Troubles, scenario.Trouble{
		Name: "from now on", Kind: scenario.LevelShift, Functions: []string{"f"}, Factor: 2,
	})
	slow := 0
	compare(t, s, func(_ *traced, c *compared) {
		for _, l := range c.listed {
			if l.Trouble == "from now on" {
				t.Errorf("the truth lists %s of a trouble that lasts", c.id)
			}
			if l.Trouble == "slow" {
				slow++
			}
		}
	})
	if slow < 50 {
		t.Errorf("%d calls are slow, want about 120: level-shift hides them", slow)
	}
}

// alone is a program of one rank that waits for nothing.
const alone = `
name = "alone"
seed = 5
steps = 8
iterations = 10
notable_us = 0
notable_share = 0
[[program]]
name = "alone"
ranks = 1
hosts = ["here"]
body = ["outer"]
[program.functions]
outer = { time = { lognormal = [300, 0.1] }, calls = ["5 f", "3 g", "inner"] }
inner = { time = { normal = [90, 9] }, calls = ["2 g", "f"] }
f = { time = { lognormal = [150, 0.3] } }
g = { time = { modes = [{ weight = 3, normal = [100, 5] }, { weight = 1, normal = [400, 9] }] } }
`

// TestInjectedTimeIsDifferenceToCleanRun is about one rank: what is
// injected adds up to how much later it ends.
func TestInjectedTimeIsDifferenceToCleanRun(t *testing.T) {
	f := func(kind scenario.TroubleKind, rest string) {
		t.Run(string(kind), func(t *testing.T) {
			s := parse(t, fmt.Sprintf("%s\n[[trouble]]\nname = \"it\"\nkind = %q\nfrom = 0.05\n%s", alone, kind, rest))
			var sum, first trace.Ticks
			listed := 0
			compare(t, s, func(_ *traced, c *compared) {
				if c.longer() != c.injected() {
					t.Errorf("%s %s takes %d longer, the truth has %d", c.id, c.function, c.longer(), c.injected())
				}
				for _, l := range c.listed {
					if l.Role != truth.Cause || l.Culprit != nil || l.Minor {
						t.Errorf("%s is %+v, want a cause", c.id, l)
					}
				}
				sum += c.injected()
				listed += len(c.listed)
				if c.function == ".TAU application" {
					first = c.took() - c.quiet.took()
				}
			})
			if sum != first || listed == 0 || sum <= 0 {
				t.Errorf("%d calls take %d longer together, but the program takes %d longer", listed, sum, first)
			}
		})
	}
	f(scenario.SlowCall, `functions = ["f", "inner"]`+"\nchance = 0.1\nfactor = 3")
	f(scenario.Burst, `functions = ["g"]`+"\ncount = 12\nextra = { uniform = [100, 900] }")
	f(scenario.IOStall, `functions = ["outer"]`+"\nextra = { fixed = 12345 }")
	f(scenario.HugeValue, `functions = ["f"]`+"\nvalue = { fixed = 5e8 }")
	f(scenario.OSNoise, "period = 0.002\nextra = { lognormal = [400, 0.5] }")
	f(scenario.SlowRank, "ranks = [0]\nto = 0.1\nfactor = 2.2")
}

// TestSmallTroubleIsMinor gives calls too little to be demanded.
func TestSmallTroubleIsMinor(t *testing.T) {
	s := parse(t, alone+`
[[trouble]]
name = "it"
kind = "slow-call"
functions = ["f", "outer"]
chance = 0.5
extra = { integers = [50, 350] }
`)
	s.NotableMicros, s.NotableShare = 100, 1
	minor, major := 0, 0
	compare(t, s, func(_ *traced, c *compared) {
		for _, l := range c.listed {
			usual := map[string]trace.Ticks{"f": 150, "outer": 300}[c.function]
			if want := l.Injected < 100 || l.Injected < usual; l.Minor != want {
				t.Errorf("%d us more in %s: minor is %v", l.Injected, c.function, l.Minor)
			}
			if l.Minor {
				minor++
			} else {
				major++
			}
		}
	})
	if minor < 20 || major < 20 {
		t.Errorf("%d calls are minor, %d are not; this proves nothing", minor, major)
	}
}

// TestDelaysPropagateAcrossDevicesAndThreads has a rank that is late launch a
// kernel and wait for it, and then others wait for the rank: they are victims of
// the trouble still.
func TestDelaysPropagateAcrossDevicesAndThreads(t *testing.T) {
	f := func(between string) {
		t.Run(between, func(t *testing.T) {
			s := parse(t, fmt.Sprintf(`
steps = 3
iterations = 3
notable_us = 0
[[program]]
name = "p"
ranks = 3
setup = ["barrier"]
body = ["work", %s"barrier"]
[program.functions]
work = { time = { fixed = 500 } }
launch = { kind = "launch", kernel = "kernel", time = { fixed = 5 } }
kernel = { time = { fixed = 300 } }
sync = { kind = "device-sync", time = { fixed = 5 } }
region = { kind = "parallel", threads = 2, calls = ["work"] }
swap = { kind = "exchange", neighbors = [1] }
barrier = { kind = "collective" }
[[trouble]]
name = "stall"
kind = "io-stall"
ranks = [1]
functions = ["work"]
from = 0.003
extra = { fixed = 4000 }
`, between))
			checkAllLonger(t, s)
			victims := 0
			for _, r := range record(t, s) {
				for _, c := range r.truth {
					if c.Function == "barrier" || c.Function == "MPI_Waitall()" {
						victims++
						if c.Role != truth.Victim || c.Culprit == nil || *c.Culprit != 1 || c.Trouble != "stall" {
							t.Errorf("the truth has %+v, want a victim of rank 1", c)
						}
					}
				}
			}
			if victims < 2 {
				t.Errorf("%d calls waited for rank 1, want those of ranks 0 and 2", victims)
			}
		})
	}
	f(``)
	f(`"launch", "sync", `)
	f(`"launch", "work", "sync", `)
	f(`"region", `)
	f(`"swap", `)
	f(`"swap", "launch", "sync", "region", `)
}

// TestRegionWaitingForSlowThreadIsVictim looks at the parallel region.
func TestRegionWaitingForSlowThreadIsVictim(t *testing.T) {
	s := builtin(t, "threads", 4, 12)
	victims := 0
	compare(t, s, func(r *traced, c *compared) {
		if !strings.HasPrefix(c.function, "omp_parallel") {
			return
		}
		if late := c.longer() >= 5; late != (len(c.listed) > 0) {
			t.Errorf("rank %d: %s %s waits %d longer, the truth has %+v", r.rank, c.id, c.function, c.longer(), c.listed)
		}
		for _, l := range c.listed {
			victims++
			if l.Role != truth.Victim || l.Culprit == nil || *l.Culprit != r.rank || l.Injected != c.longer() {
				t.Errorf("the truth has %+v of a region that waits %d longer", l, c.longer())
			}
		}
	})
	if victims == 0 {
		t.Error("no region waits for a slow thread")
	}
}
