// Package compare compares the runs of a store with each other, with runs of other stores and
// with baselines: two runs, or a trend over many.
package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/flame"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/show/memo"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Reference is another store or a baseline to compare runs with. Clients can choose only among
// references and the runs of the page's own store.
type Reference struct {
	Where    string          // for people
	Run      string          // the default run of the store; "": the latest
	Reader   provdb.Reader   // nil: the page's own store
	Baseline *comparison.Run // instead of a store
}

// Neighbors are further runs in a directory. Clients can choose only among those that List returns.
type Neighbors interface {
	Dir() string
	// List returns the runs in order. Names are unique.
	List() ([]api.Neighbor, error)
	// Read reads a run that List returned.
	Read(ctx context.Context, r *api.Neighbor) (*comparison.Run, error)
}

// Runs compares runs and caches results. Several goroutines may use it.
type Runs struct {
	References []Reference

	neighbors   Neighbors // nil: none
	in          *insight.Insight
	runs        memo.Memo[*comparison.Run]
	differences memo.Memo[*api.Difference]
	sums        memo.Memo[[]*comparison.Sums]
}

// New returns the runs of the store of an Insight, of the references, and the neighbors unless they are nil.
func New(in *insight.Insight, references []Reference, neighbors Neighbors) *Runs {
	return &Runs{
		in: in, References: references, neighbors: neighbors, runs: memo.Memo[*comparison.Run]{Size: maxCached, ServeStale: true},
		differences: memo.Memo[*api.Difference]{Size: maxCached, ServeStale: true},
		sums:        memo.Memo[[]*comparison.Sums]{Size: maxCached, ServeStale: true},
	}
}

// Bounds of comparisons.
const (
	maxCached    = 8 // runs, and pairs of runs
	maxFacts     = 2000
	ownStore     = 0 // number of the page's own store; references are numbered from 1
	maxCompareID = 4096
)

// Comparables lists the runs that can be compared.
func (rs *Runs) Comparables(ctx context.Context) (*api.Comparables, error) {
	return insight.InSlot(ctx, rs.in, func(ctx context.Context) (*api.Comparables, error) {
		all, list, err := rs.candidates(ctx)
		for i := range all {
			list.Rows = append(list.Rows, all[i].Comparable)
		}
		rs.listNeighbors(&list)
		return &list, err
	})
}

// candidate is a run that can be compared: one of a store, or a baseline.
type candidate struct {
	api.Comparable
	store    int // number
	run      provdb.Run
	reader   provdb.Reader
	baseline *comparison.Run // instead of run
}

// candidates finds all runs that can be compared. The returned list has no rows yet.
func (rs *Runs) candidates(ctx context.Context) (all []candidate, list api.Comparables, err error) {
	list = api.Comparables{Rows: []api.Comparable{}, Problems: []string{}, Neighbors: []api.Neighbor{}}
	if reader := rs.in.Source.Reader(); reader != nil {
		runs, err := query.Runs(ctx, reader)
		if err != nil {
			return nil, list, err
		}
		for i := range runs {
			all = append(all, candidate{Comparable: comparableRun(ownStore, "", &runs[i]), run: runs[i], reader: reader})
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
		if !given { // the first reference is the default
			list.Usual, given = id, true
		}
		all = append(all, more...)
	}
	return all, list, nil
}

// ofReference returns the runs of a reference and the id of its default run.
func (rs *Runs) ofReference(ctx context.Context, i int) (id string, all []candidate, err error) {
	o := &rs.References[i]
	switch {
	case o.Baseline != nil:
		c := comparableBaseline(i+1, o)
		return c.ID, []candidate{{Comparable: c, baseline: o.Baseline}}, nil
	case o.Reader == nil:
		return compareID(ownStore, o.Run), nil, nil
	}
	runs, err := query.Runs(ctx, o.Reader)
	if err != nil || len(runs) == 0 {
		return "", nil, errors.Join(err, errNoRuns)
	}
	for k := range runs {
		all = append(all, candidate{Comparable: comparableRun(i+1, o.Where, &runs[k]), store: i + 1, run: runs[k], reader: o.Reader})
		if runs[k].Name == o.Run || o.Run == "" {
			id = all[k].ID
		}
	}
	return id, all, nil
}

var errNoRuns = errors.New("the store has no runs")

// compareID names a run of a numbered store.
func compareID(store int, run string) string { return strconv.Itoa(store) + ":" + run }

// compareKey is the cache key of a run in its present state.
func compareKey(id string, run *provdb.Run) string {
	return fmt.Sprintf("%d %s %d %s", run.ID, run.State, run.Finished.UnixNano(), id)
}

func comparableRun(store int, where string, run *provdb.Run) api.Comparable {
	c := query.Comparable(*run)
	c.ID, c.Where = compareID(store, run.Name), where
	return c
}

func comparableBaseline(number int, o *Reference) api.Comparable {
	b := o.Baseline
	return api.Comparable{ID: compareID(number, b.Name), Name: b.Name, Where: o.Where, Baseline: true, State: b.State, Started: b.Started}
}

// pair is two runs to compare.
type pair struct {
	shown   [2]api.Comparable
	runs    [2]*comparison.Run
	keys    [2]string // of the cache
	lasting bool      // both runs have ended
}

// pair finds two runs by their ids.
func (rs *Runs) pair(ctx context.Context, ids [2]string) (*pair, error) {
	two := &pair{lasting: true}
	for i, id := range ids {
		if err := rs.find(ctx, id, two, i); err != nil {
			return nil, err
		}
	}
	return two, nil
}

// find puts the run with an id into a pair.
func (rs *Runs) find(ctx context.Context, id string, two *pair, at int) error {
	first, name, ok := strings.Cut(id, ":")
	if first == besideStore {
		return rs.findNeighbor(ctx, id, name, two, at)
	}
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
	a, err := insight.InSlot(ctx, rs.in, func(ctx context.Context) (*query.Queries, error) { return query.New(ctx, reader, name) })
	if err != nil {
		return err
	}
	two.shown[at] = comparableRun(number, where, &a.Run)
	two.lasting = two.lasting && !a.Run.State.Open()
	two.keys[at] = compareKey(id, &a.Run)
	two.runs[at], err = rs.runs.Get(ctx, two.keys[at], func(ctx context.Context) (*comparison.Run, bool, error) {
		r, err := insight.InSlot(ctx, rs.in, a.Comparable)
		return r, !a.Run.State.Open(), err
	})
	return err
}

func errNotComparable(id string) error {
	return api.Problemf(api.NotFound, "comparable lists the runs; chimbuko view --compare adds others", "no comparable run %.80q", id)
}

// Params names two runs and limits each list of the answer.
type Params struct {
	IDs     [2]string
	Program *trace.Program
	Limit   int
}

// Compare returns the changes from one run to another.
func (rs *Runs) Compare(ctx context.Context, of Params) (*api.Comparison, error) {
	two, err := rs.pair(ctx, of.IDs)
	if err != nil {
		return nil, err
	}
	program := -1
	if of.Program != nil {
		program = int(*of.Program)
	}
	key := fmt.Sprintf("%q %d", two.keys, program)
	d, err := rs.differences.Get(ctx, key, func(context.Context) (*api.Difference, bool, error) {
		return comparison.Diff(two.runs[0], two.runs[1], of.Program), two.lasting, nil
	})
	if err != nil {
		return nil, err
	}
	c := &api.Comparison{Difference: *d, A: two.shown[0], B: two.shown[1], Notices: two.notices(), Programs: two.programs()}
	c.Changes = c.Changes[:min(of.Limit, len(c.Changes))]
	c.Functions = c.Functions[:min(of.Limit, len(c.Functions))]
	c.Metadata = c.Metadata[:min(maxFacts, len(c.Metadata))]
	return c, nil
}

// notices returns the limitations of the comparison.
func (two *pair) notices() []api.Notice {
	notices := []api.Notice{}
	add := func(level api.Level, topic, format string, args ...any) {
		notices = append(notices, api.Notice{Level: level, Topic: topic, Sentence: fmt.Sprintf(format, args...)})
	}
	if two.shown[0].ID == two.shown[1].ID {
		add(api.LevelWatch, "same-run", "A and B are the same run.")
	}
	notices = append(notices, comparison.OtherProgram(two.runs)...)
	for i, r := range two.runs {
		name := "AB"[i : i+1]
		switch state := provdb.State(r.State); {
		case state.Open():
			add(api.LevelUnknown, "live",
				"%s has not ended: the times of all its calls are known at its end, and its anomalies are provisional.", name)
		case state == provdb.Failed || state == provdb.Incomplete:
			add(api.LevelWatch, "incomplete", "%s is incomplete: its missing data looks like a change.", name)
		}
	}
	if a, b := two.runs[0].Settings["algorithm"], two.runs[1].Settings["algorithm"]; a != "" && b != "" && a != b {
		add(api.LevelWatch, "detectors", "A was judged by %s and B by %s, which flag different calls.", text.OneLine(a), text.OneLine(b))
	}
	return notices
}

// programs returns the programs of both runs.
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

// CompareHistograms returns the distribution of the times of a function in both runs.
func (rs *Runs) CompareHistograms(ctx context.Context, of HistogramParams) (*api.HistogramPair, error) {
	two, err := rs.pair(ctx, of.IDs)
	if err != nil {
		return nil, err
	}
	h := &api.HistogramPair{Edges: []float64{}, Shares: [2][]float64{{}, {}}}
	var program trace.Program
	if of.Program != nil {
		program = *of.Program
	}
	var models [2]json.RawMessage
	var samples [2]int64
	for i, r := range two.runs {
		switch f := r.Function(program, of.Function); {
		case f == nil:
			h.Missing = "AB"[i:i+1] + " has no calls of it."
		case f.Model == nil:
			h.Missing = "AB"[i:i+1] + " has no model of it: too few calls, or not judged."
		default:
			models[i], samples[i] = f.Model, f.Calls
		}
	}
	if h.Missing == "" {
		if o := comparison.Overlay(models, of.Bins); o != nil {
			h = o
		} else {
			h.Missing = "One of the models has no histogram: too few calls, or the detector keeps none."
		}
	}
	h.Function, h.Samples = of.Function, samples
	return h, nil
}

// FlameParams name two runs and select their call paths.
type FlameParams struct {
	IDs [2]string
	insight.FlameParams
}

// CompareFlame returns the call paths of two runs in one tree, by time or by lost time.
func (rs *Runs) CompareFlame(ctx context.Context, of FlameParams) (*api.FlamePair, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	two, err := rs.pair(ctx, of.IDs)
	if err != nil {
		return nil, err
	}
	several := of.Program == nil && len(two.programs()) > 1
	root, partial := flame.Pair(two.runs, of.Metric == heatmap.MetricLost, of.Program, several)
	return &api.FlamePair{Metric: of.Metric, Root: root, Partial: partial}, nil
}
