package paramserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// modelClient exchanges as an analyzer that keeps the replies.
type modelClient struct {
	tb            testing.TB
	s             *State
	number, known uint64
	epoch         uint64
	step          uint32
	now           time.Time
	lastReply     *protocol.ExchangeReply
}

// learn sends models and wants those of the given functions back.
func (a *modelClient) exchange(models []byte, flush bool, want ...uint32) {
	a.tb.Helper()
	req := &protocol.ExchangeRequest{Sender: sender("a", 1), Epoch: a.epoch, Known: a.known, Flush: flush}
	if models != nil {
		a.number++
		req.Number, req.Steps, req.Delta = a.number, steps(0, a.step, a.step+1), models
		a.step++
	}
	reply := exchangeAt(a.tb, a.s, req, a.now)
	a.epoch, a.known = reply.GetEpoch(), reply.GetVersion()
	if got := slices.Sorted(maps.Keys(idsOf(reply))); !slices.Equal(got, want) {
		a.tb.Errorf("after exchange %d: got the models of %d, want %d", a.number, got, want)
	}
	a.lastReply = reply
}

func TestOnlyModelsThatChangedAreReturned(t *testing.T) {
	s := newState(t, Config{})
	ids := numbersOf(s, "f", "g", "h")
	mustRegister(t, s, "a", 1, 0)
	a := &modelClient{tb: t, s: s, now: start}
	a.exchange(encoded(summary.Delta{Models: append(modelsOf(ids[0], 1), modelsOf(ids[1], 2)...)}), false, 0, 1)
	a.exchange(nil, false)
	a.exchange(modelOf(ids[1], 3), false, 1)
	a.exchange(modelOf(ids[2], 3), false, 2)
	a.exchange(nil, true)
	a.known = 0
	a.exchange(nil, false, 0, 1, 2)
	a.epoch = 99 // the models known are those of another process
	a.exchange(nil, false, 0, 1, 2)
}

func TestModelsRefreshPeriodicallyOrOnFlush(t *testing.T) {
	s := newState(t, Config{Refresh: time.Second})
	ids := numbersOf(s, "f", "g", "h")
	mustRegister(t, s, "a", 1, 0)
	a := &modelClient{tb: t, s: s, now: start}
	a.exchange(modelOf(ids[0], 1), false, 0)
	a.exchange(modelOf(ids[0], 1), false)
	a.exchange(modelOf(ids[1], 1), false) // new, in no version yet
	if a.lastReply.GetIncluded() != 1 || a.lastReply.GetLast() != 3 {
		t.Errorf("got %v, want the first of three exchanges included", a.lastReply)
	}
	a.known = 0
	a.exchange(nil, false, 0) // a function that is in no version does not hide others
	a.now = start.Add(time.Second)
	a.exchange(nil, false, 0, 1)
	if a.lastReply.GetIncluded() != 3 {
		t.Errorf("got %v, want three exchanges included", a.lastReply)
	}
	a.exchange(modelOf(ids[2], 1), false)
	a.exchange(nil, true, 2)
}

func TestRestartedServerSendsAllModels(t *testing.T) {
	w := newWorld(t, Config{})
	key := trace.RankKey{Program: 0, Rank: 0}
	traces := oneTrace(key, 3)
	traces[key][1] = learned(key, 1, "other", 5)
	a := newAnalyzer(t, w, "a", 1, traces)
	a.readOne(key)
	a.readOne(key)
	a.mustTalk()
	w.save(0)
	a.mustTalk()
	w.kill(0)
	w.start(0)
	a.mustTalk()
	if n := a.client.Progress().Models; n != 2 {
		t.Errorf("%d models came after the restart, want 2", n)
	}
	settle(w, a)
	a.wantModels(newOracle(traces, func(trace.FuncKey) int { return 0 }).models)
}

func TestModelReceivedBeforeFunctionAppearsIsKept(t *testing.T) {
	w := newWorld(t, Config{})
	one, two := trace.RankKey{Program: 0, Rank: 1}, trace.RankKey{Program: 0, Rank: 2}
	a, b := newAnalyzer(t, w, "a", 1, oneTrace(one, 4)), newAnalyzer(t, w, "b", 1, oneTrace(two, 4))
	a.readOne(one)
	a.mustTalk()
	b.mustTalk() // it has no function yet
	version := b.client.Progress().Version
	b.readOne(two)
	b.mustTalk()
	if got := b.local[whole(fn(0, "solve"))].Count(); got != 4 {
		t.Errorf("the second analyzer judges by %d values, want 4", got)
	}
	if version == 0 || b.client.Progress().Version <= version {
		t.Errorf("versions %d and %d: the models were requested again", version, b.client.Progress().Version)
	}
}

// frozenModels configures a server with three frozen functions, each with one call path.
func frozenModels(shards int) Config {
	cfg := Config{Shards: shards, Frozen: true}
	for _, name := range []string{"g", "solve", "f"} {
		l := InitialModel{FuncKey: fn(0, name)}
		for v := range int64(50) {
			l.Model.Learn(100+v, 0)
		}
		l.Set(callpath.Hash(0).Then("main").Then(name), modelsOf(0, 100, 101)[0].Model)
		cfg.InitialModels = append(cfg.InitialModels, l)
	}
	return cfg
}

func TestFrozenModelsArriveBeforeFirstStep(t *testing.T) {
	for shards := range 3 {
		cfg := frozenModels(shards + 1)
		a := newAnalyzer(t, newWorld(t, cfg), "a", cfg.Shards, nil)
		if a.client.Ready() {
			t.Error("ready without a reply")
		}
		a.mustTalk()
		if !a.client.Ready() || !a.client.Frozen() || len(a.local) != 2*len(cfg.InitialModels) {
			t.Errorf("ready: %v, frozen: %v, %d models", a.client.Ready(), a.client.Frozen(), len(a.local))
		}
		for _, l := range cfg.InitialModels {
			wantSameModel(t, l.Name, at(a.local, whole(l.FuncKey)), &l.Model)
			for path, want := range l.Paths {
				wantSameModel(t, l.Name, at(a.local, callpath.Context{FuncKey: l.FuncKey, Path: path}), &want)
			}
		}
	}
}

func TestUnreachableServerDelaysAnalysisBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.kill(0)
		client := newAnalyzer(t, w, "a", 1, nil).client
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := time.Now()
		go client.Run(ctx)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !client.Ready() {
			<-tick.C
		}
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestFrozenModelsKeepContentAndIDs(t *testing.T) {
	for shards := range 3 {
		cfg := frozenModels(shards + 1)
		w := newWorld(t, cfg)
		key := trace.RankKey{Program: 0, Rank: 0}
		a := newAnalyzer(t, w, "a", cfg.Shards, oneTrace(key, 5))
		a.readOne(key)
		a.mustTalk()
		for i := range w.shards {
			w.kill(i)
			w.start(i)
		}
		for m := range a.client.Merged() { // what came before the restart
			want := cfg.InitialModels[1].Model
			if m.Path != 0 {
				want = cfg.InitialModels[1].Paths[m.Path]
			}
			wantSameModel(t, m.Name, &m.Model, &want)
		}
		a.own = make(map[callpath.Context]uint64) // nothing of it is to be in the models
		a.read[key] = len(a.traces[key])
		a.client.Add(endContribution(key, 0))
		settle(w, a)
		models := unionOfModels(w)
		for id, l := range cfg.InitialModels {
			got := models[whole(l.FuncKey)]
			wantSameModel(t, l.Name, &got, &l.Model)
			if name := w.state(0).names[id].Name; name != l.Name {
				t.Errorf("function %d is %q, want %q", id, name, l.Name)
			}
		}
		if !a.client.Frozen() || len(models) != 6 {
			t.Errorf("frozen: %v, %d models, want true and 6", a.client.Frozen(), len(models))
		}
	}
}

func TestLoadedModelsLearnAndKeepTheirIDs(t *testing.T) {
	l := InitialModel{FuncKey: fn(0, "solve")}
	l.Model.Learn(5, 0)
	s, err := NewState(Config{Run: "run", Shards: 1, InitialModels: []InitialModel{{FuncKey: fn(0, "f")}, l}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	mustRegister(t, s, "a", 1, 0)
	exchangeOne(t, s, &protocol.ExchangeRequest{Sender: sender("a", 1), Number: 1, Steps: steps(0, 0, 1), Delta: modelOf(1, 6)})
	var want outlier.Model
	want.Learn(5, 0)
	want.Learn(6, 0)
	got := s.Models()[1].Model
	wantSameModel(t, "the server", &got, &want)
	next, err := NewState(Config{Run: "run", Shards: 1, InitialModels: []InitialModel{l}}, 2)
	if err == nil {
		err = next.restore(s.snapshot().message)
	}
	wantError(t, err, `function "f" has the ids 1 and 0`, "begin a new run")
}

// sequentialRequester has the second shard answer first, and something happen between.
type sequentialRequester struct {
	paramclient.Requester
	second  chan struct{}
	between func()
}

func (o *sequentialRequester) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	switch subject {
	case paramwire.Subject("run", 1, "exchange"):
		defer func() { o.second <- struct{}{} }()
	case paramwire.Subject("run", 0, "exchange"):
		<-o.second
		o.between()
	}
	return o.Requester.Request(ctx, subject, data)
}

func TestFinalModelsComeFromAllShardsAfterTheEnd(t *testing.T) {
	w := newWorld(t, Config{Shards: 2})
	name := "g"
	for paramwire.ShardOf(trace.FuncKey{Name: name}, 2) != 1 {
		name += "g"
	}
	traces := make(map[trace.RankKey][]*deltas.Contribution)
	for rank := range trace.Rank(2) {
		key := trace.RankKey{Program: 0, Rank: rank}
		traces[key] = []*deltas.Contribution{learned(key, 0, name, 5), endContribution(key, 0)}
	}
	one, two := trace.RankKey{Program: 0, Rank: 0}, trace.RankKey{Program: 0, Rank: 1}
	b := newAnalyzer(t, w, "b", 2, map[trace.RankKey][]*deltas.Contribution{two: traces[two]})
	b.mustTalk() // so that the run waits for it
	rounds := 0
	slow := &sequentialRequester{Requester: w, second: make(chan struct{}, 1), between: func() {
		if rounds++; rounds < 3 {
			return
		}
		for range 3 { // now the other one comes, and the run ends
			b.readAll()
			b.mustTalk()
			w.state(0).Tick(start)
			w.save(0)
			w.save(1)
		}
	}}
	a := newAnalyzer(t, slow, "a", 2, map[trace.RankKey][]*deltas.Contribution{one: traces[one]})
	a.readAll()
	for !a.finished() && rounds < 10 {
		a.mustTalk()
	}
	a.wantModels(newOracle(traces, func(trace.FuncKey) int { return 0 }).models)
	if !a.finished() {
		t.Error("the run does not end")
	}
}

// TestFunctionsWithTooManyPathsKeepSameSample has two analyzers with different paths of a
// function, more together than it keeps.
func TestFunctionsWithTooManyPathsKeepSameSample(t *testing.T) {
	const each = 200
	var want callpath.Sample[bool]
	w := newWorld(t, Config{Shards: 2})
	var all []*testAnalyzer
	for rank := range 2 {
		key := trace.RankKey{Program: 0, Rank: trace.Rank(rank)}
		c := learned(key, 0, "solve", 100, 200)
		for i := range each {
			path := callpath.Hash(0).Then(fmt.Sprint("caller ", rank, i)).Then("solve")
			want.Put(path, true, func(callpath.Hash, bool) {})
			c.Contexts = append(c.Contexts, deltas.Context{
				Context: callpath.Context{FuncKey: fn(0, "solve"), Path: path}, Model: &modelsOf(0, 100)[0].Model,
			})
		}
		traces := map[trace.RankKey][]*deltas.Contribution{key: {c, endContribution(key, 0)}}
		all = append(all, newAnalyzer(t, w, fmt.Sprint("a", rank), 2, traces))
	}
	for _, a := range all {
		a.readAll()
		a.mustTalk()
	}
	shard := paramwire.ShardOf(fn(0, "solve"), 2)
	w.kill(shard)
	w.start(shard)
	settle(w, all...)
	for _, l := range w.state(shard).Models() {
		if int(want.Level()) == 0 || l.Level != want.Level() || len(l.Paths) != want.Len() {
			t.Errorf("the server has %d paths at level %d, want %d at %d", len(l.Paths), l.Level, want.Len(), want.Level())
		}
		for path := range l.Paths {
			if _, ok := want.Get(path); !ok {
				t.Errorf("the server keeps path %x", path)
			}
		}
	}
	for _, a := range all {
		if a.level != want.Level() {
			t.Errorf("analyzer %s has level %d, want %d", a.cfg.Node, a.level, want.Level())
		}
		for path := range want.Sorted() {
			if m := a.local[callpath.Context{FuncKey: fn(0, "solve"), Path: path}]; m == nil || m.Count() != 1 {
				t.Errorf("analyzer %s has no model of path %x", a.cfg.Node, path)
			}
		}
	}
}
