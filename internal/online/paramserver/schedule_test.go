package paramserver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// schedule is a run with every kind of failure, at times chosen by a seed.
type schedule struct {
	*world
	rng       *rand.Rand
	traces    map[trace.RankKey][]*deltas.Contribution
	analyzers []*testAnalyzer
	kills     int
}

func newSchedule(t *testing.T, seed uint64, cfg Config) *schedule {
	s := &schedule{rng: rand.New(rand.NewPCG(seed, 1)), traces: make(map[trace.RankKey][]*deltas.Contribution)}
	if s.rng.IntN(2) == 0 {
		cfg.Refresh = time.Hour // only flushes renew the models
	}
	var parts []map[trace.RankKey][]*deltas.Contribution
	for i := range 1 + s.rng.IntN(3) {
		part := make(map[trace.RankKey][]*deltas.Contribution)
		for r := range 1 + s.rng.IntN(3) {
			key := trace.RankKey{Program: trace.Program(r / 2), Rank: trace.Rank(3*i + r)}
			part[key] = randomTrace(seed, key, 1+s.rng.IntN(8))
			s.traces[key] = part[key]
		}
		parts = append(parts, part)
	}
	cfg.Ranks = len(s.traces)
	s.world = newWorld(t, cfg)
	for _, p := range s.shards {
		p.faults = rand.New(rand.NewPCG(seed, s.rng.Uint64()))
	}
	for i, part := range parts {
		s.analyzers = append(s.analyzers, newAnalyzer(t, s.world, fmt.Sprint("node", i), cfg.Shards, part))
	}
	return s
}

// play does something random.
func (s *schedule) play() {
	a := s.analyzers[s.rng.IntN(len(s.analyzers))]
	shard := s.rng.IntN(len(s.shards))
	up := s.shards[shard].server != nil
	switch n := s.rng.IntN(100); {
	case n < 35:
		for key := range a.traces { // any
			if s.rng.IntN(2) == 0 || !a.readJoint(key.Program) {
				a.readOne(key)
			}
			break
		}
		if a.hasReadAll() {
			a.client.End()
		}
	case n < 75:
		if err := a.talk(); err != nil && a.client.Progress().Failed {
			s.tb.Fatalf("analyzer %s gave up: %v", a.cfg.Node, err)
		}
	case n < 82 && up:
		s.save(shard)
	case n < 88 && up:
		s.state(shard).Tick(time.Now())
	case n < 92:
		s.shards[shard].deliver(s.tb.Context(), s.rng)
	case n < 95:
		s.kills++
		s.kill(shard)
	case n < 97 && s.rng.IntN(2) == 0:
		s.kills++
		a.start()
	}
	if s.shards[shard].server == nil && s.rng.IntN(4) == 0 {
		s.start(shard)
	}
}

// finish has all end well.
func (s *schedule) finish() {
	s.tb.Helper()
	for i, p := range s.shards {
		if p.faults = nil; p.server == nil {
			s.start(i)
		}
	}
	settle(s.world, s.analyzers...)
}

// wantOracle fails when server and analyzers differ in any bit from an oracle that
// got everything once.
func (s *schedule) wantOracle() {
	s.tb.Helper()
	ids := make(map[trace.FuncKey]int)
	for id, name := range s.state(0).names {
		ids[name] = id
	}
	o := newOracle(s.traces, func(n trace.FuncKey) int { return ids[n] })
	models := unionOfModels(s.world)
	if len(models) != len(o.models) {
		s.tb.Errorf("%d models, want %d", len(models), len(o.models))
	}
	for name, want := range o.models {
		got := models[name]
		wantSameModel(s.tb, "the server of "+name.Name, &got, want)
	}
	for _, a := range s.analyzers {
		a.wantModels(o.models)
	}
	for shard := range s.shards {
		for key, want := range o.next {
			if r := s.state(shard).ranks[key]; r == nil || r.next != want || !r.ended {
				s.tb.Errorf("shard %d has %+v for rank %v, want %d steps and the end", shard, r, key, want)
			}
		}
	}
	wantSameLive(s.tb, s.state(0), o)
}

// unionOfModels returns the models of all shards by name.
func unionOfModels(w *world) map[callpath.Context]outlier.Model {
	all := make(map[callpath.Context]outlier.Model)
	for shard := range w.shards {
		eachLearned(w.state(shard), w.state(0).names, func(context callpath.Context, m outlier.Model) { all[context] = m })
	}
	return all
}

// eachLearned calls f with all models of a state.
func eachLearned(s *State, names []trace.FuncKey, f func(callpath.Context, outlier.Model)) {
	for id, l := range s.Models() {
		f(whole(names[id]), l.Model)
		for path, m := range l.Paths {
			f(callpath.Context{FuncKey: names[id], Path: path}, m)
		}
	}
}

// wantSameLive compares the running pictures to the last bit.
func wantSameLive(tb testing.TB, s *State, o *oracle) {
	tb.Helper()
	wantSamePaths(tb, s, o)
	if load, _ := s.Load(); !bytes.Equal(load.AppendBinary(nil), o.load.AppendBinary(nil)) {
		tb.Errorf("the load differs: %d kinds of work on %d lanes, want %d on %d",
			len(load.Works()), len(load.Lanes()), len(o.load.Works()), len(o.load.Lanes()))
	}
	wantSame(tb, "functions", deref(s.live.Functions()), deref(o.live.Functions()))
	wantSame(tb, "counters", deref(s.live.Counters()), deref(o.live.Counters()))
	wantSame(tb, "ranks", s.live.Ranks(), o.live.Ranks())
	if got, want := newsWithoutIndices(s.live), newsWithoutIndices(o.live); !reflect.DeepEqual(got, want) {
		tb.Errorf("news:\n got %+v\nwant %+v", got, want)
	}
}

func wantSame[T comparable](tb testing.TB, what string, got, want []T) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func deref[T any](all []*T) (values []T) {
	for _, v := range all {
		values = append(values, *v)
	}
	return values
}

// newsWithoutIndices returns the news without the numbers that depend on the order of ranks.
func newsWithoutIndices(l *summary.Live) summary.News {
	news := l.TakeNews()
	for i := range news.Metrics {
		news.Metrics[i].Index = 0
	}
	return news
}

// runSchedule plays a schedule to its end.
func runSchedule(t *testing.T, seed uint64, cfg Config) *schedule {
	t.Helper()
	s := newSchedule(t, seed, cfg)
	for range 40 + s.rng.IntN(200) {
		s.play()
	}
	s.finish()
	s.wantOracle()
	if t.Failed() {
		t.Fatalf("seed %d, %+v", seed, cfg)
	}
	return s
}

func TestRandomFaultsCountEverythingOnce(t *testing.T) {
	kills, seeds := 0, schedules
	if testing.Short() {
		seeds /= 8
	}
	for seed := range seeds {
		kills += runSchedule(t, seed, Config{Shards: []int{1, 1, 2, 5}[seed%4]}).kills
	}
	if kills < int(seeds) {
		t.Errorf("only %d kills in %d schedules", kills, seeds)
	}
}
