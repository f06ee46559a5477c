package findings

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// spanning counts slow calls that include the end of a step of the trace, and how many would by chance.
type spanning struct {
	hits     []int32
	expected float64
}

// isChance reports whether chance gives so many with a probability of at least p.
func (s *spanning) isChance(p float64) bool { return poissonTail(int64(len(s.hits)), s.expected) >= p }

// recording sets the keys of delays by writing the trace, unless they are too long to be like the others. Calls that
// it delays include the end of a step of the trace. By chance a call does so with the probability of its length divided by
// that of the step. Too many slow calls of a path do so for chance, or too many of all other paths, among calls
// with a probability below blame.ByChance that are not of a slow mode.
func (c *conclusion) recording(order []int32, keys map[int32]*key) {
	paths := make(map[pathKey]*spanning)
	of := func(i int32) (a *blame.Anomaly, k pathKey, chance float64, ok bool) {
		a = &c.run.Anomalies[i]
		ok = a.StepTime > 0 && a.Lost > 0 && !a.OnDevice && c.delays(i)
		return a, pathKey{a.Program, c.names.stable(a.Path)}, float64(a.Exit-a.Entry) / float64(max(1, a.StepTime)), ok
	}
	count := func(s *spanning, i int32, a *blame.Anomaly, chance float64) *spanning {
		if s == nil {
			s = new(spanning)
		}
		if s.expected += chance; a.Recorded {
			s.hits = append(s.hits, i)
		}
		return s
	}
	for _, i := range order {
		if a, k, chance, ok := of(i); ok {
			paths[k] = count(paths[k], i, a, chance)
		}
	}
	others, delayed := make(map[trace.Program]*spanning), make(map[trace.Program][]int32)
	for _, i := range order {
		if a, k, chance, ok := of(i); ok && chance < blame.ByChance && a.Kind != provenance.Recurring && paths[k].isChance(blameChance) {
			others[k.program] = count(others[k.program], i, a, chance)
		}
	}
	for k, s := range paths {
		if !s.isChance(blameChance) {
			delayed[k.program] = append(delayed[k.program], s.hits...)
		}
	}
	for program, s := range others {
		if !s.isChance(byChance) {
			delayed[program] = append(delayed[program], s.hits...)
		}
	}
	for program, hits := range delayed {
		limit := c.limitOf(hits)
		for _, i := range hits {
			if c.run.Anomalies[i].Lost <= limit {
				keys[i] = &key{kind: provenance.Interference, program: program, rank: allRanks, recording: true}
			}
		}
	}
}
