package kineto

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// The arguments of events that are read.
const (
	argCorrelation = iota
	argName        // of metadata
	argLabels
	argGrid
	argBlock
	argDims
	argBytes
	argCollective
	argElements
	argType
	argGroup
	argGroupSize
	argOutElements
	argSeq
	argInputType
	numArgs
)

var argNames = [numArgs]string{
	argCorrelation: "correlation", argName: "name", argLabels: "labels", argGrid: "grid", argBlock: "block",
	argDims: "Input Dims", argBytes: "bytes", argCollective: "Collective name", argElements: "In msg nelems", argType: "dtype",
	argGroup: "Process Group Name", argGroupSize: "Group size", argOutElements: "Out msg nelems", argSeq: "Seq", argInputType: "Input type",
}

// arguments are the wanted arguments of an event; nil if absent.
type arguments [numArgs][]byte

func (a *arguments) set(e *chrome.Event) {
	*a = arguments{}
	for i := range e.Args {
		a[e.Args[i].Key] = e.Args[i].Value
	}
}

// category is the kind of work that an event represents, by its cat.
type category uint8

const (
	other      category = iota
	ignored             // repeats others, or covers the whole trace
	operator            // of the host
	annotation          // of the user
	runtime             // a call of CUDA or HIP
	kernel
	transfer // a copy or a set of memory on the device
)

// categories are those of Kineto; any other is an ordinary call.
var categories = map[string]category{
	"cpu_op": operator, "user_annotation": annotation,
	"cuda_runtime": runtime, "cuda_driver": runtime, "privateuse1_runtime": runtime, "xpu_runtime": runtime,
	"kernel": kernel, "gpu_memcpy": transfer, "gpu_memset": transfer,
	"gpu_user_annotation": ignored, "Trace": ignored,
}

func (c category) onDevice() bool { return c == kernel || c == transfer }

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
func (n *namer) function(name []byte, c category, args *arguments) uint32 {
	if c == annotation {
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
func workOf(name []byte, c category, args *arguments) trace.Work {
	switch {
	case c == annotation && string(name) == stepName:
		return trace.StepWork
	case c == transfer:
		return trace.MemoryCopy
	case c == kernel && (args[argCollective] != nil || bytes.HasPrefix(name, []byte("nccl")) && bytes.Contains(name, []byte("Kernel"))):
		return trace.Communication
	case c == kernel:
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

// appendShape appends what distinguishes equal work to the key.
func (n *namer) appendShape(c category, a *arguments) {
	switch {
	case c == kernel && a[argCollective] != nil:
		n.key = fmt.Appendf(n.key, " [%s, %s × %s, group %s of %s]",
			a[argCollective], a[argElements], a[argType], a[argGroup], a[argGroupSize])
	case c == kernel && a[argGrid] != nil:
		n.key = append(n.key, " [grid "...)
		n.key = appendList(n.key, a[argGrid])
		n.key = append(n.key, ", block "...)
		n.key = appendList(n.key, a[argBlock])
		n.key = append(n.key, ']')
	case c == transfer && a[argBytes] != nil:
		n.key = append(n.key, " ["...)
		n.key = append(n.key, a[argBytes]...)
		n.key = append(n.key, " bytes]"...)
	case (c == operator || c == annotation) && bytes.ContainsAny(a[argDims], "0123456789"):
		n.key = append(n.key, ' ')
		at := len(n.key)
		for _, b := range a[argDims] {
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
