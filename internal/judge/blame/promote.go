package blame

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// ByChance is the probability below which it is not chance that one of the ranks of a program takes as long in a call.
const ByChance = 0.05

// victimShare is the share of the time that a wait must lose to become an anomaly only because it is for one. Smaller waits are
// frequent in programs without trouble.
const victimShare = 1e-3

// Promote returns the indices in Run.Anomalies, in order, of the candidates that explain waits or are explained: those that
// made others wait and are not late by chance, the waits between them and the anomalies, and the waits for anomalies. It also
// returns waits in which a rank was held up, with the waits of all other ranks. In a run with only these candidates, Find gives
// each of them a role. Promote does not modify run.
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
	for _, i := range f.waits {
		if include[f.place[i]] {
			f.resolve(i)
		}
	}
	for i, l := range f.links {
		if l.Role != provenance.Victim || l.Culprit < 0 {
			continue
		}
		if a := &f.all[l.Culprit]; !a.Candidate || a.Share*ranks[a.Program] < ByChance {
			include[f.place[i]], include[f.place[l.Culprit]] = true, true
		}
	}
	return run.withRoles(include, f.victims(include))
}

// victims returns which other waits are for an anomaly and cost much, in the order of Run.Anomalies: they are a part of what it
// costs.
func (f *finder) victims(include []bool) []bool {
	begin, end := f.span()
	least := trace.Ticks(victimShare * float64(end-begin))
	victims := make([]bool, len(include))
	for _, i := range f.waits {
		if f.all[i].Lost < least || include[f.place[i]] {
			continue
		}
		f.resolve(i)
		l := &f.links[i]
		victims[f.place[i]] = l.Role == provenance.Victim && l.Culprit >= 0 && !f.all[l.Culprit].Candidate && !f.all[l.Culprit].waitsForOthers()
	}
	return victims
}

// span returns the times of the first and the last anomaly or candidate.
func (f *finder) span() (begin, end trace.Ticks) {
	for i := range f.all {
		a := &f.all[i]
		if i == 0 || a.Entry < begin {
			begin = a.Entry
		}
		end = max(end, a.Exit)
	}
	return begin, end
}

// withRoles returns the indices of the chosen candidates that have a role without the others, and of the victims that wait for a
// call that does not wait.
func (r *Run) withRoles(include, victims []bool) (candidates []int) {
	for before := -1; before != len(candidates); {
		before, candidates = len(candidates), candidates[:0]
		part := Run{Sends: r.Sends, Ranks: r.Ranks}
		var index []int
		for i, ok := range include {
			if ok || victims[i] {
				part.Anomalies, index = append(part.Anomalies, r.Anomalies[i]), append(index, i)
			}
		}
		for k, l := range Find(&part) {
			i := index[k]
			if !r.Anomalies[i].Candidate {
				continue
			}
			include[i] = include[i] && l.Role != ""
			victims[i] = victims[i] && l.Role == provenance.Victim && l.Culprit >= 0 && !part.Anomalies[l.Culprit].waitsForOthers()
			if include[i] || victims[i] {
				candidates = append(candidates, i)
			}
		}
	}
	return candidates
}
