package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/show/api"

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

// Bounds of comparisons.
const (
	maxCompared  = 8    // runs, and pairs of them, of which it is remembered what is compared
	maxChanges   = 5000 // rows of a list
	maxFacts     = 2000
	overlayBins  = 80
	maxOverlay   = 1000
	ownStore     = 0 // number of the store of the page; others have theirs from 1 on
	maxCompareID = 4096
)

// comparables lists the runs that can be compared.
func (s *server) comparables(r *http.Request) (any, error) {
	if err := newParams(r).done(); err != nil {
		return nil, err
	}
	ctx, done, err := s.slot(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	all, list, err := s.listed(ctx)
	for i := range all {
		list.Rows = append(list.Rows, all[i].shown)
	}
	return list, err
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
func (s *server) listed(ctx context.Context) (all []listedRun, list api.Comparables, err error) {
	list = api.Comparables{Rows: []api.Comparable{}, Problems: []string{}}
	if reader := s.Source.Reader(); reader != nil {
		runs, err := query.Runs(ctx, reader)
		if err != nil {
			return nil, list, err
		}
		for i := range runs {
			all = append(all, listedRun{shown: comparableRun(ownStore, "", &runs[i]), run: runs[i], reader: reader})
			if i > 0 && runs[i].Name == s.Run {
				list.Usual = compareID(ownStore, runs[i-1].Name)
			}
		}
	}
	given := false
	for i := range s.References {
		id, more, err := s.ofReference(ctx, i)
		if err != nil {
			list.Problems = append(list.Problems, fmt.Sprintf("%s: %v", s.References[i].Where, err))
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
func (s *server) ofReference(ctx context.Context, i int) (id string, all []listedRun, err error) {
	o := &s.References[i]
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

// comparing turns a function that compares two runs into a handler.
func (s *server) comparing(f func(ctx context.Context, p *params, two *pair) (any, error)) http.Handler {
	return s.answer(func(r *http.Request) (any, error) {
		p := newParams(r)
		ids := [2]string{p.text("a"), p.text("b")}
		two := pair{lasting: true}
		for i, name := range []string{"a", "b"} {
			if ids[i] == "" {
				p.fail(name, "is missing: name a run that comparable lists")
			}
		}
		if len(p.errs) > 0 {
			return nil, p.done()
		}
		for i, id := range ids {
			if err := s.compared(r.Context(), id, &two, i); err != nil {
				return nil, err
			}
		}
		return f(r.Context(), p, &two)
	})
}

// compared finds a run by its id and puts it into a pair. What is compared of it is
// found out once for all clients, and for good when it has ended.
func (s *server) compared(ctx context.Context, id string, two *pair, at int) error {
	first, name, ok := strings.Cut(id, ":")
	number, err := strconv.Atoi(first)
	if !ok || err != nil || number < 0 || number > len(s.References) || len(id) > maxCompareID {
		return errNotComparable(id)
	}
	reader, where := s.Source.Reader(), ""
	if number > ownStore {
		o := &s.References[number-1]
		if o.Baseline != nil && name == o.Baseline.Name {
			two.shown[at], two.runs[at], two.keys[at] = comparableBaseline(number, o), o.Baseline, id
			return nil
		}
		reader, where = o.Reader, o.Where
	}
	if reader == nil || name == "" {
		return errNotComparable(id)
	}
	a, err := s.briefOf(ctx, reader, name)
	if err != nil {
		return err
	}
	two.shown[at] = comparableRun(number, where, &a.Run)
	two.lasting = two.lasting && !a.Run.State.Open()
	two.keys[at] = compareKey(id, &a.Run)
	two.runs[at], err = s.comparedRuns.get(ctx, two.keys[at], func(ctx context.Context) (*comparison.Run, bool, error) {
		ctx, done, err := s.slot(ctx)
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
	return &problem{http.StatusNotFound, fmt.Sprintf("no run %.80q can be compared here", id), "comparable lists those that can; chimbuko view --compare adds others"}
}

// briefOf finds a run of a store, in its turn among other questions.
func (s *server) briefOf(ctx context.Context, r provdb.Reader, run string) (*query.Asker, error) {
	ctx, done, err := s.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return query.New(ctx, r, run)
}

// compare is what changed from one run to another.
func (s *server) compare(ctx context.Context, p *params, two *pair) (any, error) {
	program, limit := p.program(), p.limit(1000, maxChanges)
	if err := p.done(); err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%q %d", two.keys, p.integer("program", -1, -1, math.MaxInt32))
	d, err := s.differences.get(ctx, key, func(context.Context) (*comparison.Difference, bool, error) {
		return comparison.Diff(two.runs[0], two.runs[1], program), two.lasting, nil
	})
	if err != nil {
		return nil, err
	}
	c := api.Comparison{
		A: two.shown[0], B: two.shown[1], Verdict: api.Verdict{Level: api.Level(d.Verdict.Level), Sentence: d.Verdict.Sentence}, Notices: two.notices(), Programs: two.programs(),
		Calls: d.Calls, Exclusive: d.Exclusive, Lost: d.Lost, LostPercent: d.LostPercent, Anomalies: d.Anomalies,
		Changes: []api.PathChange{}, Functions: []api.FunctionChange{}, Metadata: []api.FactChange{},
		Counts: api.ChangeCounts{Changes: map[string]int64{}, Functions: map[string]int64{}, Metadata: map[string]int64{}},
	}
	for i := range d.Changes {
		x := &d.Changes[i]
		c.Counts.Changes[x.Kind]++
		if i < limit {
			c.Changes = append(c.Changes, api.PathChange{CallTimes: api.CallTimes(x.Times), Change: x.Kind, Program: x.Program, Function: x.Function, CallPath: x.CallPath, Anomalies: x.Anomalies, Lost: x.Lost, Hosts: x.Hosts})
		}
	}
	for i := range d.Functions {
		x := &d.Functions[i]
		c.Counts.Functions[x.Kind]++
		if i < limit {
			c.Functions = append(c.Functions, api.FunctionChange{CallTimes: api.CallTimes(x.Times), Change: x.Kind, Program: x.Program, Function: x.Function, Exclusive: x.Exclusive, Lost: x.Lost})
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
			notices = append(notices, api.Notice{Level: api.LevelUnknown, Topic: "live", Sentence: name + " goes on: the times of all its calls are known when it has ended, and its anomalies are provisional."})
		case state == provdb.Failed || state == provdb.Incomplete:
			notices = append(notices, api.Notice{Level: api.LevelWatch, Topic: "incomplete", Sentence: name + " did not end as it should: what is missing of it looks like a change."})
		}
	}
	if a, b := two.runs[0].Settings["algorithm"], two.runs[1].Settings["algorithm"]; a != "" && b != "" && a != b {
		notices = append(notices, api.Notice{Level: api.LevelWatch, Topic: "detectors", Sentence: fmt.Sprintf("A was judged by %s and B by %s: what they call an anomaly differs.", oneLine(a), oneLine(b))})
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

// compareHistograms is how long a function took in both runs.
func (s *server) compareHistograms(_ context.Context, p *params, two *pair) (any, error) {
	program, name, bins := p.program(), p.text("function"), int(p.integer("bins", overlayBins, 1, maxOverlay))
	if name == "" {
		p.fail("function", "is missing")
	}
	if program == nil {
		program = new(trace.Program)
	}
	if err := p.done(); err != nil {
		return nil, err
	}
	h := api.HistogramPair{Function: name, Edges: []float64{}, Shares: [2][]float64{{}, {}}}
	var models [2]*comparison.Function
	for i, r := range two.runs {
		models[i] = r.Function(*program, name)
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
	o := comparison.Overlay([2]json.RawMessage{models[0].Model, models[1].Model}, bins)
	if o == nil {
		h.Missing = "One of the models has no histogram: it was called too rarely, or the detector keeps none."
		return h, nil
	}
	h.Edges, h.Shares, h.Distance, h.At, h.Below, h.Moved = o.Edges, o.Shares, o.Distance, o.At, o.Below, o.Moved
	return h, nil
}
