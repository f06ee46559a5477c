package blame

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// holdup is a wait in which a rank was held up although no other rank was late.
type holdup struct {
	wait    int32   // of the rank that was held up
	others  []int32 // waits of all other ranks
	victims []int32 // those of them that waited for the rank
}

// heldUp returns the waits in which a rank was held up: all ranks of a program wait, and the first to continue leaves either
// a wait for messages while others are in a collective call, or a collective call that others have left. No rank sends
// anything until then, and a long transfer would hold only its two ranks, so the rank did not wait for another.
//
// If all ranks are in unusual waits for messages, the one that began first was held up if it is among the first to continue, and
// no other is known to wait for a third rank: without that, the first one would have continued when the others came.
//
// The time in which all ranks wait and the time that the wait lost must each be at least transitShare of the other. heldUp ignores
// programs that wait in several threads of a rank, because other threads may work.
func (f *finder) heldUp() (all []holdup) {
	programs := make(map[trace.Program]*waiting)
	for _, e := range f.edges() {
		w := &f.all[e.of]
		s := programs[w.Program]
		if s == nil {
			s = &waiting{open: make(map[trace.Rank][]int32), ranks: f.numRanks[w.Program]}
			programs[w.Program] = s
		}
		if !e.end {
			s.begin(w.Rank, e)
			continue
		}
		if h, ok := s.holdup(f, e); ok {
			all = append(all, h)
		}
		s.end(w.Rank, e)
	}
	return all
}

// edge is the beginning or the end of a wait for other ranks.
type edge struct {
	at  trace.Ticks
	end bool
	of  int32
}

// edges returns the edges of all waits for other ranks in order of time, without programs that wait in several threads of a
// rank.
func (f *finder) edges() (all []edge) {
	threads, several := make(map[trace.RankKey]trace.Thread), make(map[trace.Program]bool)
	for _, i := range f.waits {
		w := &f.all[i]
		if w.Wait != Ranks && w.Wait != Group || w.OnDevice || w.Exit == w.Entry {
			continue
		}
		thread, ok := threads[w.rankKey()]
		threads[w.rankKey()] = w.Thread
		several[w.Program] = several[w.Program] || ok && thread != w.Thread
		all = append(all, edge{w.Entry, false, i}, edge{w.Exit, true, i})
	}
	all = slices.DeleteFunc(all, func(e edge) bool { return several[f.all[e.of].Program] })
	slices.SortFunc(all, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.of, b.of)) })
	return all
}

// waiting has the ranks of a program that are waiting at a time.
type waiting struct {
	ranks int                    // number of ranks of the program
	open  map[trace.Rank][]int32 // waits of the ranks that are waiting
	since trace.Ticks            // time of the last change: a rank began to wait, or ended a wait
}

func (s *waiting) begin(rank trace.Rank, e edge) {
	if s.open[rank] = append(s.open[rank], e.of); len(s.open[rank]) == 1 {
		s.since = e.at
	}
}

func (s *waiting) end(rank trace.Rank, e edge) {
	s.since = e.at
	if s.open[rank] = slices.DeleteFunc(s.open[rank], func(i int32) bool { return i == e.of }); len(s.open[rank]) == 0 {
		delete(s.open, rank)
	}
}

// holdup returns the wait in which a rank was held up until the first rank to continue ended a wait.
func (s *waiting) holdup(f *finder, e edge) (h holdup, ok bool) {
	if len(s.open) != s.ranks {
		return h, false
	}
	w, still := &f.all[e.of], float64(e.at-s.since)
	if s.fits(w, still) && (w.Wait == Ranks && s.inGroup(f) || w.Wait == Group && f.heldBack(e.of)) {
		return holdup{wait: e.of, others: s.except(w.Rank)}, true
	}
	i := s.first(f)
	if i < 0 || !s.fits(&f.all[i], still) || !f.all[i].endsWith(e.at) {
		return h, false
	}
	rank := f.all[i].Rank
	others := s.except(rank)
	if len(others) == 0 || slices.ContainsFunc(others, func(j int32) bool { return !f.all[j].mayWaitFor(rank) }) {
		return h, false
	}
	victims := slices.DeleteFunc(slices.Clone(others), func(j int32) bool { return !s.fits(&f.all[j], still) })
	return holdup{i, others, victims}, true
}

// fits reports whether a time in which all ranks wait and the time that a wait lost are about the same.
func (s *waiting) fits(w *Anomaly, still float64) bool {
	return still >= transitShare*float64(w.Lost) && float64(w.Lost) >= transitShare*still
}

// first returns the wait that began first, or -1 if not all are unusual waits for messages.
func (s *waiting) first(f *finder) int32 {
	first := int32(-1)
	for _, waits := range s.open {
		for _, i := range waits {
			w := &f.all[i]
			if w.Wait != Ranks || w.Candidate || w.Usual {
				return -1
			}
			if first < 0 || cmp.Or(cmp.Compare(w.Entry, f.all[first].Entry), cmp.Compare(i, first)) < 0 {
				first = i
			}
		}
	}
	return first
}

// endsWith reports whether a wait ends at a time, which is not after its end.
func (a *Anomaly) endsWith(at trace.Ticks) bool {
	return float64(a.Exit-at) <= sameEnd*float64(a.Exit-a.Entry)
}

// mayWaitFor reports whether a wait is for a message of a rank or to it, or for an unknown message.
func (a *Anomaly) mayWaitFor(rank trace.Rank) bool { return a.Last == nil || a.Last.Partner == rank }

// inGroup reports whether a rank is waiting in a collective call.
func (s *waiting) inGroup(f *finder) bool {
	for _, waits := range s.open {
		if slices.ContainsFunc(waits, func(i int32) bool { return f.all[i].Wait == Group }) {
			return true
		}
	}
	return false
}

// except returns the waits of all ranks but one.
func (s *waiting) except(rank trace.Rank) (all []int32) {
	for _, r := range slices.Sorted(maps.Keys(s.open)) {
		if r != rank {
			all = append(all, s.open[r]...)
		}
	}
	return all
}
