package paramclient

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
)

// heldLoad is load that is sent later than its steps, together with the load of other steps,
// because each message and each window repeat the kinds of work. The server records the steps whose
// load it has, so a restarted analyzer adds the rest again.
type heldLoad struct {
	*workload.Load
	released    trace.Ticks // end of the load that was released
	urgent      bool        // a rank has ended
	sent, other int         // bytes of load and of everything else so far
}

// Load is held for at least minHold of trace time, in microseconds, as live traces have. If it is more than one part in
// loadShare of everything else that was sent, it is held for maxHold: slow ranks should be found within seconds.
const (
	minHold   trace.Ticks = 1e6
	maxHold   trace.Ticks = 4e6
	loadShare             = 12
)

// due reports whether to send the load: a window is complete.
func (h *heldLoad) due() bool {
	_, end := h.Span()
	least := minHold
	if h.sent*loadShare > h.other {
		least = maxHold
	}
	return h.urgent || end-h.released >= least && end>>h.Shift() != h.released>>h.Shift()
}

// count counts the bytes of an exchange.
func (h *heldLoad) count(load, other int) { h.sent, h.other = h.sent+load, h.other+other }

// hold adds the load of a step, unless the server has it.
func (l *link) hold(step *deltas.Contribution) {
	if l.shard != 0 {
		return
	}
	if step.Load != nil && uint32(step.Step) >= l.loaded[step.RankKey] {
		l.held.Merge(step.Load, nil)
		l.loaded[step.RankKey] = uint32(step.Step) + 1
	}
	l.held.urgent = l.held.urgent || step.Ended
}

// releaseLoad moves the held load to the bundle that was not sent if it is due or all is true.
func (l *link) releaseLoad(all bool) {
	if l.held.Empty() || !all && !l.held.due() {
		return
	}
	l.news.addLoad(l.held.Load)
	for _, lane := range l.held.Lanes() {
		l.news.cover(lane.RankKey, l.next[lane.RankKey]).Loaded = l.loaded[lane.RankKey]
	}
	_, l.held.released = l.held.Span()
	l.held.urgent = false
	l.held.Reset()
}
