package activity

import "github.com/chimbuko/chimbuko/internal/base/trace"

// Record is time of a class. If From and To are equal, it is the sum of times in the bin of the recorder at that time;
// otherwise all time between them.
type Record struct {
	From, To trace.Ticks
	Time     uint64
	Class    Class
}

// Sent is the messages to a rank.
type Sent struct {
	To trace.Rank
	Traffic
}

// Recorder sums up the activities of the threads of a rank between two calls of Take. It allocates only if there are more
// records than ever before.
type Recorder struct {
	name        func(trace.FuncID) (string, bool)
	classes     [2][]Class     // by place and function; 0 until they are looked up
	unknown     []trace.FuncID // looked up before their names were known
	shift       uint8
	records     []Record
	first, last trace.Ticks // switches since Take; valid if any
	any         bool
	recent      [sentSlots]Sent // by rank; valid if there are messages
	sent        []Sent
}

const sentSlots = 64

// Functions up to maxDense have their class in a list. Only damaged traces have more.
const maxDense = 1 << 16

// NewRecorder returns a recorder. name returns the name of a function, or false while it is unknown.
func NewRecorder(unit trace.Unit, name func(trace.FuncID) (string, bool)) *Recorder {
	return &Recorder{shift: ShiftOf(unit), name: name}
}

// Class returns the class of a call of a function.
func (r *Recorder) Class(id trace.FuncID, on Place) Class {
	if known := r.classes[on]; int(id) < len(known) && known[id] != 0 {
		return known[id] &^ looked
	}
	return r.findClass(id, on)
}

// looked marks classes that were looked up.
const looked Class = 1 << 7

func (r *Recorder) findClass(id trace.FuncID, on Place) Class {
	if id >= maxDense {
		return Own
	}
	name, known := r.name(id)
	if !known {
		r.unknown = append(r.unknown, id)
	}
	c := Of(name)
	if on == Device {
		c = onDevice(name)
	}
	for int(id) >= len(r.classes[on]) {
		r.classes[on] = append(r.classes[on], 0)
	}
	r.classes[on][id] = c | looked
	return c
}

// Meter measures the activities of a thread. Its zero value is ready.
type Meter struct {
	since trace.Ticks // of the current class
	left  uint64      // time from then to the end of the current bin
	class Class
	used  bool
	sums  [1 << classBits]uint64 // in the current bin
}

// Used reports whether Switch was ever called.
func (m *Meter) Used() bool { return m.used }

// Switch adds the time since the previous call to the current class, and begins another.
func (m *Meter) Switch(r *Recorder, at trace.Ticks, class Class) {
	time := uint64(at - m.since)
	if time >= m.left { // also if the clock was set back
		r.cross(m, at, class)
		return
	}
	m.sums[m.class&(1<<classBits-1)] += time
	m.left -= time
	m.since, m.class = at, class
}

// cross ends the current bin at a time in another bin.
func (r *Recorder) cross(m *Meter, at trace.Ticks, class Class) {
	r.flush(m)
	r.include(at)
	if m.class != None && at > m.since {
		r.records = append(r.records, Record{m.since, at, uint64(at - m.since), m.class})
	}
	m.since, m.class, m.used = at, class, true
	m.left = 1<<r.shift - uint64(at)&(1<<r.shift-1)
}

// include adds a time to the span of the records.
func (r *Recorder) include(at trace.Ticks) {
	if !r.any {
		r.any, r.first, r.last = true, at, at
	}
	r.first, r.last = min(r.first, at), max(r.last, at)
}

func (r *Recorder) flush(m *Meter) {
	for class := None + 1; class < numClasses; class++ {
		if m.sums[class] > 0 {
			r.records = append(r.records, Record{m.since, m.since, m.sums[class], class})
		}
	}
	m.sums = [1 << classBits]uint64{}
}

// EndStep ends the records of a thread in a step. first is its first event.
func (r *Recorder) EndStep(m *Meter, first trace.Ticks) {
	if !m.Used() {
		return
	}
	r.flush(m)
	r.include(first)
	r.include(m.since)
	m.left = 0 // the next switch begins a bin, which may have another width
}

// AddMessage adds a message to a rank.
func (r *Recorder) AddMessage(to trace.Rank, size uint64, known bool) {
	s := &r.recent[uint32(to)%sentSlots]
	if s.To != to {
		if s.Messages > 0 {
			r.sent = append(r.sent, *s)
		}
		*s = Sent{To: to}
	}
	s.Messages++
	if known {
		s.Bytes += size
	}
}

// MoveTo moves all records to a sketch, and follows its width. If the sketch is nil, it drops them.
func (r *Recorder) MoveTo(s *Sketch, key trace.RankKey) {
	for i := range r.recent {
		if r.recent[i].Messages > 0 {
			r.sent = append(r.sent, r.recent[i])
			r.recent[i] = Sent{}
		}
	}
	if s != nil {
		if r.any {
			s.Add(key, r.first, r.last, r.records)
		}
		s.AddMessages(key, r.sent)
		r.shift = s.Shift()
	}
	r.records, r.sent, r.any = r.records[:0], r.sent[:0], false
	for _, id := range r.unknown {
		for on := range r.classes {
			if int(id) < len(r.classes[on]) {
				r.classes[on][id] = 0
			}
		}
	}
	r.unknown = r.unknown[:0]
}
