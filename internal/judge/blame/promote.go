package blame

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// ByChance is the probability below which it is not chance that one of the ranks of a program takes as long in a call.
const ByChance = 0.05

// costlyShare is the share of the time that a wait must lose to be explained although it is not unusual. If its cause is not
// unusual either, the cause must lose as much. Smaller waits are frequent in programs without trouble.
const costlyShare = 1e-3

// Promote returns the indices in Run.Anomalies, in order, of the candidates that explain waits: those that made others wait
// and are not late by chance, and the waits between them and the anomalies. The waits are anomalies or costly. It also returns
// waits in which a rank was held up, with the waits of all other ranks. In a run with only these candidates, Find gives each of
// them a role. Promote does not modify run.
func Promote(run *Run) []int {
	f := newFinder(run)
	ranks := make(map[trace.Program]float64)
	for k := range f.ranks {
		ranks[k.Program]++
	}
	include := make([]bool, len(f.all)) // in the order of Run.Anomalies
	for i := range f.all {
		include[f.place[i]] = !f.all[i].Candidate
	}
	for _, h := range f.holdups {
		for _, i := range append(h.others, h.wait) {
			include[f.place[i]] = true
		}
	}
	least := trace.Ticks(costlyShare * float64(f.time()))
	for _, i := range f.waits {
		if include[f.place[i]] || f.all[i].Lost >= least {
			f.resolve(i)
		}
	}
	for i, l := range f.links {
		if l.Role != provenance.Victim || l.Culprit < 0 {
			continue
		}
		a := &f.all[l.Culprit]
		enough := !f.all[i].Candidate || a.Lost >= least
		if !a.Candidate || enough && a.Share*ranks[a.Program] < ByChance {
			include[f.place[i]], include[f.place[l.Culprit]] = true, true
		}
	}
	return run.withRoles(include)
}

// time returns the time from the first to the last anomaly or candidate.
func (f *finder) time() trace.Ticks {
	if len(f.all) == 0 {
		return 0
	}
	begin := f.all[0].Entry
	for i := range f.all {
		begin = min(begin, f.all[i].Entry)
	}
	return f.all[len(f.all)-1].Exit - begin // they are in order of exit
}

// withRoles returns the indices of the chosen candidates that have a role without the others.
func (r *Run) withRoles(include []bool) (candidates []int) {
	for before := -1; before != len(candidates); {
		before, candidates = len(candidates), candidates[:0]
		part := Run{Sends: r.Sends, Ranks: r.Ranks}
		var index []int
		for i, ok := range include {
			if ok {
				part.Anomalies, index = append(part.Anomalies, r.Anomalies[i]), append(index, i)
			}
		}
		for k, l := range Find(&part) {
			if i := index[k]; r.Anomalies[i].Candidate {
				if include[i] = l.Role != ""; include[i] {
					candidates = append(candidates, i)
				}
			}
		}
	}
	return candidates
}
