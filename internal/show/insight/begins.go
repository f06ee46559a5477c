package insight

import (
	"context"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// startTimes caches the start times of runs that do not store them until they end, so that all
// answers use the same. The zero value is ready.
type startTimes struct {
	mu    sync.Mutex
	byRun map[runID]*estimate
}

// runID identifies a run.
type runID struct {
	id      provdb.RunID
	started time.Time
}

// estimate is the earliest known start of a run.
type estimate struct {
	at      trace.Ticks
	queried time.Time
	took    time.Duration
}

// An earlier start is searched for while queries are quick: in the first minutes ranks may
// appear that started before the others.
const (
	maxBegins     = 100
	maxEarlier    = 30 * 24 * time.Hour // earlier times are not of this run
	slowBegin     = 200 * time.Millisecond
	beginInterval = 30 * time.Second
)

// correct sets the start of a run that is only estimated.
func (b *startTimes) correct(ctx context.Context, a *query.Queries) error {
	key := runID{a.Run.ID, a.Run.Started}
	b.mu.Lock()
	e, ok := b.byRun[key]
	isFresh := ok && (e.took > slowBegin || time.Since(e.queried) < beginInterval)
	b.mu.Unlock()
	if isFresh {
		a.Begin = e.at
		return nil
	}
	start := time.Now()
	first, err := a.FirstCall(ctx, ok && e.took > slowBegin/4)
	if err != nil {
		return err
	}
	if first > a.Begin-a.Unit.Ticks(maxEarlier) && first < a.Begin {
		a.Begin = first
	}
	if ok {
		a.Begin = min(a.Begin, e.at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byRun == nil || len(b.byRun) >= maxBegins {
		b.byRun = make(map[runID]*estimate)
	}
	b.byRun[key] = &estimate{a.Begin, start, time.Since(start)}
	return nil
}
