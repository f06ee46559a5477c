package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// Places reads runs for comparisons. A place is a run directory, a database file, a server
// or a baseline file.
type Places struct {
	WithStore func(ctx context.Context, place rundir.Place, f func(r provdb.Reader) error) error
	OnQuery   func(sql string, args []any) // nil or called with each statement
}

// Run returns the comparable data of the run of that name at a place; without a name, of
// the latest.
func (p *Places) Run(ctx context.Context, where, name string) (r *comparison.Run, err error) {
	if r, err = rundir.ReadBaseline(where); r != nil || err != nil {
		return r, err
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return nil, err
	}
	err = p.WithStore(ctx, place, func(reader provdb.Reader) error {
		a, err := query.New(ctx, reader, cmp.Or(name, place.Run))
		if err != nil {
			return fmt.Errorf("%s: %w", place.Given(), err)
		}
		a.OnQuery = p.OnQuery
		r, err = a.Comparable(ctx)
		return err
	})
	return r, err
}

// members are runs that may be in a trend.
type members struct {
	name    string // a part of their names
	runs    []api.Comparable
	sums    []*comparison.Sums // of each of runs
	leftOut comparison.LeftOut
}

// Trend compares all finished runs at places with name in their names. It also returns
// which runs are left out, in sentences.
func (p *Places) Trend(ctx context.Context, places []string, name string, program *trace.Program, limit int) (*api.Trend, []string, error) {
	m := members{name: name}
	for _, where := range places {
		if err := p.gather(ctx, where, &m); err != nil {
			return nil, nil, err
		}
	}
	chosen := m.choose(m.runs)
	if len(chosen) < 2 {
		return nil, nil, fmt.Errorf("a trend needs at least 2 finished runs, there are %d (give run directories, files of chimbuko baseline, "+
			"or a store that contains several runs)", len(chosen))
	}
	var sums []*comparison.Sums
	for _, i := range chosen {
		sums = append(sums, m.sums[i])
	}
	return comparison.Over(sums, program, limit), m.leftOut.Sentences(), nil
}

// choose returns the places of the runs that are in a trend, and counts the others.
func (m *members) choose(runs []api.Comparable) []int {
	chosen, left := comparison.Choose(runs)
	m.leftOut.Older += left.Older
	m.leftOut.Unfinished += left.Unfinished
	return chosen
}

func (m *members) add(s *comparison.Sums, where string) {
	s.ID, s.Where = s.Name, redact.URLs(where)
	m.runs, m.sums = append(m.runs, s.Comparable), append(m.sums, s)
}

// gather adds the runs at a place. From a store it reads no more than a trend can have.
func (p *Places) gather(ctx context.Context, where string, m *members) error {
	b, err := rundir.ReadBaseline(where)
	if err != nil {
		return err
	}
	if b != nil {
		if strings.Contains(b.Name, m.name) {
			m.add(b.Sums(), where)
		}
		return nil
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return err
	}
	return p.WithStore(ctx, place, func(r provdb.Reader) error {
		runs, err := query.Runs(ctx, r)
		if err != nil {
			return err
		}
		runs = slices.DeleteFunc(runs, func(run provdb.Run) bool {
			return !strings.Contains(run.Name, m.name) || place.Run != "" && place.Run != run.Name
		})
		var candidates []api.Comparable
		for i := range runs {
			candidates = append(candidates, api.Comparable{Name: runs[i].Name, State: string(runs[i].State), Started: runs[i].Started})
		}
		chosen := m.choose(candidates)
		var finished []provdb.Run
		for _, i := range chosen {
			finished = append(finished, runs[i])
		}
		sums, err := query.Sums(ctx, r, finished, p.OnQuery)
		for i := range sums {
			m.add(sums[i], where)
		}
		return err
	})
}
