// Package profile turns the events of a profiler into steps. Readers of formats add events in any order. A File sorts them
// by time, in bounded memory, and returns steps: threads of the host and streams of GPUs with nested calls in nanoseconds,
// kernels joined with their launches by correlation ids, counters, names and metadata. Calls that do equal work have the
// same name.
package profile

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Options configures how a file is read.
type Options struct {
	Program trace.Program
	// RankPattern finds the rank of a file that does not contain it in the first group of its
	// match in the name of the file. If it is nil, DefaultRankPattern is used.
	RankPattern *regexp.Regexp
	// Temp is the directory for events that do not fit into memory. It is the system's if empty.
	Temp string
	// MaxEvents is the number of events to keep in memory. If it is 0, it is half a million, in 16 MB.
	MaxEvents int
	// Read, if not nil, is called with the number of bytes after each read of the file.
	Read func(bytes int64)
}

// DefaultRankPattern finds the rank in names such as rank3_trace.json.gz.
var DefaultRankPattern = regexp.MustCompile(`(?i)rank[-_.]?([0-9]+)`)

const maxEvents = 1 << 19

// File is a trace with sorted events: the content of a path, or the part of one of several ranks
// that share the path.
type File struct {
	Path     string
	Format   string // its name
	Size     int64  // of the path; 0 except for the first File of a path
	Modified time.Time
	// Ranks are the ranks of the file. RankKnown is false if the file has one rank and neither its
	// content nor its name identify it.
	Ranks      []trace.Rank
	RankKnown  bool
	World      int // number of ranks of the program; 0 if unknown
	Properties Properties
	Err        error // that ended the file early
	// Gaps are the first parts of the path that were skipped, repaired or guessed. Only the first File of a path has them.
	Gaps []Gap

	opt      Options
	tally    tally.Tally
	sorted   sorter
	names    namer
	counters namer
	lanes    lanes
	workers  []worker
	steps    []stepStart
	metadata []trace.Metadata
	program  string // name of the process
	offset   int64  // to add to all times
	events   int64

	collectives collectives

	byProfiler bool     // steps are those of the profiler
	stages     []string // of the pipeline, whose functions have names of their own; empty if there is one
}

// Gap is a part of a path that was skipped, repaired or guessed.
type Gap struct {
	Kind           tally.Kind
	Offset, Length int64
}

// stepStart is the start of a profiler step on the host.
type stepStart struct {
	start  int64
	number int64
}

// Properties describe the rank of a file. Set them before Finish.
type Properties struct {
	Rank    *trace.Rank // nil if unknown
	World   int
	Backend string
	Groups  []ProcessGroup
	Devices []Device
	Host    string
	Base    int64 // to add to all times
	// SinceBoot is true if times count from the start of the host, so that those of different hosts are unrelated.
	SinceBoot bool
	Facts     []Fact
}

// Fact is additional metadata of a rank.
type Fact struct{ Key, Value string }

// Device is a GPU.
type Device struct {
	ID   int
	Name string
}

// New returns a File without events.
func New(path string, opt Options) *File {
	if opt.MaxEvents == 0 {
		opt.MaxEvents = maxEvents
	}
	return &File{
		Path: path, opt: opt, names: newNamer(), counters: newNamer(), lanes: newLanes(),
		collectives: collectives{numbers: make(map[string]uint32)},
		sorted:      sorter{dir: opt.Temp, limit: opt.MaxEvents},
	}
}

// Close frees the sorted events.
func (f *File) Close() { f.sorted.close() }

// Tally returns the counts of repaired, skipped and lost data.
func (f *File) Tally() *tally.Tally { return &f.tally }

// MaxTime limits times in nanoseconds, so that sums and differences do not overflow.
const MaxTime = math.MaxInt64 / 4

// Event is an event of a file.
type Event struct {
	Kind            Kind
	Category        Category
	Name            []byte
	Process, Thread ID    // of GPUs: device and stream
	Start           int64 // nanoseconds
	Duration        int64 // of a Complete event, the value of a Counter, or the size of a message, more than trace.MaxSize if unknown
	Correlation     uint64
	Key             uint64 // identifies the operation of AsyncBegin and AsyncEnd; of messages their MessageKey
	Args            Arguments
}

// MessageKey returns the Key of a message with a partner.
func MessageKey(partner trace.Rank, tag int32) uint64 {
	return uint64(uint32(partner))<<32 | uint64(uint32(tag))
}

// Add adds an event. It keeps no reference to it.
func (f *File) Add(e *Event) error {
	r := record{kind: e.Kind, start: e.Start, duration: max(e.Duration, 0)}
	async := 0
	if e.Kind == AsyncBegin || e.Kind == AsyncEnd {
		async, r.correlation = 1, e.Key
	}
	if e.Start < -MaxTime || e.Start > MaxTime || r.duration > MaxTime {
		f.tally.Add(tally.TimeImplausible, 1)
		return nil
	}
	lane, ok := f.lanes.find(&e.Process, &e.Thread, async)
	if !ok {
		f.tally.Add(tally.ThreadImplausible, 1)
		return nil
	}
	r.lane = lane
	l := &f.lanes.all[lane]
	if l.events++; l.events == 1 || e.Start < l.first {
		l.first = e.Start
	}
	f.events++
	if e.Kind == Send || e.Kind == Receive {
		r.correlation = e.Key
		return f.sorted.add(r)
	}
	if e.Kind == Counter {
		r.fn = f.counters.function(e.Name, Other, nil)
		return f.sorted.add(r)
	}
	l.time += r.duration
	l.device = l.device || e.Category.OnDevice()
	if r.kind != End && r.kind != AsyncEnd {
		r.fn = f.names.function(e.Name, e.Category, &e.Args)
	}
	if e.Category.OnDevice() || e.Category == Runtime && launches(e.Name) {
		r.correlation = e.Correlation
	}
	if r.kind == Complete {
		f.collectives.add(e.Name, e.Category, r.fn, &e.Args, &r)
	}
	if e.Category == Annotation {
		if n, ok := stepNumber(e.Name); ok {
			f.steps = append(f.steps, stepStart{e.Start, n})
		}
	}
	return f.sorted.add(r)
}

// NameProcess sets the name of a process.
func (f *File) NameProcess(id []byte, name string) { f.lanes.process[string(id)] = name }

// NameThread sets the name of a thread.
func (f *File) NameThread(process, thread ID, name string) {
	if n, ok := f.lanes.find(&process, &thread, 0); ok {
		f.lanes.all[n].name = name
	}
}

// HasProcess reports whether a process of the host has events.
func (f *File) HasProcess(id string) bool {
	return slices.ContainsFunc(f.lanes.all, func(l lane) bool { return !l.device && l.process == id })
}

// LimitMemory makes all files together keep about as many events in memory as a single file may.
func LimitMemory(files []*File) error {
	kept, largest := 0, files[0]
	for _, f := range files {
		kept += len(f.sorted.last)
		if len(f.sorted.last) > len(largest.sorted.last) {
			largest = f
		}
	}
	if kept <= largest.opt.MaxEvents {
		return nil
	}
	return largest.sorted.spill()
}

// ParseUint returns a number in decimal digits, or 0.
func ParseUint(digits []byte) (n uint64) {
	if len(digits) > 18 {
		return 0
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + uint64(d-'0')
	}
	return n
}

// launches reports whether a call of the runtime starts work on a device. Other calls also have
// correlation ids, but share them with no event.
func launches(name []byte) bool {
	return bytes.Contains(name, []byte("Launch")) || bytes.Contains(name, []byte("Memcpy")) || bytes.Contains(name, []byte("Memset"))
}

// Finish numbers threads, which is possible only at the end of the file, and sorts the events. Ranks
// must be set.
func (f *File) Finish() error {
	f.offset = f.Properties.Base
	f.bindStages()
	f.lanes.number()
	f.describe(&f.Properties)
	slices.SortFunc(f.steps, func(a, b stepStart) int { return cmp.Compare(a.start, b.start) })
	if err := f.sorted.finish(); err != nil {
		return err
	}
	f.placeTimes()
	f.bindGroup()
	if err := f.findLaunches(); err != nil {
		return err
	}
	var err error
	f.byProfiler, err = f.hasProfilerSteps()
	return err
}

// hasProfilerSteps reports whether the steps of the profiler have ascending numbers and are
// small enough.
func (f *File) hasProfilerSteps() (bool, error) {
	for i, s := range f.steps {
		if i > 0 && s.number <= f.steps[i-1].number {
			return false, nil
		}
	}
	if len(f.steps) == 0 || f.events <= maxStepEvents {
		return len(f.steps) > 0, nil
	}
	it, err := f.sorted.iterate()
	if err != nil {
		return false, err
	}
	var r record
	for at, n := 0, 0; ; n++ {
		if ok, err := it.next(&r); err != nil || !ok {
			return true, err
		}
		for at < len(f.steps) && r.start >= f.steps[at].start {
			at++
			n = 0
		}
		if n == maxStepEvents {
			return false, nil
		}
	}
}

// BindRank assigns all lanes to one rank: that of the properties or, if named is true, the one in the name of the file.
func (f *File) BindRank(named bool) {
	p := &f.Properties
	f.Ranks, f.World = []trace.Rank{0}, p.World
	if p.Rank != nil && *p.Rank >= 0 {
		f.Ranks[0], f.RankKnown = *p.Rank, true
		return
	}
	pattern := f.opt.RankPattern
	if pattern == nil {
		pattern = DefaultRankPattern
	}
	m := pattern.FindStringSubmatch(filepath.Base(f.Path))
	if len(m) < 2 || !named {
		return
	}
	if n, err := strconv.ParseInt(m[1], 10, 31); err == nil {
		f.Ranks[0], f.RankKnown = trace.Rank(n), true
	}
}

// BindWorkers makes a rank of each worker.
func (f *File) BindWorkers() {
	f.workers, f.RankKnown = f.lanes.several(), true
	f.Ranks = make([]trace.Rank, max(1, len(f.workers)))
	f.World = len(f.Ranks)
	for i := range f.Ranks {
		f.Ranks[i] = trace.Rank(i)
	}
}

// bindStages finds the stages of a pipeline. Their work differs by design, so it is compared only
// within a stage.
func (f *File) bindStages() {
	var stages []string
	for _, w := range f.workers {
		stages = append(stages, stage.FindString(w.place))
	}
	slices.Sort(stages)
	if stages = slices.Compact(stages); len(stages) < 2 {
		if s := f.stageOfGroups(); s != "" {
			f.stages = []string{s} // all functions are those of the stage of the rank
		}
		return
	}
	f.stages = stages
	for i := range f.lanes.all {
		l := &f.lanes.all[i]
		l.stage = slices.Index(stages, stage.FindString(f.workers[l.rank].place))
	}
}

// functions returns the names and kinds of functions: in a pipeline, those of each stage one after
// another.
func (f *File) functions() (names []string, works []trace.Work) {
	if len(f.stages) == 0 {
		return f.names.names, f.names.works
	}
	for _, stage := range f.stages {
		for _, name := range f.names.names {
			if stage != "" {
				name += " [" + stage + "]"
			}
			names = append(names, name)
		}
		works = append(works, f.names.works...)
	}
	return names, works
}

// SetProgram sets the program of the file, which is 0 otherwise.
func (f *File) SetProgram(p trace.Program) {
	f.opt.Program = p
	for i := range f.metadata {
		f.metadata[i].Program = p
	}
}

// First returns the time of the first event, or 0 without events.
func (f *File) First() trace.Ticks {
	first := int64(math.MaxInt64)
	for i := range f.lanes.all {
		if f.lanes.all[i].events > 0 {
			first = min(first, f.lanes.all[i].first)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return trace.Ticks(first + f.offset)
}

// AssumeClock subtracts ahead, the assumed start time of the host, from all times.
func (f *File) AssumeClock(ahead trace.Ticks) {
	f.offset -= int64(ahead)
	f.tally.Add(tally.ClockAssumed, 1)
}

// CorrectClock subtracts ahead, the lead of the rank's clock over others, from all times.
func (f *File) CorrectClock(ahead trace.Ticks) {
	f.offset -= int64(ahead)
	f.tally.Add(tally.ClockCorrected, 1)
	f.metadata = append(f.metadata, trace.Metadata{
		Program: f.opt.Program, Rank: f.Ranks[0], Key: "Clock correction", Value: trace.Nanosecond.MicrosText(-ahead) + " µs",
	})
}

// describe collects the metadata.
func (f *File) describe(p *Properties) {
	add := func(rank int, thread trace.Thread, key, value string) {
		if value != "" {
			f.metadata = append(f.metadata, trace.Metadata{
				Program: f.opt.Program, Rank: f.Ranks[rank], Thread: thread, Key: key, Value: value,
			})
		}
	}
	for i, w := range f.workers {
		add(i, 0, "Worker", w.place)
		add(i, 0, "Process", w.process)
	}
	for i := range f.lanes.all {
		l := &f.lanes.all[i]
		if l.events == 0 {
			continue
		}
		if l.number == 0 {
			name := f.lanes.process[l.process]
			add(l.rank, 0, "Process name", name)
			if f.program == "" {
				f.program = name
			}
		}
		add(l.rank, l.number, "Thread name", l.name)
		add(l.rank, l.number, "Thread id", l.thread)
	}
	slices.SortStableFunc(f.metadata, func(a, b trace.Metadata) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Thread, b.Thread))
	})
	add(0, 0, "Hostname", p.Host)
	add(0, 0, "Backend", p.Backend)
	for _, fact := range p.Facts {
		add(0, 0, fact.Key, fact.Value)
	}
	for _, d := range p.Devices {
		if f.usesDevice(d.ID) {
			add(0, 0, fmt.Sprintf("GPU %d", d.ID), d.Name)
		}
	}
}

func (f *File) usesDevice(id int) bool {
	return slices.ContainsFunc(f.lanes.all, func(l lane) bool { return l.device && l.process == strconv.Itoa(id) })
}

// placeTimes makes all times positive, because time 0 has a special meaning. Times of files without
// a base begin anywhere.
func (f *File) placeTimes() {
	if first := int64(f.First()); f.events > 0 && first < int64(time.Second) {
		f.offset += int64(time.Second) - first
	}
}
