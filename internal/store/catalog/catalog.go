// Package catalog numbers the entries that many records of a run share: functions, call paths,
// models and node states. A store keeps each entry once and refers to it by number. A Catalog serves
// one run and is not safe for concurrent use.
package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Function is a function of a program. Its number N counts from 1 without gaps within the program,
// because the schema's numbers need not be unique.
type Function struct {
	Program trace.Program
	N       int32
	FID     int
	Name    string
}

// Path is the functions of a stack, from the outermost to the execution itself.
type Path struct {
	Program trace.Program
	N       int32
	Funcs   []int32 // numbers of Functions
}

// Model is a version of a function's model.
type Model struct {
	Program trace.Program
	Func    int32 // number of the Function
	N       int32 // version, from 1
	Params  json.RawMessage
}

// Sample is a node state that several records share.
type Sample struct {
	Program trace.Program
	N       int32
	State   provenance.NodeState
}

// Entries are parts of a catalog.
type Entries struct {
	Functions []Function
	Paths     []Path
	Models    []Model
	Samples   []Sample
}

// Len returns the number of entries.
func (e *Entries) Len() int { return len(e.Functions) + len(e.Paths) + len(e.Models) + len(e.Samples) }

type funcKey struct {
	trace.FuncKey
	fid int
}

type pathKey struct {
	program trace.Program
	funcs   string // numbers, four bytes each
}

type sampleKey struct {
	program trace.Program
	state   [sha256.Size]byte // hash of time, fields and values
}

type modelKey struct {
	series
	hash [sha256.Size]byte
}

// Kind is a kind of entries.
type Kind int

// The kinds.
const (
	Functions Kind = iota
	Paths
	Models
	Samples
)

// series identifies entries that are numbered together: those of a kind in a program, or
// the models of a function.
type series struct {
	kind    Kind
	program trace.Program
	fn      int32
}

// Catalog holds the entries of a run.
type Catalog struct {
	funcs      map[funcKey]int32
	paths      map[pathKey]int32
	models     map[modelKey]int32
	samples    [2]map[sampleKey]int32 // recent node states: the newer half and the older half
	highest    map[series]int32
	newEntries Entries

	lookupOnly bool // HasNumbers is running, so next assigns no numbers
	missing    bool // an entry has no number

	key  []byte
	last map[series]lastModel

	recent [256]recentFunc // by number and program
}

// recentFunc caches the number of a frequent function to avoid hashing its name.
type recentFunc struct {
	funcKey
	n int32
}

// lastModel caches the version of a model that many records share to avoid hashing it.
type lastModel struct {
	params []byte
	n      int32
}

// New returns an empty catalog.
func New() *Catalog {
	return &Catalog{
		funcs: make(map[funcKey]int32), paths: make(map[pathKey]int32), models: make(map[modelKey]int32),
		samples: [2]map[sampleKey]int32{{}, {}}, highest: make(map[series]int32), last: make(map[series]lastModel),
	}
}

// Load adds entries that were numbered elsewhere. TakeNew does not return them.
func (c *Catalog) Load(entries Entries) {
	raise := func(s series, n int32) { c.highest[s] = max(c.highest[s], n) }
	for _, f := range entries.Functions {
		c.funcs[funcKey{trace.FuncKey{Program: f.Program, Name: f.Name}, f.FID}] = f.N
		raise(series{Functions, f.Program, 0}, f.N)
	}
	for _, p := range entries.Paths {
		c.paths[pathKey{p.Program, string(c.pathBytes(p.Funcs))}] = p.N
		raise(series{Paths, p.Program, 0}, p.N)
	}
	for _, m := range entries.Models {
		of := series{Models, m.Program, m.Func}
		c.models[modelKey{of, hash(m.Params)}] = m.N
		raise(of, m.N)
	}
	for _, x := range entries.Samples {
		c.keepSample(c.sampleKey(x.Program, &x.State), x.N)
		raise(series{Samples, x.Program, 0}, x.N)
	}
}

// next returns the next number of a series, or 0 while HasNumbers runs.
func (c *Catalog) next(s series) int32 {
	if c.lookupOnly {
		c.missing = true
		return 0
	}
	c.highest[s]++
	return c.highest[s]
}

// HasNumbers reports whether all entries of the batch have numbers. It assigns none.
func (c *Catalog) HasNumbers(b *provdb.Batch) bool {
	c.lookupOnly, c.missing = true, false
	c.Add(b)
	c.lookupOnly = false
	return !c.missing
}

// Mark is the highest number of a series.
type Mark struct {
	Program trace.Program
	Func    int32 // number of the function, for models
	N       int32
}

// Marks returns the highest numbers of a kind, in no particular order. Entries that other writers added have higher numbers.
func (c *Catalog) Marks(k Kind) (marks []Mark) {
	for s, n := range c.highest {
		if s.kind == k {
			marks = append(marks, Mark{s.program, s.fn, n})
		}
	}
	return marks
}

// TakeNew returns the entries that were numbered since New or the last call.
func (c *Catalog) TakeNew() Entries {
	entries := c.newEntries
	c.newEntries = Entries{}
	return entries
}

// Func returns the number of a function.
func (c *Catalog) Func(program trace.Program, fid int, name string) int32 {
	key := funcKey{trace.FuncKey{Program: program, Name: name}, fid}
	at := (uint(fid) ^ uint(program)<<4) % uint(len(c.recent))
	if r := &c.recent[at]; r.n != 0 && r.funcKey == key { // fast if the names share memory
		return r.n
	}
	n, ok := c.funcs[key]
	if !ok {
		if n = c.next(series{Functions, program, 0}); n == 0 {
			return 0
		}
		c.funcs[key] = n
		c.newEntries.Functions = append(c.newEntries.Functions, Function{program, n, fid, name})
	}
	c.recent[at] = recentFunc{key, n}
	return n
}

// Path returns the number of the path of a stack, which begins with the execution itself.
func (c *Catalog) Path(program trace.Program, stack []provenance.StackEntry) int32 {
	c.key = c.key[:0]
	for _, f := range slices.Backward(stack) {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(c.Func(program, f.FID, f.Func)))
	}
	return c.path(program)
}

// path returns the number of the path whose functions are in key.
func (c *Catalog) path(program trace.Program) int32 {
	if n, ok := c.paths[pathKey{program, string(c.key)}]; ok {
		return n
	}
	n := c.next(series{Paths, program, 0})
	if n == 0 {
		return 0
	}
	c.paths[pathKey{program, string(c.key)}] = n
	p := Path{Program: program, N: n}
	for b := c.key; len(b) > 0; b = b[4:] {
		p.Funcs = append(p.Funcs, int32(binary.LittleEndian.Uint32(b)))
	}
	c.newEntries.Paths = append(c.newEntries.Paths, p)
	return n
}

// Paths returns the numbers of all paths of a tree, and of their last functions.
func (c *Catalog) Paths(all []provenance.PathStats) (paths, functions []int32) {
	paths, functions = make([]int32, len(all)), make([]int32, len(all))
	keys := make([]string, len(all)+1)
	for i := range all {
		p := &all[i]
		functions[i] = c.Func(p.PID, p.FID, p.Func)
		c.key = binary.LittleEndian.AppendUint32(append(c.key[:0], keys[p.Parent]...), uint32(functions[i]))
		paths[i] = c.path(p.PID)
		keys[i+1] = string(c.key)
	}
	return paths, functions
}

// Model returns the version of a function's model, or 0 without a model.
func (c *Catalog) Model(program trace.Program, fn int32, params json.RawMessage) int32 {
	if len(params) == 0 || bytes.Equal(params, []byte("null")) {
		return 0
	}
	of := series{Models, program, fn}
	if l := c.last[of]; bytes.Equal(l.params, params) {
		return l.n
	}
	key := modelKey{of, hash(params)}
	n, ok := c.models[key]
	if !ok {
		if n = c.next(of); n == 0 {
			return 0
		}
		c.models[key] = n
		c.newEntries.Models = append(c.newEntries.Models, Model{program, fn, n, params})
	}
	c.last[of] = lastModel{bytes.Clone(params), n} // the caller may overwrite params
	return n
}

// Sample returns the number of a node state, or 0 for nil.
func (c *Catalog) Sample(program trace.Program, state *provenance.NodeState) int32 {
	if state == nil {
		return 0
	}
	key := c.sampleKey(program, state)
	for _, half := range c.samples {
		if n, ok := half[key]; ok {
			return n
		}
	}
	n := c.next(series{Samples, program, 0})
	if n == 0 {
		return 0
	}
	c.keepSample(key, n)
	c.newEntries.Samples = append(c.newEntries.Samples, Sample{program, n, *state})
	return n
}

// MaxSamples is the approximate number of node states in memory. Each node has a new state in each step, which only
// neighboring records share. A state that was dropped gets another number if it occurs again.
const MaxSamples = 1 << 16

func (c *Catalog) keepSample(key sampleKey, n int32) {
	if len(c.samples[0]) >= MaxSamples/2 {
		c.samples = [2]map[sampleKey]int32{{}, c.samples[0]}
	}
	c.samples[0][key] = n
}

func (c *Catalog) sampleKey(program trace.Program, state *provenance.NodeState) sampleKey {
	c.key = binary.LittleEndian.AppendUint64(c.key[:0], uint64(state.Timestamp))
	for _, s := range state.Data {
		c.key = binary.LittleEndian.AppendUint64(append(append(c.key, s.Field...), 0), s.Value)
	}
	return sampleKey{program, sha256.Sum256(c.key)}
}

// Add numbers all entries of the batch.
func (c *Catalog) Add(b *provdb.Batch) {
	for _, records := range [][]*provenance.Record{b.Anomalies, b.Typical} {
		for _, r := range records {
			c.addRecord(r)
		}
	}
	for i := range b.Functions {
		c.Func(b.Functions[i].App, b.Functions[i].FID, b.Functions[i].Name)
	}
	c.Paths(b.Paths)
	for i := range b.Models {
		m := &b.Models[i]
		c.Model(m.PID, c.Func(m.PID, m.FID, m.Name), m.Model)
	}
}

// Refs contains the numbers of the entries to which a record refers; 0 means no entry.
type Refs struct{ Func, Path, Model, Sample int32 }

// Refs returns the numbers of the entries to which a record refers.
func (c *Catalog) Refs(r *provenance.Record) Refs {
	fn := c.Func(r.PID, r.FID, r.Func)
	return Refs{fn, c.Path(r.PID, r.CallStack), c.Model(r.PID, fn, r.AlgoParams), c.Sample(r.PID, r.NodeState)}
}

func (c *Catalog) addRecord(r *provenance.Record) {
	c.Refs(r)
	for i := range r.EventWindow.Execs {
		c.Func(r.PID, r.EventWindow.Execs[i].FID, r.EventWindow.Execs[i].Func)
	}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok {
		for i := range p.CallStack {
			c.Func(r.PID, p.CallStack[i].FID, p.CallStack[i].Func)
		}
	}
}

func (c *Catalog) pathBytes(funcs []int32) []byte {
	c.key = c.key[:0]
	for _, f := range funcs {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(f))
	}
	return c.key
}

// hash returns the hash of a model, ignoring white space.
func hash(params json.RawMessage) [sha256.Size]byte {
	var b bytes.Buffer
	if json.Compact(&b, params) != nil {
		return sha256.Sum256(params)
	}
	return sha256.Sum256(b.Bytes())
}

// ParseID parses the ID of an event of a rank as trace.EventID formats it.
func ParseID(id string, rank trace.Rank) (step int32, row int64, ok bool) {
	first, rest, _ := strings.Cut(id, ":")
	second, third, _ := strings.Cut(rest, ":")
	r, okRank := number(first)
	s, okStep := number(second)
	row, ok = number(third)
	ok = ok && okRank && okStep && r == int64(rank) && s >= 0 && s <= math.MaxInt32 && row >= 0 && row <= math.MaxUint32
	return int32(s), row, ok
}

// number parses an integer as strconv.FormatInt formats it.
func number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		return 0, false
	}
	return n, text == "0" || strings.TrimPrefix(text, "-")[0] != '0'
}
