package analyzer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// ledger is a ModelSync without other analyzers. It sums all contributions.
type ledger struct {
	models    map[string]*outlier.Model
	contexts  map[callpath.Context]*outlier.Model
	exclusive stats.Sums
	anomalies int64
	ended     map[int]bool
	stopAfter int // contributions; 0: never
	earlier   int // steps of each rank that an earlier process shared
	added     int
	frozen    bool
	waits     int // before it is ready
	joinsFrom int // step
	joined    int // steps in contributions of several ranks
	foreign   int // lanes in such contributions without a step of their rank
	paths     *callpath.Profile
	load      *workload.Load
	names     []trace.FuncKey // of functions in load
}

func newLedger() *ledger {
	return &ledger{
		models: make(map[string]*outlier.Model), contexts: make(map[callpath.Context]*outlier.Model), ended: make(map[int]bool),
		paths: callpath.NewProfile(callpath.MaxPaths), load: workload.New(),
	}
}

func (l *ledger) Add(c *deltas.Contribution) {
	l.added++
	for i := range c.Functions {
		f := &c.Functions[i]
		if l.models[f.Name] == nil {
			l.models[f.Name] = new(outlier.Model)
		}
		l.models[f.Name].Merge(f.Model)
		l.exclusive.Merge(&f.Exclusive)
		l.anomalies += int64(f.Anomalies.Score.N)
	}
	if len(c.Joined) > 0 && c.Load != nil {
		for _, lane := range c.Load.Lanes() {
			if !slices.ContainsFunc(c.Joined, func(s deltas.RankStep) bool { return s.RankKey == lane.RankKey }) {
				l.foreign++
			}
		}
	}
	for _, step := range c.Joined {
		for i := range step.Anomalies {
			l.anomalies += int64(step.Anomalies[i].Anomalies.Score.N)
		}
	}
	l.joined += len(c.Joined)
	for _, p := range c.Contexts {
		if l.contexts[p.Context] == nil {
			l.contexts[p.Context] = new(outlier.Model)
		}
		l.contexts[p.Context].Merge(p.Model)
	}
	l.paths.Merge(c.PathDepth, c.Paths)
	if l.names = c.Names; c.Load != nil {
		l.load.Merge(c.Load, nil)
	}
	if c.Ended {
		l.ended[int(c.Rank)] = true
	}
}

func (l *ledger) Merged() iter.Seq[analyzer.MergedModel] {
	return func(func(analyzer.MergedModel) bool) {}
}
func (l *ledger) Joins(k trace.StepKey) bool        { return k.Step >= l.joinsFrom }
func (l *ledger) Ready() bool                       { l.waits--; return l.waits < 0 }
func (l *ledger) Frozen() bool                      { return l.frozen }
func (l *ledger) Earlier(trace.RankKey) (int, bool) { return l.earlier, true }
func (l *ledger) Stopped() bool                     { return l.stopAfter > 0 && l.added >= l.stopAfter }
func (l *ledger) Finish(context.Context) error      { return nil }

func (l *ledger) Promote(_ context.Context, run *blame.Run) ([]int, error) {
	return blame.Promote(run), nil
}

// recordList is a RecordSink that keeps all records.
type recordList struct {
	mu          sync.Mutex
	provisional map[string]bool
	final       map[string]provenance.Status
	facts       int
}

func newRecordList() *recordList {
	return &recordList{provisional: make(map[string]bool), final: make(map[string]provenance.Status)}
}

// anomalies returns the ids of the final anomalies in order.
func (r *recordList) anomalies() (ids []string) {
	for id, status := range r.final {
		if status == provenance.Confirmed || status == provenance.Promoted {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (r *recordList) Metadata(_ context.Context, _ trace.StepKey, found []provenance.Metadata) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts += len(found)
	return nil
}

func (r *recordList) Records(_ context.Context, _ trace.StepKey, anomalies, _ []*provenance.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range anomalies {
		if a.Status == provenance.Provisional {
			r.provisional[a.EventID] = true
		} else {
			r.final[a.EventID] = a.Status
		}
	}
	return nil
}

// follow analyzes traces as if they were being written.
func follow(t *testing.T, l analyzer.ModelSync, o analyzer.Online) (*analyzer.Result, *recordList) {
	t.Helper()
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	o.Sync, o.Poll = l, time.Millisecond
	if o.Sleep == nil {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	if o.Report == nil {
		o.Report = func(*analyzer.Report) {}
	}
	list := newRecordList()
	res, err := analyzer.New(cfg, list, nil).Follow(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res, list
}

// inputsOf returns a Find function for traces that all exist.
func inputsOf(datasets []string) func() ([]analyzer.Input, bool, error) {
	return func() (inputs []analyzer.Input, complete bool, err error) {
		for _, d := range datasets {
			inputs = append(inputs, analyzer.Input{Path: d})
		}
		return inputs, true, nil
	}
}

func TestFollowEqualsRun(t *testing.T) {
	for _, name := range []string{"gpu-BP5", "ring-BP4", "ring-onefile-BP4"} {
		datasets := tracetest.Recorded(t, name)
		recorded := analyze(t, datasets, nil)
		l := newLedger()
		res, list := follow(t, l, analyzer.Online{Find: inputsOf(datasets)})
		if !bytes.Equal(res.Models.AppendBinary(nil), recorded.Models.AppendBinary(nil)) {
			t.Errorf("%s: the models differ", name)
		}
		want := make(map[string]bool)
		for _, r := range recorded.records(t, "anomalies") {
			if r.Status != provenance.Withdrawn {
				want[r.EventID] = true
			}
		}
		for id, status := range list.final {
			if status != provenance.Withdrawn && !want[id] {
				t.Errorf("%s: %s is %s, but not found in the recorded trace", name, id, status)
			}
			delete(want, id)
		}
		if len(want) > 0 || res.Totals != recorded.Totals || len(res.Broken) > 0 {
			t.Errorf("%s: %d are missing; totals %+v, want %+v; %v", name, len(want), res.Totals, recorded.Totals, res.Broken)
		}
		if recorded.Review.Anomalies > 0 && list.facts == 0 {
			t.Errorf("%s: no metadata", name)
		}
		for id := range list.provisional {
			if _, ok := list.final[id]; !ok {
				t.Errorf("%s: %s was flagged and never reviewed", name, id)
			}
		}
	}
}

func TestContributionsAddUpToModels(t *testing.T) {
	l := newLedger()
	var last *analyzer.Report
	res, list := follow(t, l, analyzer.Online{
		Find: inputsOf(tracetest.Recorded(t, "gpu-BP5")), Report: func(r *analyzer.Report) { last = r },
	})
	if int64(l.exclusive.Count()) != res.Totals.Calls || len(l.models) != len(res.Functions) || !l.ended[0] {
		t.Errorf("%d calls of %d functions were shared, want %d of %d; ended: %v", l.exclusive.Count(), len(l.models), res.Totals.Calls,
			len(res.Functions), l.ended)
	}
	for _, f := range res.Models.Functions() {
		if got := l.models[f.Name]; got == nil || !bytes.Equal(got.AppendBinary(nil), f.Learned().AppendBinary(nil)) {
			t.Errorf("the shares of %s do not add up to its model", f.Name)
		}
	}
	if l.anomalies != res.Totals.Flagged {
		t.Errorf("%d anomalies were shared, want %d", l.anomalies, res.Totals.Flagged)
	}
	// The windows of those at the end of the last step never fill.
	if n := len(list.provisional); n > int(l.anomalies) || n < int(l.anomalies)-10 {
		t.Errorf("%d of %d anomalies reached the sink while the trace was read", n, l.anomalies)
	}
	if !last.Ended || len(last.Ranks) != 1 || !last.Ranks[0].Ended || last.Totals != res.Totals {
		t.Errorf("the last report is %+v", last)
	}
}

func TestLateTracesAreRead(t *testing.T) {
	datasets := tracetest.Recorded(t, "ring-BP4")
	looks := 0
	res, _ := follow(t, newLedger(), analyzer.Online{Find: func() ([]analyzer.Input, bool, error) {
		looks++
		inputs, _, err := inputsOf(datasets[:min(looks-1, len(datasets))])()
		return inputs, looks > len(datasets), err
	}, Sleep: sleepFor})
	want := analyze(t, datasets, nil).Totals
	want.Flagged = res.Totals.Flagged // which depends on the order of merging
	if res.Totals != want {
		t.Errorf("totals %+v, want %+v", res.Totals, want)
	}
}

// sleepFor really waits, for tests in which time must pass.
func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// copyUnfinished copies a dataset and marks it as still being written.
func copyUnfinished(t *testing.T, dataset string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(dataset))
	if err := os.CopyFS(path, os.DirFS(dataset)); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(path, "md.idx")
	b, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	b[38] = 1 // the active flag of BP4
	if err := os.WriteFile(index, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTraceOfKilledWriterEnds(t *testing.T) {
	dataset := copyUnfinished(t, tracetest.Recorded(t, "ring-BP4")[0])
	res, _ := follow(t, newLedger(), analyzer.Online{Find: inputsOf([]string{dataset}), Idle: time.Millisecond, Sleep: sleepFor})
	if len(res.Broken) != 1 || !errors.Is(res.Broken[0], bp.ErrIdle) || !strings.Contains(res.Broken[0].Error(), dataset) ||
		res.Totals.Steps == 0 {
		t.Errorf("%d steps, %v", res.Totals.Steps, res.Broken)
	}
}

func TestStoppedRunIsReviewed(t *testing.T) {
	dataset := copyUnfinished(t, tracetest.Recorded(t, "ring-BP4")[0])
	l := newLedger()
	l.stopAfter = 1
	res, _ := follow(t, l, analyzer.Online{Find: inputsOf([]string{dataset})})
	if len(res.Broken) != 1 || !strings.Contains(res.Broken[0].Error(), "stopped") || res.Totals.Steps != 1 || len(l.ended) != 1 {
		t.Errorf("%d steps, %v, %v", res.Totals.Steps, res.Broken, l.ended)
	}
}

func TestAnalysisBeginsWhenModelsAreReady(t *testing.T) {
	l := newLedger()
	l.waits = 3
	waits, find := 0, inputsOf(tracetest.Recorded(t, "ring-BP4"))
	follow(t, l, analyzer.Online{
		Find: func() ([]analyzer.Input, bool, error) {
			if waits < 3 {
				t.Errorf("it searches traces after %d waits", waits)
			}
			return find()
		},
		Sleep: func(ctx context.Context, _ time.Duration) error { waits++; return ctx.Err() },
	})
	if l.added == 0 {
		t.Error("no step was analyzed")
	}
}

func TestTraceWithoutLastBytesIsReadToCut(t *testing.T) {
	whole := tracetest.Recorded(t, "gpu-BP5")[0]
	dataset := filepath.Join(t.TempDir(), filepath.Base(whole))
	if err := os.CopyFS(dataset, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dataset, "data.0")
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(data, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		res, _ := follow(t, newLedger(), analyzer.Online{Find: inputsOf([]string{dataset}), Sleep: sleepFor})
		var corrupt *bp.CorruptError
		if len(res.Broken) != 1 || !errors.As(res.Broken[0], &corrupt) || corrupt.Offset == 0 || res.Totals.Steps == 0 || res.Totals.Steps >= 15 {
			t.Errorf("%d steps, %v", res.Totals.Steps, res.Broken)
		}
		if waited := time.Since(start); waited < 4*time.Second || waited > 10*time.Second {
			t.Errorf("waited %v for the missing bytes of a closed trace", waited)
		}
	})
}

func TestJoinedStepsContributeTheSame(t *testing.T) {
	datasets := twoCallersOnRanks(t)
	inputs, _, err := inputsOf(datasets)()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tracetest.Recorded(t, "gpu-BP5") {
		inputs = append(inputs, analyzer.Input{Path: path, Program: 1})
	}
	find := func() ([]analyzer.Input, bool, error) { return inputs, true, nil }
	contribute := func(joinsFrom int) (*ledger, *recordList) {
		l := newLedger()
		l.joinsFrom = joinsFrom
		_, records := follow(t, l, analyzer.Online{Find: find})
		return l, records
	}
	want, wantRecords := contribute(math.MaxInt)
	if want.joined != 0 || want.anomalies == 0 {
		t.Fatalf("%d steps were joined, %d anomalies; want none and some", want.joined, want.anomalies)
	}
	for _, from := range []int{0, 1, 2} {
		got, records := contribute(from)
		if got.joined == 0 || got.foreign > 0 {
			t.Errorf("from step %d: %d steps were joined, with loads of %d lanes of other steps", from, got.joined, got.foreign)
		}
		sameModel := func(a, b *outlier.Model) bool { return bytes.Equal(a.AppendBinary(nil), b.AppendBinary(nil)) }
		if !maps.EqualFunc(got.models, want.models, sameModel) || !maps.EqualFunc(got.contexts, want.contexts, sameModel) {
			t.Errorf("from step %d: the models differ", from)
		}
		if got.exclusive != want.exclusive || got.anomalies != want.anomalies {
			t.Errorf("from step %d: got %v and %d anomalies, want %v and %d", from, got.exclusive, got.anomalies, want.exclusive, want.anomalies)
		}
		if !maps.Equal(records.provisional, wantRecords.provisional) || !maps.Equal(records.final, wantRecords.final) {
			t.Errorf("from step %d: the records differ", from)
		}
		if got, want := loadText(got), loadText(want); got != want {
			t.Errorf("from step %d: got load\n%.2000s\nwant\n%.2000s", from, got, want)
		}
		if got, want := pathsText(got.paths), pathsText(want.paths); got != want {
			t.Errorf("from step %d: got paths\n%.2000s\nwant\n%.2000s", from, got, want)
		}
	}
}

// TestRankThatFoldsPathsContributesTheSame has calls of leaf before and after the fold of their path in the same step. Another
// rank has the same path and keeps it.
func TestRankThatFoldsPathsContributesTheSame(t *testing.T) {
	ranks := func() []analyzer.Input {
		var datasets []string
		for rank := range uint64(2) {
			p := newProgram()
			p.at().Attrs = append(p.at().Attrs, [2]string{"timer 4", "leaf"})
			for i := range 20 {
				p.at().Attrs = append(p.at().Attrs, [2]string{fmt.Sprintf("timer %d", 10+i), fmt.Sprint("caller ", i)})
			}
			leaves := func() {
				for i := range uint64(20) {
					p.enter(10 + i)
				}
				for i := range 50 + rank {
					p.call(4, 1000+i%40)
				}
				for i := range uint64(20) {
					p.exit(29 - i)
				}
			}
			leaves()
			p.step()
			leaves()
			var recurse func(n int)
			recurse = func(n int) {
				for fn := uint64(2); fn <= 3 && n > 0; fn++ {
					p.enter(fn)
					recurse(n - 1)
					p.exit(fn)
				}
			}
			if rank == 0 {
				recurse(15)
			}
			leaves()
			p.step()
			leaves()
			p.setRank(rank)
			datasets = append(datasets, p.writeAs(t, fmt.Sprintf("tau-metrics-app-%d.bp", rank)))
		}
		inputs, _, err := inputsOf(datasets)()
		if err != nil {
			t.Fatal(err)
		}
		return inputs
	}()
	find := func() ([]analyzer.Input, bool, error) { return ranks, true, nil }
	alone, joint := newLedger(), newLedger()
	alone.joinsFrom = math.MaxInt
	wantResult, _ := follow(t, alone, analyzer.Online{Find: find})
	gotResult, _ := follow(t, joint, analyzer.Online{Find: find})
	if joint.joined == 0 || joint.paths.Depth() >= 20 {
		t.Fatalf("%d steps were joined, paths are folded below depth %d; want some, and less than 20", joint.joined, joint.paths.Depth())
	}
	same := func(a, b *outlier.Model) bool { return bytes.Equal(a.AppendBinary(nil), b.AppendBinary(nil)) }
	if !maps.EqualFunc(joint.models, alone.models, same) {
		t.Error("the contributed models differ")
	}
	for of, m := range joint.contexts {
		if other := alone.contexts[of]; other == nil || !same(m, other) {
			t.Errorf("the contributed models of a path of %s differ", of.Name)
		}
	}
	if len(joint.contexts) != len(alone.contexts) {
		t.Errorf("models of %d paths were contributed, want %d", len(joint.contexts), len(alone.contexts))
	}
	if !bytes.Equal(gotResult.Models.AppendBinary(nil), wantResult.Models.AppendBinary(nil)) {
		t.Error("the models of the analyzers differ")
	}
}

// loadText describes a load with the names of functions.
func loadText(l *ledger) string {
	var b strings.Builder
	for _, lane := range l.load.Lanes() {
		fmt.Fprintln(&b, lane.LaneKey, lane.Host, lane.Device, lane.GPU, lane.Gaps, lane.First, lane.Last)
		for i := range lane.Windows {
			w := &lane.Windows[i]
			var cells []string
			for _, c := range w.Cells(nil) {
				work := l.load.Works()[c.Work]
				cells = append(cells, fmt.Sprint(l.names[work.Function].Name, work.Path, c.Sums))
			}
			slices.Sort(cells)
			fmt.Fprintln(&b, w.Number, w.Wait, w.Sync, cells)
		}
	}
	return b.String()
}

// pathsText describes call paths.
func pathsText(p *callpath.Profile) string {
	var b strings.Builder
	for _, e := range callpath.Sort(p.Append(nil), p.Compare) {
		fmt.Fprintln(&b, e.Parent, p.Name(e.Func), e.Sums)
	}
	return b.String()
}
