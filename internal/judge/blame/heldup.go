package blame

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// holdup is a wait in which a rank was held up although no other rank was late.
type holdup struct {
	wait   int32   // of the rank that was held up
	others []int32 // waits of all other ranks
}

// heldUp returns the waits in which a rank was held up: all ranks of a program wait, and the first to continue leaves either
// a wait for messages while others are in a collective call, or a collective call that others have left. No rank sends
// anything until then, and a long transfer would hold only its two ranks, so the rank did not wait for another. The time in
// which all ranks wait and the time that the wait lost must each be at least transitShare of the other. heldUp ignores programs
// that wait in several threads of a rank, because other threads may work.
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
		still, lost := float64(e.at-s.since), float64(w.Lost)
		if len(s.open) == s.ranks && still >= transitShare*lost && lost >= transitShare*still &&
			(w.Wait == Ranks && s.inGroup(f) || w.Wait == Group && f.heldBack(e.of)) {
			all = append(all, holdup{e.of, s.except(w.Rank)})
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
