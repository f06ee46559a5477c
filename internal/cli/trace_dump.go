package cli

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

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// dumpConfig is what the flags of `trace dump` say.
type dumpConfig struct {
	format    string
	steps     []string
	threads   []string
	ranks     []string
	kinds     []string
	functions []string
	limit     int64
	follow    bool
	poll      time.Duration
	idle      time.Duration
	connect   time.Duration
}

func newTraceDumpCmd(env *Env) *cobra.Command {
	cfg := dumpConfig{format: "text", poll: bp.Default().Poll}
	cmd := &cobra.Command{
		Use:   "dump PATH",
		Short: "print the events of a trace as text, JSON lines or CSV",
		Long: `Print the events of a trace: entries and exits of functions, messages, counters.
They come step by step, in each step rank by rank and thread by thread, and on a
thread in order of time. Numbers in filters may be ranges such as 3-7.

With --follow a trace that is still being written is printed as it grows, until
its writer closes it. With --idle it ends, too, when nothing came for so long.

A live stream, named by its contact file X.bp.sst, is printed as it comes, which
takes it from the program as any reader does.`,
		Example: `  chimbuko trace dump tau-metrics-app-0.bp | less
  chimbuko trace dump --kind send,recv --format csv tau-metrics-app-0.bp > messages.csv
  chimbuko trace dump --function 'MPI_*' --step 0-9 --format jsonl tau-metrics-app-0.bp
  chimbuko trace dump --follow --idle 1m tau-metrics-app-0.bp
  chimbuko trace dump tau-metrics-app-0.bp.sst`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			return runTraceDump(cmd.Context(), env, paths[0], cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.format, "format", cfg.format, "text, jsonl or csv")
	f.StringSliceVar(&cfg.steps, "step", nil, "only these steps (numbers from 0, ranges)")
	f.StringSliceVar(&cfg.threads, "thread", nil, "only these threads (numbers, ranges)")
	f.StringSliceVar(&cfg.ranks, "rank", nil, "only these ranks (numbers, ranges)")
	f.StringSliceVar(&cfg.kinds, "kind", nil, "only these kinds: enter, exit, send, recv, counter; or function, message")
	f.StringArrayVar(&cfg.functions, "function", nil, "only functions with this name; * and ? match any text and any character")
	f.Int64Var(&cfg.limit, "limit", 0, "stop after so many events; 0 is no limit")
	f.BoolVar(&cfg.follow, "follow", false, "wait for new steps, and for the trace if it does not exist yet")
	f.DurationVar(&cfg.poll, "poll", cfg.poll, "with --follow: how often to look for new steps")
	f.DurationVar(&cfg.idle, "idle", 0, "with --follow: end when no step came for so long; 0 waits for ever")
	registerConnect(f, &cfg.connect)
	return cmd
}

func runTraceDump(ctx context.Context, env *Env, path string, cfg dumpConfig) error {
	filter, err := newEventFilter(cfg)
	if err != nil {
		return err
	}
	paths := []string{path}
	if !cfg.follow {
		if paths, err = expandPath(path); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(paths, sst.IsContact) {
		if len(paths) > 1 {
			return usagef("%s holds the contact files of %d live streams, whose program waits until all are read; name one of them, or use "+
				"chimbuko trace info", path, len(paths))
		}
		cfg.follow = true
	}
	if cfg.limit < 0 {
		return usagef("--limit %d is negative", cfg.limit)
	}
	w := bufio.NewWriterSize(env.Stdout, 1<<16)
	format, err := newEventFormat(cfg.format, w)
	if err != nil {
		return err
	}
	d := dumper{cfg: cfg, filter: filter, format: format, w: w}
	for _, p := range paths {
		if err = d.dump(ctx, p); err != nil {
			break
		}
	}
	if flushErr := w.Flush(); flushErr != nil {
		return flushErr
	}
	for kind, n := range d.tally.All() {
		fmt.Fprintf(env.Stderr, "%s: %s %s\n", kind.Severity(), grouped(n), kind.Sentence())
	}
	switch {
	case errors.Is(err, errLimit):
		return nil
	case errors.Is(err, context.Canceled) && cfg.follow:
		return nil // how one ends following
	case errors.Is(err, bp.ErrIdle):
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", err)
		return nil
	}
	return advise(err)
}

// errLimit ends a dump that printed enough.
var errLimit = errors.New("enough events")

type dumper struct {
	cfg     dumpConfig
	filter  *eventFilter
	format  eventFormat
	w       *bufio.Writer
	tally   tally.Tally
	printed int64
}

func (d *dumper) dump(ctx context.Context, path string) error {
	opt := bp.Default()
	opt.Follow, opt.Poll, opt.Idle, opt.Sleep, opt.Tally = d.cfg.follow, d.cfg.poll, d.cfg.idle, sleep, &d.tally
	if err := opt.Validate(); err != nil {
		return usageError{err}
	}
	r, err := openTrace(path, opt, d.cfg.connect) //nolint:contextcheck // a stream lives until it is closed
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read from
	steps := tau.NewReader(r, tau.Config{}, &d.tally)
	for {
		s, err := steps.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.print(s, &steps.Names); err != nil {
			return err
		}
		if d.cfg.follow {
			if err := d.w.Flush(); err != nil {
				return err
			}
		}
	}
}

func (d *dumper) print(s *tau.Step, names *tau.Names) error {
	if !d.filter.steps.has(int64(s.Index)) {
		return nil
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		if !d.filter.threads.has(int64(b.Thread)) || !d.filter.ranks.has(int64(b.Rank)) {
			continue
		}
		for j := range b.Events {
			e := namedEvent{Event: &b.Events[j], step: s.Index, rank: b.Rank, thread: b.Thread}
			switch e.Kind {
			case trace.Enter, trace.Exit:
				e.name, e.known = names.Func(b.Rank, e.Func())
			case trace.Count:
				e.name, e.known = names.Counter(b.Rank, e.Counter())
			}
			if !d.filter.match(&e) {
				continue
			}
			if err := d.format(&e); err != nil {
				return err
			}
			if d.printed++; d.printed == d.cfg.limit {
				return errLimit
			}
		}
	}
	return nil
}

// namedEvent is an event with all that is printed of it.
type namedEvent struct {
	*trace.Event
	step   int
	rank   trace.Rank
	thread trace.Thread
	name   string // of the function or counter
	known  bool   // whether the name is
}

// eventFilter says which events to print.
type eventFilter struct {
	steps, threads, ranks ranges
	kinds                 map[trace.Kind]bool // nil: all
	functions             []*regexp.Regexp
}

func newEventFilter(cfg dumpConfig) (*eventFilter, error) {
	f := &eventFilter{}
	for _, r := range []struct {
		flag string
		in   []string
		out  *ranges
	}{{"step", cfg.steps, &f.steps}, {"thread", cfg.threads, &f.threads}, {"rank", cfg.ranks, &f.ranks}} {
		var err error
		if *r.out, err = parseRanges(r.in); err != nil {
			return nil, usagef("--%s: %w", r.flag, err)
		}
	}
	for _, name := range cfg.kinds {
		if f.kinds == nil {
			f.kinds = make(map[trace.Kind]bool)
		}
		kind, ok := trace.ParseKind(name)
		switch {
		case ok:
			f.kinds[kind] = true
		case name == "function":
			f.kinds[trace.Enter], f.kinds[trace.Exit] = true, true
		case name == "message":
			f.kinds[trace.Send], f.kinds[trace.Recv] = true, true
		default:
			return nil, usagef("--kind: unknown value %q (want enter, exit, send, recv, counter, function, message)", name)
		}
	}
	for _, glob := range cfg.functions {
		f.functions = append(f.functions, outlier.Glob(glob))
	}
	return f, nil
}

func (f *eventFilter) match(e *namedEvent) bool {
	if f.kinds != nil && !f.kinds[e.Kind] {
		return false
	}
	if len(f.functions) == 0 {
		return true
	}
	if e.Kind != trace.Enter && e.Kind != trace.Exit {
		return false
	}
	for _, p := range f.functions {
		if p.MatchString(e.name) {
			return true
		}
	}
	return false
}

// ranges is a set of numbers; nil holds all.
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
	for _, x := range r {
		if x.from <= n && n <= x.to {
			return true
		}
	}
	return r == nil
}
