package insight

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// OverviewParams are how much an overview shows.
type OverviewParams struct {
	Columns int // of the strip
	Issues  int // the worst
}

// view is what an overview is made of. Either may be nil.
type view struct {
	status *api.Status // of the run that is watched
	known  *known
	unread bool // the store holds more, and cannot be read now
	labels map[string]api.Label
}

// Overview tells of a run what the pipeline and the store know. It fails if neither
// knows of the run; what one of them cannot tell now is a notice.
func (in *Insight) Overview(ctx context.Context, run string, p OverviewParams) (*api.Overview, error) {
	var v view
	var wrong []api.Notice
	note := func(topic string, err error) {
		wrong = append(wrong, api.Notice{Level: api.LevelBad, Topic: topic, Sentence: AsProblem(err).Error()})
	}
	var err error
	if run == in.Run {
		if v.status, err = in.Source.Status(ctx); err != nil {
			note("health", err)
		}
	}
	v.known, err = in.known(ctx, run)
	switch {
	case err != nil && v.status == nil:
		return nil, err
	case err != nil && !v.early(err):
		v.unread = true
		note("store", err)
	}
	if v.labels, err = in.labels(ctx, run); err != nil {
		note("health", err)
	}
	o := v.overview(run, p.Issues)
	o.Place = in.Place
	if v.known != nil {
		if v.known.wrong != nil {
			note("store", v.known.wrong)
		}
		if p.Columns != UsualColumns {
			if o.Strip, err = in.strip(ctx, run, p.Columns, v.known); err != nil {
				return nil, err
			}
		}
	}
	o.Notices = append(wrong, o.Notices...)
	slices.SortStableFunc(o.Notices, func(a, b api.Notice) int { return badness(b.Level) - badness(a.Level) })
	return o, nil
}

// badness orders levels.
func badness(l api.Level) int {
	return slices.Index([]api.Level{api.LevelGood, api.LevelUnknown, api.LevelWatch, api.LevelBad}, l)
}

// early reports whether an error only says that nothing of a run is stored yet that
// goes on.
func (v *view) early(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Kind == api.NotFound && v.status.Run.State != api.Finished && v.status.Run.State != api.Failed
}

func (v *view) overview(run string, worst int) *api.Overview {
	o := &api.Overview{
		Run: run, State: v.state(), Notices: []api.Notice{}, Issues: []api.Issue{}, Programs: []api.Program{}, Slowest: []api.Slowest{},
		Strip: api.Strip{Series: []api.Layer{}},
	}
	o.Live = v.status != nil && o.State != api.Finished && o.State != api.Failed && o.State != api.Incomplete
	if k := v.known; k != nil {
		o.Length, o.Strip = float64(k.extent)/1e6, k.strip
		if k.begin > 0 {
			o.Began = time.UnixMicro(int64(k.begin)).UTC()
		}
		o.Programs, o.Review = v.programs(), k.review(o.State)
		for _, i := range v.open() {
			if len(o.Issues) < worst {
				o.Issues = append(o.Issues, k.pageIssue(i, v.labels))
			}
		}
		if k.kept.Anomalies == 0 {
			for _, f := range k.slowest {
				o.Slowest = append(o.Slowest, api.Slowest{
					Program: int64(f.Program), Function: f.Name, Longest: f.Longest, Mean: f.Mean,
					Calls: f.Calls,
				})
			}
		}
	}
	o.Figures = v.figures(o)
	o.Verdict = v.verdict(o)
	o.Notices = append(o.Notices, v.notices(o)...)
	return o
}

// state is how far the run has come.
func (v *view) state() api.State {
	if v.status != nil && v.status.Run.State != "" {
		return v.status.Run.State
	}
	if v.known == nil {
		return api.Waiting
	}
	switch v.known.run.State {
	case provdb.Finished:
		return api.Finished
	case provdb.Failed:
		return api.Failed
	case provdb.Incomplete:
		return api.Incomplete
	}
	return api.Running
}

// open are the indices of the issues that are to be looked at, the worst first: without
// waits because of another issue, and without those that are muted or expected.
func (v *view) open() (list []int) {
	if v.known == nil {
		return nil
	}
	for i := range v.known.issues {
		if v.known.issues[i].Cause == 0 && !v.muted(i) {
			list = append(list, i)
		}
	}
	return list
}

func (v *view) muted(i int) bool {
	state := v.labels[v.known.keys[i]].State
	return state == api.LabelMuted || state == api.LabelExpected
}

// costOf is what an issue cost: what its own anomalies lost, and what waits because of
// them lost on other ranks. Over all issues without a cause, each anomaly is counted
// once: waits with a known cause with that, and others as themselves. A lasting change
// has no anomalies; what it costs is an estimate, and is not added to what was measured.
func costOf(x *provenance.Issue) trace.Micros {
	if x.IsChange() {
		return 0
	}
	return x.LostTime + x.WaitTime
}

// figures are the key figures.
func (v *view) figures(o *api.Overview) api.Figures {
	f := api.Figures{Provisional: o.State != api.Finished}
	if k := v.known; k != nil {
		k.count(&f, v)
	}
	if s := v.status; s != nil {
		addLive(&f, s, o)
	}
	if f.Calls != nil && f.Kept > 0 {
		r := float64(*f.Calls) / float64(f.Kept)
		f.Reduction = &r
	}
	f.CoreHoursLost = float64(f.Lost) / 3.6e9
	if core := o.Length * float64(f.Ranks); core > 0 {
		percent := 100 * float64(f.Lost) / 1e6 / core
		f.LostPercent = &percent
	}
	if o.Length > 0 {
		f.AnomaliesPerHour = float64(f.Anomalies) / o.Length * 3600
	}
	return f
}

// count fills in what the store tells.
func (k *known) count(f *api.Figures, v *view) {
	f.Anomalies, f.Kept, f.Functions = k.kept.Anomalies, k.kept.Executions, max(k.kept.Functions, k.info.Totals.Functions)
	f.Lost = int64(k.kept.Lost)
	f.Ranks, f.FunctionsMinCalls = max(int64(len(k.ranks)), k.info.Totals.Ranks), int64(k.info.minSamples())
	hosts := make(map[string]bool)
	for _, r := range k.ranks {
		if r.Host != "" {
			hosts[r.Host] = true
		}
	}
	f.Hosts = int64(len(hosts))
	f.Calls, f.Events = Positive(max(k.info.Totals.Calls, k.kept.Calls)), Positive(k.info.Totals.Events)
	if k.kept.Profiled > 0 {
		f.FunctionsWarm = &k.kept.Warm
	}
	for i := range k.issues {
		x := &k.issues[i]
		if x.Role == provenance.Victim {
			f.Victims += x.Anomalies
		}
		if x.Cause > 0 {
			continue
		}
		f.Issues++
		if v.muted(i) {
			f.IssuesMuted++
			f.MutedLost += int64(costOf(x))
		}
	}
}

// Positive is a number, or nil for none.
func Positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

// addLive fills in what the pipeline tells. Of a run that has ended the store knows
// better, if it knows anything.
func addLive(f *api.Figures, s *api.Status, o *api.Overview) {
	t := &s.Totals
	f.Ranks, f.Functions = max(f.Ranks, t.Ranks), max(f.Functions, t.Functions)
	f.RanksExpected = Positive(t.RanksExpected)
	if f.Calls == nil || o.Live {
		f.Calls = Positive(t.Calls)
	}
	if f.Events == nil || o.Live {
		f.Events = Positive(t.Events)
	}
	hosts := make(map[string]bool)
	for i := range s.Ranks {
		if s.Ranks[i].Host != "" {
			hosts[s.Ranks[i].Host] = true
		}
	}
	f.Hosts = max(f.Hosts, int64(len(hosts)))
	if len(s.Nodes) == 0 {
		return
	}
	var rate float64
	var drops int64
	age := s.Nodes[0].Behind
	for i := range s.Nodes {
		n := &s.Nodes[i]
		rate, drops, age = rate+n.EventsPerSecond, drops+n.Drops, min(age, n.Behind)
	}
	f.Dropped = &drops
	if o.Live {
		f.EventsPerSecond, f.LastEventAge = &rate, &age
	}
	if o.Live && t.FunctionsWarm != nil {
		f.FunctionsWarm = t.FunctionsWarm
	}
}

// programs are those of the workflow.
func (v *view) programs() []api.Program {
	list := []api.Program{}
	for _, r := range v.ranks() {
		if n := len(list); n > 0 && list[n-1].Program == int64(r.Program) {
			list[n-1].Ranks++
			continue
		}
		p := api.Program{Program: int64(r.Program), Ranks: 1}
		if name := v.known.names[r.Program]; name != "" {
			p.Name = path.Base(name)
		}
		list = append(list, p)
	}
	return list
}

// ranks are all that are known of, in order of program, host and rank: those of the
// store, and of a run that is watched those that the pipeline has seen.
func (v *view) ranks() []query.Placed {
	var stored []query.Placed
	if v.known != nil {
		stored = v.known.ranks
	}
	if v.status == nil || len(v.status.Ranks) == 0 {
		return stored
	}
	at := make(map[trace.RankKey]int, len(stored))
	all := slices.Clone(stored)
	for i := range all {
		at[all[i].RankKey] = i
	}
	for i := range v.status.Ranks {
		r := &v.status.Ranks[i]
		p := trace.RankKey{Program: trace.Program(r.Program), Rank: trace.Rank(r.Rank)}
		if j, ok := at[p]; !ok {
			all = append(all, query.Placed{RankKey: p, Host: r.Host})
		} else if all[j].Host == "" {
			all[j].Host = r.Host
		}
	}
	SortPlaced(all)
	return all
}

// review is what the review at the end did; nil: there was none.
func (k *known) review(state api.State) *api.ReviewEnd {
	if state != api.Finished || k.info.Settings["review"] == "false" {
		return nil
	}
	if r := k.info.Review; r != nil {
		return &api.ReviewEnd{Flagged: r.Confirmed + r.Withdrawn, Confirmed: r.Confirmed, Withdrawn: r.Withdrawn, Promoted: r.Promoted}
	}
	if k.kept.Confirmed+k.kept.Promoted+k.kept.Withdrawn == 0 {
		return nil
	}
	return &api.ReviewEnd{
		Flagged: k.kept.Confirmed + k.kept.Withdrawn, Confirmed: k.kept.Confirmed, Withdrawn: k.kept.Withdrawn,
		Promoted: k.kept.Promoted,
	}
}

// strip is lost time over the whole run by kind, in any number of columns.
func (in *Insight) strip(ctx context.Context, run string, columns int, k *known) (api.Strip, error) {
	ctx, done, err := in.Slot(ctx)
	if err != nil {
		return api.Strip{}, err
	}
	defer done()
	a, err := in.asker(ctx, run)
	if err != nil {
		return api.Strip{}, err
	}
	a.Begin, a.Memory = k.begin, k.memory
	return stripOf(ctx, a, query.Timeline{To: k.extent, Columns: columns})
}

// stripOf asks for lost time by kind. Kinds come in a fixed order, those of anomalies
// first that have none.
func stripOf(ctx context.Context, a *query.Asker, q query.Timeline) (api.Strip, error) {
	strip := api.Strip{From: float64(q.From) / 1e6, To: float64(q.From+q.ColumnWidth()*trace.Micros(q.Columns)) / 1e6, Series: []api.Layer{}}
	lines, err := a.Timeline(ctx, q)
	if err != nil {
		return strip, err
	}
	for _, kind := range append([]provenance.AnomalyKind{""}, provenance.AnomalyKinds()...) {
		for _, l := range lines {
			if l.Kind == string(kind) {
				strip.Series = append(strip.Series, api.Layer{Kind: l.Kind, Lost: l.Lost, N: l.Anomalies})
			}
		}
	}
	return strip, nil
}
