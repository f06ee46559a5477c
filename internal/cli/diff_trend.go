package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// gathered are runs that a trend may have, and what it needs of them.
type gathered struct {
	runs []api.Comparable
	sums []*comparison.Sums // of each of runs
	left comparison.LeftOut
}

// trend tells since when the newest of many runs is as it is. Of a store that holds several
// runs all are meant.
func (q *questionFlags) trend(ctx context.Context, env *Env, places []string, byLost bool, limit int, all bool) error {
	var g gathered
	for _, where := range places {
		if err := q.gather(ctx, env, where, &g); err != nil {
			return err
		}
	}
	chosen, left := comparison.Choose(g.runs)
	if len(chosen) < 2 {
		return fmt.Errorf("a trend needs two runs or more that are finished, and there are %d; give run directories, files of chimbuko "+
			"baseline, or a store that holds several runs", len(chosen))
	}
	left.Older += g.left.Older
	left.Unfinished += g.left.Unfinished
	var sums []*comparison.Sums
	for _, i := range chosen {
		sums = append(sums, g.sums[i])
	}
	t := comparison.Over(sums, q.only(), limit)
	for _, text := range left.Sentences() {
		fmt.Fprintln(env.Stderr, "chimbuko:", text)
	}
	return q.showTrend(ctx, env, t, byLost, all)
}

// gather adds the runs at a place, or a baseline. Of a store it asks for no more than a
// trend can have.
func (q *questionFlags) gather(ctx context.Context, env *Env, where string, g *gathered) error {
	baseline, err := rundir.ReadBaseline(where)
	if err != nil {
		return err
	}
	if baseline != nil {
		if strings.Contains(baseline.Name, q.run) {
			g.add(baseline.Sums(), where)
		}
		return nil
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return err
	}
	return opened(ctx, env, place, func(r provdb.Reader) error {
		runs, err := query.Runs(ctx, r)
		if err != nil {
			return err
		}
		var candidates []api.Comparable
		runs = slices.DeleteFunc(runs, func(run provdb.Run) bool {
			return !strings.Contains(run.Name, q.run) || place.Run != "" && place.Run != run.Name
		})
		for i := range runs {
			candidates = append(candidates, api.Comparable{Name: runs[i].Name, State: string(runs[i].State), Started: runs[i].Started})
		}
		chosen, left := comparison.Choose(candidates)
		g.left.Older += left.Older
		g.left.Unfinished += left.Unfinished
		var wanted []provdb.Run
		for _, i := range chosen {
			wanted = append(wanted, runs[i])
		}
		sums, err := query.Sums(ctx, r, wanted, q.told(env))
		for i := range sums {
			g.add(sums[i], where)
		}
		return err
	})
}

func (g *gathered) add(s *comparison.Sums, where string) {
	s.ID, s.Where = s.Name, redact.URLs(where)
	g.runs, g.sums = append(g.runs, s.Comparable), append(g.sums, s)
}

// showTrend writes a trend: as a table for people that of the runs, too.
func (q *questionFlags) showTrend(ctx context.Context, env *Env, t *api.Trend, byLost, all bool) error {
	if q.format == "json" {
		return q.writeJSON(env, t)
	}
	series := t.Time
	if byLost {
		series = t.Lost
	}
	rows := seriesRows(t, series, all)
	if q.format != "table" {
		return q.answer(ctx, env, rows, nil)
	}
	return q.write(env, func(w io.Writer) error {
		fmt.Fprintf(w, "%s\n\n", t.Verdict.Sentence)
		if err := writeTable(w, trendRows(t)); err != nil {
			return err
		}
		fmt.Fprintln(w)
		return writeTable(w, rows)
	})
}

// trendRows are the runs of a trend as a table.
func trendRows(t *api.Trend) *provdb.Rows {
	var rows [][]any
	for i := range t.Runs {
		r := &t.Runs[i]
		rows = append(rows, []any{r.Started.UTC().Format(time.DateTime), comparison.RunName(t, i), r.Lost, r.LostPercent, r.Anomalies, r.Exclusive, r.Calls})
	}
	return rowsOf([]provdb.Column{
		{Name: "started", Type: provdb.Text},
		{Name: "run", Type: provdb.Text},
		{Name: "lost_us", Type: provdb.Int},
		{Name: "of_all_percent", Type: provdb.Float},
		{Name: "anomalies", Type: provdb.Int},
		{Name: "time_us", Type: provdb.Float},
		{Name: "calls", Type: provdb.Int},
	}, rows)
}

// seriesRows are functions of a trend as a table, with a bar for each run.
func seriesRows(t *api.Trend, list []api.TrendSeries, all bool) *provdb.Rows {
	rows := pick(list, len(list), func(s *api.TrendSeries) ([]any, bool) {
		values := make([]int64, len(s.Values))
		for i, v := range s.Values {
			if v != nil {
				values[i] = int64(*v)
			}
		}
		program, name := any(s.Program), s.Function
		if s.Program < 0 {
			program, name = nil, "all functions"
		}
		now := known(s.Values[len(s.Values)-1])
		if s.Since == nil {
			return []any{comparison.Same, nil, now, now, bars(values), program, name}, true
		}
		return []any{s.Since.Change, comparison.RunName(t, s.Since.Run), *s.Values[s.Since.Before], now, bars(values), program, name}, false
	}, all)
	return rowsOf([]provdb.Column{
		{Name: "change", Type: provdb.Text},
		{Name: "since", Type: provdb.Text},
		{Name: "before_us", Type: provdb.Float},
		{Name: "now_us", Type: provdb.Float},
		{Name: "runs", Type: provdb.Text},
		{Name: "program", Type: provdb.Int},
		{Name: "function", Type: provdb.Text},
	}, rows)
}
