package scenario

import (
	"fmt"
	"slices"
)

// Resize sets the number of ranks of the first program. The ranks of the other programs,
// and the ranks and hosts of troubles, change in proportion.
func (s *Scenario) Resize(ranks int) error {
	if ranks < 1 || ranks > maxRanks {
		return fmt.Errorf("%d ranks are not from 1 to %d", ranks, maxRanks)
	}
	old := s.Programs[0].Ranks
	for i := range s.Programs {
		p := &s.Programs[i]
		before, hosts := p.Ranks, p.Hosts
		p.Ranks = max(1, int(int64(before)*int64(ranks)/int64(old)))
		if len(hosts) > p.Ranks {
			p.Hosts = hosts[:p.Ranks]
		}
		moved := func(rank int) int { return int(int64(rank) * int64(p.Ranks) / int64(before)) }
		for j := range s.Troubles {
			t := &s.Troubles[j]
			if _, of := s.Find(t); of != i {
				continue
			}
			t.Ranks = apply(t.Ranks, moved)
			if t.Link != nil {
				t.Link = []int{moved(t.Link[0]), moved(t.Link[1])}
			}
			t.Hosts = apply(t.Hosts, func(h string) string {
				return p.Hosts[slices.Index(hosts, h)*len(p.Hosts)/len(hosts)]
			})
		}
	}
	return s.Validate()
}

// apply returns f of each element, without repetitions.
func apply[T comparable](list []T, f func(T) T) []T {
	var out []T
	for _, v := range list {
		if v = f(v); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// Stretch sets the number of steps, and scales the times of all troubles in proportion.
func (s *Scenario) Stretch(steps int) error {
	factor := float64(steps) / float64(s.Steps)
	s.Steps = steps
	for i := range s.Troubles {
		s.Troubles[i].FromSeconds *= factor
		s.Troubles[i].ToSeconds *= factor
	}
	return s.Validate()
}

// FromStart makes all troubles last from the start of the run to its end.
func (s *Scenario) FromStart() error {
	for i := range s.Troubles {
		s.Troubles[i].FromSeconds, s.Troubles[i].ToSeconds = 0, 0
	}
	return s.Validate()
}
