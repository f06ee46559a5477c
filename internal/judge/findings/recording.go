package findings

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// recording sets the keys of delays by writing the trace. The calls of a path that are delayed by it include the end
// of a step of the trace. By chance a call does so with a probability of its length divided by that of the step, but at
// least that of the steps divided by the calls of the path: each step may end in one of them. Too many of these for chance are
// delayed by the recording, unless they are too long to be like the others.
func (c *conclusion) recording(order []int32, keys map[int32]*key) {
	type written struct {
		hits     []int32
		expected float64
	}
	paths := make(map[pathKey]*written)
	for _, i := range order {
		a := &c.run.Anomalies[i]
		if a.StepTime <= 0 || a.Lost <= 0 || a.OnDevice || !c.delays(i) {
			continue
		}
		k := pathKey{a.Program, c.names.stable(a.Path)}
		w := paths[k]
		if w == nil {
			w = new(written)
			paths[k] = w
		}
		steps := float64(c.end-c.begin) / float64(a.StepTime) * float64(c.profile.ranks[a.Program])
		w.expected += max(float64(a.Exit-a.Entry)/float64(a.StepTime), steps/float64(max(1, c.profile.paths[k].calls)))
		if a.Recorded {
			w.hits = append(w.hits, i)
		}
	}
	programs := make(map[trace.Program][]int32)
	for k, w := range paths {
		if poissonTail(int64(len(w.hits)), w.expected) < blameChance {
			programs[k.program] = append(programs[k.program], w.hits...)
		}
	}
	for program, hits := range programs {
		limit := c.limitOf(hits)
		for _, i := range hits {
			if c.run.Anomalies[i].Lost <= limit {
				keys[i] = &key{kind: provenance.Interference, program: program, rank: allRanks, recording: true}
			}
		}
	}
}
