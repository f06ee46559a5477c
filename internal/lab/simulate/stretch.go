package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// Stretch makes a scenario last for about d, by changing the number of steps. It scales
// the times of troubles in proportion.
func Stretch(s *scenario.Scenario, d time.Duration) error {
	sample := *s
	sample.Steps, sample.Troubles = 4, nil // the first also sets up, the last also finishes
	times := ends(&sample)
	step := (times[2] - times[0]) / 2
	if step <= 0 {
		return fmt.Errorf("a step of %s takes no time", s.Name)
	}
	steps := math.Round(float64(d) / float64(step))
	if steps < 1 || steps > 1e9 {
		return fmt.Errorf("%s cannot last for %s: a step takes %s", s.Name, d, step)
	}
	if err := s.Stretch(int(steps)); err != nil {
		return err
	}
	if s.Ranks()*s.Steps > maxRehearsed {
		return nil
	}
	times = ends(s)
	lasts := times[len(times)-1] // with its troubles
	return s.Stretch(max(1, int(math.Round(steps*float64(d)/float64(lasts)))))
}

// maxRehearsed bounds the number of steps of all ranks for which a scenario runs in advance,
// to measure the effect of its troubles.
const maxRehearsed = 200_000

// ends returns the time since the start at which each step has ended on all ranks.
func ends(s *scenario.Scenario) []time.Duration {
	run := New(s)
	var all []time.Duration
	for run.Advance() {
		last := int64(0)
		for _, of := range run.streams {
			last = max(last, of.ends())
		}
		all = append(all, time.Duration(last-s.Start.UnixMicro())*time.Microsecond)
	}
	return all
}
