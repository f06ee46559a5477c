package simulate_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// calls estimates how many calls a list makes, up to a limit.
func calls(p *scenario.Program, list []string, limit int) int {
	n := 0
	for _, entry := range list {
		key, times, err := scenario.ParseCall(entry)
		if err != nil || n > limit {
			return limit + 1
		}
		f := p.Functions[key]
		each := 2 + calls(p, f.Calls, limit)
		switch f.Kind {
		case scenario.Parallel:
			each *= f.Threads
		case scenario.Exchange:
			each += 3 * len(f.Neighbors)
		}
		if each > limit || times > limit {
			return limit + 1
		}
		n += each * times
	}
	return n
}

// isSmall reports whether a scenario is done in no time. A system that takes the
// processor away each millisecond of a year is not one.
func isSmall(s *scenario.Scenario) bool {
	const limit = 3000
	if s.Steps > 50 || s.Iterations > 50 || len(s.Programs) > 3 || len(s.Troubles) > 8 {
		return false
	}
	total := 0
	for i := range s.Programs {
		p := &s.Programs[i]
		if p.Ranks > 20 || p.Latency > 1e9 || len(p.Counters) > 10 {
			return false
		}
		n := calls(p, p.Setup, limit) + calls(p, p.Finish, limit) + s.Steps*s.Iterations*(1+calls(p, p.Body, limit))
		total += p.Ranks * n
		if n > limit {
			return false
		}
	}
	for i := range s.Troubles {
		if t := &s.Troubles[i]; t.Kind == scenario.OSNoise || t.Kind == scenario.ExcessWork && t.Factor > 20 {
			return false
		}
	}
	return total <= 4*limit
}

// FuzzScenario runs whatever is accepted as a scenario: calls nest and end, times
// do not go back, messages arrive, and the truth lists exactly what is longer
// than without trouble.
func FuzzScenario(f *testing.F) {
	for _, name := range scenario.Names() {
		text, err := scenario.Builtin(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{busy, alone, plain + `kind = "burst"` + "\ncount = 1\nfactor = 2\nfunctions = ['one']", breathless} {
		f.Add([]byte(text))
	}
	f.Add([]byte(tiny))
	for _, trouble := range []string{
		"kind = 'slow-call'\nfunctions = ['one', 'sync', 'two', 'region', 'swap']\nchance = 0.5\nextra = { fixed = 300 }",
		"kind = 'excess-work'\nfunctions = ['two']\nchance = 0.5\nfactor = 3",
		"kind = 'slow-rank'\nranks = [1]\nfrom = 0.0001\nto = 0.001\nfactor = 3",
		"kind = 'slow-link'\nlink = [1, 2]\nextra = { fixed = 300 }",
		"kind = 'memory-pressure'\nto = 0.001\nfactor = 5\ncounter = 'load'\nreading = 99",
		"kind = 'drift'\nfunctions = ['one', 'all']\nto = 0.001\nfactor = 5",
		"kind = 'huge-value'\nfunctions = ['launch', 'all', 'in']\nvalue = { pareto = [1e6, 0.5] }",
		"kind = 'burst'\nfunctions = ['one', 'all']\ncount = 3\nfactor = 9\n[[trouble]]\nname = 'too'\nkind = 'slow-host'\nhosts = " +
			"['b']\nfactor = 2",
	} {
		f.Add([]byte(tiny + "[[trouble]]\nname = 'it'\n" + trouble))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := scenario.Parse("fuzz", text)
		if err != nil {
			return
		}
		if !isSmall(s) && (s.Resize(2) != nil || s.Stretch(1) != nil) {
			return
		}
		if s.Iterations = min(s.Iterations, 3); !isSmall(s) {
			return
		}
		all := record(t, s)
		for _, r := range all {
			checkStacks(t, r)
			checkSteps(t, r)
			ids := make(map[string]*call)
			for _, c := range r.calls {
				ids[c.id] = c
			}
			for _, entry := range r.truth {
				if c := ids[entry.Event]; c == nil || c.function != entry.Function || c.entry != entry.Entry || c.exit != entry.Exit {
					t.Errorf("the truth has %+v for %+v", entry, c)
				}
			}
		}
		checkMessages(t, s, all)
		if onlyLonger(s) {
			s.NotableMicros, s.NotableShare = 0, 0
			checkAllLonger(t, s)
		}
	})
}

// onlyLonger reports whether troubles make nothing shorter. If they do, others
// wait longer for what is as it was, and no one is to blame.
func onlyLonger(s *scenario.Scenario) bool {
	for i := range s.Troubles {
		if t := &s.Troubles[i]; t.Value != nil || t.Factor > 0 && t.Factor < 1 {
			return false
		}
		if s.Troubles[i].Kind == scenario.ExcessWork && len(s.Troubles) > 1 {
			return false // others may affect its additional calls
		}
	}
	return true
}

// tiny is a small program with some of everything, for a fuzzer to change.
const tiny = `
steps = 2
iterations = 2
[[program]]
name = "p"
ranks = 3
hosts = ["a", "b"]
setup = ["one"]
body = ["2 one", "swap", "all", "region", "launch", "sync", "out"]
[program.functions]
one = { time = { lognormal = [9, 1] }, message = { integers = [0, 99] }, counters = { c = { fixed = 1 } } }
two = { every = 2, time = { modes = [{ weight = 1, fixed = 0 }, { weight = 2, pareto = [1, 1] }] }, calls = ["one"] }
swap = { kind = "exchange", neighbors = [-1, 1] }
all = { kind = "collective", group = 2, time = { normal = [1, 1] } }
region = { kind = "parallel", threads = 2, calls = ["two"] }
launch = { kind = "launch", kernel = "one", stream = 1 }
sync = { kind = "device-sync" }
out = { kind = "publish" }
[[program.counter]]
name = "load"
seconds = 0.001
value = { uniform = [0, 9] }
[[program]]
name = "q"
ranks = 1
body = ["in"]
[program.functions]
in = { kind = "await", from = "p" }
`
