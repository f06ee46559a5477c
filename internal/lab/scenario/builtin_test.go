package scenario_test

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

func builtin(t *testing.T, name string) (*scenario.Scenario, string) {
	t.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s, string(text)
}

func TestBuiltInScenariosHaveTexts(t *testing.T) {
	for _, name := range scenario.Names() {
		s, text := builtin(t, name)
		if s.Name != name || s.Text == "" || len(s.Text) > 100 {
			t.Errorf("%s: its name is %q, its text %q", name, s.Name, s.Text)
		}
		if comment, _, _ := strings.Cut(text, "\nname ="); !strings.HasPrefix(comment, "# ") || strings.Count(comment, "\n") > 4 {
			t.Errorf("%s: begins with %q, want a comment of a few lines", name, comment)
		}
	}
}

func TestBuiltInScenariosAreSmall(t *testing.T) {
	others := map[string]int{ // that are not from 100 000 to 1 000 000 calls
		"normal": 20_002, "bimodal": 20_002, "lognormal": 20_002, "quantized": 20_002,
		"normal-few": 2_002, "bimodal-few": 2_002, "lognormal-few": 2_002, "quantized-few": 2_002,
		"repeated": 10_002, "huge-value": 12_002, "scale": 14_520_000,
	}
	for _, name := range scenario.Names() {
		s, _ := builtin(t, name)
		got := calls(t, s)
		if want, ok := others[name]; ok && got != want || !ok && (got < 100_000 || got > 1_000_000) {
			t.Errorf("%s has %d calls", name, got)
		}
	}
	if s, _ := builtin(t, "clean"); calls(t, s) < 500_000 || len(s.Troubles) > 0 {
		t.Errorf("clean has %d calls and %d troubles, want 500 000 and none", calls(t, s), len(s.Troubles))
	}
}

func TestBuiltInScenariosUseAllTheirFunctions(t *testing.T) {
	host := regexp.MustCompile(`^node\d\d$`)
	for _, name := range scenario.Names() {
		s, _ := builtin(t, name)
		for i := range s.Programs {
			p := &s.Programs[i]
			used := make(map[string]bool)
			for _, list := range [][]string{p.Setup, p.Body, p.Finish} {
				countList(t, p, list, func(*scenario.Function) bool { return true }, used)
			}
			for i := range s.Troubles {
				if s.Troubles[i].Kind == scenario.RareCall {
					for _, key := range s.Troubles[i].Functions {
						used[key] = true
					}
				}
			}
			for key := range p.Functions {
				if !used[key] {
					t.Errorf("%s: no function calls %s", name, key)
				}
			}
			for _, h := range p.Hosts {
				if !host.MatchString(h) {
					t.Errorf("%s: a host is called %s", name, h)
				}
			}
		}
	}
}

func TestBuiltInScenariosCoverAllKinds(t *testing.T) {
	troubles, functions, shapes := make(map[scenario.TroubleKind]bool), make(map[scenario.Kind]bool), make(map[string]bool)
	for _, name := range scenario.Names() {
		s, _ := builtin(t, name)
		for i := range s.Troubles {
			troubles[s.Troubles[i].Kind] = true
		}
		for i := range s.Programs {
			for _, f := range s.Programs[i].Functions {
				functions[f.Kind] = true
				if name != "clean" {
					continue
				}
				v := reflect.ValueOf(f.Time)
				for i := range v.NumField() {
					if !v.Field(i).IsZero() {
						shapes[v.Type().Field(i).Name] = true
					}
				}
			}
		}
	}
	if len(troubles) != 15 || len(functions) != 8 || len(shapes) != reflect.TypeFor[scenario.Distribution]().NumField() {
		t.Errorf("there are troubles %v and functions %v, and in clean shapes %v", troubles, functions, shapes)
	}
}

func TestUnknownBuiltInScenario(t *testing.T) {
	_, err := scenario.Builtin("slow")
	if err == nil || !strings.Contains(err.Error(), `"slow"`) || !strings.Contains(err.Error(), "slow-rank") {
		t.Errorf("error is %v, want one that lists the built-in scenarios", err)
	}
	if names := scenario.Names(); !slices.IsSorted(names) {
		t.Errorf("%q are not sorted", names)
	}
}

// calls returns how many calls a run has, the two around the program included.
func calls(t *testing.T, s *scenario.Scenario) int {
	t.Helper()
	n := 0
	for i := range s.Programs {
		p := &s.Programs[i]
		same := 1 // ranks with the same calls
		for _, f := range p.Functions {
			if same = p.Ranks; f.RankPart != nil {
				same = 1
				break
			}
		}
		for rank := 0; rank < p.Ranks; rank += same {
			n += same * callsOf(t, s, p, rank)
		}
	}
	return n
}

// callsOf returns how many calls a rank has.
func callsOf(t *testing.T, s *scenario.Scenario, p *scenario.Program, rank int) int {
	t.Helper()
	in := func(part []float64, i, n int) bool {
		share := (float64(i) + 0.5) / float64(n)
		return part == nil || part[0] < share && share < part[1]
	}
	once := func(f *scenario.Function) bool { return f.Every <= 1 && f.Part == nil && in(f.RankPart, rank, p.Ranks) }
	n := 2 + countList(t, p, p.Setup, once, nil) + countList(t, p, p.Finish, once, nil)
	for iteration := range s.Steps * s.Iterations {
		n += countList(t, p, p.Body, func(f *scenario.Function) bool {
			return iteration%max(1, f.Every) == 0 && in(f.Part, iteration, s.Steps*s.Iterations) && in(f.RankPart, rank, p.Ranks)
		}, nil)
	}
	return n
}

// countList counts the calls of a list, without functions that do not run. used gets the
// functions.
func countList(t *testing.T, p *scenario.Program, list []string, runs func(*scenario.Function) bool, used map[string]bool) int {
	t.Helper()
	n := 0
	for _, call := range list {
		key, times, err := scenario.ParseCall(call)
		if err != nil {
			t.Fatal(err)
		}
		f := p.Functions[key]
		if used != nil {
			used[key] = true
			used[f.Kernel] = true
		}
		if !runs(&f) {
			continue
		}
		inside := countList(t, p, f.Calls, runs, used)
		switch f.Kind {
		case scenario.Exchange:
			inside = 2*len(f.Neighbors) + 1
		case scenario.Launch:
			inside = 1
		case scenario.Parallel:
			inside *= f.Threads
		}
		n += times * (1 + inside)
	}
	return n
}

func TestParseCall(t *testing.T) {
	f := func(call, key string, times int) {
		t.Helper()
		k, n, err := scenario.ParseCall(call)
		if err != nil {
			k, n = "", 0
		}
		if k != key || n != times {
			t.Errorf("%q: got %q %d times (%v), want %q %d times", call, k, n, err, key, times)
		}
	}
	f("smooth", "smooth", 1)
	f("3 smooth", "smooth", 3)
	f("int main(int, char**)", "int main(int, char**)", 1)
	f("2 void f(int)", "void f(int)", 2)
	f("3", "3", 1)
	f("x 3", "x 3", 1)
	f("0 smooth", "", 0)
	f("-1 smooth", "", 0)
	f("1000001 smooth", "", 0)
	f(strconv.Itoa(1_000_000)+" smooth", "smooth", 1_000_000)
}
