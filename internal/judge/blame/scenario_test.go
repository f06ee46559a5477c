package blame_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// propagating are the scenarios in which ranks wait because of trouble elsewhere.
var propagating = []string{
	"burst", "demo", "gpu-clock-drop", "io-stall", "memory-pressure", "message-size", "os-noise",
	"slow-host", "slow-link", "slow-rank", "threads", "workflow",
}

// TestCulpritsOfScenarios measures how many victims have a culprit and how many causes
// are found: once with all calls that troubles made notably longer, which tests only this
// package, and once with the anomalies of the default detector. go test -v shows the
// table.
func TestCulpritsOfScenarios(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-16s %-10s %9s | %7s %7s %7s %7s %7s | %7s %7s\n",
		"scenario", "flagged", "anomalies", "victims", "of them", "point", "right", "rank", "causes", "named")
	var all, found score
	for _, name := range tracetest.Sample(propagating, 6) {
		s := load(t, name)
		exact := measure(plant(t, s))
		judged := measure(analyze(t, s))
		fmt.Fprintf(&table, "%-16s %-10s %s\n%-16s %-10s %s\n", name, "all", exact, "", "by default", judged)
		if exact.points < 0.9*exact.reachable || exact.right < 0.9*exact.reachable || exact.named < 0.9*exact.causes || exact.reachable == 0 ||
			exact.causes == 0 {
			t.Errorf("%s: less than nine of ten: %s", name, exact)
		}
		all.add(exact)
		found.add(judged)
	}
	fmt.Fprintf(&table, "%-16s %-10s %s\n%-16s %-10s %s\n", "together", "all", &all, "", "by default", &found)
	t.Log(table.String())
	if found.points < 0.9*found.reachable || found.right < 0.9*found.reachable || found.named < 0.9*found.causes || found.reachable < 50 {
		t.Errorf("by what the default detector flags: %s", &found)
	}
}

// score counts victims and causes among anomalies.
type score struct {
	anomalies float64
	victims   float64 // except causes of other trouble
	reachable float64 // of them: a cause of their trouble is an anomaly, too, not too long before
	points    float64 // of these: to a culprit
	right     float64 // to a cause of the same trouble
	rank      float64 // on the rank that the truth names; or of another program, where it names none
	causes    float64 // for whose rank a victim waited meanwhile
	named     float64 // of them, culprits
}

func (s *score) add(o *score) {
	for _, f := range []struct{ to, from *float64 }{
		{&s.anomalies, &o.anomalies},
		{&s.victims, &o.victims},
		{&s.reachable, &o.reachable},
		{&s.points, &o.points},
		{&s.right, &o.right},
		{&s.rank, &o.rank},
		{&s.causes, &o.causes},
		{&s.named, &o.named},
	} {
		*f.to += *f.from
	}
}

func (s *score) String() string {
	share := func(part, of float64) string {
		if of == 0 {
			return "      -"
		}
		return fmt.Sprintf("%6.1f%%", 100*part/of)
	}
	return fmt.Sprintf("%9.0f | %7.0f %7.0f %s %s %s | %7.0f %s", s.anomalies, s.victims, s.reachable,
		share(s.points, s.reachable), share(s.right, s.reachable), share(s.rank, s.reachable), s.causes, share(s.named, s.causes))
}

// planted describes the calls that troubles affected.
type planted map[string][]truth.Call

func nameOf(p trace.Program, event string) string { return fmt.Sprintf("%d/%s", p, event) }

func (p planted) of(a *blame.Anomaly) []truth.Call { return p[nameOf(a.Program, a.Event)] }

func (p planted) add(calls []truth.Call) {
	for _, c := range calls {
		name := nameOf(c.Program, c.Event)
		p[name] = append(p[name], c)
	}
}

func has(calls []truth.Call, r truth.Role) bool {
	return slices.ContainsFunc(calls, func(c truth.Call) bool { return c.Role == r })
}

// measure compares findings with the truth.
func measure(r *blame.Run, p planted) *score {
	links := blame.Find(r)
	s := &score{anomalies: float64(len(links))}
	causes := make(map[string][]int)
	for i := range r.Anomalies {
		for _, c := range p.of(&r.Anomalies[i]) {
			if c.Role == truth.Cause {
				causes[c.Trouble] = append(causes[c.Trouble], i)
			}
		}
	}
	during := func(trouble string, from, to trace.Ticks) bool {
		return slices.ContainsFunc(causes[trouble], func(i int) bool { return r.Anomalies[i].Exit > from && r.Anomalies[i].Entry < to })
	}
	waited := make(map[string][]*blame.Anomaly) // by trouble and culprit
	for i := range r.Anomalies {
		a, calls := &r.Anomalies[i], p.of(&r.Anomalies[i])
		if !has(calls, truth.Victim) || has(calls, truth.Cause) {
			continue
		}
		s.victims++
		reachable := false
		for _, c := range calls {
			if c.Culprit != nil {
				key := fmt.Sprint(c.Trouble, *c.Culprit)
				waited[key] = append(waited[key], a)
			}
			reachable = reachable || during(c.Trouble, a.Entry-100*(a.Exit-a.Entry), a.Exit)
		}
		if reachable {
			s.reachable++
			s.victim(calls, p, r, &links[i])
		}
	}
	for trouble, all := range causes {
		for _, i := range all {
			a := &r.Anomalies[i]
			if slices.ContainsFunc(waited[fmt.Sprint(trouble, a.Rank)], func(w *blame.Anomaly) bool {
				return a.Exit <= w.Exit && a.Exit >= w.Entry-(w.Exit-w.Entry)
			}) {
				s.causes++
				if links[i].Role == provenance.Culprit {
					s.named++
				}
			}
		}
	}
	return s
}

// victim counts a victim whose culprit could be found.
func (s *score) victim(calls []truth.Call, p planted, r *blame.Run, l *blame.Link) {
	if l.Culprit < 0 {
		return
	}
	s.points++
	by := &r.Anomalies[l.Culprit]
	right, rank := false, false
	for _, c := range calls {
		rank = rank || c.Culprit == nil || *c.Culprit == by.Rank
		for _, cause := range p.of(by) {
			right = right || cause.Role == truth.Cause && cause.Trouble == c.Trouble
		}
	}
	if right {
		s.right++
	}
	if rank {
		s.rank++
	}
}

func load(t testing.TB, name string) *scenario.Scenario {
	t.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sink collects the anomalies of an analysis.
type sink struct {
	mu sync.Mutex
	blame.Run
}

func (s *sink) Metadata(context.Context, trace.StepKey, []provenance.Metadata) error { return nil }

func (s *sink) Records(_ context.Context, _ trace.StepKey, anomalies, _ []*provenance.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range anomalies {
		s.Add(r)
	}
	return nil
}

// watched passes on the steps of a rank and keeps the truth about them.
type watched struct {
	*simulate.Stream
	planted planted
}

func (w *watched) Next(ctx context.Context) (*trace.Step, error) {
	step, err := w.Stream.Next(ctx)
	if err == nil {
		w.planted.add(w.Truth())
	}
	return step, err
}

// analyze runs a scenario through the analysis as it is by default.
func analyze(t *testing.T, s *scenario.Scenario) (*blame.Run, planted) {
	t.Helper()
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	cfg.Workers = 1
	all := make(planted)
	var inputs []analyzer.Input
	for _, stream := range simulate.New(s).Streams() {
		w := &watched{stream, all}
		inputs = append(inputs, analyzer.Input{
			Path: fmt.Sprintf("%s-%d.bp", stream.ProgramName(), stream.Rank()), Program: stream.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return w, nil },
		})
	}
	to := new(sink)
	if _, err := analyzer.New(cfg, to, nil).Run(t.Context(), inputs); err != nil {
		t.Fatal(err)
	}
	return &to.Run, all
}

// call is a call of a simulated thread.
type call struct {
	id          string
	fn          trace.FuncID
	entry, exit trace.Ticks
	inside      trace.Ticks // of calls made by it
	comms       []provenance.CommEntry
	parent      *call
}

// thread holds the calls of a step and those that are open.
type thread struct {
	calls, open []*call
}

// take follows the events of a thread.
func (h *thread) take(step int, b *trace.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		var top *call
		if n := len(h.open); n > 0 {
			top = h.open[n-1]
		}
		switch e.Kind {
		case trace.Enter:
			c := &call{id: trace.EventID{Rank: b.Rank, Step: step, Row: e.Row}.String(), fn: e.Func(), entry: e.Time, parent: top}
			h.calls, h.open = append(h.calls, c), append(h.open, c)
		case trace.Exit:
			top.exit, h.open = e.Time, h.open[:len(h.open)-1]
			if top.parent != nil {
				top.parent.inside += top.exit - top.entry
			}
		case trace.Send:
			top.comms = append(top.comms, provenance.CommEntry{
				Exec: top.id, Tag: e.Tag, Timestamp: e.Time, Type: "SEND", Source: b.Rank,
				Target: e.Partner(),
			})
		case trace.Recv:
			top.comms = append(top.comms, provenance.CommEntry{
				Exec: top.id, Tag: e.Tag, Timestamp: e.Time, Type: "RECV", Source: e.Partner(),
				Target: b.Rank,
			})
		}
	}
}

const (
	window  = 10  // as in records
	notable = 100 // microseconds that a trouble added
)

// plant returns all calls that troubles made notably longer as anomalies, as records
// would describe them.
func plant(t *testing.T, s *scenario.Scenario) (*blame.Run, planted) {
	t.Helper()
	run, all := new(blame.Run), make(planted)
	simulation := simulate.New(s)
	threads := make(map[*simulate.Stream]map[trace.Thread]*thread)
	for simulation.Advance() {
		for _, stream := range simulation.Streams() {
			step, err := stream.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if threads[stream] == nil {
				threads[stream] = make(map[trace.Thread]*thread)
			}
			for i := range step.Batches {
				b := &step.Batches[i]
				h := threads[stream][b.Thread]
				if h == nil {
					h = new(thread)
					threads[stream][b.Thread] = h
				}
				h.calls = h.calls[max(0, len(h.calls)-window):] // of the step before
				h.take(step.Index, b)
			}
			all.add(stream.Truth())
			for _, c := range stream.Truth() {
				name := nameOf(c.Program, c.Event)
				if c.Injected >= notable && all[name][0].Trouble == c.Trouble {
					run.Add(record(stream, threads[stream][c.Thread], &c))
				}
			}
		}
	}
	return run, all
}

// record makes that of a call of the current step.
func record(stream *simulate.Stream, h *thread, c *truth.Call) *provenance.Record {
	at := 0
	for h.calls[at].id != c.Event {
		at++
	}
	name := func(f trace.FuncID) string {
		n, _ := stream.Names().Func(stream.Rank(), f)
		return n
	}
	_, gpu := stream.Names().GPU(stream.Rank(), c.Thread)
	r := &provenance.Record{
		PID: c.Program, RID: c.Rank, TID: c.Thread, EventID: c.Event, Func: c.Function, Hostname: stream.Host(), Kind: provenance.Slow,
		Entry: c.Entry, Exit: c.Exit, LostTime: c.Injected, IsGPUEvent: gpu,
		RuntimeTotal: c.Exit - c.Entry, RuntimeExclusive: c.Exit - c.Entry - h.calls[at].inside,
	}
	for p := h.calls[at]; p != nil; p = p.parent {
		r.CallStack = append(r.CallStack, provenance.StackEntry{Func: name(p.fn)})
	}
	for _, w := range h.calls[max(0, at-window):min(len(h.calls), at+window+1)] {
		r.EventWindow.Execs = append(r.EventWindow.Execs, provenance.WindowEntry{
			StackEntry: provenance.StackEntry{Entry: w.entry, Exit: w.exit, EventID: w.id, Func: name(w.fn)},
		})
		r.EventWindow.Comms = append(r.EventWindow.Comms, w.comms...)
	}
	return r
}
