// Package kineto reads traces of PyTorch's profiler, Kineto, and other Chrome trace JSON.
//
// A document of Kineto contains one rank; a path usually has one document. Any other trace contains one rank for each process, or
// for each worker that the names of threads identify ("PP rank 1").
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
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// file is a trace that is being read.
type file struct {
	*profile.File
	kineto     bool // it is from PyTorch's profiler
	tally      *tally.Tally
	host       string
	begins     int64 // byte of its first event
	process    int64 // pid of its first event of a host, if hasProcess
	hasProcess bool
	event      profile.Event // scratch
}

func newFile(path string, opt profile.Options) *file {
	f := profile.New(path, opt)
	return &file{File: f, tally: f.Tally(), begins: -1}
}

// Arguments of events besides those of profile.Event.
const (
	argCorrelation = iota
	argName        // of metadata
	firstArg       // of profile.Event
)

// argNames are the names of arguments: first those above, then those of profile.Event.
var argNames = append([]string{"correlation", "name"}, profileArgs[:]...)

var profileArgs = [...]string{
	profile.Grid: "grid", profile.Block: "block", profile.Dims: "Input Dims", profile.Bytes: "bytes", profile.Collective: "Collective name",
	profile.Elements: "In msg nelems", profile.DType: "dtype", profile.Group: "Process Group Name", profile.GroupSize: "Group size",
	profile.OutElements: "Out msg nelems", profile.Seq: "Seq", profile.InputType: "Input type",
}

// categories are those of Kineto; any other is an ordinary call.
var categories = map[string]profile.Category{
	"cpu_op": profile.Operator, "user_annotation": profile.Annotation,
	"cuda_runtime": profile.Runtime, "cuda_driver": profile.Runtime, "privateuse1_runtime": profile.Runtime, "xpu_runtime": profile.Runtime,
	"kernel": profile.Kernel, "gpu_memcpy": profile.Transfer, "gpu_memset": profile.Transfer,
}

// isIgnored reports whether events of a category repeat others, or cover the whole trace.
func isIgnored(category []byte) bool {
	return string(category) == "gpu_user_annotation" || string(category) == "Trace"
}

// add adds an event. Damaged content is not an error.
func (f *file) add(e *chrome.Event) error {
	if f.begins < 0 {
		f.begins = e.Offset
	}
	p := &f.event
	*p = profile.Event{
		Name: e.Name, Start: e.Time, Process: profile.ID(e.PID), Thread: profile.ID(e.TID), Category: categories[string(e.Category)],
	}
	var name []byte
	for i := range e.Args {
		switch a := &e.Args[i]; a.Key {
		case argCorrelation:
			p.Correlation = profile.ParseUint(a.Value)
		case argName:
			name = a.Value
		default:
			p.Args[a.Key-firstArg] = a.Value
		}
	}
	if e.Phase == 'M' {
		f.addMetadata(e, string(name))
		return nil
	}
	ignored := isIgnored(e.Category)
	switch {
	case ignored:
	case e.Phase == 'X':
		p.Kind, p.Duration = profile.Complete, e.Duration
	case e.Phase == 'B':
		p.Kind = profile.Begin
	case e.Phase == 'E':
		p.Kind = profile.End
	case e.Phase == 'b' || e.Phase == 'S':
		p.Kind, p.Key = profile.AsyncBegin, asyncKey(e)
	case e.Phase == 'e' || e.Phase == 'F':
		p.Kind, p.Key = profile.AsyncEnd, asyncKey(e)
	case e.Phase == 'C':
		p.Kind = profile.Counter
	default:
		ignored = true
	}
	switch {
	case ignored:
		f.tally.Add(tally.EventsIgnored, 1)
		return nil
	case !e.HasTime:
		f.tally.Add(tally.TimeImplausible, 1)
		return nil
	case p.Kind == profile.Counter:
		return f.addCounters(e)
	}
	f.kineto = f.kineto || p.Category != profile.Other
	return f.Add(p)
}

// asyncKey identifies the begin and the end of the same operation.
func asyncKey(e *chrome.Event) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(e.Category)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(e.ID)
	return h.Sum64() | 1
}

// addCounters adds the readings of an event.
func (f *file) addCounters(e *chrome.Event) error {
	for i := range e.Counters {
		c := &e.Counters[i]
		value, err := strconv.ParseFloat(string(c.Value), 64)
		if err != nil {
			f.tally.Add(tally.EventsIgnored, 1)
			continue
		}
		if len(e.Counters) > 1 {
			f.event.Name = fmt.Appendf(nil, "%s: %s", e.Name, c.Name)
		}
		f.event.Duration = int64(math.Round(min(max(value, 0), profile.MaxTime)))
		if err := f.Add(&f.event); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) addMetadata(e *chrome.Event, name string) {
	switch string(e.Name) {
	case "process_name":
		f.NameProcess(e.PID.Text, name)
	case "thread_name":
		f.NameThread(profile.ID(e.PID), profile.ID(e.TID), name)
	}
}

// distributed is the property distributedInfo.
type distributed struct {
	Backend string      `json:"backend"`
	Rank    *trace.Rank `json:"rank"`
	World   int         `json:"world_size"`
	Groups  []struct {
		Name        string `json:"pg_name"`
		Description string `json:"pg_desc"`
		Size        int    `json:"pg_size"`
		Ranks       ranks  `json:"ranks"`
	} `json:"pg_config"`
}

// ranks is a list of ranks, or such a list as text.
type ranks []trace.Rank

var digits = regexp.MustCompile(`[0-9]+`)

// UnmarshalJSON never fails: it decodes an unusual list as empty.
func (r *ranks) UnmarshalJSON(text []byte) error {
	*r = nil
	if bytes.Contains(text, []byte("...")) {
		return nil
	}
	for _, d := range digits.FindAll(text, -1) {
		n, err := strconv.ParseInt(string(d), 10, 31)
		if err != nil {
			*r = nil
			return nil //nolint:nilerr // as documented
		}
		*r = append(*r, trace.Rank(n))
	}
	return nil
}

// decode reads the properties of a document of the file. Those that cannot be decoded count as
// absent.
func (f *file) decode(property func(name string) ([]byte, bool)) {
	p := &f.Properties
	read := func(name string, to any) bool {
		raw, ok := property(name)
		if ok && json.Unmarshal(raw, to) != nil {
			f.tally.Add(tally.AttributeMalformed, 1)
		}
		return ok
	}
	var info distributed
	if read("distributedInfo", &info) {
		f.kineto = true
		p.Rank, p.World, p.Backend, p.Groups = info.Rank, info.World, info.Backend, nil
		for _, g := range info.Groups {
			p.Groups = append(p.Groups, profile.ProcessGroup{Name: g.Name, Description: g.Description, Size: g.Size, Ranks: g.Ranks})
		}
	}
	var devices []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	if read("deviceProperties", &devices) {
		f.kineto = true
		p.Devices = nil
		for _, d := range devices {
			p.Devices = append(p.Devices, profile.Device(d))
		}
	}
	f.kineto = read("baseTimeNanoseconds", &p.Base) || f.kineto
	if p.Base < 0 || p.Base > profile.MaxTime {
		f.tally.Add(tally.TimeImplausible, 1)
		p.Base = 0
	}
	read("host_name", &f.host)
}

// handlerName is the name of a file of PyTorch's tensorboard_trace_handler: host, process and time.
var handlerName = regexp.MustCompile(`^(.+)_(\d+)\.\d+\.pt\.trace\.json`)

// hostOfName returns the host in the name of the file, or "". Other names may look alike, so the process must be one
// of the file.
func (f *file) hostOfName() string {
	m := handlerName.FindStringSubmatch(filepath.Base(f.Path))
	if m == nil || !f.HasProcess(m[2]) {
		return ""
	}
	return m[1]
}

// finish ends adding.
func (f *file) finish() error {
	f.Format = "Chrome"
	if f.kineto {
		f.Format, f.Properties.Host = "Kineto", cmp.Or(f.host, f.hostOfName())
	}
	return f.Finish()
}
