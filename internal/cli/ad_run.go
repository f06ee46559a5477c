package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/paramserver"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// adRun is an analyzer at work.
type adRun struct {
	flags     *adFlags
	env       *Env
	log       *slog.Logger
	start     time.Time
	conn      *connector
	client    *paramserver.Client
	publisher *recordstream.Publisher
	report    atomic.Pointer[analyzer.Report]
	traces    atomic.Pointer[[]string] // found so far
	reviewing atomic.Bool
	reading   time.Duration // until all traces had ended
	progress  *adProgress
	streams   streams
}

func runAD(ctx context.Context, env *Env, flags *adFlags, cfg analyzer.Config, patterns []string, command *protocol.Command) error {
	settings, err := json.Marshal(judging{cfg.Outlier, cfg.Inclusive})
	if err != nil {
		return err
	}
	if cfg.SpoolDir = flags.spool; cfg.SpoolDir == "" {
		if cfg.SpoolDir, err = os.MkdirTemp("", "chimbuko-ad-"); err != nil {
			return err
		}
		defer os.RemoveAll(cfg.SpoolDir) //nolint:errcheck // temporary files
	} else if err := os.MkdirAll(cfg.SpoolDir, 0o755); err != nil {
		return err
	}
	r := &adRun{flags: flags, env: env, log: newLog(env.Stderr), start: time.Now(), progress: &adProgress{w: env.Stderr, terminal: isTerminal(env.Stderr)}}
	r.streams.flags, r.streams.log = &flags.streamFlags, r.log
	r.report.Store(&analyzer.Report{})
	r.traces.Store(new([]string))
	r.conn = &connector{flags: &flags.busFlags, dir: flags.dir, name: "analyzer " + flags.node, log: r.log, run: flags.run}
	session := uint64(r.start.UnixNano())
	r.client = paramserver.NewClient(paramserver.ClientConfig{
		Run: flags.run, Node: flags.node, Session: session, Shards: 1, Period: flags.exchange,
		Timeout: 10 * time.Second, Settings: string(settings), Command: command, Status: r.status, Log: r.log,
	}, r.conn)
	r.publisher = recordstream.NewPublisher(recordstream.PublisherConfig{
		Run: flags.run, Subject: recordSubject(flags.run), Sender: flags.node + "-" + strconv.FormatUint(session, 36),
		Numbers: r.client, Reviewing: r.reviewing.Load, MaxBytes: flags.outbox << 20, Log: r.log,
	}, r.conn)

	background, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.conn.watch(background) })
	wg.Go(func() { r.client.Run(background) })
	wg.Go(func() { r.publisher.Run(background) })
	defer wg.Wait()
	defer stop()
	err = r.analyze(ctx, cfg, patterns)
	if ctx.Err() != nil {
		r.progress.clear()
		if _, live := r.streams.received(); live {
			fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; live streams cannot be read again: the same command goes on with the steps "+
				"that are still to come, and chimbuko stop ends the run with what is known")
			return errReported
		}
		fmt.Fprintln(env.Stderr, "chimbuko: interrupted before the review; the same command reads the traces again, and nothing counts twice")
		return errReported
	}
	return err
}

// analyze reads, waits for the others, reviews and hands over.
func (r *adRun) analyze(ctx context.Context, cfg analyzer.Config, patterns []string) error {
	finder := &traceFinder{flags: r.flags, patterns: patterns, now: time.Now, over: r.heedLeash(), told: r.traces.Store, open: r.streams.opener}
	res, err := analyzer.New(cfg, r.publisher, nil).Follow(ctx, analyzer.Online{
		Sync: adSync{r.client, r}, Find: finder.find, Poll: r.flags.poll, Idle: r.flags.idle, Over: finder.over, Sleep: sleep, Report: r.note,
	})
	r.progress.clear()
	if errors.Is(err, paramserver.ErrReviewed) {
		fmt.Fprintln(r.env.Stderr, "chimbuko: what this analyzer had found before it was started again is stored; nothing is left to do")
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.publisher.Flush(ctx); err != nil {
		return err
	}
	r.addSending(&res.Tally)
	if err := r.hand(ctx, res); err != nil {
		return err
	}
	return r.summarize(res)
}

// heedLeash returns whether that was said; nil if nobody holds this process.
func (r *adRun) heedLeash() func() bool {
	if r.env.leash == nil {
		return nil
	}
	said := new(atomic.Bool)
	go func() {
		for line := range r.env.leash.Lines() {
			if line == supervise.ProgramEnded {
				said.Store(true)
			}
		}
	}()
	return said.Load
}

// addSending counts what happened to records on their way to the store.
func (r *adRun) addSending(t *tally.Tally) {
	st := r.publisher.Stats()
	t.Add(tally.RecordDeferred, st.Deferred)
	t.Add(tally.StreamFull, st.Held)
	t.Add(tally.RecordTooLarge, st.TooLarge)
}

// hand tells the server what came of the ranks, as often as needed. A server that was
// killed after it had taken that, but before it said so, may have been started again and
// have ended the run meanwhile.
func (r *adRun) hand(ctx context.Context, res *analyzer.Result) error {
	ctx, cancel := orForever(ctx, r.flags.giveUp)
	defer cancel()
	size, _ := r.streams.received()
	traces := *r.traces.Load()
	for _, path := range traces {
		size += sizeOf(path)
	}
	for {
		err := r.client.SendOutcome(ctx, res.Ranks, res.Outcome, traces, size)
		if err == nil || errors.Is(err, paramserver.ErrRefused) {
			return err
		}
		if rundir.HasFinished(r.flags.dir) {
			r.log.Info("the run has ended meanwhile")
			return nil
		}
		if waitErr := sleep(ctx, time.Second); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

func (r *adRun) summarize(res *analyzer.Result) error {
	st := r.publisher.Stats()
	sum := &adSummary{
		Node: r.flags.node, Reading: r.reading.Seconds(), Seconds: time.Since(r.start).Seconds(),
		Totals:    provdb.Totals{Totals: res.Totals, Functions: len(res.Functions), Anomalies: res.Review.Anomalies},
		Confirmed: res.Review.Confirmed, Promoted: res.Review.Promoted, Withdrawn: res.Review.Withdrawn,
		Records: st.Sent, Deferred: st.Deferred, Notes: res.Tally.Notes(),
	}
	for _, b := range res.Broken {
		sum.Broken = append(sum.Broken, b.Error())
	}
	err := r.env.show(r.flags.asJSON, sum, sum.print)
	for _, b := range res.Broken {
		fmt.Fprintf(r.env.Stderr, "chimbuko: %v\n", b)
		if r.env.leash == nil { // else it is told with the whole run
			err = errors.Join(err, errReported)
		}
	}
	return err
}

// adSync is the client with what the analyzer does around the end of reading.
type adSync struct {
	*paramserver.Client
	run *adRun
}

// Finish waits until all analyzers have ended, for as long as the flags say.
func (s adSync) Finish(ctx context.Context) error {
	r := s.run
	r.reading = time.Since(r.start)
	r.progress.clear()
	r.log.Info("all traces have ended; waiting for the other analyzers", "seconds", r.reading.Seconds())
	bounded, cancel := orForever(ctx, r.flags.giveUp)
	defer cancel()
	bounded, over := context.WithCancelCause(bounded)
	defer over(nil)
	go r.watchEnd(bounded, over)
	err := s.Client.Finish(bounded)
	if err != nil {
		if end, ok := errors.AsType[*runEnded](context.Cause(bounded)); ok {
			return end.error
		}
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the services did not answer within %v after the traces had ended, so nothing is reviewed or stored: %w; start the same command again when they are there", r.flags.giveUp, s.Err())
		}
		return err
	}
	r.reviewing.Store(true)
	return nil
}

// runEnded says that the run has ended without its analyzer, and what that means.
type runEnded struct{ error }

// endedAway is how long the services of a run that has ended must be away before an
// analyzer believes it: they may be about to replace the run by another.
const endedAway = 5 * time.Second

// watchEnd ends the wait for the services when the run directory says that the run has
// ended: they will not come again. The analyzer was killed when it had told what came of
// its ranks, or had not, when the run was stopped.
func (r *adRun) watchEnd(ctx context.Context, over context.CancelCauseFunc) {
	for away := time.Now(); sleep(ctx, watchEvery) == nil; {
		if r.client.Err() == nil {
			away = time.Now()
		}
		if time.Since(away) < endedAway {
			continue
		}
		info, err := rundir.ReadInfo(r.flags.dir)
		if err != nil || info.State != provdb.Finished {
			continue
		}
		for _, path := range *r.traces.Load() {
			if !slices.Contains(info.Traces, path) {
				over(&runEnded{fmt.Errorf("the run in %s has ended without %s; analyze it with chimbuko analyze, or begin another run", r.flags.dir, path)})
				return
			}
		}
		over(&runEnded{paramserver.ErrReviewed})
	}
}

// note keeps how far the work has come, and shows it.
func (r *adRun) note(rep *analyzer.Report) {
	r.report.Store(rep)
	r.progress.show(rep, r.client.Lag(), r.client.Err() != nil)
}

// status tells the server how this analyzer fares.
func (r *adRun) status() *protocol.Status {
	rep, out := r.report.Load(), r.publisher.Stats()
	ex := r.client.Exchanges()
	counts := rep.Tally
	r.addSending(&counts)
	host, _ := os.Hostname() // not known is not known
	s := &protocol.Status{
		Host: host, Pid: int64(os.Getpid()), Steps: int64(rep.Totals.Steps), Events: rep.Totals.Events, Calls: rep.Totals.Calls,
		Flagged: rep.Totals.Flagged, Records: out.Sent, OutboxMessages: out.Messages, OutboxBytes: out.Bytes, Deferred: out.Deferred,
		ExchangeSeconds: ex.Last.Seconds(), Exchanges: ex.Count, ExchangeMaxSeconds: ex.Max.Seconds(), ExchangeSent: ex.Sent, ExchangeReceived: ex.Received, BehindSeconds: rep.Behind.Seconds(), Tally: paramserver.TallyTo(&counts), UnsentSteps: r.client.Lag(), OpenCalls: rep.OpenCalls,
		FunctionEvents: rep.Events.Functions, MessageEvents: rep.Events.Messages, CounterEvents: rep.Events.Counters,
	}
	if ex.Count > 0 {
		s.ExchangeMeanSeconds = ex.Sum.Seconds() / float64(ex.Count)
	}
	s.Rss, s.CpuSeconds = usage()
	for _, st := range rep.Stages {
		s.Stages = append(s.Stages, &protocol.Stage{Name: st.Name, Runs: st.Runs, Seconds: st.Took.Seconds()})
	}
	s.Bytes, _ = r.streams.received()
	for _, path := range *r.traces.Load() {
		s.Bytes += sizeOf(path)
	}
	for _, k := range rep.Ranks {
		s.Ranks = append(s.Ranks, &protocol.RankStatus{
			Program: uint32(k.Program), Rank: uint32(k.Rank), Host: strings.ToValidUTF8(k.Host, "?"), Step: uint32(k.Step), Ended: k.Ended, BehindSeconds: k.Behind.Seconds(),
		})
	}
	switch {
	case r.reviewing.Load():
		s.State = protocol.Status_STATE_REVIEWING
	case len(rep.Ranks) > 0:
		s.State = protocol.Status_STATE_READING
	}
	return s
}

// usage is the memory and the processor time of this process, as far as the
// system tells.
func usage() (rss int64, seconds float64) {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			rss = pages * int64(os.Getpagesize())
		}
	}
	return rss, processorSeconds()
}

// adProgress shows a person how far an analyzer has come.
type adProgress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
	events   int64
}

func (p *adProgress) show(rep *analyzer.Report, unsent int64, alone bool) {
	interval := 10 * time.Second
	if p.terminal {
		interval = lineInterval
	}
	since := time.Since(p.shown)
	if since < interval || rep.Totals.Ranks == 0 {
		return
	}
	rate := float64(rep.Totals.Events-p.events) / since.Seconds()
	if p.shown.IsZero() {
		rate = 0
	}
	p.shown, p.events = time.Now(), rep.Totals.Events
	services := ""
	if alone {
		services = "; the services are away"
	}
	line := fmt.Sprintf("%d ranks, %s steps, %s events (%s/s), %s flagged, %s behind, %d steps to share%s", rep.Totals.Ranks, grouped(int64(rep.Totals.Steps)),
		grouped(rep.Totals.Events), grouped(int64(rate)), grouped(rep.Totals.Flagged), rep.Behind.Round(100*time.Millisecond), unsent, services)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.w, line)
	}
}

func (p *adProgress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
