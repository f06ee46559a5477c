package dashboard

import (
	ring "container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
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

// remember returns the JSON of what find finds out of a run, where that has ended as it
// was kept. name tells it from all else of the run.
func (s *server) remember(run *provdb.Run, name string, find func() (any, error)) (json.RawMessage, error) {
	ended := run.State == provdb.Finished || run.State == provdb.Failed
	key := fmt.Sprintf("%d %d %s", run.ID, run.Finished.UnixNano(), name)
	if body, ok := s.answers.get(key); ok && ended {
		return body, nil
	}
	v, err := find()
	if err != nil {
		return nil, err
	}
	body, err := marshal(v)
	if err == nil && ended {
		s.answers.put(key, body)
	}
	return body, err
}

// keep has the answers of a handler kept where the run has ended. They must depend on
// nothing but the store and the address.
func (s *server) keep(f func(ctx context.Context, q *asked) (any, error)) func(ctx context.Context, q *asked) (any, error) {
	return func(ctx context.Context, q *asked) (any, error) {
		return s.remember(&q.Run, q.r.URL.Path+"?"+q.r.URL.Query().Encode(), func() (any, error) { return f(ctx, q) })
	}
}
