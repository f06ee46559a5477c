package tracefile

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// model is the content of both formats.
type model struct {
	unit   trace.Unit
	tracks []*track // parents before children
	events []event  // sorted by time
}

type trackKind uint8

const (
	processTrack trackKind = iota
	threadTrack
	groupTrack // of counters
	counterTrack
)

// track is a line of the timeline. Its unique number is also that of its process or thread.
type track struct {
	kind   trackKind
	id     uint64
	parent *track // nil for a process
	name   string
	pid    uint64 // of its process
	tid    uint64 // of its thread, or of another thread of the process
}

type eventKind uint8

const (
	begin   eventKind = iota // of a slice
	end                      // of the last open slice of the track
	instant                  // a point in time
	count                    // a counter has a new value
)

// event is an event on a track.
type event struct {
	kind       eventKind
	track      *track
	time       trace.Ticks
	span       trace.Ticks // of begin: duration of the slice, or toLastEvent
	order      order
	name       string
	categories []string
	args       []arg
	flows      []flow
	value      uint64 // of a counter
}

// toLastEvent is the span of an open slice. finish replaces it by the span until the last
// event.
const toLastEvent trace.Ticks = -1

// order sorts events of the same time. Arrows go from earlier to later events.
type order uint8

const (
	partnerEnds order = iota
	partnerSends
	inRecord // in the order of add
	partnerReceives
)

// arg is a named value: a string, bool, int64, uint64 or float64.
type arg struct {
	name  string
	value any
}

// flow is one end of an arrow. Its two ends have the same id and name.
type flow struct {
	id   uint64
	name string
	out  bool // the arrow begins here
}

// addTrack adds a track. A counter of a group belongs to the thread of the group.
func (m *model) addTrack(kind trackKind, parent *track, name string) *track {
	t := &track{kind: kind, id: uint64(len(m.tracks)) + 1, parent: parent, name: name}
	if parent == nil {
		t.pid = t.id
	} else {
		t.pid, t.tid = parent.pid, parent.tid
	}
	if kind == threadTrack {
		t.tid = t.id
		if parent.tid == 0 {
			parent.tid = t.id
		}
	}
	m.tracks = append(m.tracks, t)
	return t
}

func (m *model) add(e event) { m.events = append(m.events, e) }

// finish sorts the events and extends open slices to the last event.
func (m *model) finish() {
	slices.SortStableFunc(m.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order))
	})
	for i := range m.events {
		if e := &m.events[i]; e.span == toLastEvent {
			e.span = m.events[len(m.events)-1].time - e.time
		}
	}
}
