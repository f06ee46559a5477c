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
)

// TimelineParams select a part of a timeline.
type TimelineParams struct {
	BreakdownParams
	From, To *time.Duration // since the start of the run; nil: all
	Rows     int
}

// timelineData has decoded activities, which are immutable.
type timelineData struct {
	once   sync.Once
	sketch *activity.Sketch
	err    error
}

func (t *timelineData) decode(packed []byte) (*activity.Sketch, error) {
	t.once.Do(func() { t.sketch, t.err = activity.Decode(packed, math.MaxUint64) })
	return t.sketch, t.err
}

// CounterTimelineParams select a counter, and ranks to compare with all.
type CounterTimelineParams struct {
	BreakdownParams
	Counter string // "": the first
}

// selects returns whether ranks are selected.
func (of *BreakdownParams) selects(hosts map[trace.RankKey]string) func(trace.RankKey) bool {
	match := outlier.Matcher(of.Host)
	return func(k trace.RankKey) bool {
		return trace.Selects(of.Ranks, int64(k.Rank)) && (of.Program == nil || k.Program == *of.Program) && match(hosts[k])
	}
}

// CounterTimeline returns the readings of a counter over time.
func (in *Insight) CounterTimeline(ctx context.Context, run string, of CounterTimelineParams) (*api.CounterTimeline, error) {
	return withData(ctx, in, run, func(_ context.Context, q *runQuery) (*api.CounterTimeline, error) {
		s := activity.New(q.Unit)
		if q.data.peers != nil && len(q.data.peers.Activity) > 0 {
			var err error
			if s, err = q.data.timeline.decode(q.data.peers.Activity); err != nil {
				return nil, err
			}
		}
		p := timeline.CounterParams{Program: of.Program, Counter: of.Counter}
		if of.Host != "" || len(of.Ranks) > 0 {
			p.Selects = of.selects(q.data.hosts())
		}
		return timeline.Counters(s, q.Unit, q.Begin, p), nil
	})
}

// Timeline returns the activities of the ranks of a run over time.
func (in *Insight) Timeline(ctx context.Context, run string, of TimelineParams) (*api.Timeline, error) {
	return withData(ctx, in, run, func(_ context.Context, q *runQuery) (*api.Timeline, error) {
		if q.data.peers == nil || len(q.data.peers.Activity) == 0 {
			return timeline.Empty(), nil
		}
		s, err := q.data.timeline.decode(q.data.peers.Activity)
		if err != nil {
			return nil, err
		}
		hosts := q.data.hosts()
		p := timeline.Params{From: of.From, To: of.To, Rows: of.Rows, Selects: of.selects(hosts)}
		return timeline.Of(s, q.Unit, q.Begin, hosts, p), nil
	})
}
