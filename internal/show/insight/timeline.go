package insight

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/timeline"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// TimelineParams select a part of a timeline.
type TimelineParams struct {
	BreakdownParams
	From, To *time.Duration // since the start of the run; nil: all
	Rows     int
}

// timelineData has decoded activities, which nobody changes.
type timelineData struct {
	once   sync.Once
	sketch *activity.Sketch
	err    error
}

func (t *timelineData) decode(packed []byte) (*activity.Sketch, error) {
	t.once.Do(func() { t.sketch, t.err = activity.Decode(packed, math.MaxUint64) })
	return t.sketch, t.err
}

// Timeline returns what the ranks of a run did over time.
func (in *Insight) Timeline(ctx context.Context, run string, of TimelineParams) (*api.Timeline, error) {
	return withData(ctx, in, run, func(_ context.Context, q *runQuery) (*api.Timeline, error) {
		if q.data.peers == nil || len(q.data.peers.Activity) == 0 {
			return timeline.Empty(), nil
		}
		s, err := q.data.timeline.decode(q.data.peers.Activity)
		if err != nil {
			return nil, err
		}
		hosts, match := q.data.hosts(), func(string) bool { return true }
		if of.Host != "" {
			match = outlier.Glob(of.Host).MatchString
		}
		selects := func(k trace.RankKey) bool {
			return executions.Selects(of.Ranks, int64(k.Rank)) && (of.Program == nil || k.Program == *of.Program) && match(hosts[k])
		}
		return timeline.Of(s, q.Unit, q.Begin, hosts, timeline.Params{From: of.From, To: of.To, Rows: of.Rows, Selects: selects}), nil
	})
}
