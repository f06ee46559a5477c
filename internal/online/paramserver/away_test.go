package paramserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// patience is how long a test waits for what must happen, also on a busy machine.
const patience = 2 * time.Minute

// longTraces are of some ranks with anomalies and counters.
func longTraces(steps int) map[trace.RankKey][]*deltas.Contribution {
	traces := make(map[trace.RankKey][]*deltas.Contribution)
	for _, key := range []trace.RankKey{{Program: 0, Rank: 0}, {Program: 0, Rank: 1}, {Program: 1, Rank: 0}} {
		traces[key] = randomTrace(5, key, steps)
	}
	return traces
}

func TestContributionsSurviveUnavailableServer(t *testing.T) {
	for _, limit := range []int{1 << 16, 20, 1} {
		for _, shards := range []int{1, 2, 5} {
			known := max(1, (shards*3)%7) // which the analyzer is wrong about at first
			s := &schedule{world: newWorld(t, Config{Shards: shards}), traces: longTraces(60)}
			for i := range s.shards {
				s.kill(i)
			}
			a := newAnalyzer(t, s.world, "a", known, s.traces)
			s.analyzers = append(s.analyzers, a)
			a.cfg.MaxSeparate = limit
			a.start()
			for range 60 {
				for key := range s.traces {
					a.readOne(key)
				}
				if err := a.talk(); err == nil {
					t.Fatal("Sync succeeds without a server")
				}
			}
			if n := a.client.Progress().Separate; n > limit {
				t.Errorf("%d functions are kept apart, more than %d", n, limit)
			}
			if steps := a.client.Lag(); steps < 3*40 {
				t.Errorf("%d steps wait, want those of three ranks", steps)
			}
			s.finish()
			s.wantOracle()
		}
	}
}

func TestAnalyzerWithPartlyKnownJoinedStepsMustRestart(t *testing.T) {
	f := func(known int, limit int, want string) {
		t.Helper()
		s := &schedule{world: newWorld(t, Config{}), traces: oneTrace(trace.RankKey{Program: 0, Rank: 3}, 10)}
		key := trace.RankKey{Program: 0, Rank: 3}
		a := newAnalyzer(t, s.world, "a", 1, s.traces)
		s.analyzers = append(s.analyzers, a)
		for range known {
			a.readOne(key)
		}
		a.mustTalk()
		s.save(0)
		s.kill(0)
		a.cfg.MaxSeparate = limit
		a.start()
		for range 6 {
			a.readOne(key)
			if err := a.talk(); err == nil {
				t.Fatal("Sync succeeds without a server")
			}
		}
		s.start(0)
		if want != "" {
			wantError(t, a.talk(), want, "start this analyzer again")
			wantError(t, a.client.Err(), want)
			wantError(t, a.client.Finish(t.Context()), want)
			wantError(t, a.talk(), want) // for ever
			a.cfg.MaxSeparate = 0
			a.start()
		}
		a.mustTalk()
		s.finish()
		s.wantOracle()
	}
	const joined = "steps of rank 3 were joined, and it has some of them"
	f(3, 1, joined)
	f(5, 1, joined)
	f(6, 1, "") // all of them
	f(9, 1, "")
	f(3, 100, "") // they are still apart
}

func TestLossOfServerStateIsDetected(t *testing.T) {
	for _, more := range []bool{false, true} {
		w := newWorld(t, Config{})
		key := trace.RankKey{Program: 0, Rank: 0}
		a := newAnalyzer(t, w, "a", 1, oneTrace(key, 4))
		a.readOne(key)
		a.mustTalk()
		w.save(0)
		a.mustTalk() // now it is durable and not kept any more
		if more {
			a.readOne(key)
		}
		w.kill(0)
		w.shards[0].disk = nil
		w.start(0)
		a.client.End()
		var err error
		for range 4 {
			err = errors.Join(err, a.talk())
		}
		wantError(t, err, "lost what it had stored", "start this analyzer again")
		a.start()
		settle(w, a)
		a.wantModels(newOracle(a.traces, func(trace.FuncKey) int { return 0 }).models)
	}
}

func TestAnalyzerHasEndedWhenEverythingIsDurable(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 0}
	a := newAnalyzer(t, w, "a", 1, oneTrace(key, 2))
	a.cfg.Status = func() *protocol.Status { // claims too much, and calls the client
		a.client.Lag()
		return &protocol.Status{State: protocol.Status_STATE_REVIEWING}
	}
	a.start()
	a.readOne(key)
	a.mustTalk()
	if got := w.state(0).nodes["a"].GetStatus().GetState(); got != protocol.Status_STATE_READING {
		t.Errorf("the server thinks that the analyzer is %v", got)
	}
	a.readAll()
	if a.client.Progress().Ended {
		t.Error("the analyzer ended before the server had everything")
	}
	a.mustTalk()
	if got := w.state(0).nodes["a"].GetStatus().GetState(); got != protocol.Status_STATE_READING {
		t.Errorf("with its last steps the analyzer reports %v", got)
	}
	a.mustTalk()
	if got := w.state(0).nodes["a"].GetStatus().GetState(); got != protocol.Status_STATE_REVIEWING || !a.client.Progress().Ended {
		t.Errorf("the server thinks that the analyzer is %v", got)
	}
	without := newAnalyzer(t, w, "b", 1, nil)
	if without.client.End(); without.client.Progress().Ended {
		t.Error("an analyzer without traces ended before it reported its end")
	}
}

// inspectingRequester does something before each request.
type inspectingRequester struct {
	paramclient.Requester
	look func()
}

func (l *inspectingRequester) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	l.look()
	return l.Requester.Request(ctx, subject, data)
}

func TestExchangeLostInCrashCountsOnce(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 0}
	bus := &inspectingRequester{Requester: w, look: func() {}}
	a := newAnalyzer(t, bus, "a", 1, oneTrace(key, 6))
	bus.look = func() {
		a.learnFromOthers()
		for name, m := range a.local {
			if m.Count() != a.own[name] {
				t.Errorf("it judges by %d values, of which it learned all %d itself", m.Count(), a.own[name])
			}
		}
	}
	for range 5 {
		a.readOne(key)
		a.mustTalk()
		w.kill(0)
		w.start(0)
		a.mustTalk()
		a.mustTalk()
	}
}

func TestExchangesGatherWhileServerCannotStore(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 0}
	const maxSent = 16
	a := newAnalyzer(t, w, "a", 1, oneTrace(key, 3*maxSent))
	a.cfg.MaxPending = maxSent
	a.start()
	for range 2 * maxSent {
		a.readOne(key)
		a.mustTalk()
	}
	if n := a.client.Progress().Pending; n != maxSent {
		t.Errorf("%d exchanges are kept, want %d", n, maxSent)
	}
	w.kill(0)
	w.start(0)
	settle(w, a)
	o := newOracle(a.traces, func(trace.FuncKey) int { return 0 })
	a.wantModels(o.models)
	wantSameLive(t, w.state(0), o)
}

func TestFinishEndsWithItsContextAndTheServerError(t *testing.T) {
	w := newWorld(t, Config{})
	w.kill(0)
	a := newAnalyzer(t, w, "a", 1, nil)
	_ = a.talk()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.client.Finish(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that of the context", err)
	} else {
		wantError(t, err, "no service for this subject")
	}
}

func TestRestartedAnalyzerContinuesAfterClockWasSetBack(t *testing.T) {
	s := &schedule{world: newWorld(t, Config{Shards: 2}), traces: longTraces(6)}
	a := newAnalyzer(t, s.world, "a", 2, s.traces)
	s.analyzers = append(s.analyzers, a)
	a.cfg.Session = 1000
	a.start()
	a.readOne(trace.RankKey{Program: 0, Rank: 0})
	if err := a.talk(); err != nil {
		t.Fatal(err)
	}
	before := a.client
	a.cfg.Session = 10
	a.start()
	a.readOne(trace.RankKey{Program: 0, Rank: 0})
	if err := a.talk(); err != nil {
		t.Fatalf("the later analyzer: %v", err)
	}
	if err := before.Sync(t.Context()); err == nil || !before.Progress().Failed {
		t.Errorf("the earlier analyzer continues: %v", err)
	}
	s.finish()
	s.wantOracle()
}

func TestRestartedAnalyzerOfStoppedRunReadsKnownStepsFirst(t *testing.T) {
	s := &schedule{world: newWorld(t, Config{Shards: 1}), traces: longTraces(6)}
	a := newAnalyzer(t, s.world, "a", 1, s.traces)
	s.analyzers = append(s.analyzers, a)
	for range 4 {
		a.readOne(trace.RankKey{Program: 0, Rank: 0})
	}
	if err := a.talk(); err != nil {
		t.Fatal(err)
	}
	s.shards[0].server.state.Stop(time.Now())
	a.start()
	for read := range 5 {
		if err := a.talk(); err != nil {
			t.Fatal(err)
		}
		if got, want := a.client.Stopped(), read >= 4; got != want {
			t.Errorf("after %d steps it is stopped: %v, want %v", read, got, want)
		}
		a.readOne(trace.RankKey{Program: 0, Rank: 0})
	}
}
