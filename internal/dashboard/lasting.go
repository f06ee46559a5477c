package dashboard

import (
	ring "container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/chimbuko/chimbuko/internal/provdb"
)

// Bounds of answers that are kept, in bytes.
const (
	maxLasting    = 64 << 20
	maxOneLasting = 4 << 20
)

// lasting keeps answers about runs that have ended, which do not change any more: those
// that were asked for last. The zero value is ready.
type lasting struct {
	mu      sync.Mutex
	answers map[string]*ring.Element // of lastingAnswer
	order   ring.List                // the one that was asked for last is first
	bytes   int
}

type lastingAnswer struct {
	key  string
	body json.RawMessage
}

func (a *lastingAnswer) bytes() int { return len(a.key) + len(a.body) }

func (l *lasting) get(key string) (json.RawMessage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.answers[key]
	if !ok {
		return nil, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lastingAnswer).body, true
}

func (l *lasting) put(key string, body json.RawMessage) {
	a := &lastingAnswer{key, body}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.answers[key]; ok || a.bytes() > maxOneLasting {
		return
	}
	if l.answers == nil {
		l.answers = make(map[string]*ring.Element)
	}
	l.answers[key] = l.order.PushFront(a)
	for l.bytes += a.bytes(); l.bytes > maxLasting; {
		oldest := l.order.Remove(l.order.Back()).(*lastingAnswer)
		delete(l.answers, oldest.key)
		l.bytes -= oldest.bytes()
	}
}

// keep has the answers of a handler kept where the run has ended. They must depend on
// nothing but the store and the address.
func (s *server) keep(f func(ctx context.Context, q *asked) (any, error)) func(ctx context.Context, q *asked) (any, error) {
	return func(ctx context.Context, q *asked) (any, error) {
		if q.Run.State != provdb.Finished && q.Run.State != provdb.Failed {
			return f(ctx, q)
		}
		key := fmt.Sprintf("%d %d %s?%s", q.Run.ID, q.Run.Finished.UnixNano(), q.r.URL.Path, q.r.URL.Query().Encode())
		if body, ok := s.answers.get(key); ok {
			return body, nil
		}
		v, err := f(ctx, q)
		if err != nil {
			return nil, err
		}
		body, err := marshal(v)
		if err != nil {
			return nil, err
		}
		s.answers.put(key, body)
		return json.RawMessage(body), nil
	}
}
