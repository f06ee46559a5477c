package compare

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// TrendParams choose the runs of a trend, and how much is told of them.
type TrendParams struct {
	Name    string // a part of the names of runs
	Program *trace.Program
	Limit   int // of functions
}

// Trend tells how functions went over all runs that can be compared.
func (rs *Runs) Trend(ctx context.Context, of TrendParams) (*api.Trend, error) {
	all, err := rs.allListed(ctx)
	if err != nil {
		return nil, err
	}
	var named []*listedRun
	var candidates []comparison.Candidate
	for i := range all {
		if c := &all[i].shown; strings.Contains(c.Name, of.Name) {
			named = append(named, &all[i])
			candidates = append(candidates, comparison.Candidate{Name: c.Name, State: c.State, Started: c.Started, Baseline: c.Baseline})
		}
	}
	chosen, left := comparison.Choose(candidates)
	var members []*listedRun
	for _, at := range chosen {
		members = append(members, named[at])
	}
	sums, err := rs.sumsOf(ctx, members)
	if err != nil {
		return nil, err
	}
	t := comparison.Over(sums, of.Program, of.Limit)
	answer := &api.Trend{
		Verdict: api.Verdict{Level: api.Level(t.Verdict.Level), Sentence: t.Verdict.Sentence}, Notices: []api.Notice{},
		Runs: []api.TrendRun{}, Time: series(t.Time), Lost: series(t.Lost),
	}
	for _, text := range left.Sentences() {
		answer.Notices = append(answer.Notices, api.Notice{Level: api.LevelUnknown, Topic: "left-out", Sentence: text})
	}
	for i, m := range members {
		x := &t.Runs[i]
		answer.Runs = append(answer.Runs, api.TrendRun{
			Comparable: m.shown, Calls: x.Calls, Exclusive: x.Exclusive, Lost: x.Lost,
			LostPercent: x.LostPercent, Anomalies: x.Anomalies,
		})
	}
	return answer, nil
}

// allListed are all runs that can be compared.
func (rs *Runs) allListed(ctx context.Context) ([]listedRun, error) {
	ctx, done, err := rs.in.Slot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all, _, err := rs.listed(ctx)
	return all, err
}

// sumsOf finds out what a trend needs of runs, which is asked of each store at once. It is
// remembered, as only runs that are finished are in a trend.
func (rs *Runs) sumsOf(ctx context.Context, members []*listedRun) ([]*comparison.Sums, error) {
	sums, byStore := make([]*comparison.Sums, len(members)), make(map[int][]int)
	for i, m := range members {
		if m.baseline == nil {
			byStore[m.store] = append(byStore[m.store], i)
			continue
		}
		sums[i] = m.baseline.Sums()
		sums[i].Where = m.shown.Where
	}
	for _, places := range byStore {
		var runs []provdb.Run
		var key strings.Builder
		for _, i := range places {
			runs = append(runs, members[i].run)
			key.WriteString(compareKey(members[i].shown.ID, &members[i].run) + "\n")
		}
		first := members[places[0]]
		found, err := rs.sums.Get(ctx, key.String(), func(ctx context.Context) ([]*comparison.Sums, bool, error) {
			ctx, done, err := rs.in.Slot(ctx)
			if err != nil {
				return nil, false, err
			}
			defer done()
			found, err := query.Sums(ctx, first.reader, runs, nil)
			for _, one := range found {
				one.Where = first.shown.Where
			}
			return found, true, err
		})
		if err != nil {
			return nil, err
		}
		for k, i := range places {
			sums[i] = found[k]
		}
	}
	return sums, nil
}

func series(list []comparison.Series) []api.TrendSeries {
	all := []api.TrendSeries{}
	for i := range list {
		x := &list[i]
		one := api.TrendSeries{Program: x.Program, Function: x.Function, Values: x.Values, Counts: x.Counts}
		if x.Since != nil {
			since := api.TrendSince(*x.Since)
			one.Since = &since
		}
		all = append(all, one)
	}
	return all
}
