package blame

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// route identifies messages that arrive in the order in which they are sent.
type route struct {
	program  trace.Program
	from, to trace.Rank
	tag      int32
}

// newSends groups sends by route in order of time.
func newSends(all []Send) map[route][]Send {
	routes := make(map[route][]Send)
	for _, s := range all {
		r := route{s.Program, s.From, s.To, s.Tag}
		routes[r] = append(routes[r], s)
	}
	for r, sends := range routes {
		slices.SortFunc(sends, func(a, b Send) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Until, a.Until)) })
		routes[r] = slices.CompactFunc(sends, func(a, b Send) bool { return a.Time == b.Time }) // keep the latest Until
	}
	return routes
}

// sent returns the time at which the last message of a wait was sent, and false if the records do not show it.
func (f *finder) sent(w *Anomaly) (at trace.Ticks, ok bool) {
	sends := f.sends[route{w.Program, w.Last.Partner, w.Rank, w.Last.Tag}]
	n, _ := slices.BinarySearchFunc(sends, w.Last.Time, func(s Send, t trace.Ticks) int { return cmp.Compare(s.Time, t) })
	if n == 0 || sends[n-1].Until < w.Last.Time {
		return 0, false
	}
	return sends[n-1].Time, true
}
