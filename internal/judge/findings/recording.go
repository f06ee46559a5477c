package findings

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// crossings counts slow calls that include the end of a step of the trace, and how many of them chance explains.
type crossings struct {
	hits     []int32
	expected float64
}

// isChance reports whether chance gives as many hits with a probability of at least p.
func (s *crossings) isChance(p float64) bool { return poissonTail(int64(len(s.hits)), s.expected) >= p }

// recording sets the keys of delays by writing the trace, unless they are too long to be like the others. A call that writing
// delays includes the end of a step of the trace. By chance a call includes one with a probability of its length divided by
// that of the step. Delays have this cause if more slow calls include the end of a step than by chance: those of one path, or of
// all other paths together, counting calls with a probability below blame.ByChance that are not of a slow mode.
func (c *conclusion) recording(order []int32, keys map[int32]*key) {
	paths := make(map[pathKey]*crossings)
	of := func(i int32) (a *blame.Anomaly, k pathKey, chance float64, ok bool) {
		a = &c.run.Anomalies[i]
		ok = a.StepTime > 0 && a.Lost > 0 && !a.OnDevice && c.delays(i)
		return a, c.pathOf(a), float64(a.Exit-a.Entry) / float64(max(1, a.StepTime)), ok
	}
	count := func(s *crossings, i int32, a *blame.Anomaly, chance float64) *crossings {
		if s == nil {
			s = new(crossings)
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
	others, delayed := make(map[trace.Program]*crossings), make(map[trace.Program][]int32)
	for k, s := range paths {
		if !s.isChance(blameChance) {
			delayed[k.program] = append(delayed[k.program], s.hits...)
			delete(paths, k)
		}
	}
	for _, i := range order {
		if a, k, chance, ok := of(i); ok && paths[k] != nil && chance < blame.ByChance && a.Kind != provenance.Recurring {
			others[k.program] = count(others[k.program], i, a, chance)
		}
	}
	for program, s := range others {
		if !s.isChance(byChance) {
			delayed[program] = append(delayed[program], s.hits...)
		}
	}
	for program, hits := range delayed {
		limit := c.limitOf(hits)
		k := &key{kind: provenance.Interference, program: program, rank: allRanks, recording: true}
		for _, i := range hits {
			if c.run.Anomalies[i].Lost <= limit {
				keys[i] = k
			}
		}
		c.recordingInCalls(order, keys, k, limit)
	}
}

// recordingInCalls finds collective calls of unknown cause in which a rank wrote the trace, if they are too many for chance: that
// rank was late, and the others waited for it.
func (c *conclusion) recordingInCalls(order []int32, keys map[int32]*key, k *key, limit trace.Ticks) {
	var unknown, recorded []int32
	for _, i := range order {
		if a := &c.run.Anomalies[i]; a.Program == k.program && a.Wait == blame.Group && a.StepTime > 0 {
			if a.Lost > 0 && a.Lost <= limit && keys[i] == nil && c.links[i].Culprit < 0 {
				unknown = append(unknown, i)
			}
			if a.Recorded {
				recorded = append(recorded, i)
			}
		}
	}
	ranks, expected := c.profile.ranks[k.program], 0.
	var late, waits []int32
	for _, i := range unknown {
		a := &c.run.Anomalies[i]
		expected += min(1, float64(ranks)*float64(a.Exit-a.Entry)/float64(a.StepTime))
		if a.Recorded {
			late = append(late, i)
		} else if c.meets(a, recorded, ranks) {
			waits = append(waits, i)
		}
	}
	if poissonTail(int64(len(late)+len(waits)), expected) >= byChance {
		return
	}
	for _, i := range late {
		keys[i] = k
	}
	for _, i := range waits {
		c.causes[i] = k
	}
}

// meets reports whether a call overlaps one of the same function on another rank among others, which are in order of entry. It
// considers the last ones, one per rank, because a rank has at most one call in a collective operation.
func (c *conclusion) meets(a *blame.Anomaly, others []int32, ranks int) bool {
	end, _ := slices.BinarySearchFunc(others, a.Exit, func(i int32, at trace.Ticks) int { return cmp.Compare(c.run.Anomalies[i].Entry, at) })
	return slices.ContainsFunc(others[max(0, end-ranks):end], func(i int32) bool {
		o := &c.run.Anomalies[i]
		return o.Func == a.Func && o.Rank != a.Rank && o.Exit > a.Entry
	})
}
