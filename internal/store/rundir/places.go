package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Places opens the stores of runs and reads baselines. A place is a run directory, a
// database file, a server or a baseline file.
type Places struct {
	OnOpen  func(place Place, r provdb.Reader) // nil or called with each store
	OnQuery func(sql string, args []any)       // nil or called with each statement
}

// Query calls f with the run of that name at a place; without a name, with the latest.
func (p *Places) Query(ctx context.Context, where, name string, f func(a *query.Queries) error) error {
	return p.withStore(ctx, where, func(place Place, r provdb.Reader) error {
		a, err := query.New(ctx, r, cmp.Or(name, place.Run))
		if err != nil {
			return fmt.Errorf("%s: %w", place.Raw(), err)
		}
		a.OnQuery = p.OnQuery
		return f(a)
	})
}

func (p *Places) withStore(ctx context.Context, where string, f func(place Place, r provdb.Reader) error) error {
	place, err := FindStore(where)
	if err != nil {
		return err
	}
	r, err := place.Open(ctx)
	if err != nil {
		return err
	}
	if p.OnOpen != nil {
		p.OnOpen(place, r)
	}
	return errors.Join(f(place, r), r.Close())
}

// Comparable returns the comparable data of a baseline, or of the run that Query chooses.
func (p *Places) Comparable(ctx context.Context, where, name string) (r *comparison.Run, err error) {
	if r, err = ReadBaseline(where); r != nil || err != nil {
		return r, err
	}
	err = p.Query(ctx, where, name, func(a *query.Queries) (err error) {
		r, err = a.Comparable(ctx)
		return err
	})
	return r, err
}

// members are runs that may be in a trend.
type members struct {
	name    string // a part of their names
	sums    []*comparison.Sums
	leftOut comparison.LeftOut
}

// Trend compares all finished runs at places with name in their names. It also returns sentences
// about omitted runs.
func (p *Places) Trend(ctx context.Context, places []string, name string, program *trace.Program, limit int) (*api.Trend, []string, error) {
	m := members{name: name}
	for _, where := range places {
		if err := p.gather(ctx, where, &m); err != nil {
			return nil, nil, err
		}
	}
	runs := comparison.Choose(m.sums, func(s *comparison.Sums) api.Comparable { return s.Comparable }, &m.leftOut)
	if len(runs) < 2 {
		return nil, nil, fmt.Errorf("a trend needs at least 2 finished runs, there are %d (give run directories, files of chimbuko baseline, "+
			"or a store that contains several runs)", len(runs))
	}
	return comparison.Over(runs, program, limit), m.leftOut.Sentences(), nil
}

func (m *members) add(where string, sums ...*comparison.Sums) {
	for _, s := range sums {
		s.ID, s.Where = s.Name, redact.URLs(where)
	}
	m.sums = append(m.sums, sums...)
}

// gather adds the runs at a place, from a store at most as many as a trend can have.
func (p *Places) gather(ctx context.Context, where string, m *members) error {
	b, err := ReadBaseline(where)
	if err != nil {
		return err
	}
	if b != nil {
		if strings.Contains(b.Name, m.name) {
			m.add(where, b.Sums())
		}
		return nil
	}
	return p.withStore(ctx, where, func(place Place, r provdb.Reader) error {
		runs, err := query.Runs(ctx, r)
		if err != nil {
			return err
		}
		runs = slices.DeleteFunc(runs, func(run provdb.Run) bool {
			return !strings.Contains(run.Name, m.name) || place.Run != "" && place.Run != run.Name
		})
		sums, err := query.Sums(ctx, r, comparison.Choose(runs, query.Comparable, &m.leftOut), p.OnQuery)
		m.add(where, sums...)
		return err
	})
}
