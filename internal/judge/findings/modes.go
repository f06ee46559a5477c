package findings

import (
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// sample contains the sums of the anomalies that are examples of a slow mode.
type sample struct {
	n    float64
	lost trace.Ticks
}

// countExamples counts the examples of each slow mode.
func (c *conclusion) countExamples() {
	c.examples = make(map[*summary.Mode]*sample)
	for i := range c.run.Anomalies {
		a := &c.run.Anomalies[i]
		m := c.profile.mode(a)
		if m == nil {
			continue
		}
		s := c.examples[m]
		if s == nil {
			s = new(sample)
			c.examples[m] = s
		}
		s.n++
		s.lost += a.Lost
	}
}

// represents returns the number of calls that an anomaly represents, and the time that they lost. An example of a slow mode
// represents more than itself.
func (c *conclusion) represents(a *blame.Anomaly) (calls, lost float64) {
	calls, lost = 1, float64(a.Lost)
	m := c.profile.mode(a)
	switch s := c.examples[m]; {
	case s == nil:
	case m.Calls == 0:
		calls, lost = 1/m.Kept, lost/m.Kept
	case float64(m.Calls) > s.n:
		calls = float64(m.Calls) / s.n
		lost *= math.Max(0, m.Lost) / max(1, float64(s.lost))
	}
	return calls, lost
}
