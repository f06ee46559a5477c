package scenario_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// FuzzParse checks that no text makes Parse panic or take long, and that what it
// accepts can be used.
func FuzzParse(f *testing.F) {
	for _, name := range scenario.Names() {
		text, err := scenario.Builtin(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(valid))
	f.Add([]byte("steps = 1\nstart = 2026-05-06\n[[program]]\nname = 'p'\nranks = 1\nbody = ['f']\nfunctions.f.time.fixed = 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		began := time.Now()
		s, err := scenario.Parse("fuzz.toml", text)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%d bytes took %v", len(text), took)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.toml: ") || len(err.Error()) > 1<<16+2*len(text) {
				t.Errorf("error of %d bytes: %.200s", len(err.Error()), err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("was accepted, and then: %v", err)
		}
		for i := range s.Programs {
			use(t, &s.Programs[i], s)
		}
		before := s.Programs[0].Ranks
		if err := s.Stretch(2 * s.Steps); err == nil && s.Steps < 2 {
			t.Errorf("twice as long, it has %d steps", s.Steps)
		}
		if before <= 1000 {
			_ = s.Resize(3) // may be refused
		}
	})
}

// use uses a program like a simulation.
func use(t *testing.T, p *scenario.Program, s *scenario.Scenario) {
	t.Helper()
	for _, r := range []int{0, p.Ranks / 2, p.Ranks - 1} {
		if p.Host(r) == "" {
			t.Errorf("rank %d has no host", r)
		}
	}
	for i := range s.Troubles {
		trouble := &s.Troubles[i]
		if of, _ := s.Find(trouble); of == p && p.Ranks <= 1000 && len(p.Concerns(trouble)) == 0 {
			t.Errorf("trouble %q affects no rank", trouble.Name)
		}
		typical(t, trouble.Extra)
		typical(t, trouble.Value)
	}
	lists := [][]string{p.Setup, p.Body, p.Finish}
	for key := range p.Functions {
		fn := p.Functions[key]
		typical(t, &fn.Time)
		typical(t, fn.Message)
	}
	for _, list := range lists {
		for _, call := range list {
			key, times, err := scenario.ParseCall(call)
			if _, ok := p.Functions[key]; err != nil || !ok || times < 1 {
				t.Errorf("call %q was accepted: %q, %d, %v", call, key, times, err)
			}
		}
	}
}

func typical(t *testing.T, d *scenario.Distribution) {
	t.Helper()
	if d == nil {
		return
	}
	if v := d.Typical(1000); !(v >= 0) || math.IsInf(v, 0) {
		t.Errorf("%+v is typically %v", d, v)
	}
}
