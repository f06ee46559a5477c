package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// DumpConfig selects the events that Dump writes. Empty lists select all.
type DumpConfig struct {
	Format                string   // text, jsonl or csv
	Steps, Threads, Ranks []string // numbers and ranges
	Kinds                 []string // enter, exit, send, recv, counter, function, message
	Functions             []string // patterns
	Limit                 int64    // number of events; 0: unlimited
	Follow                bool     // wait for new steps
	Poll, Idle            time.Duration
	Connect               time.Duration // how long to wait for the program of a stream
	Sleep                 func(context.Context, time.Duration) error
}

// Dump writes the events of traces.
type Dump struct {
	Tally tally.Tally // of the traces

	opt                   bp.Options
	connect               time.Duration
	format                func(*bufio.Writer) func(*event) error
	steps, threads, ranks ranges
	kinds                 map[trace.Kind]bool // nil: all
	functions             []*regexp.Regexp
	limit, written        int64
}

// NewDump returns an error if the configuration is not valid.
func NewDump(cfg DumpConfig) (*Dump, error) {
	d := &Dump{opt: bp.Default(), connect: cfg.Connect, format: formats[cfg.Format], limit: cfg.Limit}
	d.opt.Follow, d.opt.Poll, d.opt.Idle, d.opt.Sleep, d.opt.Tally = cfg.Follow, cfg.Poll, cfg.Idle, cfg.Sleep, &d.Tally
	if d.format == nil {
		return nil, fmt.Errorf("--format: unknown value %q (want text, jsonl, csv)", cfg.Format)
	}
	if cfg.Limit < 0 {
		return nil, fmt.Errorf("--limit %d is negative", cfg.Limit)
	}
	for _, r := range []struct {
		flag string
		in   []string
		out  *ranges
	}{{"step", cfg.Steps, &d.steps}, {"thread", cfg.Threads, &d.threads}, {"rank", cfg.Ranks, &d.ranks}} {
		var err error
		if *r.out, err = parseRanges(r.in); err != nil {
			return nil, fmt.Errorf("--%s: %w", r.flag, err)
		}
	}
	for _, name := range cfg.Kinds {
		if d.kinds == nil {
			d.kinds = make(map[trace.Kind]bool)
		}
		kind, ok := trace.ParseKind(name)
		switch {
		case ok:
			d.kinds[kind] = true
		case name == "function":
			d.kinds[trace.Enter], d.kinds[trace.Exit] = true, true
		case name == "message":
			d.kinds[trace.Send], d.kinds[trace.Recv] = true, true
		default:
			return nil, fmt.Errorf("--kind: unknown value %q (want enter, exit, send, recv, counter, function, message)", name)
		}
	}
	for _, pattern := range cfg.Functions {
		d.functions = append(d.functions, outlier.Glob(pattern))
	}
	return d, d.opt.Validate()
}

// errLimit ends a dump at its limit.
var errLimit = errors.New("limit reached")

// Run writes the events of all paths to w.
func (d *Dump) Run(ctx context.Context, w io.Writer, paths []string) (err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	write := d.format(out)
	for _, p := range paths {
		if err = d.dump(ctx, p, out, write); err != nil {
			break
		}
	}
	if flushErr := out.Flush(); flushErr != nil {
		return flushErr
	}
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

func (d *Dump) dump(ctx context.Context, path string, w *bufio.Writer, write func(*event) error) error {
	r, err := open(path, d.opt, d.connect) //nolint:contextcheck // a stream lives until it is closed
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read from
	for {
		s, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && d.steps.has(int64(s.Index)) {
			err = d.writeStep(s, r, write)
		}
		if err == nil && d.opt.Follow {
			err = w.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func (d *Dump) writeStep(s *trace.Step, r reader, write func(*event) error) error {
	names, unit := r.Names(), r.Unit()
	for i := range s.Batches {
		b := &s.Batches[i]
		if !d.threads.has(int64(b.Thread)) || !d.ranks.has(int64(b.Rank)) {
			continue
		}
		for j := range b.Events {
			e := event{Event: &b.Events[j], unit: unit, step: s.Index, rank: b.Rank, thread: b.Thread}
			switch e.Kind {
			case trace.Enter, trace.Exit:
				e.name, e.hasName = names.Func(b.Rank, e.Func())
			case trace.Count:
				e.name, e.hasName = names.Counter(b.Rank, e.Counter())
			}
			if !d.selects(&e) {
				continue
			}
			if err := write(&e); err != nil {
				return err
			}
			if d.written++; d.written == d.limit {
				return errLimit
			}
		}
	}
	return nil
}

func (d *Dump) selects(e *event) bool {
	if d.kinds != nil && !d.kinds[e.Kind] {
		return false
	}
	if len(d.functions) == 0 {
		return true
	}
	return (e.Kind == trace.Enter || e.Kind == trace.Exit) &&
		slices.ContainsFunc(d.functions, func(p *regexp.Regexp) bool { return p.MatchString(e.name) })
}

// ranges is a set of numbers; nil has all.
type ranges []struct{ from, to int64 }

func parseRanges(texts []string) (set ranges, err error) {
	for _, text := range texts {
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.ParseInt(from, 10, 64)
		b, err2 := strconv.ParseInt(to, 10, 64)
		if err1 != nil || err2 != nil || a > b {
			return nil, fmt.Errorf("%q is neither a number nor a range such as 3-7", text)
		}
		set = append(set, struct{ from, to int64 }{a, b})
	}
	return set, nil
}

func (r ranges) has(n int64) bool {
	return r == nil || slices.ContainsFunc(r, func(x struct{ from, to int64 }) bool { return x.from <= n && n <= x.to })
}
