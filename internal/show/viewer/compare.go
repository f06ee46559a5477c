package viewer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/show/compare"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// ErrSameStore reports a run that is compared with its own store.
var ErrSameStore = errors.New("is the store of the run itself: give the name of another of its runs")

// References are the stores and baselines that a page can compare its run with.
type References struct {
	List      []compare.Reference
	Neighbors compare.Neighbors // nil: none
	opened    []*Run
}

// Subject is the run that a page shows.
type Subject struct {
	Name, Version string
	Place         rundir.Place
	Reader        provdb.Reader
}

// References opens everything in Compare. The caller must close it.
func (o *Options) References(ctx context.Context, s Subject) (*References, error) {
	r := new(References)
	for _, where := range o.Compare {
		if err := r.add(ctx, s, where); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	own := ""
	if s.Place.Server == "" {
		own = rundir.Find(s.Place.File)
	}
	n, err := o.neighborsOf(own)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if n != nil {
		r.Neighbors = n
	}
	return r, nil
}

// add opens a baseline, a run directory, a database file, a server, or another run of the
// same store.
func (r *References) add(ctx context.Context, s Subject, where string) error {
	baseline, err := rundir.ReadBaseline(where)
	if err != nil {
		return err
	}
	if baseline != nil {
		r.List = append(r.List, compare.Reference{Where: where, Baseline: baseline})
		return nil
	}
	if _, err := os.Stat(where); err != nil && !rundir.IsServer(where) {
		return r.addRun(ctx, s, where, err)
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return err
	}
	if place.SameStore(s.Place) {
		return r.addOwn(s, where, place.Run)
	}
	o, err := OpenPlace(ctx, place, rundir.Find(where), "", s.Version)
	if err != nil {
		return err
	}
	r.opened = append(r.opened, o)
	r.List = append(r.List, compare.Reference{Where: redact.URLs(where), Run: o.Name, Reader: o.Reader()})
	return nil
}

// addOwn adds a run of the same store.
func (r *References) addOwn(s Subject, where, run string) error {
	if run == "" || run == s.Name {
		return fmt.Errorf("--compare %s %w", redact.URLs(where), ErrSameStore)
	}
	r.List = append(r.List, compare.Reference{Where: redact.URLs(where), Run: run})
	return nil
}

// addRun adds a run of the same store by its name. notThere is why the name is not a path.
func (r *References) addRun(ctx context.Context, s Subject, name string, notThere error) error {
	runs, err := query.Runs(ctx, s.Reader)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(runs, func(run provdb.Run) bool { return run.Name == name }) {
		return fmt.Errorf("--compare: %w, and no run of the store has that name "+
			"(want a run directory, a database file, postgres://… or a file of chimbuko baseline)",
			notThere)
	}
	r.List = append(r.List, compare.Reference{Where: name, Run: name})
	return nil
}

// Close closes all stores.
func (r *References) Close() (err error) {
	for _, o := range r.opened {
		err = errors.Join(err, o.Close())
	}
	return err
}
