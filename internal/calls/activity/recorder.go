package activity

import "github.com/chimbuko/chimbuko/internal/base/trace"

// Record is time of a class. If From and To are equal, it is the sum of times in the recorder's bin at that time, and
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

// Recorder sums up the activities of the threads of a rank between two calls of MoveTo. It allocates memory only if there are
// more records than ever before.
type Recorder struct {
	name        func(trace.FuncID) (string, bool)
	classes     [2]Known       // by place and function; 0 until looked up
	unknown     []trace.FuncID // functions looked up before their names were known
	shift       uint8
	records     []Record
	first, last trace.Ticks // first and last switch since MoveTo, if there are any
	any         bool
	recent      [sentSlots]Sent // by rank; valid if there are messages
	sent        []Sent
}

const sentSlots = 64

// Functions up to maxDense have their class in a slice. Only damaged traces have more.
const maxDense = 1 << 16

// NewRecorder returns a recorder. name returns the name of a function, or false while it is unknown.
func NewRecorder(unit trace.Unit, name func(trace.FuncID) (string, bool)) *Recorder {
	return &Recorder{shift: ShiftOf(unit), name: name}
}

// Known returns the classes of functions that Class has returned, by number. It is valid until the next call of Class.
func (r *Recorder) Known(on Place) Known { return r.classes[on] }

// Known contains classes by function.
type Known []Class

// Class returns the class of a function, or false if unknown. It is short so that the compiler can inline it.
func (k Known) Class(id trace.FuncID) (Class, bool) {
	if int(id) >= len(k) {
		return None, false
	}
	return k[id] &^ looked, k[id] != 0
}

// looked marks classes that were looked up.
const looked Class = 1 << 7

// Class returns the class of a call of a function.
func (r *Recorder) Class(id trace.FuncID, on Place) Class {
	if c, ok := r.Known(on).Class(id); ok {
		return c
	}
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

// Meter measures the activities of a thread. The zero value is ready to use.
type Meter struct {
	since trace.Ticks // beginning of the current class
	left  uint64      // time from since to the end of the current bin
	class Class
	used  bool
	sums  [1 << classBits]uint64 // times in the current bin, by class
}

// Used reports whether the meter has measured anything.
func (m *Meter) Used() bool { return m.used }

// Switch adds the time since the previous switch to the current class, and begins another class. If it returns false, it did
// nothing, and the caller must call Recorder.Cross. It is short so that the compiler can inline it.
func (m *Meter) Switch(at trace.Ticks, class Class) bool {
	time := uint64(at - m.since)
	if time >= m.left { // or the clock was set back
		return false
	}
	m.sums[m.class&(1<<classBits-1)] += time
	m.left -= time
	m.since, m.class = at, class
	return true
}

// Rest returns the time of the last switch, and the time from then to the end of the bin, which is 0 if the current class is
// a different one.
func (m *Meter) Rest(class Class) (since trace.Ticks, left uint64) {
	if m.class != class {
		return m.since, 0
	}
	return m.since, m.left
}

// Visit counts several switches to a class and back. until is the time of the last one, which must be within Rest, and time
// is the total time in the class.
func (m *Meter) Visit(class Class, time uint64, until trace.Ticks) {
	passed := uint64(until - m.since)
	m.sums[m.class&(1<<classBits-1)] += passed - time
	m.sums[class&(1<<classBits-1)] += time
	m.left -= passed
	m.since = until
}

// Cross is like Switch at a time in another bin than the previous switch.
func (r *Recorder) Cross(m *Meter, at trace.Ticks, class Class) {
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
	m.left = 0 // the next switch begins a bin, whose width may differ
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

// MoveTo moves all records to a sketch and adopts its width of bins. If the sketch is nil, it drops them.
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
