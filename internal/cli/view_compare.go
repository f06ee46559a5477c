package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/show/dashboard"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// references are what the runs of a page can be compared with besides those of its
// store.
type references struct {
	list   []dashboard.Reference
	opened []*viewRun
}

// compared is the run that is compared with others.
type compared struct {
	name, version string
	place         rundir.Place
	reader        provdb.Reader
}

// references finds all that was given with --compare. They must be closed.
func (p *pageFlags) references(ctx context.Context, v compared) (*references, error) {
	r := new(references)
	for _, where := range p.compare {
		if err := r.add(ctx, v, where); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// add finds what was given with --compare: a baseline, a run directory, a database file,
// a server, or another run of the store that is shown.
func (r *references) add(ctx context.Context, v compared, where string) error {
	baseline, err := readBaseline(where)
	if err != nil {
		return err
	}
	if baseline != nil {
		r.list = append(r.list, dashboard.Reference{Where: where, Baseline: baseline})
		return nil
	}
	if _, err := os.Stat(where); err != nil && !rundir.IsServer(where) {
		return r.addRun(ctx, v, where, err)
	}
	place, err := rundir.FindStore(where)
	if err != nil {
		return err
	}
	o := &viewRun{dir: rundir.Find(where), version: v.version, place: place}
	if place.SameStore(v.place) {
		return r.addOwn(v, where, place.Run)
	}
	r.opened = append(r.opened, o)
	if err := o.find(ctx); err != nil {
		return err
	}
	r.list = append(r.list, dashboard.Reference{Where: redact.URLs(where), Run: o.name, Reader: o.Reader()})
	return nil
}

// addOwn adds the store that is shown: all of its runs can be compared anyway.
func (r *references) addOwn(v compared, where, run string) error {
	if run == "" || run == v.name {
		return usagef("--compare %s is the store of the run itself: give the name of another of its runs", redact.URLs(where))
	}
	r.list = append(r.list, dashboard.Reference{Where: redact.URLs(where), Run: run})
	return nil
}

// addRun adds a run of the store that is shown.
func (r *references) addRun(ctx context.Context, v compared, name string, notThere error) error {
	runs, err := query.Runs(ctx, v.reader)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(runs, func(run provdb.Run) bool { return run.Name == name }) {
		return fmt.Errorf("--compare: %w, and no run of the store has that name; give a run directory, a database file, postgres://… or a file of chimbuko baseline", notThere)
	}
	r.list = append(r.list, dashboard.Reference{Where: name, Run: name})
	return nil
}

func (r *references) close() (err error) {
	for _, o := range r.opened {
		err = errors.Join(err, o.close())
	}
	return err
}
