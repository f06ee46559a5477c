package simulate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// op is one operation of a rank.
type op struct {
	code     opcode
	fn       trace.FuncID
	thread   int32 // stream of a launch
	parts    int64 // number of parts of the function's own time
	time     scenario.Sampler
	message  *scenario.Sampler
	counters []reading
	troubles []int32 // those that affect the function
	every    int     // runs in one of this many iterations; 0: in all
	part     []int   // first iteration that runs it, and the one after the last; nil: all run it
	ranks    []int   // first rank that runs it, and the one after the last; nil: all run it
	spread   float64 // share that the slowest rank takes longer than the fastest
	skip     int     // number of operations to skip otherwise; 0: it always runs
	excess   []int32 // of opExit: troubles that repeat the calls of the function
	rare     []rare  // of opExit: troubles that add calls
	calls    int     // of opExit with excess: number of operations of its calls
	slot     int     // of a send: index of the neighbor
	wait     *wait
	kernel   *op  // of a launch
	sub      []op // of threads
	threads  int
	usual    *scenario.Distribution // of its own time; may be nil
	least    int64                  // least own time
}

// rare is the calls that a trouble adds to those of a function.
type rare struct {
	trouble int32
	calls   []op
}

type opcode uint8

const (
	opOpen       opcode = iota // enter a function that stays open
	opClose                    // leave it
	opEnter                    // enter a function that calls others
	opPart                     // a part of its own time
	opExit                     // leave it
	opLeaf                     // a call without calls
	opSend                     // MPI_Isend to a neighbor
	opExchange                 // MPI_Waitall for the neighbors' messages
	opCollective               // wait for the group
	opThreads                  // run operations on threads
	opLaunch                   // start a kernel
	opKernel                   // run it on the GPU
	opDeviceSync               // wait for kernels
	opPublish
	opAwait
)

// reading is a counter and its values.
type reading struct {
	id    trace.CounterID
	value scenario.Sampler
}

// wait describes a wait for other ranks.
type wait struct {
	neighbors []int // of an exchange
	group     int   // of a collective
	from      int   // of an await: the program
}

// program is a compiled program.
type program struct {
	*scenario.Program
	index                int
	all                  []string // names of all programs
	setup, body, finish  []op
	funcs                []string // names, by number
	counters             []string
	ids                  map[string]trace.FuncID // by key
	bases                map[string]op           // by key
	state                []stateCounter
	depth                int // of nested functions
	threads              int // of the host, at most
	streams              int
	correlation          trace.CounterID
	troubles             []*trouble // all of the scenario; those of other programs are nil
	noise, links, levels []int32    // troubles by time, of links, and with a counter
	iterations           int        // of the run
	latency              int64
}

// stateCounter is a counter of the node.
type stateCounter struct {
	reading
	every    int64
	troubles []int32
}

// Names and constants besides those of scenarios.
const (
	rootFunction     = ".TAU application"
	mainFunction     = "main"
	recvFunction     = "MPI_Irecv()"
	sendFunction     = "MPI_Isend()"
	waitFunction     = "MPI_Waitall()"
	correlationID    = "Correlation ID"
	statePrefix      = "monitoring: "
	hostnameKey      = "Hostname"
	executableKey    = "Executable"
	deviceKey        = "CUDA Device"
	contextKey       = "CUDA Context"
	streamKey        = "CUDA Stream"
	threadPerStream  = 1 // between the host's threads and the streams
	launchLag        = 4 // from a launch to the earliest start of its kernel, in us
	waitOverhead     = 2
	startSpread      = 2000 // range of start times of ranks, in us
	messageCallTime  = 2    // median of MPI_Isend and MPI_Irecv
	messageCallSigma = 0.2
)

func compile(s *scenario.Scenario, index int, all []string, troubles []*trouble) *program {
	src := &s.Programs[index]
	p := &program{
		Program: src, index: index, all: all, threads: 1,
		ids: make(map[string]trace.FuncID), bases: make(map[string]op),
		latency: int64(src.Latency + 0.5), troubles: troubles, iterations: s.Steps * s.Iterations,
	}
	for i, t := range troubles {
		switch {
		case t == nil:
			continue
		case t.Kind == scenario.OSNoise:
			p.noise = append(p.noise, int32(i))
		case t.Kind == scenario.SlowLink:
			p.links = append(p.links, int32(i))
		}
		if t.Counter != "" {
			p.levels = append(p.levels, int32(i))
		}
	}
	root, body := p.function(rootFunction, rootFunction), p.function(mainFunction, mainFunction)
	p.setup = p.list([]op{{code: opOpen, fn: root}, {code: opOpen, fn: body}}, src.Setup, 0)
	p.body = p.list(nil, src.Body, 0)
	p.finish = append(p.list(nil, src.Finish, 0), op{code: opClose, fn: body}, op{code: opClose, fn: root})
	if p.streams > 0 {
		p.correlation = p.counter(correlationID)
	}
	for i := range src.Counters {
		c := &src.Counters[i]
		of := stateCounter{every: max(1, int64(c.Seconds*1e6))}
		of.id, of.value = p.counter(statePrefix+c.Name), c.Value.Sampler()
		for _, t := range p.levels {
			if troubles[t].Counter == c.Name {
				of.troubles = append(of.troubles, t)
			}
		}
		p.state = append(p.state, of)
	}
	return p
}

// function returns the number of a function.
func (p *program) function(key, name string) trace.FuncID {
	if id, ok := p.ids[key]; ok {
		return id
	}
	id := trace.FuncID(len(p.funcs))
	p.funcs = append(p.funcs, name)
	p.ids[key] = id
	return id
}

func (p *program) counter(name string) trace.CounterID {
	if i := slices.Index(p.counters, name); i >= 0 {
		return trace.CounterID(i)
	}
	p.counters = append(p.counters, name)
	return trace.CounterID(len(p.counters) - 1)
}

// list appends the operations of a list of calls.
func (p *program) list(ops []op, calls []string, depth int) []op {
	for _, call := range calls {
		key, times, err := scenario.ParseCall(call)
		if err != nil {
			panic(err) // scenarios are valid
		}
		for range times {
			ops = p.call(ops, key, depth)
		}
	}
	return ops
}

// call appends a call of a function.
func (p *program) call(ops []op, key string, depth int) []op {
	f := p.Functions[key]
	p.depth = max(p.depth, depth+1)
	o := p.base(key, &f)
	first := len(ops)
	switch f.Kind {
	case scenario.Exchange:
		ops = p.exchange(ops, o, &f)
	case scenario.Collective:
		o.code, o.wait = opCollective, &wait{group: min(cmp.Or(f.Group, p.Ranks), p.Ranks)}
		ops = append(ops, o)
	case scenario.Parallel:
		p.threads = max(p.threads, f.Threads)
		o.code, o.parts = opEnter, 2
		ops = append(ops, o, op{code: opPart})
		ops = append(ops, op{code: opThreads, sub: p.list(nil, f.Calls, depth+1), threads: f.Threads})
		ops = append(ops, op{code: opPart}, op{code: opExit, fn: o.fn})
	case scenario.Launch:
		p.streams = max(p.streams, f.Stream+1)
		kernel := p.Functions[f.Kernel]
		k := p.base(f.Kernel, &kernel)
		o.code, o.thread, o.kernel = opLaunch, int32(f.Stream), &k
		k.code, o.least, k.least = opKernel, 1, 1 // leaves room for correlation ids: see inside
		ops = append(ops, o)
	case scenario.DeviceSync:
		o.code = opDeviceSync
		ops = append(ops, o)
	case scenario.Publish:
		o.code = opPublish
		ops = append(ops, o)
	case scenario.Await:
		o.code, o.wait = opAwait, &wait{from: slices.Index(p.all, f.From)}
		ops = append(ops, o)
	default:
		ops = p.compute(ops, o, &f, key, depth)
	}
	if f.Every > 1 {
		ops[first].every, ops[first].skip = f.Every, len(ops)-first
	}
	if f.Part != nil {
		ops[first].part, ops[first].skip = partOf(f.Part, p.iterations), len(ops)-first
	}
	if f.RankPart != nil {
		ops[first].ranks, ops[first].skip = partOf(f.RankPart, p.Ranks), len(ops)-first
	}
	return ops
}

// partOf returns the first of n that is in the part, and the one after the last.
func partOf(part []float64, n int) []int {
	at := func(share float64) int { return int(math.Round(share * float64(n))) }
	return []int{at(part[0]), at(part[1])}
}

// base returns an op with the fields that do not depend on the kind of function.
func (p *program) base(key string, f *scenario.Function) op {
	if o, ok := p.bases[key]; ok {
		return o
	}
	o := op{fn: p.function(key, cmp.Or(f.Name, key)), time: f.Time.Sampler(), usual: &f.Time, spread: f.Spread}
	if f.Message != nil {
		o.message = new(f.Message.Sampler())
	}
	for _, name := range slices.Sorted(maps.Keys(f.Counters)) {
		d := f.Counters[name]
		o.counters = append(o.counters, reading{p.counter(name), d.Sampler()})
	}
	for i, t := range p.troubles {
		if t != nil && t.concerns(key, f) {
			o.troubles = append(o.troubles, int32(i))
		}
	}
	p.bases[key] = o
	return o
}

func (p *program) compute(ops []op, o op, f *scenario.Function, key string, depth int) []op {
	if len(f.Calls) == 0 {
		o.code = opLeaf
		return append(ops, o)
	}
	at := len(ops)
	o.code = opEnter
	ops = append(ops, o, op{code: opPart})
	parts := int64(1)
	for _, call := range f.Calls {
		key, times, _ := scenario.ParseCall(call)
		for range times {
			ops = p.call(ops, key, depth+1)
			ops = append(ops, op{code: opPart})
			parts++
		}
	}
	ops[at].parts = parts
	exit := op{code: opExit, fn: o.fn, calls: len(ops) - (at + 2)}
	for i, t := range p.troubles {
		switch {
		case t == nil:
		case t.Kind == scenario.ExcessWork && slices.Contains(t.Functions, key):
			exit.excess = append(exit.excess, int32(i))
		case t.Kind == scenario.RareCall && t.Caller == key:
			added := rare{trouble: int32(i)}
			for _, key := range t.Functions {
				added.calls = p.call(added.calls, key, depth+1)
			}
			for i := range added.calls {
				added.calls[i].usual = nil // all of their time is added
			}
			exit.rare = append(exit.rare, added)
		}
	}
	return append(ops, exit)
}

// exchange appends the operations of an exchange with neighbors: receives, sends, and the
// wait.
func (p *program) exchange(ops []op, o op, f *scenario.Function) []op {
	short := &scenario.Distribution{Lognormal: []float64{messageCallTime, messageCallSigma}}
	irecv := op{code: opLeaf, fn: p.function(recvFunction, recvFunction), time: short.Sampler(), usual: short}
	isend := op{code: opSend, fn: p.function(sendFunction, sendFunction), time: short.Sampler(), usual: short, least: 1}
	w := &wait{}
	for _, distance := range f.Neighbors {
		if distance%p.Ranks != 0 { // not the rank itself
			w.neighbors = append(w.neighbors, distance)
		}
	}
	isend.wait = w
	o.code, o.parts = opEnter, 2
	ops = append(ops, o, op{code: opPart})
	for range w.neighbors {
		ops = append(ops, irecv)
	}
	for slot := range w.neighbors {
		isend.slot = slot
		ops = append(ops, isend)
	}
	ops = append(ops, op{code: opExchange, fn: p.function(waitFunction, waitFunction), wait: w})
	return append(ops, op{code: opPart}, op{code: opExit, fn: o.fn})
}
