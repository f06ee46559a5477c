package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

func newTraceInfoCmd(env *Env) *cobra.Command {
	var asJSON bool
	var connect time.Duration
	cmd := &cobra.Command{
		Use:   "info PATH...",
		Short: "say what is in traces: steps, events, threads, functions, hosts, time",
		Long: `Say what is in traces. A PATH is a dataset, a directory (all .bp inside it are
read) or a pattern. A trace that is still being written is read as far as it
goes. A broken one is read as far as it can be; then the error names the file
and the byte, and the exit code is 1.

The contact file of a live stream, X.bp.sst, is a PATH, too: the stream is read to
its end, which takes it from the program as any reader does.`,
		Example: `  chimbuko trace info tau-metrics-app-0.bp
  chimbuko trace info run-directory
  chimbuko trace info --json 'run-*/' | jq .totals`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			paths, err := expandPaths(paths)
			if err != nil {
				return err
			}
			return runTraceInfo(cmd.Context(), env, paths, asJSON, connect)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs instead of a table for people")
	registerConnect(cmd.Flags(), &connect)
	return cmd
}

// counts are the figures that a file and the totals have in common.
type counts struct {
	Steps         int   `json:"steps"`
	FuncEvents    int64 `json:"func_events"`
	CommEvents    int64 `json:"comm_events"`
	CounterEvents int64 `json:"counter_events"`
	Threads       int   `json:"threads"`
	GPUThreads    int   `json:"gpu_threads"`
	Functions     int   `json:"functions"`
	Counters      int   `json:"counters"`
	FirstUS       int64 `json:"first_us"` // 0 without events
	LastUS        int64 `json:"last_us"`
	Bytes         int64 `json:"bytes"`
}

// fileInfo is what is known of one dataset.
type fileInfo struct {
	Path    string      `json:"path"`
	Engine  string      `json:"engine"`
	Version string      `json:"adios2_version,omitempty"`
	Active  bool        `json:"active"`
	Rank    *trace.Rank `json:"rank"` // null where several ranks share the file, or none is known
	counts
	Program string       `json:"program,omitempty"`
	Hosts   []string     `json:"hosts"`
	Ranks   []rankInfo   `json:"ranks,omitempty"` // of a file that several share
	Notes   []tally.Note `json:"notes,omitempty"`
	Error   string       `json:"error,omitempty"`

	modified time.Time
	err      error
	names    map[string]bool // of functions, over which totals count once
	tally    tally.Tally
}

// rankInfo is one rank's part of a file that several ranks share.
type rankInfo struct {
	Rank          trace.Rank `json:"rank"`
	FuncEvents    int64      `json:"func_events"`
	CommEvents    int64      `json:"comm_events"`
	CounterEvents int64      `json:"counter_events"`
}

type traceInfo struct {
	Files  []*fileInfo `json:"files"`
	Totals totalInfo   `json:"totals"`
}

type totalInfo struct {
	Files  int `json:"files"`
	Active int `json:"active"`
	Broken int `json:"broken"`
	counts
	DistinctFunctions int          `json:"distinct_functions"`
	Hosts             []string     `json:"hosts"`
	Notes             []tally.Note `json:"notes,omitempty"`
}

func runTraceInfo(ctx context.Context, env *Env, paths []string, asJSON bool, connect time.Duration) error {
	info, err := inspectAll(ctx, env, paths, connect)
	if err != nil {
		return err
	}
	if err := env.show(asJSON, info, func(w io.Writer) {
		printInfo(w, info)
	}); err != nil {
		return err
	}
	for _, f := range info.Files {
		if f.err != nil {
			fmt.Fprintf(env.Stderr, "chimbuko: %v\n", advise(f.err))
			err = errReported
		}
	}
	return err
}

// inspectAll reads all datasets, as many at once as there are processors, and all
// streams at once: the ranks of a program wait for each other.
func inspectAll(ctx context.Context, env *Env, paths []string, connect time.Duration) (*traceInfo, error) {
	info := &traceInfo{Files: make([]*fileInfo, len(paths))}
	progress := newProgress(env.Stderr, len(paths), "traces")
	next := make(chan int)
	defer frugal(50)()
	var workers sync.WaitGroup
	at := min(runtime.GOMAXPROCS(0), len(paths))
	if slices.ContainsFunc(paths, sst.IsContact) {
		at = len(paths)
	}
	for range at {
		workers.Go(func() {
			for i := range next {
				info.Files[i] = inspect(ctx, paths[i], connect)
				progress.done()
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	workers.Wait()
	progress.clear()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info.Totals = total(info.Files)
	return info, nil
}

// inspect reads one dataset or stream from beginning to end.
func inspect(ctx context.Context, path string, connect time.Duration) *fileInfo {
	f := &fileInfo{Path: path, Hosts: []string{}, names: make(map[string]bool)}
	f.Bytes = bp.Size(path)
	opt := bp.Default()
	opt.Tally = &f.tally
	r, err := openTrace(path, opt, connect) //nolint:contextcheck // a stream lives until it is closed
	if err != nil {
		f.fail(err)
		return f
	}
	defer r.Close() //nolint:errcheck // only read from
	steps := tau.NewReader(r, tau.Config{}, &f.tally)
	c := collector{f: f, threads: make(map[threadID]bool), ranks: make(map[trace.Rank]*rankInfo)}
	for {
		s, err := steps.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.fail(err)
			break
		}
		c.add(s, steps.OneFile())
	}
	f.Engine, f.Version, f.Active, f.modified = r.Engine(), r.Version(), r.Active(), r.Modified()
	if live, ok := r.(stream); ok {
		f.Bytes = live.Received()
	}
	c.finish(&steps.Names)
	f.Notes = f.tally.Notes()
	return f
}

func (f *fileInfo) fail(err error) { f.err, f.Error = err, err.Error() }

type threadID struct {
	rank   trace.Rank
	thread trace.Thread
}

// collector sums up the steps of one dataset.
type collector struct {
	f       *fileInfo
	threads map[threadID]bool
	ranks   map[trace.Rank]*rankInfo
}

func (c *collector) add(s *tau.Step, oneFile bool) {
	f := c.f
	f.Steps++
	f.FuncEvents += int64(s.Funcs)
	f.CommEvents += int64(s.Comms)
	f.CounterEvents += int64(s.Counters)
	for i := range s.Batches {
		b := &s.Batches[i]
		c.threads[threadID{b.Rank, b.Thread}] = true
		first, last := int64(b.Events[0].Time), int64(b.Events[len(b.Events)-1].Time)
		if f.FirstUS == 0 || first < f.FirstUS {
			f.FirstUS = first
		}
		f.LastUS = max(f.LastUS, last)
		r := c.ranks[b.Rank]
		if r == nil {
			r = &rankInfo{Rank: b.Rank}
			c.ranks[b.Rank] = r
		}
		if oneFile {
			r.count(b.Events)
		}
	}
	for _, m := range s.Metadata {
		if m.Key == "Hostname" && !slices.Contains(f.Hosts, m.Value) {
			f.Hosts = append(f.Hosts, m.Value)
		}
		if c.ranks[m.Rank] == nil {
			c.ranks[m.Rank] = &rankInfo{Rank: m.Rank}
		}
	}
}

func (r *rankInfo) count(events []trace.Event) {
	for i := range events {
		switch events[i].Kind {
		case trace.Enter, trace.Exit:
			r.FuncEvents++
		case trace.Send, trace.Recv:
			r.CommEvents++
		case trace.Count:
			r.CounterEvents++
		}
	}
}

func (c *collector) finish(names *tau.Names) {
	f := c.f
	f.Threads = len(c.threads)
	for t := range c.threads {
		if _, ok := names.GPU(t.rank, t.thread); ok {
			f.GPUThreads++
		}
	}
	for _, name := range names.Funcs() {
		f.Functions++
		f.names[name] = true
	}
	for range names.Counters() {
		f.Counters++
	}
	f.Program = names.Program()
	ranks := make([]rankInfo, 0, len(c.ranks))
	for _, r := range c.ranks {
		ranks = append(ranks, *r)
	}
	slices.SortFunc(ranks, func(a, b rankInfo) int { return int(a.Rank) - int(b.Rank) })
	switch len(ranks) {
	case 0:
	case 1:
		f.Rank = &ranks[0].Rank
	default:
		f.Ranks = ranks
	}
	slices.Sort(f.Hosts)
}

func total(files []*fileInfo) totalInfo {
	t := totalInfo{Files: len(files), Hosts: []string{}}
	names := make(map[string]bool)
	var all tally.Tally
	for _, f := range files {
		t.Steps += f.Steps
		t.FuncEvents += f.FuncEvents
		t.CommEvents += f.CommEvents
		t.CounterEvents += f.CounterEvents
		t.Threads += f.Threads
		t.GPUThreads += f.GPUThreads
		t.Functions += f.Functions
		t.Counters += f.Counters
		t.Bytes += f.Bytes
		if f.FirstUS != 0 && (t.FirstUS == 0 || f.FirstUS < t.FirstUS) {
			t.FirstUS = f.FirstUS
		}
		t.LastUS = max(t.LastUS, f.LastUS)
		if f.Active {
			t.Active++
		}
		if f.err != nil {
			t.Broken++
		}
		for name := range f.names {
			names[name] = true
		}
		for _, h := range f.Hosts {
			if !slices.Contains(t.Hosts, h) {
				t.Hosts = append(t.Hosts, h)
			}
		}
		all.Merge(&f.tally)
	}
	t.DistinctFunctions = len(names)
	slices.Sort(t.Hosts)
	t.Notes = all.Notes()
	return t
}
