package inspect

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

// Info summarizes traces.
type Info struct {
	Files  []*FileInfo `json:"files"`
	Totals Totals      `json:"totals"`
}

// FileInfo summarizes one dataset or stream.
type FileInfo struct {
	Path    string      `json:"path"`
	Engine  string      `json:"engine"`
	Version string      `json:"adios2_version,omitempty"`
	Active  bool        `json:"active"`
	Rank    *trace.Rank `json:"rank"` // null for several ranks, and for none
	counts
	Program string       `json:"program,omitempty"`
	Hosts   []string     `json:"hosts"`
	Ranks   []rankCounts `json:"ranks,omitempty"` // of a file with several ranks
	Notes   []tally.Note `json:"notes,omitempty"`
	Gaps    []gap        `json:"gaps,omitempty"` // the first ones
	Error   string       `json:"error,omitempty"`

	modified  time.Time
	functions map[string]bool
	tally     tally.Tally
}

// Totals are sums over all files.
type Totals struct {
	Files  int `json:"files"`
	Active int `json:"active"`
	Broken int `json:"broken"`
	counts
	DistinctFunctions int          `json:"distinct_functions"`
	Hosts             []string     `json:"hosts"`
	Notes             []tally.Note `json:"notes,omitempty"`
}

type counts struct {
	Steps int `json:"steps"`
	eventCounts
	Threads    int    `json:"threads"`
	GPUThreads int    `json:"gpu_threads"`
	Functions  int    `json:"functions"`
	Counters   int    `json:"counters"`
	First      micros `json:"first_us"` // 0 without events
	Last       micros `json:"last_us"`
	Bytes      int64  `json:"bytes"`
}

// micros is a time in nanoseconds that is written in microseconds, with decimals if necessary.
type micros trace.Ticks

// MarshalJSON returns a number.
func (m micros) MarshalJSON() ([]byte, error) {
	return []byte(trace.Nanosecond.MicrosText(trace.Ticks(m))), nil
}

type eventCounts struct {
	FuncEvents    int64 `json:"func_events"`
	CommEvents    int64 `json:"comm_events"`
	CounterEvents int64 `json:"counter_events"`
}

// gap is a part of a profile or a log that was skipped, repaired or guessed.
type gap struct {
	Name   string `json:"name"` // of its Note
	Offset int64  `json:"offset"`
	Length int64  `json:"length,omitempty"` // 0 for the beginning of a document
}

type rankCounts struct {
	Rank trace.Rank `json:"rank"`
	eventCounts
}

func (c *counts) add(o *counts) {
	c.Steps += o.Steps
	c.FuncEvents += o.FuncEvents
	c.CommEvents += o.CommEvents
	c.CounterEvents += o.CounterEvents
	c.Threads += o.Threads
	c.GPUThreads += o.GPUThreads
	c.Functions += o.Functions
	c.Counters += o.Counters
	c.Bytes += o.Bytes
	if o.First != 0 {
		c.extend(o.First, o.Last)
	}
}

// extend makes the time range include first to last.
func (c *counts) extend(first, last micros) {
	if c.First == 0 || first < c.First {
		c.First = first
	}
	c.Last = max(c.Last, last)
}

// Summarize reads datasets and streams to their end and calls done after each. It reads as many
// datasets at once as there are processors, but all streams at once: the ranks of a program wait
// for each other. It fails only if ctx ends; FileInfo has the error of a file.
func Summarize(ctx context.Context, paths []string, connect time.Duration, done func()) (*Info, error) {
	info := &Info{Files: make([]*FileInfo, len(paths))}
	var workers errgroup.Group
	if !slices.ContainsFunc(paths, sst.IsContact) {
		workers.SetLimit(runtime.GOMAXPROCS(0))
	}
	for i, path := range paths {
		workers.Go(func() error {
			info.Files[i] = summarize(ctx, path, connect)
			done()
			return ctx.Err()
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	info.Totals = total(info.Files)
	return info, nil
}

func summarize(ctx context.Context, path string, connect time.Duration) *FileInfo {
	f := &FileInfo{Path: path, Hosts: []string{}, functions: make(map[string]bool)}
	f.Bytes = bp.Size(path)
	opt := bp.Default()
	opt.Tally = &f.tally
	r, err := open(path, opt, connect) //nolint:contextcheck // a stream lives until it is closed
	if err != nil {
		f.Error = err.Error()
		return f
	}
	defer r.Close() //nolint:errcheck // only read from
	c := collector{FileInfo: f, unit: r.Unit(), threads: make(map[threadKey]bool), ranks: make(map[trace.Rank]*rankCounts)}
	for {
		s, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.Error = err.Error()
			break
		}
		c.add(s, r.OneFile())
	}
	f.Engine, f.Version, f.Active, f.modified, f.Bytes = r.Format(), r.Version(), r.Active(), r.Modified(), r.Size()
	c.finish(r.Names())
	f.Notes = f.tally.Notes()
	if p, ok := r.(interface{ Gaps() []gap }); ok {
		f.Gaps = p.Gaps()
	}
	return f
}

type threadKey struct {
	rank   trace.Rank
	thread trace.Thread
}

// collector adds the steps of a dataset to its summary.
type collector struct {
	*FileInfo
	unit    trace.Unit
	threads map[threadKey]bool
	ranks   map[trace.Rank]*rankCounts
}

func (c *collector) add(s *trace.Step, oneFile bool) {
	c.Steps++
	c.FuncEvents += int64(s.Funcs)
	c.CommEvents += int64(s.Comms)
	c.CounterEvents += int64(s.Counters)
	for i := range s.Batches {
		b := &s.Batches[i]
		c.threads[threadKey{b.Rank, b.Thread}] = true
		c.extend(c.nanos(b.Events[0].Time), c.nanos(b.Events[len(b.Events)-1].Time))
		if r := c.rank(b.Rank); oneFile {
			r.count(b.Events)
		}
	}
	for _, m := range s.Metadata {
		if m.Key == "Hostname" && !slices.Contains(c.Hosts, m.Value) {
			c.Hosts = append(c.Hosts, m.Value)
		}
		c.rank(m.Rank)
	}
}

func (c *collector) nanos(t trace.Ticks) micros { return micros(int64(t) * c.unit.Nanos()) }

func (c *collector) rank(rank trace.Rank) *rankCounts {
	r := c.ranks[rank]
	if r == nil {
		r = &rankCounts{Rank: rank}
		c.ranks[rank] = r
	}
	return r
}

func (c *eventCounts) count(events []trace.Event) {
	for i := range events {
		switch events[i].Kind {
		case trace.Enter, trace.Exit:
			c.FuncEvents++
		case trace.Send, trace.Recv:
			c.CommEvents++
		case trace.Count:
			c.CounterEvents++
		}
	}
}

func (c *collector) finish(names *trace.Names) {
	c.Threads = len(c.threads)
	for t := range c.threads {
		if _, ok := names.GPU(t.rank, t.thread); ok {
			c.GPUThreads++
		}
	}
	for _, name := range names.Funcs() {
		c.Functions++
		c.functions[name] = true
	}
	for range names.Counters() {
		c.Counters++
	}
	c.Program = names.Program()
	for _, r := range c.ranks {
		c.Ranks = append(c.Ranks, *r)
	}
	slices.SortFunc(c.Ranks, func(a, b rankCounts) int { return cmp.Compare(a.Rank, b.Rank) })
	if len(c.Ranks) == 1 {
		c.Rank, c.Ranks = &c.Ranks[0].Rank, nil
	}
	slices.Sort(c.Hosts)
}

func total(files []*FileInfo) Totals {
	t := Totals{Files: len(files), Hosts: []string{}}
	functions := make(map[string]bool)
	var all tally.Tally
	for _, f := range files {
		t.add(&f.counts)
		if f.Active {
			t.Active++
		}
		if f.Error != "" {
			t.Broken++
		}
		maps.Copy(functions, f.functions)
		t.Hosts = append(t.Hosts, f.Hosts...)
		all.Merge(&f.tally)
	}
	t.DistinctFunctions = len(functions)
	slices.Sort(t.Hosts)
	t.Hosts = slices.Compact(t.Hosts)
	t.Notes = all.Notes()
	return t
}
