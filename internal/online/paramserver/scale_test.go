package paramserver

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// BenchmarkScale is how fast a simulated program of 10 000 ranks on 100 hosts
// with 100 functions goes through the parameter server. Real time is a step of
// each rank in a second: x-real-time is how many of them were done. All is in
// this process: the simulator, NATS, the server, its models and its summary, and
// for each host a client.
//
// In summary what ranks learned is made straight from their calls; in whole each
// host has an analyzer, which builds call stacks, judges each call and keeps
// records. In thousand, ranks have three times as many events, 920 in a step.
//
// CPU-s/step is the processor time for a step of all ranks, without the simulator:
// with two processors it must be below 2 for real time, whatever else the machine
// does. p99-ms is the time of an exchange for its client. CHIMBUKO_BENCH_RANKS,
// CHIMBUKO_BENCH_ANALYZERS and CHIMBUKO_BENCH_STEPS set other numbers than 10 000, 100
// and 10.
func BenchmarkScale(b *testing.B) {
	text, err := scenario.Builtin("scale")
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []struct {
		name       string
		iterations int
		run        func(*testing.B, *scale)
	}{{"summary", 1, scaleSummary}, {"whole", 1, scaleWhole}, {"thousand", 3, scaleWhole}} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				s, err := scenario.Parse("scale", text)
				if err != nil {
					b.Fatal(err)
				}
				s.Iterations = kind.iterations
				s.Steps = setting("CHIMBUKO_BENCH_STEPS", s.Steps)
				s.Programs[0].Ranks = setting("CHIMBUKO_BENCH_RANKS", s.Programs[0].Ranks)
				analyzers := setting("CHIMBUKO_BENCH_ANALYZERS", len(s.Programs[0].Hosts))
				of := &scale{scenario: s, run: simulate.New(s), hosts: make(map[string][]*simulate.Stream), simulator: simulatorTime(b, s)}
				for _, rank := range of.run.Streams() {
					name := fmt.Sprint("analyzer", of.ranks*analyzers/s.Programs[0].Ranks)
					of.hosts[name] = append(of.hosts[name], rank)
					of.ranks++
				}
				kind.run(b, of)
			}
		})
	}
}

// setting returns the number in an environment variable, or another if there is none.
func setting(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// scale is a large program.
type scale struct {
	scenario *scenario.Scenario
	run      *simulate.Run
	hosts    map[string][]*simulate.Stream // by analyzer
	ranks    int
	events   atomic.Int64

	simulator, began time.Duration // processor time of the simulation alone, and at the start

	mu        sync.Mutex
	exchanges []time.Duration
}

// simulatorTime returns the processor time of the simulation alone.
func simulatorTime(b *testing.B, of *scenario.Scenario) time.Duration {
	b.Helper()
	began, run := cputime.OfProcess(), simulate.New(of)
	for run.Advance() {
		for _, rank := range run.Streams() {
			if _, err := rank.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
			rank.Release()
		}
	}
	return cputime.OfProcess() - began
}

// timedConn measures the exchanges of a client.
type timedConn struct {
	*bus.Conn
	of *scale
}

func (t timedConn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	began := time.Now()
	reply, err := t.Conn.Request(ctx, subject, data)
	if strings.HasSuffix(subject, ".exchange") {
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		t.of.exchanges = append(t.of.exchanges, time.Since(began))
	}
	return reply, err
}

func (s *scale) report(b *testing.B, took time.Duration, server *Server) {
	b.Helper()
	b.ReportMetric((cputime.OfProcess()-s.began-s.simulator).Seconds()/float64(s.scenario.Steps), "CPU-s/step")
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.exchanges)
	if n := len(s.exchanges); n > 0 {
		b.ReportMetric(s.exchanges[n*99/100].Seconds()*1000, "p99-ms")
		b.ReportMetric(float64(n)/took.Seconds(), "exchanges/s")
	}
	steps := float64(s.ranks * s.scenario.Steps)
	rate := steps / took.Seconds()
	b.ReportMetric(rate, "steps/s")
	b.ReportMetric(rate/float64(s.ranks), "x-real-time")
	b.ReportMetric(float64(s.events.Load())/took.Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(peakRSS())/1e6, "peak-MB")
	server.mu.Lock()
	defer server.mu.Unlock()
	b.ReportMetric(float64(server.in)/steps, "B-to-server/step")
}

func (s *scale) client(b *testing.B, nats *bus.Server, host string) *paramclient.Client {
	b.Helper()
	return paramclient.New(paramclient.Config{Run: "run", Node: host, Session: 1, Shards: 1, Period: time.Second, Timeout: patience},
		timedConn{connect(b, nats), s})
}

// talk has a client talk to its server until the returned function is called.
func talk(ctx context.Context, c *paramclient.Client) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var talking sync.WaitGroup
	talking.Go(func() { c.Run(ctx) })
	return func() {
		cancel()
		talking.Wait()
	}
}

func scaleSummary(b *testing.B, s *scale) {
	nats, server := serverOf(b, s.ranks)
	clients := make(map[string]*paramclient.Client)
	for host := range s.hosts {
		clients[host] = s.client(b, nats, host)
		defer talk(b.Context(), clients[host])()
	}
	began := time.Now()
	s.began = cputime.OfProcess()
	for s.run.Advance() {
		hosts := make(chan string, len(s.hosts))
		for host := range s.hosts {
			hosts <- host
		}
		close(hosts)
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				var l learner
				for host := range hosts {
					for _, rank := range s.hosts[host] {
						clients[host].Add(l.learn(b, s, rank))
					}
				}
			})
		}
		wg.Wait()
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			if err := c.Finish(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	s.report(b, time.Since(began), server)
}

// learner makes what a rank learned in a step of its calls.
type learner struct {
	funcs []deltas.Function // by number
	step  deltas.Contribution
	stack []openCall
}

type openCall struct{ entry, inside int64 }

func (l *learner) learn(b *testing.B, s *scale, rank *simulate.Stream) *deltas.Contribution {
	step, err := rank.Next(b.Context())
	if err != nil {
		b.Error(err)
		return &l.step
	}
	s.events.Add(int64(step.Funcs + step.Comms + step.Counters))
	for i := range l.funcs {
		f := &l.funcs[i]
		f.Model.Reset()
		f.Exclusive, f.Inclusive = stats.Sums{}, stats.Sums{}
	}
	events := step.Batches[0].Events
	l.stack = l.stack[:0]
	for i := range events {
		switch e := &events[i]; e.Kind {
		case trace.Enter:
			l.stack = append(l.stack, openCall{entry: int64(e.Time)})
		case trace.Exit:
			if len(l.stack) == 0 {
				continue // entered in a step before
			}
			call := l.stack[len(l.stack)-1]
			l.stack = l.stack[:len(l.stack)-1]
			took := int64(e.Time) - call.entry
			f := l.deltaOf(rank, e.Func())
			f.Model.Learn(took-call.inside, int64(e.Time))
			f.Exclusive.Add(uint64(took - call.inside))
			f.Inclusive.Add(uint64(took))
			if len(l.stack) > 0 {
				l.stack[len(l.stack)-1].inside += took
			}
		}
	}
	l.step = deltas.Contribution{
		StepKey: trace.StepKey{RankKey: trace.RankKey{Program: rank.Program(), Rank: rank.Rank()}, Step: step.Index}, Host: rank.Host(),
		First: events[0].Time, Last: events[len(events)-1].Time,
		Ended: step.Index == s.scenario.Steps-1, Functions: l.step.Functions[:0],
	}
	for i := range l.funcs {
		if l.funcs[i].Model.Count() > 0 {
			l.step.Functions = append(l.step.Functions, l.funcs[i])
		}
	}
	rank.Release()
	return &l.step
}

func (l *learner) deltaOf(rank *simulate.Stream, id trace.FuncID) *deltas.Function {
	for len(l.funcs) <= int(id) {
		name, _ := rank.Names().Func(rank.Rank(), trace.FuncID(len(l.funcs)))
		l.funcs = append(l.funcs, found(trace.RankKey{Program: rank.Program(), Rank: rank.Rank()}, name))
	}
	return &l.funcs[id]
}

func scaleWhole(b *testing.B, s *scale) {
	nats, server := serverOf(b, s.ranks)
	lock := &lockstep{of: s}
	var sink flagCounter
	began := time.Now()
	s.began = cputime.OfProcess()
	var wg sync.WaitGroup
	for host, streams := range s.hosts {
		var inputs []analyzer.Input
		for _, of := range streams {
			inputs = append(inputs, analyzer.Input{
				Path: fmt.Sprintf("rank-%d.bp", of.Rank()), Program: of.Program(),
				Steps: func(*tally.Tally) (trace.Steps, error) { return &heldReader{Stream: of, lock: lock}, nil },
			})
		}
		cfg := analyzer.Default()
		cfg.Workers, cfg.SpoolDir = 1, b.TempDir()
		c := s.client(b, nats, host)
		wg.Go(func() {
			defer talk(b.Context(), c)()
			_, err := analyzer.New(cfg, &sink, nil).Follow(b.Context(), analyzer.Online{
				Sync: c, Poll: time.Millisecond, Sleep: pause, Report: func(*analyzer.Report) {},
				Find: func() ([]analyzer.Input, bool, error) { return inputs, true, nil },
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	s.report(b, time.Since(began), server)
	b.ReportMetric(float64(sink.flagged.Load()), "flagged")
}

// lockstep lets a simulation continue when all of its ranks have been read, as the
// program itself would.
type lockstep struct {
	of    *scale
	mu    sync.Mutex
	step  int // that can be read
	taken int // how often it was
}

// mayRead reports whether a rank that has read so many steps can have the next.
func (l *lockstep) mayRead(read int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if read <= l.step {
		return true
	}
	if l.taken < l.of.ranks {
		return false
	}
	l.taken, l.step = 0, l.step+1
	return true
}

func (l *lockstep) stepRead() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
}

// heldReader is a rank that has no new step while others have not had theirs.
type heldReader struct {
	*simulate.Stream
	lock *lockstep
	read int
}

func (h *heldReader) Next(ctx context.Context) (*trace.Step, error) {
	if !h.lock.mayRead(h.read) {
		return nil, bp.ErrIdle
	}
	step, err := h.Stream.Next(ctx)
	if err != nil {
		return nil, err
	}
	h.read++
	h.lock.stepRead()
	h.lock.of.events.Add(int64(step.Funcs + step.Comms + step.Counters))
	return step, nil
}

// flagCounter is a sink that counts.
type flagCounter struct{ flagged atomic.Int64 }

func (*flagCounter) Metadata(context.Context, trace.StepKey, []provenance.Metadata) error {
	return nil
}

func (f *flagCounter) Records(_ context.Context, _ trace.StepKey, anomalies, _ []*provenance.Record) error {
	f.flagged.Add(int64(len(anomalies)))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// peakRSS returns the peak memory of the process, or 0 if unknown.
func peakRSS() (bytes int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kB << 10
		}
	}
	return 0
}
