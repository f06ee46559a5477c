package simulate

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// Format is the form of traces.
type Format string

// The formats.
const (
	BP4              Format = "bp4"               // as TAU writes it
	Inspector        Format = "inspector"         // only the collective calls, as NCCL Inspector logs them by default
	InspectorVerbose Format = "inspector-verbose" // the same with their times
)

// check returns an error for an unknown format.
func (f Format) check() error {
	switch f {
	case "", BP4, Inspector, InspectorVerbose:
		return nil
	}
	return fmt.Errorf("unknown format %q (want %s, %s or %s)", string(f), BP4, Inspector, InspectorVerbose)
}

// isLog reports whether only collective calls are written.
func (f Format) isLog() bool { return f == Inspector || f == InspectorVerbose }

// dumpInterval is the time between the dumps of NCCL Inspector in microseconds, as in its documentation.
const dumpInterval = 500

// inspectorLog writes the collective calls of a rank as NCCL Inspector does.
type inspectorLog struct {
	file    *os.File
	out     *bufio.Writer
	verbose bool
	pid     int
	calls   map[trace.FuncID]*collectiveCall
	open    []trace.Event // entries of calls
	size    int64
}

// collectiveCall is a function that waits for a group of ranks.
type collectiveCall struct {
	name    string // of NCCL
	bytes   int64
	group   int
	counter *int64 // of operations of that name and group
}

// ncclNames are operations by parts of names of functions.
var ncclNames = [][2]string{
	{"allreduce", "AllReduce"},
	{"allgather", "AllGather"},
	{"reducescatter", "ReduceScatter"},
	{"alltoall", "All2All"},
	{"bcast", "Broadcast"},
	{"broadcast", "Broadcast"},
}

// ncclName returns the operation of NCCL for a function. The default is AllReduce.
func ncclName(function string) string {
	function = strings.ToLower(strings.ReplaceAll(function, "_", ""))
	for _, n := range ncclNames {
		if strings.Contains(function, n[0]) {
			return n[1]
		}
	}
	return "AllReduce"
}

// defaultBytes is the size of an operation whose function has no fixed message.
const defaultBytes = 1 << 20

// newInspectorLog creates the log of a rank.
func newInspectorLog(dir string, s *Stream, format Format) (*inspectorLog, error) {
	l := &inspectorLog{verbose: format == InspectorVerbose, pid: 4000 + s.rank, calls: make(map[trace.FuncID]*collectiveCall)}
	counters := make(map[string]*int64)
	for key, f := range s.e.p.Functions {
		id, ok := s.e.p.ids[key]
		if f.Kind != scenario.Collective || !ok {
			continue
		}
		c := &collectiveCall{name: ncclName(s.e.p.funcs[id]), bytes: defaultBytes, group: f.Group}
		if c.group == 0 {
			c.group = s.e.p.Ranks
		}
		if f.Message != nil && f.Message.Fixed != nil {
			c.bytes = int64(*f.Message.Fixed)
		}
		of := fmt.Sprint(c.name, c.group)
		if counters[of] == nil {
			counters[of] = new(int64)
		}
		c.counter = counters[of]
		l.calls[id] = c
	}
	var err error
	l.file, err = os.Create(filepath.Join(dir, fmt.Sprintf("%s-pid%d.log", s.Host(), l.pid)))
	if err == nil {
		l.out = bufio.NewWriter(l.file)
	}
	return l, err
}

// write writes the collective calls of a step.
func (l *inspectorLog) write(s *Stream, step *trace.Step) error {
	for i := range step.Batches {
		if step.Batches[i].Thread != 0 {
			continue
		}
		for _, e := range step.Batches[i].Events {
			switch c := l.calls[e.Func()]; {
			case c == nil || e.Kind > trace.Exit:
			case e.Kind == trace.Enter:
				l.open = append(l.open, e)
			case len(l.open) > 0:
				start := l.open[len(l.open)-1].Time
				l.open = l.open[:len(l.open)-1]
				l.record(s, c, int64(start), int64(e.Time))
			}
		}
	}
	return l.out.Flush()
}

// record writes an operation.
func (l *inspectorLog) record(s *Stream, c *collectiveCall, start, end int64) {
	first := s.rank / c.group * c.group // of the group
	size := min(c.group, s.e.p.Ranks-first)
	id := fnv.New64a()
	fmt.Fprint(id, s.e.scenario.Seed, s.ProgramName(), c.group, first)
	n := *c.counter
	*c.counter++
	traffic, factor := float64(c.bytes), 1.0
	switch c.name {
	case "AllReduce":
		factor = 2 * float64(size-1) / float64(size)
	case "AllGather", "ReduceScatter", "All2All":
		traffic, factor = traffic*float64(size), float64(size-1)/float64(size)
	}
	bandwidth := traffic / 1e3 / float64(max(end-start, 1))
	dumped := end - end%dumpInterval + dumpInterval
	written, _ := fmt.Fprintf(l.out, `{"header":{"id":"0x%x","comm_name":"unknown","rank":%d,"n_ranks":%d,"nnodes":%d},`+
		`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface",`+
		`"dump_timestamp_us":%d,"hostname":%q,"pid":%d},"coll_perf":{"coll":%q,"coll_sn":%d,"coll_msg_size_bytes":%d,`+
		`"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%f,"coll_busbw_gbs":%f`,
		id.Sum64()>>8, s.rank-first, size, len(s.e.p.Hosts), dumped, s.Host(), l.pid, c.name, n, c.bytes, end-start, bandwidth, bandwidth*factor)
	l.size += int64(written)
	if l.verbose {
		written, _ = fmt.Fprintf(l.out, `,"event_trace_sn":{"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,`+
			`"kernel_start_sn":3,"kernel_stop_sn":6,"kernel_record_sn":5},{"channel_id":1,"kernel_start_sn":4,"kernel_stop_sn":8,`+
			`"kernel_record_sn":7}]},"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,`+
			`"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%[4]d},{"channel_id":1,"kernel_start_ts":%[5]d,`+
			`"kernel_stop_ts":%d,"kernel_record_ts":%[6]d}]}`, start-20, start-15, start, end, start+1, end)
		l.size += int64(written)
	}
	written, _ = l.out.WriteString("}}\n") // Flush returns errors
	l.size += int64(written)
}
