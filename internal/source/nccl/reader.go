package nccl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// Limits of a log. A step has the operations that were written within stepTime, so that a step is the same whenever
// it is read.
const (
	stepTime     = 1_000_000 // microseconds
	stepRecords  = 1 << 16
	maxComms     = 1 << 12
	maxFunctions = 1 << 12 // with sizes; further ones are named without
)

// Between is the name of the calls that fill the time between operations: a rank computes then, or waits for its host.
const Between = "between collectives"

// Options configure reading a log.
type Options struct {
	Program trace.Program
	Follow  bool // Next returns bp.ErrIdle until End is called
	Tally   *tally.Tally
	// OnCollective, if not nil, is called with each collective operation, which is valid until it returns.
	OnCollective func(*Collective)
}

// Collective is a collective operation on a rank.
type Collective struct {
	Name     string
	Group    string // the communicator; the same on all its ranks
	Size     int    // ranks of it
	Bytes    int64  // the larger of input and output of a rank
	Seq      int64  // the same on all ranks of an execution, and only for that
	Start    trace.Ticks
	Timed    bool // Start is known
	Duration trace.Ticks
}

// Reader returns the steps of a rank.
type Reader struct {
	file  *File
	local int // index in file.Ranks
	opt   Options
	text  text
	*parser
	names trace.Names

	comms     []comm
	byComm    map[string]int32
	seen      map[string]int // ranks of communicators, in order of appearance; only for several GPUs
	functions map[functionKey]uint32
	byName    map[string]uint32
	key       []byte // scratch

	records    []record // of the step
	pending    record   // first record of the next step
	waiting    bool     // pending is set
	layout     layout
	step       trace.Step
	collective Collective
	index      int
	ended      bool // the file no longer grows
	done       bool
}

// comm is a communicator of a rank.
type comm struct {
	id    string
	name  string
	size  int64
	local int          // index in File.Ranks, or -1
	next  [codes]int64 // number after the last of each operation; 0 before the first
	run   []int32      // records without known times that overlap by their dumps
	end   int64        // of the last record without a known time
}

type functionKey struct {
	comm  int32
	code  int32
	bytes int64
}

// record is an operation.
type record struct {
	comm, code      int32
	function        uint32
	timed           bool
	dumped          int64
	start, duration int64
}

// Steps returns a reader of one of the ranks of the file.
func (f *File) Steps(local int, opt Options) *Reader {
	r := &Reader{
		file: f, local: local, opt: opt, parser: newParser(), names: trace.EmptyNames(), byComm: make(map[string]int32),
		seen: make(map[string]int), functions: make(map[functionKey]uint32), byName: make(map[string]uint32),
	}
	r.text = text{path: f.Path, tally: opt.Tally}
	r.layout.tally, r.layout.between = opt.Tally, r.define(Between)
	return r
}

// Names returns the names of functions so far.
func (r *Reader) Names() *trace.Names { return &r.names }

// Gaps returns the first parts that could not be read.
func (r *Reader) Gaps() []chrome.Gap { return r.text.gaps }

// Release closes the file and frees memory.
func (r *Reader) Release() {
	r.text.release()
	r.layout.release()
}

// End declares that the file no longer grows: Next returns the remaining steps, and then io.EOF.
func (r *Reader) End() { r.ended = true }

// Next returns the next step, valid until the next call, or io.EOF. If lines are damaged, their error comes after the
// last step.
func (r *Reader) Next(ctx context.Context) (*trace.Step, error) {
	for n := 0; !r.done; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rec, err := r.read()
		switch {
		case errors.Is(err, io.EOF) && r.opt.Follow && !r.ended:
			return nil, bp.ErrIdle
		case err != nil:
			if !errors.Is(err, io.EOF) && r.text.err == nil {
				r.text.err = fmt.Errorf("%s: byte %d: %w", r.file.Path, r.text.offset, err)
			}
			r.done = true
			if len(r.records) > 0 {
				return r.emit(), nil
			}
		case len(r.records) > 0 && (rec.dumped/stepTime != r.records[0].dumped/stepTime || len(r.records) == stepRecords):
			r.pending, r.waiting = rec, true
			return r.emit(), nil
		default:
			r.records = append(r.records, rec)
		}
	}
	if err := r.text.failure(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// read returns the next record of the rank.
func (r *Reader) read() (record, error) {
	if r.waiting {
		r.waiting = false
		return r.pending, nil
	}
	for {
		line, err := r.text.next()
		cut := false
		if errors.Is(err, io.EOF) && (!r.opt.Follow || r.ended) {
			line = r.text.rest()
			cut = true
		} else if err != nil {
			return record{}, err
		}
		if rec, ok := r.record(line, cut); ok {
			return rec, nil
		}
		if cut {
			return record{}, io.EOF
		}
	}
}

// record returns the record of a line, or false.
func (r *Reader) record(line []byte, cut bool) (record, bool) {
	if blank(line) {
		return record{}, false
	}
	switch r.parse(line) {
	case operation:
		return r.accept()
	case unknown:
		r.opt.Tally.Add(tally.RecordsSkipped, 1)
	case damaged:
		why := "no record of NCCL Inspector"
		if cut {
			why = "the last line is cut"
		}
		r.text.damage(r.text.number, r.text.at, int64(len(line)), why)
	}
	return record{}, false
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// accept returns the record of the line that was parsed, unless it is of another rank.
func (r *Reader) accept() (record, bool) {
	l := &r.line
	at, ok := r.comm()
	if !ok || r.comms[at].local != r.local {
		return record{}, false
	}
	c := &r.comms[at]
	code := codeOf(string(l.operation))
	rec := record{comm: at, code: int32(code), dumped: l.dumped, duration: l.duration}
	rec.start, rec.timed = l.start()
	key := functionKey{at, rec.code, l.bytes}
	if l.message {
		key.code += codes
	}
	if rec.function, ok = r.functions[key]; !ok {
		rec.function = r.function(c)
		if len(r.functions) < 4*maxFunctions {
			r.functions[key] = rec.function
		}
	}
	if l.message {
		return rec, true
	}
	if expected := c.next[code]; expected > 0 && l.number > expected {
		r.opt.Tally.Add(tally.CollectiveUnrecorded, l.number-expected)
	}
	c.next[code] = l.number + 1
	if r.opt.OnCollective != nil {
		k := &r.collective
		*k = Collective{
			Name: operationName(code, l.operation), Group: c.id, Size: int(c.size), Bytes: largest(l, code), Seq: l.number*codes + code,
			Start: trace.Ticks(rec.start), Timed: rec.timed, Duration: trace.Ticks(rec.duration),
		}
		r.opt.OnCollective(k)
	}
	return rec, true
}

// operationName returns the name of an operation, without a new text for those of NCCL.
func operationName(code int64, name []byte) string {
	if code < int64(len(operations)) {
		return operations[code]
	}
	return string(name)
}

// largest returns the bytes of the larger of input and output. Logs have the bytes of the smaller.
func largest(l *line, code int64) int64 {
	if code < int64(len(operations)) {
		switch operations[code] {
		case "AllGather", "AllGatherV", "ReduceScatter", "All2All":
			return l.bytes * l.size
		}
	}
	return l.bytes
}

// comm returns the communicator of the line that was parsed, or false if there are too many.
func (r *Reader) comm() (int32, bool) {
	l := &r.line
	r.key = strconv.AppendInt(append(append(r.key[:0], l.id...), ' '), l.rank, 10)
	if at, ok := r.byComm[string(r.key)]; ok {
		return at, true
	}
	if len(r.comms) == maxComms {
		r.opt.Tally.Add(tally.AsyncDropped, 1)
		return 0, false
	}
	c := comm{id: string(l.id), size: l.size}
	if name := string(l.comm); name != "unknown" {
		c.name = name
	}
	if n := len(r.file.Ranks); n > 1 {
		if of := r.file.comms[c.id]; of != nil && len(of.ranks) == n {
			c.local = slices.Index(of.ranks, l.rank)
		} else {
			c.local = r.seen[c.id] % n
			r.seen[c.id]++
		}
	}
	at := int32(len(r.comms))
	r.comms = append(r.comms, c)
	r.byComm[string(r.key)] = at
	return at, true
}

// function returns the number of the function of the line that was parsed. Operations that do equal work have the same
// one: its name has the bytes and the ranks of the communicator.
func (r *Reader) function(c *comm) uint32 {
	l := &r.line
	name := "ncclKernel_" + string(l.operation)
	detail := ""
	if l.message {
		name, detail = "ncclKernel_SendRecv", string(l.operation)+", "
	}
	ranks := strconv.FormatInt(c.size, 10) + " ranks"
	if c.name != "" {
		ranks = c.name + " of " + ranks
	}
	full := fmt.Sprintf("%s [%s%d bytes, %s]", name, detail, l.bytes, ranks)
	if n, ok := r.byName[full]; ok {
		return n
	}
	if len(r.byName) >= maxFunctions {
		full = fmt.Sprintf("%s [%s%s]", name, detail, ranks)
	}
	return r.define(full)
}

// define returns the number of the function of a name.
func (r *Reader) define(name string) uint32 {
	if n, ok := r.byName[name]; ok {
		return n
	}
	n := uint32(len(r.byName))
	r.byName[name] = n
	r.names.DefineFunc(trace.AnyRank, trace.FuncID(n), name)
	return n
}

// emit returns the step of the records.
func (r *Reader) emit() *trace.Step {
	rank := r.file.Ranks[r.local]
	r.layout.begin()
	r.place()
	for i := range r.records {
		r.layout.add(&r.records[i])
	}
	r.records = r.records[:0]
	r.step = trace.Step{Index: r.index, Batches: r.step.Batches[:0], Metadata: r.step.Metadata[:0], Funcs: int(r.layout.row)}
	if r.index == 0 && r.file.Host != "" {
		r.step.Metadata = append(r.step.Metadata, trace.Metadata{Program: r.opt.Program, Rank: rank, Key: "Hostname", Value: r.file.Host})
	}
	for t := range r.layout.lanes {
		if events := r.layout.lanes[t].events; len(events) > 0 {
			r.step.Batches = append(r.step.Batches, trace.Batch{Program: r.opt.Program, Rank: rank, Thread: trace.Thread(t), Events: events})
		}
	}
	r.index++
	return &r.step
}
