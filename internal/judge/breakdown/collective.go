package breakdown

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Collective is a collective operation, or a message, on one rank.
type Collective struct {
	Operation
	Seq        int64       // number of the operation in its group, or NoSeq
	Unordered  bool        // operations of the group may overtake different operations
	Launch     trace.Ticks // time at which the host began to launch it, or NoLaunch
	Start, End trace.Ticks
}

// NoSeq is the number of operations that the trace does not number.
const NoSeq = -1

// Operation has the properties by which collective operations are grouped.
type Operation struct {
	Name  string // such as allreduce
	Group string // process group; the same on all of its ranks
	Size  int    // number of ranks of the group
	Bytes int64  // the larger of input and output of a rank
	DType string

	unordered bool
}

// Compare orders operations by group, name, bytes and type.
func (o *Operation) Compare(p *Operation) int {
	return cmp.Or(strings.Compare(o.Group, p.Group), strings.Compare(o.Name, p.Name), cmp.Compare(o.Bytes, p.Bytes),
		strings.Compare(o.DType, p.DType), cmp.Compare(o.Size, p.Size))
}

// ElementSize returns the bytes of an element of a type of PyTorch or C++, or 0 if unknown.
func ElementSize(dtype string) int64 {
	switch dtype {
	case "Byte", "Char", "Bool", "bool", "unsigned char", "signed char", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz":
		return 1
	case "Short", "Half", "BFloat16", "short", "c10::Half", "c10::BFloat16":
		return 2
	case "Int", "Float", "int", "float":
		return 4
	case "Long", "Double", "ComplexFloat", "long", "long int", "double", "c10::complex<float>":
		return 8
	case "ComplexDouble", "c10::complex<double>":
		return 16
	}
	return 0
}

// shape is the kind of algorithm of an operation.
type shape uint8

const (
	oneWay    shape = iota // data passes once: broadcast, reduce, send
	share                  // each rank has a share of the data: allgather, reducescatter, alltoall
	twice                  // both, as allreduce
	noPayload              // barrier
)

// shapeOf returns the shape of an operation by its name in PyTorch or NCCL. These names differ in case and underscores, such
// as _allgather_base and AllGather.
func shapeOf(name string) shape {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	for _, s := range [...]struct {
		part string
		shape
	}{
		{"allreduce", twice},
		{"allgather", share},
		{"reducescatter", share},
		{"alltoall", share},
		{"all2all", share},
		{"barrier", noPayload},
	} {
		if strings.Contains(name, s.part) {
			return s.shape
		}
	}
	return oneWay
}

// BusFactor returns the ratio of the bus bandwidth of an operation to its bytes per time, as nccl-tests defines it. Bus
// bandwidth is comparable with the bandwidth of a link.
func (o *Operation) BusFactor() float64 {
	if o.Size < 2 {
		return 0
	}
	part := float64(o.Size-1) / float64(o.Size)
	switch shapeOf(o.Name) {
	case twice:
		return 2 * part
	case share:
		return part
	case noPayload:
		return 0
	case oneWay:
	}
	return 1
}

// endsTogether reports whether no rank can finish the operation before all ranks have arrived, so that all end at about the
// same time.
func (o *Operation) endsTogether() bool { return shapeOf(o.Name) != oneWay }

// Log contains the collective operations of a rank.
type Log struct {
	limit      int
	operations []Operation
	numbers    map[Operation]uint32 // indices of operations
	entries    []entry
	omitted    int64
	steps      []stepStart
}

// entry is an operation of a rank.
type entry struct {
	seq        int64       // NoSeq until number sets it
	at         trace.Ticks // time of the launch, or of the start if the launch is unknown
	start, end trace.Ticks
	operation  uint32
}

type stepStart struct {
	number int64
	start  trace.Ticks
}

// NewLog returns an empty log that keeps at most limit operations.
func NewLog(limit int) *Log { return &Log{limit: limit, numbers: make(map[Operation]uint32)} }

// maxOperations limits the distinct operations of a log. Only operations with data-dependent sizes have more.
const maxOperations = 1 << 14

// Add adds an operation of the rank.
func (l *Log) Add(c Collective) {
	c.unordered = c.Unordered && c.Seq < 0
	n, ok := l.numbers[c.Operation]
	if !ok && len(l.operations) < maxOperations {
		n, ok = uint32(len(l.operations)), true
		l.operations = append(l.operations, c.Operation)
		l.numbers[c.Operation] = n
	}
	if !ok || len(l.entries) >= l.limit {
		l.omitted++
		return
	}
	at := c.Launch
	if at == NoLaunch {
		at = c.Start
	}
	l.entries = append(l.entries, entry{seq: c.Seq, at: at, start: c.Start, end: max(c.End, c.Start), operation: n})
}

// Omit counts n operations that are not in the log.
func (l *Log) Omit(n int64) { l.omitted += n }

// maxLogSteps limits the steps of a log.
const maxLogSteps = 1 << 16

// BeginStep records that a training step begins on the host.
func (l *Log) BeginStep(number int64, start trace.Ticks) {
	if len(l.steps) < maxLogSteps {
		l.steps = append(l.steps, stepStart{number, start})
	}
}

// Len returns the number of operations in the log.
func (l *Log) Len() int { return len(l.entries) }

// Empty reports whether the rank has no collective operations.
func (l *Log) Empty() bool { return len(l.entries) == 0 && l.omitted == 0 }

// groups returns the entries of each group in the order of their launch. It numbers those without a number by the step of
// their launch and the position within it, because ranks may begin to record at different steps.
func (l *Log) groups() map[string][]entry {
	slices.SortStableFunc(l.steps, func(a, b stepStart) int { return cmp.Compare(a.start, b.start) })
	slices.SortStableFunc(l.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.start, b.start))
	})
	groups := make(map[string][]entry)
	for _, e := range l.entries {
		op := &l.operations[e.operation]
		name := op.Group
		if op.unordered {
			name = fmt.Sprintf("%s: %s of %d bytes", op.Group, op.Name, op.Bytes)
		}
		groups[name] = append(groups[name], e)
	}
	for name, entries := range groups {
		if slices.ContainsFunc(entries, func(e entry) bool { return e.seq < 0 }) {
			entries = l.number(entries)
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
		groups[name] = entries
	}
	return groups
}

// number numbers the entries of a group by the step of their launch and their position in it. It drops those before the first
// step, because each rank may have recorded a different number of them.
func (l *Log) number(entries []entry) []entry {
	const position = 1 << 32 // more than the number of positions of a step
	previous, n := -2, int64(0)
	numbered := entries[:0]
	for _, e := range entries {
		step := sort.Search(len(l.steps), func(i int) bool { return l.steps[i].start > e.at }) - 1
		if step != previous {
			previous, n = step, 0
		}
		e.seq = n
		n++
		switch {
		case step >= 0:
			e.seq += l.steps[step].number * position
		case len(l.steps) > 0:
			l.omitted++
			continue
		}
		numbered = append(numbered, e)
	}
	return numbered
}
