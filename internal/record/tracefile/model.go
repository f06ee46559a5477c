package tracefile

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// model is a record as both formats show it.
type model struct {
	tracks []*track // parents before children
	events []event  // in the order of time
}

type trackKind uint8

const (
	processTrack trackKind = iota
	threadTrack
	groupTrack // holds counters
	counterTrack
)

// track is a line of the timeline. Its number is unlike that of any other, so
// that it serves as the number of a process or a thread, too.
type track struct {
	kind   trackKind
	id     uint64
	parent *track // nil for a process
	name   string
	pid    uint64 // of its process
	tid    uint64 // of its thread; where it has none, of a thread of the process
}

type eventKind uint8

const (
	begin   eventKind = iota // of a slice
	end                      // of the slice of the track that began last
	instant                  // a point in time
	count                    // a counter has a new value
)

// event is a thing that happened on a track.
type event struct {
	kind       eventKind
	track      *track
	time       trace.Micros
	span       trace.Micros // of a begin: how long the slice lasts, or untilTheLast
	order      order
	name       string
	categories []string
	args       []arg
	flows      []flow
	value      uint64 // of a counter
}

// untilTheLast is the span of a slice that has no end. In a finished model it
// is the span until the last event, and only the missing end tells.
const untilTheLast trace.Micros = -1

// order returns which of two events at the same time comes first. Arrows go from
// the first to the second.
type order uint8

const (
	partnerEnds order = iota
	partnerSends
	inRecord // in the order in which they were added
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

// addTrack makes a track. A counter of a group belongs to the same thread as
// the group.
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

// finish puts the events in order and lets open slices last until the last.
func (m *model) finish() {
	slices.SortStableFunc(m.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.order, b.order))
	})
	for i := range m.events {
		if e := &m.events[i]; e.span == untilTheLast {
			e.span = m.events[len(m.events)-1].time - e.time
		}
	}
}
