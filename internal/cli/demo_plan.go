package cli

import (
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/lab/simulate"
)

// demoPlan is what will run.
type demoPlan struct {
	text     string // what is simulated
	ranks    int    // of all programs together
	hosts    []demoHost
	steps    int64 // of all ranks together
	troubles int
	programs []string // flags that tell an analyzer the programs of a workflow apart
}

// demoHost is a host that the program runs on.
type demoHost struct {
	name   string
	traces int
}

// newDemoPlan finds out what the simulation that the flags ask for will be.
func newDemoPlan(flags *demoFlags) (*demoPlan, error) {
	s, _, err := loadScenario(flags.scenario)
	if err != nil {
		return nil, err
	}
	if flags.ranks > 0 {
		if err := s.Resize(flags.ranks); err != nil {
			return nil, usagef("--ranks %d: %w", flags.ranks, err)
		}
	}
	if err := simulate.Stretch(s, flags.duration); err != nil {
		return nil, usagef("--duration %v: %w", flags.duration, err)
	}
	p := &demoPlan{text: s.Text, troubles: len(s.Troubles)}
	for i := range s.Programs {
		program := &s.Programs[i]
		p.ranks += program.Ranks
		p.steps += int64(s.Steps) * int64(program.Ranks)
		for rank := range program.Ranks {
			p.add(program.Host(rank))
		}
		if len(s.Programs) > 1 {
			p.programs = append(p.programs, "--program", fmt.Sprintf("%d=*/tau-metrics-%s-*", i, program.Name))
		}
	}
	return p, nil
}

// add counts a trace of a host.
func (p *demoPlan) add(host string) {
	i := slices.IndexFunc(p.hosts, func(h demoHost) bool { return h.name == host })
	if i < 0 {
		i = len(p.hosts)
		p.hosts = append(p.hosts, demoHost{name: host})
	}
	p.hosts[i].traces++
}
