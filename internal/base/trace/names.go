package trace

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// WholeThread begins the name of the call that TAU makes of a whole thread, also of a stream.
const WholeThread = ".TAU application"

// Names resolves the numbers of functions, counters, programs and GPU threads in a trace. It
// grows with each step. A name may come one step after the first event that uses it, so look it
// up when it is needed, not when the event is read.
type Names struct {
	programs map[uint32]string
	funcs    map[nameKey]string
	counters map[nameKey]string
	gpus     map[threadKey]GPU
	works    []Work // by number of function; empty if unknown
}

// Work is the kind of work of a function.
type Work uint8

// The kinds of work.
const (
	UnknownWork   Work = iota // not in the trace
	HostWork                  // a call of the host
	StepWork                  // a training step on the host
	Compute                   // a kernel that computes
	Communication             // a kernel of NCCL or RCCL
	MemoryCopy                // a copy or fill of memory on a GPU
)

// nameKey is a number and its rank, which is AnyRank except in files of several ranks
// where the rank is known.
type nameKey struct {
	rank Rank
	id   uint32
}

// AnyRank is the rank of names that all ranks of a trace share.
const AnyRank Rank = -1 << 31

type threadKey struct {
	rank   Rank
	thread Thread
}

// EmptyNames returns names to which Define methods add.
func EmptyNames() Names {
	return Names{
		programs: make(map[uint32]string), funcs: make(map[nameKey]string),
		counters: make(map[nameKey]string), gpus: make(map[threadKey]GPU),
	}
}

// NewNames returns complete names: functions and counters by number, and the threads
// that represent GPU streams.
func NewNames(program string, funcs, counters []string, gpus map[Rank]map[Thread]GPU) Names {
	n := EmptyNames()
	n.programs[0] = program
	for id, name := range funcs {
		n.funcs[nameKey{AnyRank, uint32(id)}] = name
	}
	for id, name := range counters {
		n.counters[nameKey{AnyRank, uint32(id)}] = name
	}
	for rank, threads := range gpus {
		for thread, gpu := range threads {
			n.gpus[threadKey{rank, thread}] = gpu
		}
	}
	return n
}

func resolve(names map[nameKey]string, rank Rank, id uint32) (string, bool) {
	if name, ok := names[nameKey{rank, id}]; ok {
		return name, true
	}
	name, ok := names[nameKey{AnyRank, id}]
	return name, ok
}

// Numbers of code between calls of two functions have codeMark and the numbers of these, each in codeBits bits. A function of
// the trace with such a number, as only damaged traces have, keeps its name.
const (
	codeMark = 1 << 30
	codeBits = 15
)

// CodePrefix begins the name of code between two functions.
const CodePrefix = "code between "

// CodeBetween returns the number of the code between a call of one function and the next, of another or the same. It reports
// false if their numbers are too large.
func CodeBetween(first, second FuncID) (FuncID, bool) {
	return codeMark | first<<codeBits | second, (first|second)>>codeBits == 0
}

// Func returns the name of a function, or of code between two, or false while it is unknown.
func (n *Names) Func(rank Rank, id FuncID) (string, bool) {
	name, ok := resolve(n.funcs, rank, uint32(id))
	if ok || id&codeMark == 0 {
		return name, ok
	}
	first, known := resolve(n.funcs, rank, uint32((id&^codeMark)>>codeBits))
	second, ok := resolve(n.funcs, rank, uint32(id&(1<<codeBits-1)))
	if !known || !ok {
		return "", false
	}
	return CodePrefix + strings.TrimSuffix(first, "()") + " and " + strings.TrimSuffix(second, "()"), true
}

// Work returns the kind of work of a function.
func (n *Names) Work(id FuncID) Work {
	if int(id) < len(n.works) {
		return n.works[id]
	}
	return UnknownWork
}

// SetWorks sets the kinds of work of functions, by number.
func (n *Names) SetWorks(works []Work) { n.works = works }

// Counter returns the name of a counter, or false while it is unknown.
func (n *Names) Counter(rank Rank, id CounterID) (string, bool) {
	return resolve(n.counters, rank, uint32(id))
}

// GPU returns the GPU stream that a thread represents, or false for host threads.
func (n *Names) GPU(rank Rank, thread Thread) (GPU, bool) {
	gpu, ok := n.gpus[threadKey{rank, thread}]
	return gpu, ok
}

// Program returns the path of the executable, or "" while it is unknown.
func (n *Names) Program() string { return n.programs[0] }

// Funcs yields the functions and their names by number.
func (n *Names) Funcs() iter.Seq2[FuncID, string] { return sorted[FuncID](n.funcs) }

// Counters yields the counters and their names by number.
func (n *Names) Counters() iter.Seq2[CounterID, string] {
	return sorted[CounterID](n.counters)
}

func sorted[ID ~uint32](names map[nameKey]string) iter.Seq2[ID, string] {
	return func(yield func(ID, string) bool) {
		keys := slices.SortedFunc(maps.Keys(names), func(a, b nameKey) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.rank, b.rank))
		})
		for _, k := range keys {
			if !yield(ID(k.id), names[k]) {
				return
			}
		}
	}
}

// Add adds the names of the trace of one rank.
func (n *Names) Add(rank Rank, of *Names) {
	maps.Copy(n.programs, of.programs)
	for id, name := range of.Funcs() {
		n.DefineFunc(rank, id, name)
	}
	for id, name := range of.Counters() {
		n.DefineCounter(rank, id, name)
	}
	maps.Copy(n.gpus, of.gpus)
}

// DefineProgram sets the path of the executable. Like the other Define methods it keeps an
// existing name, and reports whether the number has no other name.
func (n *Names) DefineProgram(id uint32, name string) bool { return define(n.programs, id, name) }

// DefineFunc names a function of a rank, or of AnyRank.
func (n *Names) DefineFunc(rank Rank, id FuncID, name string) bool {
	return define(n.funcs, nameKey{rank, uint32(id)}, name)
}

// DefineCounter names a counter of a rank, or of AnyRank.
func (n *Names) DefineCounter(rank Rank, id CounterID, name string) bool {
	return define(n.counters, nameKey{rank, uint32(id)}, name)
}

// DefineGPU makes a thread represent a GPU stream.
func (n *Names) DefineGPU(rank Rank, thread Thread, gpu GPU) { n.gpus[threadKey{rank, thread}] = gpu }

// Counts returns the numbers of functions and counters.
func (n *Names) Counts() (funcs, counters int) { return len(n.funcs), len(n.counters) }

func define[K comparable](names map[K]string, key K, name string) bool {
	if old, ok := names[key]; ok {
		return old == name
	}
	names[key] = name
	return true
}
