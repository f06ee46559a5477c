// Package kineto reads traces of PyTorch's profiler, Kineto, and other Chrome trace JSON. It
// sorts the events of a file by time, in bounded memory, and returns them as steps: threads of
// the host and streams of GPUs with nested calls in nanoseconds, kernels joined with their
// launches by correlation ids, counters, names and metadata.
//
// A document of Kineto contains one rank; a path usually has one document. Any other trace contains one rank for each process, or for
// each worker that the names of threads tell apart ("PP rank 1").
package kineto

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
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

// File is a trace whose events are sorted: the content of a path, or what one of the ranks wrote
// that share it.
type File struct {
	Path     string
	Kineto   bool  // it is from PyTorch's profiler
	Size     int64 // of the path; 0 except for the first File of a path
	Modified time.Time
	// Ranks are the ranks of the file. RankKnown is false if the file is that of one rank and
	// neither it nor its name say which.
	Ranks     []trace.Rank
	RankKnown bool
	World     int // number of ranks of the program; 0 if unknown

	opt      Options
	tally    tally.Tally
	err      error // that ended the file early
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

	properties properties
	gaps       []chrome.Gap
	begins     int64 // byte of its first event
	process    int64 // pid of its first event of a host, if hasProcess
	hasProcess bool

	byProfiler bool     // steps are those of the profiler
	stages     []string // of the pipeline, whose functions have names of their own; empty if there is one
}

// stepStart is the start of a profiler step on the host.
type stepStart struct {
	start  int64
	number int64
}

// properties of a file of Kineto.
type properties struct {
	distributed distributed
	devices     []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	host string
	base int64
}

type distributed struct {
	Backend string      `json:"backend"`
	Rank    *trace.Rank `json:"rank"`
	World   int         `json:"world_size"`
	Groups  []group     `json:"pg_config"`
}

func newFile(path string, opt Options) *File {
	return &File{
		Path: path, opt: opt, names: newNamer(), counters: newNamer(), lanes: newLanes(),
		collectives: collectives{numbers: make(map[string]uint32)},
		sorted:      sorter{dir: opt.Temp, limit: opt.MaxEvents}, begins: -1,
	}
}

// Close frees the sorted events.
func (f *File) Close() { f.sorted.close() }

// Tally returns what was repaired, skipped or lost.
func (f *File) Tally() *tally.Tally { return &f.tally }

// Gaps returns the first parts of the path that were skipped, repaired or guessed. Only the first
// File of a path has them.
func (f *File) Gaps() []chrome.Gap { return f.gaps }

// Format returns the name of the format.
func (f *File) Format() string {
	if f.Kineto {
		return "Kineto"
	}
	return "Chrome"
}

// maxTime limits times in nanoseconds, so that sums and differences do not overflow.
const maxTime = math.MaxInt64 / 4

func (f *File) add(e *chrome.Event, args *arguments) error {
	if f.begins < 0 {
		f.begins = e.Offset
	}
	if e.Phase == 'M' {
		f.addMetadata(e, args)
		return nil
	}
	c := categories[string(e.Category)]
	if c == ignored {
		f.tally.Add(tally.EventsIgnored, 1)
		return nil
	}
	r := record{start: e.Time}
	async := 0
	switch e.Phase {
	case 'X':
		r.kind, r.duration = complete, max(e.Duration, 0)
	case 'B':
		r.kind = begin
	case 'E':
		r.kind = end
	case 'b', 'S':
		r.kind, async = asyncBegin, 1
		r.correlation = asyncKey(e)
	case 'e', 'F':
		r.kind, async = asyncEnd, 1
		r.correlation = asyncKey(e)
	case 'C':
		return f.addCounters(e)
	default:
		f.tally.Add(tally.EventsIgnored, 1)
		return nil
	}
	if !e.HasTime || e.Time < -maxTime || e.Time > maxTime || r.duration > maxTime {
		f.tally.Add(tally.TimeImplausible, 1)
		return nil
	}
	lane, ok := f.lanes.find(&e.PID, &e.TID, async)
	if !ok {
		f.tally.Add(tally.ThreadImplausible, 1)
		return nil
	}
	r.lane = lane
	l := &f.lanes.all[lane]
	if l.events++; l.events == 1 || e.Time < l.first {
		l.first = e.Time
	}
	l.time += r.duration
	if c.onDevice() {
		l.device = true
	}
	f.Kineto = f.Kineto || c != other
	if r.kind != end && r.kind != asyncEnd {
		r.fn = f.names.function(e.Name, c, args)
	}
	if (c.onDevice() || c == runtime && launches(e.Name)) && args[argCorrelation] != nil {
		r.correlation = parseUint(args[argCorrelation])
	}
	if r.kind == complete {
		f.collectives.add(e.Name, c, r.fn, args, &r)
	}
	if c == annotation {
		if n, ok := stepNumber(e.Name); ok {
			f.steps = append(f.steps, stepStart{e.Time, n})
		}
	}
	f.events++
	return f.sorted.add(r)
}

// parseUint returns a number in decimal digits, or 0.
func parseUint(digits []byte) (n uint64) {
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

// launches reports whether a call of the runtime starts work on a device. Others have
// correlation ids, too, but nothing has the same.
func launches(name []byte) bool {
	return bytes.Contains(name, []byte("Launch")) || bytes.Contains(name, []byte("Memcpy")) || bytes.Contains(name, []byte("Memset"))
}

// asyncKey identifies the begin and the end of the same operation.
func asyncKey(e *chrome.Event) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(e.Category)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(e.ID)
	return h.Sum64() | 1
}

func (f *File) addCounters(e *chrome.Event) error {
	if !e.HasTime || e.Time < -maxTime || e.Time > maxTime {
		f.tally.Add(tally.TimeImplausible, 1)
		return nil
	}
	lane, ok := f.lanes.find(&e.PID, &e.TID, 0)
	if !ok {
		f.tally.Add(tally.ThreadImplausible, 1)
		return nil
	}
	for i := range e.Counters {
		c := &e.Counters[i]
		value, err := strconv.ParseFloat(string(c.Value), 64)
		if err != nil {
			f.tally.Add(tally.EventsIgnored, 1)
			continue
		}
		name := e.Name
		if len(e.Counters) > 1 {
			name = fmt.Appendf(nil, "%s: %s", e.Name, c.Name)
		}
		l := &f.lanes.all[lane]
		if l.events++; l.events == 1 || e.Time < l.first {
			l.first = e.Time
		}
		f.events++
		err = f.sorted.add(record{
			kind: counter, start: e.Time, duration: int64(math.Round(min(max(value, 0), maxTime))), lane: lane,
			fn: f.counters.function(name, other, nil),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *File) addMetadata(e *chrome.Event, args *arguments) {
	text := string(args[argName])
	switch string(e.Name) {
	case "process_name":
		f.lanes.process[string(e.PID.Text)] = text
	case "thread_name":
		if n, ok := f.lanes.find(&e.PID, &e.TID, 0); ok {
			f.lanes.all[n].name = text
		}
	}
}

// finish numbers threads, which are known only at the end of the file, and sorts.
func (f *File) finish() error {
	f.offset = f.properties.base
	f.bindStages()
	f.lanes.number()
	f.describe(&f.properties)
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

// decode reads the properties of a document of the file. Those that cannot be decoded count as
// absent.
func (f *File) decode(property func(name string) ([]byte, bool)) {
	p := &f.properties
	for name, to := range map[string]any{"distributedInfo": &p.distributed, "deviceProperties": &p.devices, "baseTimeNanoseconds": &p.base} {
		raw, ok := property(name)
		if !ok {
			continue
		}
		f.Kineto = true
		if json.Unmarshal(raw, to) != nil {
			f.tally.Add(tally.AttributeMalformed, 1)
		}
	}
	if p.base < 0 || p.base > maxTime {
		f.tally.Add(tally.TimeImplausible, 1)
		p.base = 0
	}
	if raw, ok := property("host_name"); ok && json.Unmarshal(raw, &p.host) != nil {
		f.tally.Add(tally.AttributeMalformed, 1)
	}
}

// handlerName is the name of a file of PyTorch's tensorboard_trace_handler: host, process and time.
var handlerName = regexp.MustCompile(`^(.+)_(\d+)\.\d+\.pt\.trace\.json`)

// hostOfName returns the host in the name of the file, or "". Other names may look alike, so the process must be one
// of the file.
func (f *File) hostOfName() string {
	m := handlerName.FindStringSubmatch(filepath.Base(f.Path))
	if m == nil || !slices.ContainsFunc(f.lanes.all, func(l lane) bool { return !l.device && l.process == m[2] }) {
		return ""
	}
	return m[1]
}

// bindRank makes all lanes those of one rank. It may be that in the name of the file.
func (f *File) bindRank(named bool) {
	d := &f.properties.distributed
	f.Ranks, f.World = []trace.Rank{0}, d.World
	if d.Rank != nil && *d.Rank >= 0 {
		f.Ranks[0], f.RankKnown = *d.Rank, true
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

// bindWorkers makes a rank of each worker.
func (f *File) bindWorkers() {
	f.workers, f.RankKnown = f.lanes.several(), true
	f.Ranks = make([]trace.Rank, max(1, len(f.workers)))
	f.World = len(f.Ranks)
	for i := range f.Ranks {
		f.Ranks[i] = trace.Rank(i)
	}
}

// bindStages finds the stages of a pipeline. Their work differs by design, so that it is
// compared only within a stage.
func (f *File) bindStages() {
	var stages []string
	for _, w := range f.workers {
		stages = append(stages, stage.FindString(w.place))
	}
	slices.Sort(stages)
	if stages = slices.Compact(stages); len(stages) < 2 {
		if f.Kineto {
			f.bindStageOfGroups()
		}
		return
	}
	f.stages = stages
	for i := range f.lanes.all {
		l := &f.lanes.all[i]
		l.stage = slices.Index(stages, stage.FindString(f.workers[l.rank].place))
	}
}

// bindStageOfGroups makes all functions those of the stage of the rank.
func (f *File) bindStageOfGroups() {
	if s := f.stageOfGroups(); s != "" {
		f.stages = []string{s}
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

// CorrectClock subtracts a time, by which the clock of the rank is ahead of others, from all times.
func (f *File) CorrectClock(ahead trace.Ticks) {
	f.offset -= int64(ahead)
	f.tally.Add(tally.ClockCorrected, 1)
	f.metadata = append(f.metadata, trace.Metadata{
		Program: f.opt.Program, Rank: f.Ranks[0], Key: "Clock correction", Value: trace.Nanosecond.MicrosText(-ahead) + " µs",
	})
}

// describe collects the metadata.
func (f *File) describe(p *properties) {
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
	if f.Kineto {
		add(0, 0, "Hostname", cmp.Or(p.host, f.hostOfName()))
	}
	add(0, 0, "Backend", p.distributed.Backend)
	for _, d := range p.devices {
		if f.usesDevice(d.ID) {
			add(0, 0, fmt.Sprintf("GPU %d", d.ID), d.Name)
		}
	}
}

func (f *File) usesDevice(id int) bool {
	return slices.ContainsFunc(f.lanes.all, func(l lane) bool { return l.device && l.process == strconv.Itoa(id) })
}

// placeTimes makes all times positive, because time 0 has a meaning of its own. Times of files
// without a base begin anywhere.
func (f *File) placeTimes() {
	first := int64(math.MaxInt64)
	for i := range f.lanes.all {
		if f.lanes.all[i].events > 0 {
			first = min(first, f.lanes.all[i].first)
		}
	}
	if first != math.MaxInt64 && first+f.offset < int64(time.Second) {
		f.offset = int64(time.Second) - first
	}
}
