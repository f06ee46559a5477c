// Package node runs an analyzer beside a program: it reads traces while they are written, shares
// models through the parameter server, and sends records to the store. It needs neither a store nor
// a page.
package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// ErrInterrupted means that a process ended before its work was done.
var ErrInterrupted = errors.New("interrupted")

// ErrRemoved means that the run directory was removed or replaced.
var ErrRemoved = errors.New("the run directory was removed, so that nothing can be stored (start the run again)")

// ProgramEnded is the line for supervised analyzers whose program has ended: no trace appears or
// grows after it.
const ProgramEnded = "over"

// Judging holds the settings of analyzers that the parameter server needs.
type Judging struct {
	outlier.Config
	Inclusive bool `json:"inclusive"`
}

// Config configures an analyzer: its traces and its services.
type Config struct {
	Bus  Bus
	Dir  string // of the run; it need not exist yet
	Run  string // its name
	Node string // name of the analyzer

	Patterns      []string // of traces, as Traces takes them
	Engine        string
	Rank          int                                            // skip traces of other ranks; -1 takes all
	OverrideRank  int                                            // assign all traces to this rank; -1: keep their ranks
	Inputs        func(paths []string) ([]analyzer.Input, error) // assigns programs to traces; nil: by their names
	Traces        int                                            // their number; 0 if unknown
	Linger        time.Duration                                  // to wait for more traces after all have ended
	Idle          time.Duration                                  // after which a trace counts as ended; 0 is never
	Poll          time.Duration                                  // between checks for new steps
	UntilNotified bool                                           // traces may appear until the program has ended

	ConnectTimeout time.Duration // of a live stream; 0 is unlimited
	StreamQueue    int64         // megabytes of each live stream that are read ahead

	Analysis analyzer.Config
	Exchange time.Duration // between exchanges with the parameter server
	Outbox   int64         // megabytes of records that may wait to be sent
	Spool    string        // directory for records until the review; "" is a temporary one
	GiveUp   time.Duration // how long to wait for the services at the end; 0 is unlimited

	Command *protocol.Command // that starts the analyzer again
	// ProgramEnded, if not nil, reports whether the program has ended and no trace will appear or
	// grow.
	ProgramEnded func() bool

	Progress Progress
	Log      *slog.Logger
}

// Progress shows the progress of an analyzer.
type Progress interface {
	// Show shows a report, the number of steps not sent yet, and whether the services are
	// unavailable.
	Show(rep *analyzer.Report, unsent int64, away bool)
	// Clear removes the output of Show.
	Clear()
}

// ErrStreamsInterrupted is an ErrInterrupted while reading live streams, which cannot be
// read again.
var ErrStreamsInterrupted = fmt.Errorf("%w: live streams cannot be read again", ErrInterrupted)

// Result is the result of an analyzer.
type Result struct {
	*analyzer.Result
	ReadingTime, TotalTime time.Duration // until all traces had ended, and total
	Sent, Deferred         int64         // records
}

// node is an analyzer at work.
type node struct {
	cfg         *Config
	start       time.Time
	conn        *connector
	client      *paramclient.Client
	publisher   *recordstream.Publisher
	report      atomic.Pointer[analyzer.Report]
	traces      atomic.Pointer[[]string] // so far
	reviewing   atomic.Bool
	readingTime time.Duration // until all traces had ended
	steps       int           // in the latest report
	latestStep  time.Time     // when steps changed
	streams     streams
}

// Analyze analyzes traces until all have ended and their results are stored. It returns
// paramclient.ErrReviewed if an earlier process of this analyzer had completed that, ErrInterrupted
// if ctx ends first, and ErrRemoved if the run directory disappears.
func Analyze(ctx context.Context, cfg *Config) (res *Result, err error) {
	if u := cfg.Analysis.Unit; u.Canonical() != 0 {
		return nil, fmt.Errorf("live runs have times in microseconds, not in ticks of %d ns (use chimbuko analyze)", u.Nanos())
	}
	settings, err := json.Marshal(Judging{cfg.Analysis.Outlier, cfg.Analysis.Inclusive})
	if err != nil {
		return nil, err
	}
	if cfg.Analysis.SpoolDir = cfg.Spool; cfg.Spool == "" {
		if cfg.Analysis.SpoolDir, err = os.MkdirTemp("", "chimbuko-ad-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(cfg.Analysis.SpoolDir) //nolint:errcheck // temporary files
	} else if err := os.MkdirAll(cfg.Spool, 0o755); err != nil {
		return nil, err
	}
	r := &node{cfg: cfg, start: time.Now(), streams: streams{cfg: cfg}}
	r.report.Store(&analyzer.Report{})
	r.traces.Store(new([]string))
	r.conn = &connector{bus: &cfg.Bus, dir: cfg.Dir, name: "analyzer " + cfg.Node, log: cfg.Log, run: cfg.Run}
	session := uint64(r.start.UnixNano())
	r.client = paramclient.New(paramclient.Config{
		Run: cfg.Run, Node: cfg.Node, Session: session, Shards: 1, Period: cfg.Exchange,
		Timeout: 10 * time.Second, Settings: string(settings), Command: cfg.Command, Status: r.status, Log: cfg.Log,
	}, r.conn)
	r.publisher = recordstream.NewPublisher(recordstream.PublisherConfig{
		Run: cfg.Run, Subject: recordstream.RecordSubject(cfg.Run), Sender: cfg.Node + "-" + strconv.FormatUint(session, 36),
		Numbers: r.client, Reviewing: r.reviewing.Load, MaxBytes: cfg.Outbox << 20, Log: cfg.Log,
	}, r.conn)

	ctx, remove := context.WithCancelCause(ctx)
	defer remove(nil)
	background, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if cfg.Bus.URL == "" { // else the analyzer does not need the directory
		wg.Go(func() {
			if err := WatchDir(background, cfg.Dir); err != nil {
				remove(err)
			}
		})
	}
	wg.Go(func() { r.conn.watch(background) })
	wg.Go(func() { r.client.Run(background) })
	wg.Go(func() { r.publisher.Run(background) })
	defer wg.Wait()
	defer stop()
	res, err = r.analyze(ctx)
	if errors.Is(context.Cause(ctx), ErrRemoved) {
		return nil, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		if _, live := r.streams.receivedBytes(); live {
			return nil, ErrStreamsInterrupted
		}
		return nil, ErrInterrupted
	}
	return res, err
}

// analyze reads, waits for the other analyzers, reviews, and sends the results.
func (r *node) analyze(ctx context.Context) (*Result, error) {
	finder := &traceFinder{cfg: r.cfg, now: time.Now, programEnded: r.cfg.ProgramEnded, onFound: r.traces.Store, open: r.streams.opener}
	res, err := analyzer.New(r.cfg.Analysis, r.publisher, nil).Follow(ctx, analyzer.Online{
		Sync: nodeSync{r.client, r}, Find: finder.find, Poll: r.cfg.Poll, Idle: r.cfg.Idle,
		ProgramEnded: finder.programEnded, Sleep: wait.Sleep, Report: r.note,
	})
	if err != nil {
		return nil, err
	}
	if err := r.publisher.Flush(ctx); err != nil {
		return nil, err
	}
	r.addSending(&res.Tally)
	if err := r.sendOutcome(ctx, res); err != nil {
		return nil, err
	}
	st := r.publisher.Stats()
	return &Result{Result: res, ReadingTime: r.readingTime, TotalTime: time.Since(r.start), Sent: st.Sent, Deferred: st.Deferred}, nil
}

// addSending adds the counts of the publisher to the tally.
func (r *node) addSending(t *tally.Tally) {
	st := r.publisher.Stats()
	t.Add(tally.RecordDeferred, st.Deferred)
	t.Add(tally.StreamFull, st.Delayed)
	t.Add(tally.RecordTooLarge, st.TooLarge)
}

// sendOutcome sends the results to the parameter server, with retries. If the reply was lost,
// the server may have ended the run meanwhile.
func (r *node) sendOutcome(ctx context.Context, res *analyzer.Result) error {
	ctx, cancel := orForever(ctx, r.cfg.GiveUp)
	defer cancel()
	for {
		err := r.client.SendOutcome(ctx, res.Ranks, res.Outcome, *r.traces.Load(), r.traceBytes())
		if err == nil || errors.Is(err, paramclient.ErrRefused) {
			return err
		}
		if runfiles.HasFinished(r.cfg.Dir) || errors.Is(err, bus.ErrNoService) && r.conn.hasEnded(ctx) {
			r.cfg.Log.Info("the run has ended in the meantime")
			return nil
		}
		if waitErr := wait.Sleep(ctx, time.Second); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

// nodeSync is the client with the time limits of the analyzer.
type nodeSync struct {
	*paramclient.Client
	node *node
}

// Finish waits until all analyzers have read their traces, at most GiveUp.
func (s nodeSync) Finish(ctx context.Context) error {
	r := s.node
	r.readingTime = time.Since(r.start)
	r.cfg.Progress.Clear()
	r.cfg.Log.Info("all traces have ended; waiting for the other analyzers", "seconds", r.readingTime.Seconds())
	if err := s.wait(ctx, s.Client.Finish); err != nil {
		return err
	}
	r.publisher.Supersede()
	r.reviewing.Store(true)
	return nil
}

// Promote waits until all analyzers have sent their delays, at most GiveUp.
func (s nodeSync) Promote(ctx context.Context, run *blame.Run) (promoted []int, err error) {
	err = s.wait(ctx, func(ctx context.Context) (err error) {
		promoted, err = s.Client.Promote(ctx, run)
		return err
	})
	return promoted, err
}

// wait calls f, which waits for other analyzers, with a context that ends after GiveUp and
// when the run has ended.
func (s nodeSync) wait(ctx context.Context, f func(context.Context) error) error {
	r := s.node
	bounded, cancel := orForever(ctx, r.cfg.GiveUp)
	defer cancel()
	bounded, over := context.WithCancelCause(bounded)
	defer over(nil)
	go r.watchEnd(bounded, over)
	err := f(bounded)
	if err == nil {
		return nil
	}
	if end, ok := errors.AsType[*runEnded](context.Cause(bounded)); ok {
		return end.error
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the services did not respond within %v after the traces had ended, so nothing is reviewed or stored: %w "+
			"(repeat the command when they are available)", r.cfg.GiveUp, cmp.Or(s.Err(), err))
	}
	return err
}

// runEnded is the cause for which Finish ends when the run has ended.
type runEnded struct{ error }

// endedAway is how long the services of a finished run must be unavailable before
// watchEnd acts: they may be about to replace the run.
const endedAway = 5 * time.Second

// watchEnd calls over when the run has ended according to the run directory, so that the
// services will not return: after an earlier process of this analyzer had sent its
// results, or because the run was stopped without them.
func (r *node) watchEnd(ctx context.Context, over context.CancelCauseFunc) {
	for away := time.Now(); wait.Sleep(ctx, WatchEvery) == nil; {
		if r.client.Err() == nil {
			away = time.Now()
		}
		if time.Since(away) < endedAway {
			continue
		}
		info, err := runfiles.ReadInfo(r.cfg.Dir)
		if err != nil || info.State != provdb.Finished {
			continue
		}
		for _, path := range *r.traces.Load() {
			if !slices.Contains(info.Traces, path) {
				over(&runEnded{fmt.Errorf("the run in %s has ended without %s (use chimbuko analyze, or another run)", r.cfg.Dir, path)})
				return
			}
		}
		over(&runEnded{paramclient.ErrReviewed})
	}
}

// note stores and shows a report.
func (r *node) note(rep *analyzer.Report) {
	r.report.Store(rep)
	r.noteStall(rep, time.Now())
	r.cfg.Progress.Show(rep, r.client.Lag(), r.client.Err() != nil)
}

// stallTime is the time without a new step after which an analyzer reports that its traces are still open.
const stallTime = time.Minute

// noteStall warns once if no trace grows although some are open: their program may have been killed.
func (r *node) noteStall(rep *analyzer.Report, now time.Time) {
	switch {
	case rep.Totals.Steps != r.steps:
		r.steps, r.latestStep = rep.Totals.Steps, now
	case r.steps > 0 && !r.latestStep.IsZero() && !r.reviewing.Load() && now.Sub(r.latestStep) >= stallTime:
		r.latestStep = time.Time{} // until the next step
		r.cfg.Log.Warn("no trace has a new step, but some are not closed; if their program has ended, chimbuko stop ends the run "+
			"with the current results, and --idle ends such traces", "for", stallTime, "run", r.cfg.Dir)
	}
}

// maxLiveCollectives limits the bytes of the collective operations of each status.
const maxLiveCollectives = 256 << 10

// status returns the status for the parameter server.
func (r *node) status() *protocol.Status {
	rep, out := r.report.Load(), r.publisher.Stats()
	ex := r.client.Exchanges()
	n := &api.Node{
		PID: int64(os.Getpid()), Ranks: int64(len(rep.Ranks)), StepsRead: int64(rep.Totals.Steps), Behind: rep.Lag.Seconds(),
		Events: rep.Totals.Events, Calls: rep.Totals.Calls, OpenCalls: rep.OpenCalls, Anomalies: rep.Totals.Flagged,
		RecordsSent: out.Sent, OutboxMessages: out.Messages, OutboxBytes: out.Bytes, Drops: out.Deferred,
		Exchange: ex.Latency, ExchangeSent: ex.Sent, ExchangeGot: ex.Received,
	}
	n.Host, _ = os.Hostname() // only shown
	n.RSS, n.CPU = usage()
	n.BytesRead = r.traceBytes()
	if n.Events > 0 {
		n.EventKinds = map[string]int64{"function": rep.Events.Functions, "message": rep.Events.Messages, "counter": rep.Events.Counters}
	}
	for _, st := range rep.Stages {
		n.Stages = append(n.Stages, api.Stage{Name: st.Name, Runs: st.Runs, Seconds: st.Time.Seconds()})
	}
	counts := rep.Tally
	r.addSending(&counts)
	for kind, count := range counts.All() {
		n.Tallies = append(n.Tallies, api.Tally{Name: kind.Name(), Severity: kind.Severity().String(), Count: count, Sentence: kind.Sentence()})
	}
	ranks := make([]api.Rank, 0, len(rep.Ranks))
	for _, k := range rep.Ranks {
		ranks = append(ranks, api.Rank{Program: int64(k.Program), Rank: int64(k.Rank), Behind: k.Lag.Seconds()})
	}
	s := &protocol.Status{Steps: n.StepsRead, Events: n.Events, Calls: n.Calls, Flagged: n.Anomalies}
	s.Node, _ = json.Marshal(n) // cannot fail: no field is NaN
	s.Ranks, _ = json.Marshal(ranks)
	if rep.Collectives != nil {
		s.Collectives, _ = rep.Collectives.Encode(maxLiveCollectives) // cannot fail either
	}
	switch {
	case r.reviewing.Load():
		s.State = protocol.Status_STATE_REVIEWING
	case len(rep.Ranks) > 0:
		s.State = protocol.Status_STATE_READING
	}
	return s
}

// traceBytes returns the size of the traces so far.
func (r *node) traceBytes() int64 {
	size, _ := r.streams.receivedBytes()
	for _, path := range *r.traces.Load() {
		size += bp.Size(path)
	}
	return size
}

// usage returns the memory and the processor time of this process, where available.
func usage() (rss int64, seconds float64) {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			rss = pages * int64(os.Getpagesize())
		}
	}
	return rss, cputime.OfProcess().Seconds()
}

// orForever bounds ctx by d, unless that is 0.
func orForever(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
