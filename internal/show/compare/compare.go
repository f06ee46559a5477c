// Package compare answers what changed from one run to another, and how functions went over
// many runs. The runs are those of a store, of other stores, and baselines.
package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/show/flame"
	"github.com/chimbuko/chimbuko/internal/show/memo"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Reference is something that runs can be compared with besides the runs of the store:
// another store, or a baseline. Clients choose among what was given here and cannot
// name anything else.
type Reference struct {
	Where    string          // for people
	Run      string          // of the store, that is meant: "" is the latest
	Reader   provdb.Reader   // all of its runs can be compared; nil: the store of Source
	Baseline *comparison.Run // instead of a store
}

// Runs compares runs. It caches what many callers need; several goroutines may use it.
// NewRuns makes one.
type Runs struct {
	in         *insight.Insight
	References []Reference // what runs can be compared with besides those of the store

	comparedRuns memo.Memo[*comparison.Run]
	differences  memo.Memo[*comparison.Difference]
	sums         memo.Memo[[]*comparison.Sums]
}

// New returns the runs of the store of an Insight, and those of references.
func New(in *insight.Insight, references []Reference) *Runs {
	return &Runs{
		in: in, References: references, comparedRuns: memo.Memo[*comparison.Run]{Most: maxCompared, Old: true},
		differences: memo.Memo[*comparison.Difference]{Most: maxCompared, Old: true},
		sums:        memo.Memo[[]*comparison.Sums]{Most: maxCompared, Old: true},
	}
}

// Bounds of comparisons.
const (
	maxCompared  = 8 // runs, and pairs of them, of which it is remembered what is compared
	maxFacts     = 2000
	ownStore     = 0 // number of the store of the page; others have theirs from 1 on
	maxCompareID = 4096
)

// Comparables lists the runs that can be compared.
func (rs *Runs) Comparables(ctx context.Context) (*api.Comparables, error) {
	ctx, done, err := rs.in.Slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all, list, err := rs.listed(ctx)
	for i := range all {
		list.Rows = append(list.Rows, all[i].shown)
	}
	return &list, err
}

// listedRun is a run that can be compared: one of a store, or a baseline.
type listedRun struct {
	shown    api.Comparable
	store    int // its number
	run      provdb.Run
	reader   provdb.Reader
	baseline *comparison.Run // instead of run
}

// listed finds all runs that can be compared, and all else that is told of them.
func (rs *Runs) listed(ctx context.Context) (all []listedRun, list api.Comparables, err error) {
	list = api.Comparables{Rows: []api.Comparable{}, Problems: []string{}}
	if reader := rs.in.Source.Reader(); reader != nil {
		runs, err := query.Runs(ctx, reader)
		if err != nil {
			return nil, list, err
		}
		for i := range runs {
			all = append(all, listedRun{shown: comparableRun(ownStore, "", &runs[i]), run: runs[i], reader: reader})
			if i > 0 && runs[i].Name == rs.in.Run {
				list.Usual = compareID(ownStore, runs[i-1].Name)
			}
		}
	}
	given := false
	for i := range rs.References {
		id, more, err := rs.ofReference(ctx, i)
		if err != nil {
			list.Problems = append(list.Problems, fmt.Sprintf("%s: %v", rs.References[i].Where, err))
			continue
		}
		if !given { // the first that was given is meant
			list.Usual, given = id, true
		}
		all = append(all, more...)
	}
	return all, list, nil
}

// ofReference finds the runs of a store that was given to compare with, and the id of the
// one that is meant.
func (rs *Runs) ofReference(ctx context.Context, i int) (id string, all []listedRun, err error) {
	o := &rs.References[i]
	switch {
	case o.Baseline != nil:
		c := comparableBaseline(i+1, o)
		return c.ID, []listedRun{{shown: c, baseline: o.Baseline}}, nil
	case o.Reader == nil:
		return compareID(ownStore, o.Run), nil, nil
	}
	runs, err := query.Runs(ctx, o.Reader)
	if err != nil || len(runs) == 0 {
		return "", nil, errors.Join(err, errNoRuns)
	}
	for k := range runs {
		all = append(all, listedRun{shown: comparableRun(i+1, o.Where, &runs[k]), store: i + 1, run: runs[k], reader: o.Reader})
		if runs[k].Name == o.Run || o.Run == "" {
			id = all[k].shown.ID
		}
	}
	return id, all, nil
}

var errNoRuns = errors.New("no run is in the store")

// compareID names a run of a store that the server knows.
func compareID(store int, run string) string { return strconv.Itoa(store) + ":" + run }

// compareKey is by what it is remembered what is compared of a run, as it is now.
func compareKey(id string, run *provdb.Run) string {
	return fmt.Sprintf("%d %s %d %s", run.ID, run.State, run.Finished.UnixNano(), id)
}

func comparableRun(store int, where string, run *provdb.Run) api.Comparable {
	return api.Comparable{ID: compareID(store, run.Name), Name: run.Name, Where: where, State: string(run.State), Started: run.Started}
}

func comparableBaseline(number int, o *Reference) api.Comparable {
	b := o.Baseline
	return api.Comparable{ID: compareID(number, b.Name), Name: b.Name, Where: o.Where, Baseline: true, State: b.State, Started: b.Started}
}

// pair is two runs that are compared.
type pair struct {
	shown   [2]api.Comparable
	runs    [2]*comparison.Run
	keys    [2]string // of what is remembered of them
	lasting bool      // neither changes any more
}

// compareTwo finds two runs by their ids.
func (rs *Runs) compareTwo(ctx context.Context, ids [2]string) (*pair, error) {
	two := &pair{lasting: true}
	for i, id := range ids {
		if err := rs.compared(ctx, id, two, i); err != nil {
			return nil, err
		}
	}
	return two, nil
}

// compared finds a run by its id and puts it into a pair. What is compared of it is
// found out once for all clients, and for good when it has ended.
func (rs *Runs) compared(ctx context.Context, id string, two *pair, at int) error {
	first, name, ok := strings.Cut(id, ":")
	number, err := strconv.Atoi(first)
	if !ok || err != nil || number < 0 || number > len(rs.References) || len(id) > maxCompareID {
		return errNotComparable(id)
	}
	reader, where := rs.in.Source.Reader(), ""
	if number > ownStore {
		o := &rs.References[number-1]
		if o.Baseline != nil && name == o.Baseline.Name {
			two.shown[at], two.runs[at], two.keys[at] = comparableBaseline(number, o), o.Baseline, id
			return nil
		}
		reader, where = o.Reader, o.Where
	}
	if reader == nil || name == "" {
		return errNotComparable(id)
	}
	a, err := rs.briefOf(ctx, reader, name)
	if err != nil {
		return err
	}
	two.shown[at] = comparableRun(number, where, &a.Run)
	two.lasting = two.lasting && !a.Run.State.Open()
	two.keys[at] = compareKey(id, &a.Run)
	two.runs[at], err = rs.comparedRuns.Get(ctx, two.keys[at], func(ctx context.Context) (*comparison.Run, bool, error) {
		ctx, done, err := rs.in.Slot(ctx)
		if err != nil {
			return nil, false, err
		}
		defer done()
		r, err := a.Comparable(ctx)
		return r, !a.Run.State.Open(), err
	})
	return err
}

func errNotComparable(id string) error {
	return insight.Problemf(api.NotFound, "comparable lists those that can; chimbuko view --compare adds others",
		"no run %.80q can be compared here", id)
}

// briefOf finds a run of a store, in its turn among other questions.
func (rs *Runs) briefOf(ctx context.Context, r provdb.Reader, run string) (*query.Asker, error) {
	ctx, done, err := rs.in.Slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return query.New(ctx, r, run)
}

// Params names two runs and limits what is returned of them.
type Params struct {
	IDs     [2]string
	Program *trace.Program
	Limit   int // of rows of each list
}

// Compare tells what changed from one run to another.
func (rs *Runs) Compare(ctx context.Context, of Params) (*api.Comparison, error) {
	two, err := rs.compareTwo(ctx, of.IDs)
	if err != nil {
		return nil, err
	}
	program := -1
	if of.Program != nil {
		program = int(*of.Program)
	}
	limit := of.Limit
	key := fmt.Sprintf("%q %d", two.keys, program)
	d, err := rs.differences.Get(ctx, key, func(context.Context) (*comparison.Difference, bool, error) {
		return comparison.Diff(two.runs[0], two.runs[1], of.Program), two.lasting, nil
	})
	if err != nil {
		return nil, err
	}
	c := &api.Comparison{
		A: two.shown[0], B: two.shown[1], Verdict: api.Verdict{Level: api.Level(d.Verdict.Level), Sentence: d.Verdict.Sentence},
		Notices: two.notices(), Programs: two.programs(),
		Calls: d.Calls, Exclusive: d.Exclusive, Lost: d.Lost, LostPercent: d.LostPercent, Anomalies: d.Anomalies,
		Changes: []api.PathChange{}, Functions: []api.FunctionChange{}, Metadata: []api.FactChange{},
		Counts: api.ChangeCounts{Changes: map[string]int64{}, Functions: map[string]int64{}, Metadata: map[string]int64{}},
	}
	for i := range d.Changes {
		x := &d.Changes[i]
		c.Counts.Changes[x.Kind]++
		if i < limit {
			c.Changes = append(c.Changes, api.PathChange{
				CallTimes: api.CallTimes(x.Times), Change: x.Kind, Program: x.Program,
				Function: x.Function, CallPath: x.CallPath, Anomalies: x.Anomalies, Lost: x.Lost, Hosts: x.Hosts,
			})
		}
	}
	for i := range d.Functions {
		x := &d.Functions[i]
		c.Counts.Functions[x.Kind]++
		if i < limit {
			c.Functions = append(c.Functions, api.FunctionChange{
				CallTimes: api.CallTimes(x.Times), Change: x.Kind, Program: x.Program,
				Function: x.Function, Exclusive: x.Exclusive, Lost: x.Lost,
			})
		}
	}
	for i := range d.Facts {
		x := &d.Facts[i]
		c.Counts.Metadata[x.Kind]++
		if x.Expected && x.Kind != comparison.Same {
			c.Counts.Metadata["expected"]++
		}
		if i < maxFacts {
			c.Metadata = append(c.Metadata, api.FactChange(*x))
		}
	}
	return c, nil
}

// notices are what a reader must know before comparing.
func (two *pair) notices() []api.Notice {
	notices := []api.Notice{}
	if two.shown[0].ID == two.shown[1].ID {
		notices = append(notices, api.Notice{Level: api.LevelWatch, Topic: "same-run", Sentence: "A and B are the same run."})
	}
	for i, r := range two.runs {
		name := "AB"[i : i+1]
		switch state := provdb.State(r.State); {
		case state.Open():
			notices = append(notices, api.Notice{Level: api.LevelUnknown, Topic: "live", Sentence: name +
				" goes on: the times of all its calls are known when it has ended, and its anomalies are provisional."})
		case state == provdb.Failed || state == provdb.Incomplete:
			notices = append(notices, api.Notice{Level: api.LevelWatch, Topic: "incomplete", Sentence: name +
				" did not end as it should: what is missing of it looks like a change."})
		}
	}
	if a, b := two.runs[0].Settings["algorithm"], two.runs[1].Settings["algorithm"]; a != "" && b != "" && a != b {
		notices = append(notices, api.Notice{
			Level: api.LevelWatch, Topic: "detectors",
			Sentence: fmt.Sprintf("A was judged by %s and B by %s: what they call an anomaly differs.", text.OneLine(a),
				text.OneLine(b)),
		})
	}
	return notices
}

// programs are those of both runs.
func (two *pair) programs() []int64 {
	list := []int64{}
	for _, r := range two.runs {
		for i := range r.Functions {
			list = append(list, int64(r.Functions[i].Program))
		}
		for i := range r.Paths {
			list = append(list, int64(r.Paths[i].Program))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// HistogramParams name a function of two runs.
type HistogramParams struct {
	IDs      [2]string
	Program  *trace.Program // nil: 0
	Function string
	Bins     int
}

// CompareHistograms tells how long a function took in both runs.
func (rs *Runs) CompareHistograms(ctx context.Context, of HistogramParams) (*api.HistogramPair, error) {
	two, err := rs.compareTwo(ctx, of.IDs)
	if err != nil {
		return nil, err
	}
	program := new(trace.Program)
	if of.Program != nil {
		program = of.Program
	}
	h := &api.HistogramPair{Function: of.Function, Edges: []float64{}, Shares: [2][]float64{{}, {}}}
	var models [2]*comparison.Function
	for i, r := range two.runs {
		models[i] = r.Function(*program, of.Function)
		switch {
		case models[i] == nil:
			h.Missing = fmt.Sprintf("%s has no calls of it that are known.", "AB"[i:i+1])
		case models[i].Model == nil:
			h.Missing = fmt.Sprintf("%s has no model of it: it was called too rarely, or is not judged.", "AB"[i:i+1])
		default:
			h.Samples[i] = models[i].Calls
		}
	}
	if h.Missing != "" {
		return h, nil
	}
	o := comparison.Overlay([2]json.RawMessage{models[0].Model, models[1].Model}, of.Bins)
	if o == nil {
		h.Missing = "One of the models has no histogram: it was called too rarely, or the detector keeps none."
		return h, nil
	}
	h.Edges, h.Shares, h.Distance, h.At, h.Below, h.Moved = o.Edges, o.Shares, o.Distance, o.At, o.Below, o.Moved
	return h, nil
}

// CompareFlame returns the call paths of two runs in one tree, by time or by lost time.
func (rs *Runs) CompareFlame(ctx context.Context, ids [2]string, of insight.FlameParams) (*api.FlamePair, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	two, err := rs.compareTwo(ctx, ids)
	if err != nil {
		return nil, err
	}
	several := of.Program == nil && len(two.programs()) > 1
	root, partial := flame.Pair(two.runs, of.Metric == insight.MetricLost, of.Program, several)
	return &api.FlamePair{Metric: of.Metric, Root: root, Partial: partial}, nil
}
