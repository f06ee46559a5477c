package compare

import (
	"context"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// besideStore is the first part of the ids of neighbors, in place of the number of a store.
const besideStore = "beside"

// listNeighbors adds the neighbors to a list.
func (rs *Runs) listNeighbors(list *api.Comparables) {
	if rs.neighbors == nil {
		return
	}
	all, err := rs.neighbors.List()
	if err != nil {
		list.Problems = append(list.Problems, text.OneLine(err.Error()))
		return
	}
	for i := range all {
		all[i].ID = besideStore + ":" + all[i].Name
	}
	list.Neighbors, list.NeighborsDir = all, rs.neighbors.Dir()
}

// findNeighbor puts the neighbor with a name into a pair. Its store is open only until its data are in the cache.
func (rs *Runs) findNeighbor(ctx context.Context, id, name string, two *pair, at int) error {
	if rs.neighbors == nil || len(id) > maxCompareID {
		return errNotComparable(id)
	}
	all, err := rs.neighbors.List()
	if err != nil {
		return err
	}
	for i := range all {
		r := &all[i]
		if r.Name != name {
			continue
		}
		r.ID = id
		open := provdb.State(r.State).Open()
		two.shown[at], two.lasting = r.Comparable, two.lasting && !open
		two.keys[at] = fmt.Sprintf("%d %s %s", r.Version, r.State, id)
		two.runs[at], err = rs.runs.Get(ctx, two.keys[at], func(ctx context.Context) (*comparison.Run, bool, error) {
			run, err := insight.InSlot(ctx, rs.in, func(ctx context.Context) (*comparison.Run, error) { return rs.neighbors.Read(ctx, r) })
			return run, !open, err
		})
		return err
	}
	return errNotComparable(id)
}
