package tau

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// Names resolves the numbers of functions, counters, programs and GPU threads in a
// trace. It grows with each step. A name may come one step after the first event that
// uses it, so look it up when it is needed, not when the event is read.
type Names struct {
	programs map[uint32]string
	funcs    map[nameKey]string
	counters map[nameKey]string
	gpus     map[threadKey]trace.GPU
}

// nameKey is a number and its rank, which is shared except in files of several ranks
// where the rank is known.
type nameKey struct {
	rank trace.Rank
	id   uint32
}

const shared trace.Rank = -1 << 31

type threadKey struct {
	rank   trace.Rank
	thread trace.Thread
}

func newNames() Names {
	return Names{
		programs: make(map[uint32]string), funcs: make(map[nameKey]string),
		counters: make(map[nameKey]string), gpus: make(map[threadKey]trace.GPU),
	}
}

// NewNames returns complete names: functions and counters by number, and the threads
// that represent GPU streams.
func NewNames(program string, funcs, counters []string, gpus map[trace.Rank]map[trace.Thread]trace.GPU) Names {
	n := newNames()
	n.programs[0] = program
	for id, name := range funcs {
		n.funcs[nameKey{shared, uint32(id)}] = name
	}
	for id, name := range counters {
		n.counters[nameKey{shared, uint32(id)}] = name
	}
	for rank, threads := range gpus {
		for thread, gpu := range threads {
			n.gpus[threadKey{rank, thread}] = gpu
		}
	}
	return n
}

func resolve(names map[nameKey]string, rank trace.Rank, id uint32) (string, bool) {
	if name, ok := names[nameKey{rank, id}]; ok {
		return name, true
	}
	name, ok := names[nameKey{shared, id}]
	return name, ok
}

// Func returns the name of a function, or false while it is unknown.
func (n *Names) Func(rank trace.Rank, id trace.FuncID) (string, bool) {
	return resolve(n.funcs, rank, uint32(id))
}

// Counter returns the name of a counter, or false while it is unknown.
func (n *Names) Counter(rank trace.Rank, id trace.CounterID) (string, bool) {
	return resolve(n.counters, rank, uint32(id))
}

// GPU returns the GPU stream that a thread represents, or false for host threads.
func (n *Names) GPU(rank trace.Rank, thread trace.Thread) (trace.GPU, bool) {
	gpu, ok := n.gpus[threadKey{rank, thread}]
	return gpu, ok
}

// Program returns the path of the executable, or "" while it is unknown.
func (n *Names) Program() string { return n.programs[0] }

// Funcs yields the functions and their names by number.
func (n *Names) Funcs() iter.Seq2[trace.FuncID, string] { return sorted[trace.FuncID](n.funcs) }

// Counters yields the counters and their names by number.
func (n *Names) Counters() iter.Seq2[trace.CounterID, string] {
	return sorted[trace.CounterID](n.counters)
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

// learn reads the attributes of a step and appends the metadata among them to d.step.
func (d *Decoder) learn(attrs []bp.Attribute) {
	owners := d.owners(attrs)
	for i := range attrs {
		a := &attrs[i]
		if strings.HasPrefix(a.Name, attrMetadata) {
			d.learnMetadata(a)
			continue
		}
		word, number, ok := strings.Cut(a.Name, " ")
		switch word {
		case attrProgram, attrEventType, attrTimer, attrCounter:
		default:
			continue // not from TAU, or not needed
		}
		id, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil {
			d.tally.Add(tally.AttributeMalformed, 1)
			continue
		}
		key := nameKey{shared, uint32(id)}
		if owner, ok := owners[a.Block]; ok && d.oneFile {
			key.rank = owner
		}
		switch word {
		case attrProgram:
			define(d, d.Names.programs, uint32(id), a.Text())
		case attrEventType:
			if define(d, d.typeNames, uint32(id), a.Text()) && id < uint64(len(d.kinds)) {
				d.kinds[id] = eventTypes[a.Text()]
			}
		case attrTimer:
			define(d, d.Names.funcs, key, a.Text())
		case attrCounter:
			define(d, d.Names.counters, key, a.Text())
		}
	}
}

// define sets a name unless it already exists, and reports whether it did.
func define[K comparable](d *Decoder, names map[K]string, key K, name string) bool {
	if old, ok := names[key]; ok {
		if old != name {
			d.tally.Add(tally.NameConflict, 1)
		}
		return false
	}
	names[key] = name
	return true
}

// owners returns the rank that wrote each block of attributes: the common rank of all
// metadata in the block. Blocks without metadata have no owner.
func (d *Decoder) owners(attrs []bp.Attribute) map[int]trace.Rank {
	if !d.oneFile || len(attrs) == 0 {
		return nil
	}
	owners := make(map[int]trace.Rank)
	for i := range attrs {
		m, ok := ParseMetadata(attrs[i].Name)
		if !ok || attrs[i].Block < 0 {
			continue
		}
		if owner, ok := owners[attrs[i].Block]; ok && owner != m.Rank {
			m.Rank = shared
		}
		owners[attrs[i].Block] = m.Rank
	}
	return owners
}

// ParseMetadata splits a name such as "MetaData:0:5:CUDA Stream". The key may contain
// colons. TAU sometimes concatenates two names; the last one is valid.
func ParseMetadata(name string) (m trace.Metadata, ok bool) {
	name = name[max(0, strings.LastIndex(name, attrMetadata)):]
	rest, ok := strings.CutPrefix(name, attrMetadata)
	if !ok {
		return m, false
	}
	rank, rest, ok1 := strings.Cut(rest, ":")
	thread, key, ok2 := strings.Cut(rest, ":")
	r, err1 := strconv.ParseInt(rank, 10, 32)
	t, err2 := strconv.ParseUint(thread, 10, 32)
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return m, false
	}
	return trace.Metadata{Rank: trace.Rank(r), Thread: trace.Thread(t), Key: key}, true
}

func (d *Decoder) learnMetadata(a *bp.Attribute) {
	m, ok := ParseMetadata(a.Name)
	if !ok {
		d.tally.Add(tally.AttributeMalformed, 1)
		return
	}
	m.Program, m.Value = d.cfg.Program, a.Text()
	if d.cfg.Ranks == OverrideRank {
		m.Rank = d.cfg.Rank
	}
	d.step.Metadata = append(d.step.Metadata, m)
	key := threadKey{m.Rank, m.Thread}
	gpu := d.Names.gpus[key]
	switch m.Key {
	case keyDevice:
		gpu.Device = m.Value
	case keyContext:
		gpu.Context = m.Value
	case keyStream:
		gpu.Stream = m.Value
	default:
		return
	}
	d.Names.gpus[key] = gpu
}
