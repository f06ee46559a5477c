package blame

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// shareDevices finds kernels that are slow only because they share the GPU: all slow calls of the kernel ran entirely
// during slower kernels on other streams of their rank. They are victims of those, and so are waits for them.
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
		for l.Culprit >= 0 && f.all[l.Culprit].sharesDevice() && f.links[l.Culprit].Role == provenance.Victim { // which lost less
			l.Culprit, l.Hops = f.links[l.Culprit].Culprit, l.Hops+1
		}
	}
}

// slowerKernel returns the kernel on another stream that lost most, and more, of those that ran throughout a kernel; -1
// if there is none.
func (f *finder) slowerKernel(a *Anomaly) int32 {
	slower, lost := int32(-1), a.Lost
	for _, j := range f.ranks[a.rankKey()].during(a.Entry, a.Exit) {
		if o := &f.all[j]; o.sharesDevice() && o.Thread != a.Thread && o.Entry <= a.Entry && o.Exit >= a.Exit && o.Lost > lost {
			slower, lost = j, o.Lost
		}
	}
	return slower
}

// sharesDevice reports whether it is a kernel that lost time and does not wait for others.
func (a *Anomaly) sharesDevice() bool { return a.OnDevice && a.Wait == Nothing && a.Lost > 0 }

func (a *Anomaly) rankKey() trace.RankKey { return trace.RankKey{Program: a.Program, Rank: a.Rank} }

func (a *Anomaly) funcKey() trace.FuncKey { return trace.FuncKey{Program: a.Program, Name: a.Func} }
