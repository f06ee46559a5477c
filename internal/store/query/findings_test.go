package query_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// gatherer collects the anomalies for blame.
type gatherer struct {
	mu sync.Mutex
	blame.Run
	ranks []trace.RankKey
}

func (g *gatherer) Metadata(_ context.Context, key trace.StepKey, _ []provenance.Metadata) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ranks = append(g.ranks, key.RankKey)
	return nil
}

func (g *gatherer) Records(_ context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ranks = append(g.ranks, key.RankKey)
	for _, r := range typical {
		g.Extend(r)
	}
	for _, r := range anomalies {
		g.Add(r)
	}
	return nil
}

// stored analyzes a scenario into a store and returns the queries of the run and the findings from
// the records themselves.
func stored(t *testing.T, store provdb.Store, name string, detector outlier.Algorithm) (*query.Queries, *findings.Result) {
	t.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stretch(s.Steps * 7 / 10); err != nil { // shortens the run
		t.Fatal(err)
	}
	var inputs []analyzer.Input
	for _, stream := range simulate.New(s).Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: fmt.Sprintf("%s-%d.bp", stream.ProgramName(), stream.Rank()), Program: stream.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return stream, nil },
		})
	}
	run := provdb.Run{Name: name + " " + string(detector), State: provdb.Running, Started: time.Unix(1, 0)}
	if run.ID, err = store.CreateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	cfg.Outlier.Algorithm = detector
	buffer := provdb.NewBuffer(t.Context(), store, run.ID, time.Minute, 1000)
	var all gatherer
	res, err := analyzer.New(cfg, rundir.Sinks{&all, rundir.NewStoreSink(buffer)}, nil).Run(t.Context(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	if err := buffer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	info := map[string]any{"totals": res.Totals, "changes": res.Changes}
	if run.Info, err = json.Marshal(info); err != nil {
		t.Fatal(err)
	}
	if err := store.UpdateRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	all.Begin, all.End = res.Totals.Begin, max(all.End, res.Totals.End)
	a, err := query.New(t.Context(), store, run.Name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := res.Collections()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Write(t.Context(), run.ID, &provdb.Batch{Paths: c.PathStats}); err != nil {
		t.Fatal(err)
	}
	return a, findings.Conclude(&all.Run, blame.Find(&all.Run), res.Changes, findings.NewProfile(c.PathStats, all.ranks, res.Modes), nil)
}

func sorted(links []provenance.Link) []provenance.Link {
	slices.SortFunc(links, func(a, b provenance.Link) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.RID, b.RID), cmp.Compare(a.EventID, b.EventID))
	})
	return links
}

// TestStoredFindingsAreUnchanged compares findings from stored runs with those from the records.
func TestStoredFindingsAreUnchanged(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		for _, scene := range tracetest.Sample([]string{"slow-link", "workflow"}, 2) {
			a, want := stored(t, store, scene, outlier.SSTD)
			got, err := a.Conclude(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			victims := 0
			for _, l := range want.Links {
				if l.Role == provenance.Victim && l.Culprit != "" {
					victims++
				}
			}
			if victims < 10 || len(want.Findings) < 3 {
				t.Errorf("%s: only %d victims and %d findings", scene, victims, len(want.Findings))
			}
			if !reflect.DeepEqual(got.Findings, want.Findings) || !reflect.DeepEqual(sorted(got.Links), sorted(want.Links)) {
				t.Errorf("%s: findings from the store differ from those of the records", scene)
			}
			checkFindings(t, store, a, want)
		}
	})
}

// checkFindings compares query results before and after the findings of a run are stored.
func checkFindings(t *testing.T, store provdb.Store, a *query.Queries, want *findings.Result) {
	t.Helper()
	for _, there := range []bool{false, true} {
		result, err := a.Findings(t.Context())
		if err != nil || !reflect.DeepEqual(result.Findings, want.Findings) {
			t.Errorf("%s, stored %t: findings differ, %v", a.Run.Name, there, err)
		}
		seen := make(map[provenance.Role]bool)
		for i := range want.Links {
			w := &want.Links[i]
			if seen[w.Role] {
				continue
			}
			seen[w.Role] = true
			l, err := a.Link(t.Context(), w.PID, w.EventID)
			if err != nil || l == nil || !reflect.DeepEqual(l, w) {
				t.Errorf("%s, stored %t:\n got %+v, %v\nwant %+v", a.Run.Name, there, l, err, w)
			}
			culprit, err := a.Related(t.Context(), w.CulpritPID, w.Culprit)
			if err != nil || w.Culprit != "" && (culprit == nil || culprit.Host == "" || culprit.Function == "") {
				t.Errorf("%s: the culprit of %+v has no host or function: %v", a.Run.Name, w, err)
			}
		}
		if l, err := a.Link(t.Context(), 0, "no such event"); l != nil || err != nil {
			t.Errorf("unknown event: got %+v, %v", l, err)
		}
		if !there {
			if err := store.Write(t.Context(), a.Run.ID, &provdb.Batch{Findings: want.Findings, Links: want.Links}); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkRelated(t, a, want)
}

// checkRelated compares the victims of culprits and the anomalies of findings with the findings.
func checkRelated(t *testing.T, a *query.Queries, want *findings.Result) {
	t.Helper()
	ctx := t.Context()
	culprits := 0
	for i := range want.Links {
		l := &want.Links[i]
		if l.Waits == 0 {
			continue
		}
		culprits++
		victims, err := a.Victims(ctx, l.PID, l.EventID, 1000)
		lost := trace.Ticks(0)
		for j, v := range victims {
			if lost += v.Lost; j > 0 && v.Lost > victims[j-1].Lost || v.Host == "" || v.Function == "" || v.Entry == 0 {
				t.Errorf("%s: unexpected victim %+v of %s", a.Run.Name, v, l.EventID)
			}
		}
		if err != nil || int64(len(victims)) != l.Waits || lost != l.WaitTime {
			t.Errorf("%s: %s: got %d victims that lost %d, %v; want %d and %d", a.Run.Name, l.EventID, len(victims), lost, err, l.Waits, l.WaitTime)
		}
		if r, err := a.Related(ctx, l.PID, l.EventID); err != nil || r == nil || r.Event != l.EventID || r.Rank != l.RID {
			t.Errorf("%s: %s: got %+v, %v", a.Run.Name, l.EventID, r, err)
		}
	}
	if culprits == 0 {
		t.Errorf("%s has no culprits", a.Run.Name)
	}
	if r, err := a.Related(ctx, 0, "no such event"); r != nil || err != nil {
		t.Errorf("unknown event: got %+v, %v", r, err)
	}
	for i := range want.Findings {
		if x := &want.Findings[i]; !x.IsChange() && x.Status != provenance.Withdrawn {
			checkNeighbors(t, a, x)
		}
	}
}

// checkNeighbors compares the neighbors of each anomaly of a finding with the list of all.
func checkNeighbors(t *testing.T, a *query.Queries, x *provenance.Finding) {
	t.Helper()
	ctx := t.Context()
	points, err := a.PointsOfFinding(ctx, x.Number, 100_000)
	if err != nil || int64(len(points)) != x.Calls {
		t.Fatalf("finding %d has %d points, %v; want %d", x.Number, len(points), err, x.Calls)
	}
	slices.SortFunc(points, func(a, b executions.Execution) int {
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Event, b.Event))
	})
	for i := range points[:min(len(points), 10)] {
		r := &provenance.Record{PID: x.PID, EventID: points[i].Event, Entry: points[i].Entry}
		before, after := "", ""
		if i > 0 {
			before = points[i-1].Event
		}
		if i+1 < len(points) {
			after = points[i+1].Event
		}
		previous, next, err := a.Neighbors(ctx, x.Number, r)
		if err != nil || previous != before || next != after {
			t.Errorf("finding %d: neighbors of %s: got %q and %q, %v; want %q and %q", x.Number, r.EventID, previous, next, err, before, after)
		}
	}
}

// Several explanations read the run once, and give the answers of explanations that read the store.
func TestDifferencesReadRunOnce(t *testing.T) {
	inEachStore(t, func(t *testing.T, store provdb.Store) {
		a := explainable(t, store, &plantedCause{scenario: "every-field"}, 0)
		found, err := a.Findings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, statements := *a, new(atomic.Int64)
		b.OnQuery = func(string, []any) { statements.Add(1) }
		texts, err := b.Differences(t.Context(), found.Findings, found.Links)
		if err != nil {
			t.Fatal(err)
		}
		explained := 0
		for i, text := range texts {
			if text == "" {
				continue
			}
			explained++
			if e := explainedAs(t, a, query.Selection{Finding: &found.Findings[i]}); text != e.Sentence {
				t.Errorf("finding %d: got %q, want %q", i+1, text, e.Sentence)
			}
		}
		// Each explanation reads the moments of counters and the names of threads.
		if n := int(statements.Load()); explained < 3 || n > 12+2*explained {
			t.Errorf("%d statements for %d explanations", n, explained)
		}
	})
}

// The members of findings that are not stored come from their links.
func TestDifferencesOfFindingsThatAreNotStored(t *testing.T) {
	a, found := stored(t, sharedStore(t), "io-stall", outlier.Tail)
	result, err := a.Findings(t.Context())
	if err != nil || len(result.Findings) != len(found.Findings) || len(result.Links) == 0 {
		t.Fatalf("%d findings with %d links, want %d: %v", len(result.Findings), len(result.Links), len(found.Findings), err)
	}
	texts, err := a.Differences(t.Context(), result.Findings, result.Links)
	if err != nil {
		t.Fatal(err)
	}
	explained := 0
	for i, text := range texts {
		if text == "" {
			continue
		}
		explained++
		var s query.Selection
		if err := a.SelectFinding(t.Context(), &s, result.Findings[i].Number); err != nil {
			t.Fatal(err)
		}
		if e := explainedAs(t, a, s); text != e.Sentence {
			t.Errorf("finding %d: got %q, want %q", i+1, text, e.Sentence)
		}
	}
	if explained == 0 {
		t.Error("no finding is explained")
	}
}
