package insight

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// OverviewParams bound an overview.
type OverviewParams struct {
	Columns  int // of the strip
	Findings int
}

// view is the input of an overview. status or data may be nil.
type view struct {
	status *api.Status // of the watched run
	data   *runData
	unread bool // the store has data but cannot be read now
	labels map[string]api.Label
}

// view returns the status and the data of a run that has data.
func (in *Insight) view(ctx context.Context, q *runQuery) (v view, err error) {
	v.data = q.data
	if q.Run.Name == in.Run {
		v.status, err = in.Source.Status(ctx)
	}
	return v, err
}

// Overview combines the state of the pipeline and the stored data of a run. It fails if
// neither is available; if one is missing, a notice gives the reason.
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
	v.data, err = in.data(ctx, run, in.caches.TryGet)
	switch {
	case err != nil && v.status == nil:
		return nil, err
	case err != nil && !v.isEarly(err):
		v.unread = true
		note("store", err)
	}
	if v.labels, err = in.labels(ctx, run); err != nil {
		note("health", err)
	}
	o := v.overview(run, p.Findings)
	o.Place, o.Host, o.Version = in.Place, in.Host, in.Build
	if v.data != nil {
		if v.data.err != nil {
			note("store", v.data.err)
		}
		if p.Columns != DefaultColumns {
			o.Strip, err = read(ctx, in, run, func(ctx context.Context, q *runQuery) (api.Strip, error) {
				q.Begin, q.Memory = v.data.begin, v.data.memory
				return stripOf(ctx, q.Queries, executions.Timeline{To: v.data.extent, Columns: p.Columns})
			})
			if err != nil {
				return nil, err
			}
		}
	}
	o.Notices = append(wrong, o.Notices...)
	slices.SortStableFunc(o.Notices, func(a, b api.Notice) int { return badness(b.Level) - badness(a.Level) })
	return o, nil
}

func badness(l api.Level) int {
	return slices.Index([]api.Level{api.LevelGood, api.LevelUnknown, api.LevelWatch, api.LevelBad}, l)
}

// isEarly reports whether err only means that a running run has stored nothing yet.
func (v *view) isEarly(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == api.NotFound && v.status.Run.State != api.Finished && v.status.Run.State != api.Failed
}

func (v *view) overview(run string, worst int) *api.Overview {
	o := &api.Overview{
		Run: run, State: v.state(), Notices: []api.Notice{}, Findings: []api.Finding{}, Notes: []api.Finding{},
		Programs: []api.Program{}, Slowest: []api.Slowest{}, Strip: api.Strip{Series: []api.Layer{}},
	}
	o.Live = v.status != nil && o.State != api.Finished && o.State != api.Failed && o.State != api.Incomplete
	if d := v.data; d != nil {
		o.Length, o.Strip, o.GPUs, o.Collectives = d.unit.Seconds(d.extent), d.strip, d.gpus, d.collectives
		if d.begin > 0 {
			o.Began = d.unit.Time(d.begin).UTC()
		}
		o.Programs, o.Review = v.programs(), d.review(o.State)
		for _, i := range v.openFindings() {
			if len(o.Findings) < worst {
				o.Findings = append(o.Findings, d.pageFinding(i, v.labels))
			}
		}
		for i := range d.findings {
			if d.findings[i].Noted() && !v.isMuted(i) && len(o.Notes) < provdb.WorstNotes {
				o.Notes = append(o.Notes, d.pageFinding(i, v.labels))
			}
		}
		if d.counts.Anomalies == 0 {
			o.Slowest = append(o.Slowest, d.slowest...)
		}
	}
	if v.hasEnded() {
		_, never := v.silentRanks()
		o.Incomplete = len(never)+len(v.data.info.Incomplete)+len(v.data.info.Broken) > 0
	}
	o.Figures = v.figures(o)
	v.addPeers(o)
	o.Verdict = v.verdict(o)
	o.Notices = append(o.Notices, v.notices(o)...)
	return o
}

// state returns the state that the pipeline reports, or else the stored one.
func (v *view) state() api.State {
	if v.status != nil && v.status.Run.State != "" {
		return v.status.Run.State
	}
	if v.data == nil {
		return api.Waiting
	}
	return v.data.run.State
}

// openFindings returns the indices of the open findings, the costliest first: those that are listed, and
// neither muted nor expected.
func (v *view) openFindings() (list []int) {
	if v.data == nil {
		return nil
	}
	for i := range v.data.findings {
		if v.data.findings[i].Listed() && !v.isMuted(i) {
			list = append(list, i)
		}
	}
	return list
}

func (v *view) isMuted(i int) bool {
	state := v.labels[v.data.keys[i]].State
	return state == api.LabelMuted || state == api.LabelExpected
}

// figures returns the key figures.
func (v *view) figures(o *api.Overview) api.Figures {
	f := api.Figures{Provisional: o.State != api.Finished}
	if v.data != nil {
		v.data.count(&f, v)
	}
	if s := v.status; s != nil {
		addLive(&f, s, o)
	}
	if v.hasEnded() {
		if _, never := v.silentRanks(); len(never) > 0 {
			f.RanksExpected = new(f.Ranks + int64(len(never)))
		}
	}
	if f.Calls != nil && f.Kept > 0 {
		f.Reduction = new(float64(*f.Calls) / float64(f.Kept))
	}
	f.CoreHoursLost = f.Lost / 3.6e9
	if core := o.Length * float64(f.Ranks); core > 0 {
		f.LostPercent = new(100 * f.Lost / 1e6 / core)
	}
	if o.Length > 0 {
		f.AnomaliesPerHour = float64(f.Anomalies) / o.Length * 3600
	}
	return f
}

// count adds the figures of the store.
func (d *runData) count(f *api.Figures, v *view) {
	f.Anomalies, f.Kept, f.Functions = d.counts.Anomalies, d.counts.Executions, max(d.counts.Functions, int64(d.info.Totals.Functions))
	f.Lost = d.micros(d.counts.Lost)
	f.Ranks, f.FunctionsMinCalls = int64(max(len(d.ranks), d.info.Totals.Ranks)), int64(minSamples(d.info))
	f.Hosts = countHosts(len(d.ranks), func(i int) string { return d.ranks[i].Host })
	f.Calls, f.Events = Positive(max(d.info.Totals.Calls, d.counts.Calls)), Positive(d.info.Totals.Events)
	if d.counts.Profiled > 0 {
		f.FunctionsWarm = &d.counts.Warm
	}
	lost := 0.0 // to findings, also to lasting changes, which have no anomalies
	for i := range d.findings {
		x := &d.findings[i]
		if x.Status == provenance.Withdrawn {
			f.WithdrawnLost += d.micros(x.Lost)
			continue
		}
		if x.Role == provenance.Victim {
			f.Victims += x.Calls
		}
		if x.Cause > 0 {
			continue
		}
		if x.Severity != provenance.Note {
			lost += d.micros(x.Lost)
		}
		if x.Minor() {
			f.FindingsMinor++
			f.MinorLost += d.micros(x.Lost)
			continue
		}
		if x.Noted() {
			f.FindingsNotes++
			f.NotesLost += d.micros(x.Lost)
			continue
		}
		f.Findings++
		if v.isMuted(i) {
			f.FindingsMuted++
			f.MutedLost += d.micros(x.Lost)
		}
	}
	if d.err == nil && len(d.findings) > 0 {
		f.Lost = lost
	}
}

// Positive returns nil for numbers that are not positive.
func Positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

// countHosts counts the distinct names of n hosts.
func countHosts(n int, host func(i int) string) int64 {
	hosts := make(map[string]bool)
	for i := range n {
		if name := host(i); name != "" {
			hosts[name] = true
		}
	}
	return int64(len(hosts))
}

// addLive adds the figures of the pipeline. For a run that has ended, those of the store take
// precedence.
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
	f.Hosts = max(f.Hosts, countHosts(len(s.Ranks), func(i int) string { return s.Ranks[i].Host }))
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

// programs returns the programs of the workflow.
func (v *view) programs() []api.Program {
	list := []api.Program{}
	for _, r := range v.ranks() {
		if n := len(list); n > 0 && list[n-1].Program == int64(r.Program) {
			list[n-1].Ranks++
			continue
		}
		p := api.Program{Program: int64(r.Program), Ranks: 1}
		if name := v.data.names[r.Program]; name != "" {
			p.Name = path.Base(name)
		} else if names := v.data.info.Programs; int(r.Program) < len(names) {
			p.Name = names[r.Program]
		}
		list = append(list, p)
	}
	return list
}

// ranks returns the ranks of the store and of the pipeline, ordered by program, host and rank.
func (v *view) ranks() []executions.RankHost {
	var stored []executions.RankHost
	if v.data != nil {
		stored = v.data.ranks
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
			all = append(all, executions.RankHost{RankKey: p, Host: r.Host})
		} else if all[j].Host == "" {
			all[j].Host = r.Host
		}
	}
	heatmap.SortRanks(all)
	return all
}

// review returns the result of the review at the end of the run, or nil.
func (d *runData) review(state api.State) *api.ReviewEnd {
	r := &api.ReviewEnd{Confirmed: d.counts.Confirmed, Withdrawn: d.counts.Withdrawn, Promoted: d.counts.Promoted}
	if i := d.info.Review; i != nil {
		r.Confirmed, r.Withdrawn, r.Promoted = i.Confirmed, i.Withdrawn, i.Promoted
	} else if r.Confirmed+r.Promoted+r.Withdrawn == 0 {
		return nil
	}
	if state != api.Finished || d.info.Settings["review"] == "false" {
		return nil
	}
	r.Flagged = r.Confirmed + r.Withdrawn
	return r
}

// MicrosOf converts durations to microseconds.
func MicrosOf(unit trace.Unit, ticks []int64) []float64 {
	all := make([]float64, len(ticks))
	for i, t := range ticks {
		all[i] = unit.Micros(trace.Ticks(t))
	}
	return all
}

// stripOf queries the lost time by kind, in the order of kinds.
func stripOf(ctx context.Context, a *query.Queries, q executions.Timeline) (api.Strip, error) {
	to := q.From + q.ColumnWidth()*trace.Ticks(q.Columns)
	strip := api.Strip{From: a.Unit.Seconds(q.From), To: a.Unit.Seconds(to), Series: []api.Layer{}}
	lines, err := a.Timeline(ctx, q)
	if err != nil {
		return strip, err
	}
	for _, kind := range append([]provenance.AnomalyKind{""}, provenance.AnomalyKinds()...) {
		for _, l := range lines {
			if l.Kind == string(kind) {
				strip.Series = append(strip.Series, api.Layer{Kind: l.Kind, Lost: MicrosOf(a.Unit, l.Lost), N: l.Anomalies})
			}
		}
	}
	return strip, nil
}
