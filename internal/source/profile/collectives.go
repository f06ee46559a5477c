package profile

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Operation is a collective operation of the rank of a file: a kernel of NCCL, or a call of gloo.
type Operation struct {
	Name     string // such as allreduce
	Group    string // name of the process group; the same on all its ranks
	Size     int    // ranks of the group
	Elements int64  // the larger of input and output
	DType    string
	Seq      int64       // number of the operation in its group, or -1
	Host     bool        // it runs on one of possibly several threads of the host
	Launch   trace.Ticks // when the host began to launch it; 0 if unknown
	Start    trace.Ticks
	End      trace.Ticks
}

// collective is an Operation in times of the file.
type collective struct {
	of          uint32 // index in kinds
	seq         int64
	correlation uint64
	launch      int64
	start, end  int64
}

// collectives collects the operations of a file.
type collectives struct {
	kinds   []Operation // without numbers and times
	numbers map[string]uint32
	all     []collective
	omitted int64
}

// Limits of the operations of a file, 6 MB. Only operations with data-dependent sizes have many kinds.
const (
	maxCollectives     = 1 << 17
	maxCollectiveKinds = 1 << 13
)

var glooName = []byte("gloo:")

// add adds the operation of a call, if it is one.
func (l *collectives) add(name []byte, c Category, fn uint32, a *Arguments, r *record) {
	host := c == Annotation && bytes.HasPrefix(name, glooName)
	if !host && (c != Kernel || a[Collective] == nil) {
		return
	}
	if len(l.all) == maxCollectives {
		l.omitted++
		return
	}
	key := strconv.AppendUint(nil, uint64(fn), 10)
	key = append(append(key, ' '), a[OutElements]...) // the rest is in the name of the function
	of, ok := l.numbers[string(key)]
	if !ok {
		if len(l.kinds) == maxCollectiveKinds {
			l.omitted++
			return
		}
		of = uint32(len(l.kinds))
		l.numbers[string(key)] = of
		l.kinds = append(l.kinds, kindOf(name, host, a))
	}
	seq := int64(-1)
	if len(a[Seq]) > 0 {
		if n, err := strconv.ParseInt(string(a[Seq]), 10, 64); err == nil && n >= 0 {
			seq = n
		}
	}
	l.all = append(l.all, collective{of: of, seq: seq, correlation: r.correlation, start: r.start, end: r.start + r.duration})
}

// kindOf describes an operation.
func kindOf(name []byte, host bool, a *Arguments) Operation {
	k := Operation{Name: string(a[Collective]), Group: string(a[Group]), DType: string(a[DType]), Host: host}
	k.Elements = int64(max(ParseUint(a[Elements]), ParseUint(a[OutElements])))
	k.Size = int(min(ParseUint(a[GroupSize]), 1<<24))
	if host && k.Name == "" {
		k.Name = string(name[len(glooName):])
		k.Elements, k.DType = firstInput(a)
	}
	k.Elements = min(k.Elements, 1<<48)
	return k
}

var (
	firstList = regexp.MustCompile(`^\s*\[\s*\[([0-9, ]*)\]`)
	firstText = regexp.MustCompile(`^\s*\[\s*"([^"]*)"`)
)

// firstInput returns the number of elements of the first input of a call, and their type.
func firstInput(a *Arguments) (elements int64, dtype string) {
	if m := firstList.FindSubmatch(a[Dims]); m != nil {
		elements = 1
		for n := range bytes.SplitSeq(m[1], []byte{','}) {
			elements = min(elements*int64(min(ParseUint(bytes.TrimSpace(n)), 1<<30)), 1<<48)
		}
	}
	if m := firstText.FindSubmatch(a[InputType]); m != nil {
		dtype = string(m[1])
	}
	return elements, dtype
}

// findLaunches sets the launches of operations without numbers.
func (f *File) findLaunches() error {
	waiting := make(map[uint64]int)
	for i, c := range f.collectives.all {
		if c.seq < 0 && c.correlation != 0 {
			waiting[c.correlation] = i
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	it, err := f.sorted.iterate()
	if err != nil {
		return err
	}
	var r record
	for len(waiting) > 0 {
		if ok, err := it.next(&r); err != nil || !ok {
			return err
		}
		if i, ok := waiting[r.correlation]; ok && r.correlation != 0 && !f.lanes.all[r.lane].device {
			f.collectives.all[i].launch = r.start
			delete(waiting, r.correlation)
		}
	}
	return nil
}

// bindGroup sets the group of operations without one, if the file has only one group.
func (f *File) bindGroup() {
	groups := f.Properties.Groups
	if len(groups) != 1 {
		return
	}
	for i := range f.collectives.kinds {
		if k := &f.collectives.kinds[i]; k.Group == "" {
			k.Group, k.Size = groups[0].Name, groups[0].Size
		}
	}
}

// Collectives returns the collective operations of a file of one rank, in the order of the file, and the number of
// others that it did not keep.
func (f *File) Collectives() (list []Operation, omitted int64) {
	list = make([]Operation, 0, len(f.collectives.all))
	for _, c := range f.collectives.all {
		k := f.collectives.kinds[c.of]
		k.Seq, k.Start, k.End = c.seq, trace.Ticks(c.start+f.offset), trace.Ticks(c.end+f.offset)
		if c.launch != 0 {
			k.Launch = trace.Ticks(c.launch + f.offset)
		}
		list = append(list, k)
	}
	return list, f.collectives.omitted
}

// ProfilerSteps yields the numbers and starts of the steps of the profiler, in order of time.
func (f *File) ProfilerSteps(yield func(number int64, start trace.Ticks) bool) {
	for _, s := range f.steps {
		if !yield(s.number, trace.Ticks(s.start+f.offset)) {
			return
		}
	}
}

// ProcessGroup is a process group of a training job.
type ProcessGroup struct {
	Name, Description string
	Size              int
	Ranks             []trace.Rank // nil if unknown
}

// pipeline matches the descriptions of process groups whose ranks are the stages of a pipeline.
var pipeline = regexp.MustCompile(`(?i)(^|[^a-z])(pp|pipeline|pipeline_model_parallel|pipe)([^a-z]|$)`)

// stageOfGroups returns the stage of the pipeline to which the rank of a file belongs by its process
// groups, or "".
func (f *File) stageOfGroups() string {
	for _, g := range f.Properties.Groups {
		if i := slices.Index(g.Ranks, f.Ranks[0]); i >= 0 && len(g.Ranks) > 1 && pipeline.MatchString(g.Description) {
			return "PP rank " + strconv.Itoa(i)
		}
	}
	return ""
}
