package compare

import (
	"context"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// TrendParams select the runs of a trend.
type TrendParams struct {
	Name    string // part of the names of runs
	Program *trace.Program
	Limit   int // of functions
}

// Trend compares all runs whose names match.
func (rs *Runs) Trend(ctx context.Context, of TrendParams) (*api.Trend, error) {
	all, err := insight.InSlot(ctx, rs.in, func(ctx context.Context) ([]candidate, error) {
		all, _, err := rs.candidates(ctx)
		return all, err
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return !strings.Contains(c.Name, of.Name) })
	var left comparison.LeftOut
	members := comparison.Choose(all, func(c candidate) api.Comparable { return c.Comparable }, &left)
	sums, err := rs.sumsOf(ctx, members)
	if err != nil {
		return nil, err
	}
	t := comparison.Over(sums, of.Program, of.Limit)
	for _, sentence := range left.Sentences() {
		t.Notices = append(t.Notices, api.Notice{Level: api.LevelUnknown, Topic: "left-out", Sentence: sentence})
	}
	for i, m := range members {
		t.Runs[i].Comparable = m.Comparable
	}
	return t, nil
}

// sumsOf returns the sums of runs. It queries each store once and caches the answer, because
// the runs of a trend have ended.
func (rs *Runs) sumsOf(ctx context.Context, members []candidate) ([]*comparison.Sums, error) {
	sums, byStore := make([]*comparison.Sums, len(members)), make(map[int][]int)
	for i, m := range members {
		if m.baseline == nil {
			byStore[m.store] = append(byStore[m.store], i)
			continue
		}
		sums[i] = m.baseline.Sums()
		sums[i].Where = m.Where
	}
	for _, places := range byStore {
		var runs []provdb.Run
		var key strings.Builder
		for _, i := range places {
			runs = append(runs, members[i].run)
			key.WriteString(compareKey(members[i].ID, &members[i].run) + "\n")
		}
		first := &members[places[0]]
		ofStore, err := rs.sums.Get(ctx, key.String(), func(ctx context.Context) ([]*comparison.Sums, bool, error) {
			ofStore, err := insight.InSlot(ctx, rs.in, func(ctx context.Context) ([]*comparison.Sums, error) {
				return query.Sums(ctx, first.reader, runs, nil)
			})
			for _, one := range ofStore {
				one.Where = first.Where
			}
			return ofStore, true, err
		})
		if err != nil {
			return nil, err
		}
		for k, i := range places {
			sums[i] = ofStore[k]
		}
	}
	return sums, nil
}
