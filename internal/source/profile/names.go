package profile

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Arg is an argument of an event.
type Arg int

// The arguments of events. Grid and Block are lists of numbers separated by commas.
const (
	Grid Arg = iota
	Block
	Dims // shapes of the inputs of an operator, or of a collective operation of the host
	InputType
	Bytes // of a copy
	Collective
	Elements
	OutElements
	DType
	Group
	GroupSize
	Seq
	numArgs
)

// Arguments are the arguments of an event as text; nil if absent.
type Arguments [numArgs][]byte

// Category is the kind of work that an event represents.
type Category uint8

// The categories. Any other work is an ordinary call.
const (
	Other      Category = iota
	Operator            // of the host
	Annotation          // of the user
	Runtime             // a call of CUDA or HIP
	Kernel
	Transfer // a copy or a set of memory on the device
)

// OnDevice reports whether a device does the work.
func (c Category) OnDevice() bool { return c == Kernel || c == Transfer }

// Limits of the names of functions.
const (
	maxFunctions = 1 << 16 // with shapes; further ones are named without
	maxShapes    = 256     // of a name; calls with further shapes are named without
	maxShape     = 96      // bytes of a shape; of a longer one the end is replaced by a hash
)

// namer numbers functions. Calls that do equal work have the same function: its name includes
// the launch shape of a kernel, the shapes of the inputs of an operator, and the size, type and
// group of a collective operation.
type namer struct {
	numbers map[string]uint32
	names   []string
	works   []trace.Work
	shapes  map[string]int // number of shapes of a name
	key     []byte         // scratch
}

func newNamer() namer {
	return namer{numbers: make(map[string]uint32), shapes: make(map[string]int)}
}

// stepName is the name of the annotation that PyTorch makes for each step of the profiler,
// before # and its number.
const stepName = "ProfilerStep"

// stepNumber returns the number of a profiler step.
func stepNumber(name []byte) (int64, bool) {
	digits, ok := bytes.CutPrefix(name, []byte(stepName+"#"))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 31)
	return n, err == nil
}

// function returns the number of the function of a call.
func (n *namer) function(name []byte, c Category, args *Arguments) uint32 {
	if c == Annotation {
		name = withoutNumber(name)
	}
	n.key = append(n.key[:0], name...)
	plain := len(n.key)
	n.appendShape(c, args)
	id, ok := n.numbers[string(n.key)]
	switch {
	case ok:
		return id
	case len(n.key) == plain:
	case n.shapes[string(name)] < maxShapes && len(n.names) < maxFunctions:
		n.shapes[string(name)]++
	default:
		n.key = n.key[:plain]
		if id, ok = n.numbers[string(n.key)]; ok {
			return id
		}
	}
	id = uint32(len(n.names))
	text := string(n.key)
	n.names = append(n.names, text)
	n.works = append(n.works, workOf(name, c, args))
	n.numbers[text] = id
	return id
}

// workOf returns the kind of work of a call.
func workOf(name []byte, c Category, args *Arguments) trace.Work {
	switch {
	case c == Annotation && string(name) == stepName:
		return trace.StepWork
	case c == Transfer:
		return trace.MemoryCopy
	case c == Kernel && (args[Collective] != nil || bytes.HasPrefix(name, []byte("nccl")) && bytes.Contains(name, []byte("Kernel"))):
		return trace.Communication
	case c == Kernel:
		return trace.Compute
	}
	return trace.HostWork
}

// withoutNumber removes a number after # from the end of an annotation. Annotations of loops
// have a different one in each iteration.
func withoutNumber(name []byte) []byte {
	digits := bytes.TrimRight(name, "0123456789")
	if len(digits) < len(name) && len(digits) > 1 && digits[len(digits)-1] == '#' {
		return digits[:len(digits)-1]
	}
	return name
}

// appendShape appends the attributes that identify equal work to the key.
func (n *namer) appendShape(c Category, a *Arguments) {
	switch {
	case c == Kernel && a[Collective] != nil:
		n.key = fmt.Appendf(n.key, " [%s, %s × %s, group %s of %s]",
			a[Collective], a[Elements], a[DType], a[Group], a[GroupSize])
	case c == Kernel && a[Grid] != nil:
		n.key = append(n.key, " [grid "...)
		n.key = appendList(n.key, a[Grid])
		n.key = append(n.key, ", block "...)
		n.key = appendList(n.key, a[Block])
		n.key = append(n.key, ']')
	case c == Transfer && a[Bytes] != nil:
		n.key = append(n.key, " ["...)
		n.key = append(n.key, a[Bytes]...)
		n.key = append(n.key, " bytes]"...)
	case (c == Operator || c == Annotation) && bytes.ContainsAny(a[Dims], "0123456789"):
		n.key = append(n.key, ' ')
		at := len(n.key)
		for _, b := range a[Dims] {
			if b > ' ' && b != '"' {
				n.key = append(n.key, b)
			}
		}
		if len(n.key)-at > maxShape {
			h := fnv.New64a()
			_, _ = h.Write(n.key[at:]) // never fails
			n.key = fmt.Appendf(n.key[:at+maxShape-20], "… %x]", h.Sum64())
		}
	}
}

// appendList appends the numbers of a JSON list, separated by ×.
func appendList(dst, list []byte) []byte {
	for _, b := range list {
		switch {
		case b == ',':
			dst = append(dst, "×"...)
		case b >= '0' && b <= '9':
			dst = append(dst, b)
		}
	}
	return dst
}
