package insight

import (
	"context"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// begins remembers when runs began that do not tell it until they end, so that times
// since the begin are the same in all answers. The zero value is ready.
type begins struct {
	mu    sync.Mutex
	known map[begun]*guess
}

// begun tells runs apart.
type begun struct {
	id      provdb.RunID
	started time.Time
}

// guess is when a run began, as far as is known.
type guess struct {
	at    trace.Micros
	asked time.Time
	took  time.Duration
}

// An earlier begin is looked for while little time is spent on it: in the first minutes
// ranks may come that began a little before the others.
const (
	maxBegins  = 100
	maxEarlier = trace.Micros(30 * 24 * time.Hour / time.Microsecond) // what is earlier still is no time of this run
	slowBegin  = 200 * time.Millisecond
	beginAgain = 30 * time.Second
)

// correct sets the begin of a run that only guesses it.
func (b *begins) correct(ctx context.Context, a *query.Asker) error {
	key := begun{a.Run.ID, a.Run.Started}
	b.mu.Lock()
	g, ok := b.known[key]
	fresh := ok && (g.took > slowBegin || time.Since(g.asked) < beginAgain)
	b.mu.Unlock()
	if fresh {
		a.Begin = g.at
		return nil
	}
	start := time.Now()
	first, err := a.FirstCall(ctx, ok && g.took > slowBegin/4)
	if err != nil {
		return err
	}
	if first > a.Begin-maxEarlier && first < a.Begin {
		a.Begin = first
	}
	if ok && g.at < a.Begin {
		a.Begin = g.at
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= maxBegins {
		b.known = make(map[begun]*guess)
	}
	b.known[key] = &guess{a.Begin, start, time.Since(start)}
	return nil
}
