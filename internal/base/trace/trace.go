// Package trace is the vocabulary of all packages: programs, ranks, threads, functions,
// and the events of a traced program. It defines data; it does no I/O and keeps no
// state.
package trace

import (
	"context"
	"math"
	"strconv"
	"strings"
)

type (
	// Program distinguishes the programs of a workflow. The caller assigns it; TAU's
	// program column is always 0.
	Program uint32
	// Rank is an MPI rank within a program. It is signed, because messages may name
	// ranks that do not exist, such as MPI_ANY_SOURCE.
	Rank int32
	// Thread numbers the threads of a rank. GPU streams are threads, too.
	Thread uint32
	// FuncID is a function's number in one trace. Traces number the same function
	// differently.
	FuncID uint32
	// CounterID is a counter's number in one trace.
	CounterID uint32
	// Ticks is a time or a duration in the Unit of the run. Times count from the epoch of
	// the trace, which for TAU is that of Unix.
	Ticks int64
)

// Kind is the kind of an Event.
type Kind uint8

// The kinds of event. The zero Kind is invalid.
const (
	Enter Kind = 1 + iota // a function was entered
	Exit                  // a function was left
	Send                  // a message was sent
	Recv                  // a message was received
	Count                 // a counter was read
)

var kindNames = [...]string{Enter: "enter", Exit: "exit", Send: "send", Recv: "recv", Count: "counter"}

// String returns the kind's name as `chimbuko trace dump` prints it.
func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// ParseKind is the inverse of Kind.String.
func ParseKind(s string) (Kind, bool) {
	for k, name := range kindNames {
		if name == s && k != 0 {
			return Kind(k), true
		}
	}
	return 0, false
}

// Event is one record of a trace, 32 bytes, without pointers. Its rank and thread are
// those of its Batch.
type Event struct {
	Time  Ticks
	Value uint64 // bytes of a message or UnknownSize, or value of a counter
	Row   uint32 // row in its table of the step; with rank and step it identifies the event
	ID    uint32 // function, counter or partner rank; read it through Func, Counter or Partner
	Tag   int32  // tag of a message
	Kind  Kind
}

// MaxSize is the largest possible size of a message in bytes: 256 TiB, the address space of a
// process. TAU writes larger ones, negative numbers widened to 64 bits, for messages of unknown
// size, such as those that MPI_Sendrecv receives.
const MaxSize = 1 << 48

// UnknownSize is the Value of a message whose size is unknown.
const UnknownSize = math.MaxUint64

// Size returns the size of a Send or Recv in bytes, or false if it is unknown.
func (e *Event) Size() (n uint64, ok bool) { return e.Value, e.Value != UnknownSize }

// Func returns the function of an Enter or Exit.
func (e *Event) Func() FuncID { return FuncID(e.ID) }

// Counter returns the counter of a Count.
func (e *Event) Counter() CounterID { return CounterID(e.ID) }

// Partner returns the other rank of a Send or Recv.
func (e *Event) Partner() Rank { return Rank(int32(e.ID)) }

// Batch holds the events of one thread in one step in order of time. At equal times,
// messages and counters at the entry or exit of a function lie inside it.
type Batch struct {
	Program Program
	Rank    Rank
	Thread  Thread
	Events  []Event
}

// Step is a part of a trace: the events of all its threads in a span of time. Readers return
// steps in order; a step is valid until the next is read, but its strings may be kept.
type Step struct {
	Index    int
	Batches  []Batch    // by rank, then by thread; one per thread
	Metadata []Metadata // that are new in this step
	Readings []Batch    // only the counter events of Batches
	Restored bool       // the step was read before; only its metadata are here

	Funcs, Comms, Counters int // events of each kind
}

// EventsFrom returns the number of events of a batch and of those after it that have the same rank.
func (s *Step) EventsFrom(batch int) (n int) {
	for i := batch; i < len(s.Batches) && s.Batches[i].Rank == s.Batches[batch].Rank; i++ {
		n += len(s.Batches[i].Events)
	}
	return n
}

// EventCounts are the numbers of events by kind.
type EventCounts struct{ Functions, Messages, Counters int64 }

// Add adds the events of a step.
func (c *EventCounts) Add(s *Step) {
	c.Merge(EventCounts{int64(s.Funcs), int64(s.Comms), int64(s.Counters)})
}

// Merge adds the events of o.
func (c *EventCounts) Merge(o EventCounts) {
	c.Functions += o.Functions
	c.Messages += o.Messages
	c.Counters += o.Counters
}

// Total returns the number of all events.
func (c EventCounts) Total() int64 { return c.Functions + c.Messages + c.Counters }

// EventID identifies an event: no other event of the same program and kind has the same
// id.
type EventID struct {
	Rank Rank
	Step int
	Row  uint32
}

// String returns the id as rank:step:row.
func (id EventID) String() string {
	b := make([]byte, 0, 24)
	b = strconv.AppendInt(b, int64(id.Rank), 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(id.Step), 10)
	b = append(b, ':')
	b = strconv.AppendUint(b, uint64(id.Row), 10)
	return string(b)
}

// Number returns a number that identifies the call of an event among those of a program, in all but very long runs.
func (id EventID) Number() uint64 {
	return uint64(id.Rank)<<48 ^ uint64(uint32(id.Step))<<32 ^ uint64(id.Row)
}

// EventNumbers reads rank, step and row of the text of an EventID.
func EventNumbers(id string) (n [3]int64, ok bool) {
	parts := strings.Split(id, ":")
	if len(parts) != len(n) {
		return n, false
	}
	for i, bits := range []int{32, 32, 64} {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, bits); err != nil {
			return n, false
		}
	}
	return n, true
}

// Metadata is one fact about a rank or a thread, such as its host name.
type Metadata struct {
	Program Program
	Rank    Rank
	Thread  Thread
	Key     string
	Value   string
}

// GPU identifies the device, context and stream that a thread represents, as in the
// metadata: usually small numbers, empty if unknown.
type GPU struct {
	Device  string
	Context string
	Stream  string
}

// Steps reads a trace. All formats are read through it:
//
//   - Steps are in the order of time, and their numbers increase. Each has the events of a span of time, and one
//     Batch for each thread with events, ordered by rank and thread.
//   - The events of a thread are in the order of time. Calls are nested: the function of an Exit is that
//     of the last Enter that has none yet.
//   - Numbers in a step have their names after Next returned it, if the trace has them at all.
//   - Everything readable is returned before an error. What is lost is counted in the tally that the
//     reader was created with.
//   - Next uses an amount of memory that does not depend on the length of the trace, and does not allocate memory for each event.
type Steps interface {
	// Next returns the next step, valid until the next call, or io.EOF.
	Next(ctx context.Context) (*Step, error)
	// Names returns the names of the numbers in steps. Steps may add names.
	Names() *Names
	// Release closes files and frees the memory of the last step. Next opens them again.
	Release()
}
