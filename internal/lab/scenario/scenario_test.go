package scenario_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

func TestDefaults(t *testing.T) {
	s, err := scenario.Parse("x", []byte("steps = 3\n[[program]]\nname = \"p\"\nranks = 2\nbody = [\"f\"]\n[program.functions]\nf = {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := &s.Programs[0]
	if s.Iterations != 1 || s.NotableMicros != 100 || s.NotableShare != 0.5 || !s.Start.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) ||
		p.Latency != 2 || p.Bandwidth != 10_000 || !slices.Equal(p.Hosts, []string{"node00"}) {
		t.Errorf("got %+v", s)
	}
	if f := p.Functions["f"]; !f.Time.IsZero() || f.Time.Typical(100) != 0 {
		t.Errorf("got %+v", f)
	}
}

func TestStartWithoutOffsetIsUTC(t *testing.T) {
	f := func(start string, want time.Time) {
		t.Helper()
		s, err := scenario.Parse("x", []byte("start = "+start+"\n"+valid))
		if err != nil || !s.Start.Equal(want) {
			t.Errorf("start = %s: got %v (%v), want %v", start, s.Start, err, want)
		}
	}
	f("2026-05-06T12:00:00", time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC))
	f("2026-05-06", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC))
	f("2026-05-06T12:00:00Z", time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC))
	f("2026-05-06T12:00:00+02:00", time.Date(2026, 5, 6, 10, 0, 0, 0, time.UTC))
}

func TestRanksAreSpreadOverHosts(t *testing.T) {
	f := func(ranks, hosts int, want string) {
		t.Helper()
		p := scenario.Program{Ranks: ranks, Hosts: strings.Split("abcdefgh"[:hosts], "")}
		var got strings.Builder
		for r := range ranks {
			got.WriteString(p.Host(r))
		}
		if got.String() != want {
			t.Errorf("%d ranks on %d hosts: got %s, want %s", ranks, hosts, got.String(), want)
		}
	}
	f(1, 1, "a")
	f(8, 2, "aaaabbbb")
	f(5, 4, "aabcd")
	f(10, 4, "aaabbcccdd")
	f(2, 4, "ab")
}

func TestRanksOfTrouble(t *testing.T) {
	p := scenario.Program{Ranks: 6, Hosts: []string{"a", "b", "c"}}
	f := func(trouble scenario.Trouble, want ...int) {
		t.Helper()
		if got := p.Concerns(&trouble); !slices.Equal(got, want) {
			t.Errorf("%+v concerns %v, want %v", trouble, got, want)
		}
	}
	f(scenario.Trouble{}, 0, 1, 2, 3, 4, 5)
	f(scenario.Trouble{Ranks: []int{4, 1}}, 1, 4)
	f(scenario.Trouble{Hosts: []string{"b"}}, 2, 3)
	f(scenario.Trouble{Hosts: []string{"a"}, Ranks: []int{5, 0}}, 0, 1, 5)
	f(scenario.Trouble{Kind: scenario.SlowLink, Link: []int{3, 2}}, 2, 3)
}

func TestTroubleBelongsToFirstProgramByDefault(t *testing.T) {
	s, err := scenario.Parse("x", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	f := func(program, want string, index int) {
		t.Helper()
		p, i := s.Find(&scenario.Trouble{Program: program})
		if p == nil && want != "" || p != nil && (p.Name != want || i != index) {
			t.Errorf("program = %q is %v, number %d", program, p, i)
		}
	}
	f("", "sim", 0)
	f("sim", "sim", 0)
	f("ana", "ana", 1)
	f("no", "", 0)
}

func TestTypicalTimes(t *testing.T) {
	seven := 7.0
	f := func(d scenario.Distribution, want float64) {
		t.Helper()
		if got := d.Typical(100); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%+v: got %v, want %v", d, got, want)
		}
	}
	f(scenario.Distribution{}, 0)
	f(scenario.Distribution{Fixed: &seven}, 7)
	f(scenario.Distribution{Fixed: &seven, PerByte: 0.5}, 57)
	f(scenario.Distribution{Normal: []float64{10, 2}}, 10)
	f(scenario.Distribution{Normal: []float64{-10, 2}}, 0)
	f(scenario.Distribution{Lognormal: []float64{20, 1}}, 20)
	f(scenario.Distribution{Uniform: []float64{10, 20}}, 15)
	f(scenario.Distribution{Integers: []float64{10, 14}}, 12)
	f(scenario.Distribution{Pareto: []float64{10, 1}}, 20)
	f(scenario.Distribution{Modes: []scenario.Mode{
		{Weight: 3, Distribution: scenario.Distribution{Fixed: &seven}},
		{Weight: 1, Distribution: scenario.Distribution{Uniform: []float64{10, 20}}},
	}}, 9)
}

func TestResizeMovesTroubles(t *testing.T) {
	s, err := scenario.Parse("x", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resize(16); err != nil {
		t.Fatal(err)
	}
	if got := []int{s.Programs[0].Ranks, s.Programs[1].Ranks, s.Troubles[2].Link[0], s.Troubles[2].Link[1]}; !slices.Equal(got,
		[]int{16, 4, 4, 6}) {
		t.Errorf("ranks of both programs and the link are %v", got)
	}
	if err := s.Resize(1); err == nil || !strings.Contains(err.Error(), "wants two different ranks") {
		t.Errorf("a link within one rank: %v", err)
	}
	for _, name := range scenario.Names() {
		for _, ranks := range []int{2, 3, 5, 24} {
			s, _ := builtin(t, name)
			if err := s.Resize(ranks); err != nil && name != "slow-link" {
				t.Errorf("%s with %d ranks: %v", name, ranks, err)
			}
		}
	}
}

func TestFromStartMakesTroublesLast(t *testing.T) {
	s, _ := builtin(t, "memory-pressure")
	if err := s.FromStart(); err != nil || s.Troubles[0].FromSeconds != 0 || s.Troubles[0].ToSeconds != 0 {
		t.Errorf("%v: trouble from %v to %v", err, s.Troubles[0].FromSeconds, s.Troubles[0].ToSeconds)
	}
	s, _ = builtin(t, "drift")
	if err := s.FromStart(); err == nil || !strings.Contains(err.Error(), "drift needs to") {
		t.Errorf("a drift without an end: %v", err)
	}
}

func TestStretchMovesTroubles(t *testing.T) {
	s, err := scenario.Parse("x", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stretch(30); err != nil || s.Steps != 30 || s.Troubles[1].FromSeconds != 3 || s.Troubles[1].ToSeconds != 6 {
		t.Errorf("%v: %d steps, trouble from %v to %v", err, s.Steps, s.Troubles[1].FromSeconds, s.Troubles[1].ToSeconds)
	}
	if err := s.Stretch(0); err == nil {
		t.Error("no steps at all are accepted")
	}
}
