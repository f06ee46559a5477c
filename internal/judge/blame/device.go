package blame

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// shareDevices finds kernels that are slow only because they share the GPU: every slow call of such a kernel ran
// entirely during slower kernels on other streams of its rank. The call, and waits for it, are victims of the slower kernel.
func (f *finder) shareDevices() {
	slower := make(map[int32]int32)
	alone := make(map[trace.FuncKey]bool)
	for i := range f.all {
		if a := &f.all[i]; a.sharesDevice() {
			if j := f.slowerKernel(a); j >= 0 {
				slower[int32(i)] = j
			} else {
				alone[a.funcKey()] = true
			}
		}
	}
	for i, culprit := range slower {
		if a := &f.all[i]; !alone[a.funcKey()] {
			f.links[i] = Link{Role: provenance.Victim, Culprit: int(culprit), Late: a.Rank, Known: true, Hops: 1}
		}
	}
	for i := range f.links {
		l := &f.links[i]
		// A victim lost less than its culprit, so this loop ends.
		for l.Culprit >= 0 && f.all[l.Culprit].sharesDevice() && f.links[l.Culprit].Role == provenance.Victim {
			l.Culprit, l.Hops = f.links[l.Culprit].Culprit, l.Hops+1
		}
	}
}

// slowerKernel returns the kernel that lost most time among those on other streams that ran throughout a kernel and lost
// more than it; -1 if there is none.
func (f *finder) slowerKernel(a *Anomaly) int32 {
	slower, lost := int32(-1), a.Lost
	for _, j := range f.ranks[a.rankKey()].during(a.Entry, a.Exit) {
		if o := &f.all[j]; o.sharesDevice() && o.Thread != a.Thread && o.Entry <= a.Entry && o.Exit >= a.Exit && o.Lost > lost {
			slower, lost = j, o.Lost
		}
	}
	return slower
}

// sharesDevice reports whether the anomaly is a kernel that lost time and does not wait for others.
func (a *Anomaly) sharesDevice() bool { return a.OnDevice && a.Wait == Nothing && a.Lost > 0 }

func (a *Anomaly) rankKey() trace.RankKey { return trace.RankKey{Program: a.Program, Rank: a.Rank} }

func (a *Anomaly) funcKey() trace.FuncKey { return trace.FuncKey{Program: a.Program, Name: a.Func} }
