package paramserver

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramclient"
)

// testAnalyzer reads traces, learns and synchronizes like the real analyzer. After it
// was killed it starts from the beginning.
type testAnalyzer struct {
	tb     testing.TB
	cfg    paramclient.Config
	bus    paramclient.Requester
	traces map[trace.RankKey][]*deltas.Contribution
	client *paramclient.Client
	read   map[trace.RankKey]int               // contributions of each rank
	local  map[callpath.Context]*outlier.Model // by which it judges
	own    map[callpath.Context]uint64         // values that it learned itself
	level  uint8                               // the highest of a function
}

func newAnalyzer(tb testing.TB, bus paramclient.Requester, name string, shards int,
	traces map[trace.RankKey][]*deltas.Contribution,
) *testAnalyzer {
	a := &testAnalyzer{tb: tb, bus: bus, traces: traces, cfg: paramclient.Config{
		Run: "run", Node: name, Shards: shards, Period: time.Millisecond, Timeout: 10 * time.Second,
	}}
	a.start()
	return a
}

// start is a new process.
func (a *testAnalyzer) start() {
	a.cfg.Session++
	a.client = paramclient.New(a.cfg, a.bus)
	a.read = make(map[trace.RankKey]int)
	a.local = make(map[callpath.Context]*outlier.Model)
	a.own = make(map[callpath.Context]uint64)
}

// readOne reads a step of a rank, and reports whether there was one.
func (a *testAnalyzer) readOne(key trace.RankKey) bool {
	if a.read[key] == len(a.traces[key]) {
		return false
	}
	c := a.traces[key][a.read[key]]
	a.read[key]++
	a.learnFromOthers()
	eachModel(c, func(context callpath.Context, m *outlier.Model) {
		at(a.local, context).Merge(m)
		a.own[context] += m.Count()
	})
	a.client.Add(c)
	return true
}

// readJoint reads a step of each rank of a program whose steps may be joined, and contributes
// them together. It reports whether there were any.
func (a *testAnalyzer) readJoint(program trace.Program) bool {
	var all []*deltas.Contribution
	for key, steps := range a.traces {
		if n := a.read[key]; key.Program == program && n < len(steps) && !steps[n].Ended && a.client.Joins(steps[n].StepKey) {
			all = append(all, steps[n])
		}
	}
	if len(all) == 0 {
		return false
	}
	a.learnFromOthers()
	for _, c := range all {
		a.read[c.RankKey]++
		eachModel(c, func(context callpath.Context, m *outlier.Model) {
			at(a.local, context).Merge(m)
			a.own[context] += m.Count()
		})
	}
	a.client.Add(joined(all))
	return true
}

// readAll reads the rest of all traces, and ends.
func (a *testAnalyzer) readAll() {
	for key := range a.traces {
		for a.readOne(key) {
		}
	}
	a.client.End()
}

func (a *testAnalyzer) hasReadAll() bool {
	for key := range a.traces {
		if a.read[key] < len(a.traces[key]) {
			return false
		}
	}
	return true
}

// learnFromOthers adopts the merged models, which must include everything that the
// analyzer learned itself.
func (a *testAnalyzer) learnFromOthers() {
	a.tb.Helper()
	for m := range a.client.Merged() {
		a.level = max(a.level, m.Level)
		if m.Path&(1<<m.Level-1) != 0 {
			delete(a.local, m.Context) // the function has too many paths
			delete(a.own, m.Context)
			continue
		}
		if n := m.Model.Count(); n < a.own[m.Context] {
			a.tb.Fatalf("analyzer %s: the model of %v has %d values, it has learned %d itself", a.cfg.Node, m.Context, n, a.own[m.Context])
		}
		*at(a.local, m.Context) = m.Model
	}
}

// talk is one round of exchanges.
func (a *testAnalyzer) talk() error {
	a.tb.Helper()
	err := a.client.Sync(a.tb.Context())
	a.learnFromOthers()
	return err
}

// mustTalk is a talk that succeeds.
func (a *testAnalyzer) mustTalk() {
	a.tb.Helper()
	if err := a.talk(); err != nil {
		a.tb.Fatalf("analyzer %s: %v", a.cfg.Node, err)
	}
}

// finished reports whether the final models have come.
func (a *testAnalyzer) finished() bool {
	return a.client.Progress().Final
}

// wantModels fails when the models of an analyzer are not those of all.
func (a *testAnalyzer) wantModels(want map[callpath.Context]*outlier.Model) {
	a.tb.Helper()
	for name := range a.own {
		wantSameModel(a.tb, a.cfg.Node+" of "+name.Name, a.local[name], want[name])
	}
}

// wantSameModel compares to the last bit; nil is a model without values.
func wantSameModel(tb testing.TB, what string, got, want *outlier.Model) {
	tb.Helper()
	var none outlier.Model
	if got == nil {
		got = &none
	}
	if want == nil {
		want = &none
	}
	if !bytes.Equal(got.AppendBinary(nil), want.AppendBinary(nil)) {
		tb.Errorf("model at %s: got %d values, want %d, or others", what, got.Count(), want.Count())
	}
}

// oneTrace is a rank with one function.
func oneTrace(key trace.RankKey, steps int) map[trace.RankKey][]*deltas.Contribution {
	var all []*deltas.Contribution
	for step := range steps {
		all = append(all, learned(key, step, "solve", int64(100+step), 7))
	}
	return map[trace.RankKey][]*deltas.Contribution{key: append(all, endContribution(key, steps-1))}
}

// settle has all analyzers read and talk until they have the final models.
func settle(w *world, all ...*testAnalyzer) {
	w.tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		left := 0
		for _, a := range all {
			if a.finished() {
				continue
			}
			left++
			a.readAll()
			a.mustTalk()
		}
		for i, p := range w.shards {
			p.server.state.Tick(time.Now())
			w.save(i)
			for p.deliver(w.tb.Context(), rng) {
			}
		}
		if left == 0 {
			return
		}
	}
	w.tb.Fatal("the run does not end")
}

// at returns the value of a key, made if it is new.
func at[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}
