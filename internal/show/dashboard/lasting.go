package dashboard

import (
	ring "container/list"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/chimbuko/chimbuko/internal/show/api"
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

// keep caches the answers of a handler where the run has ended. They must depend on
// nothing but the store and the address.
func (s *server) keep(f handler) handler {
	return func(r *http.Request, p *params) (any, error) {
		version, err := s.insight.Version(r.Context(), r.PathValue("run"))
		if err != nil {
			return nil, err
		}
		key := version + " " + r.URL.Path + "?" + r.URL.Query().Encode()
		if body, ok := s.answers.get(key); ok && version != "" {
			return body, nil
		}
		v, err := f(r, p)
		if err != nil || version == "" {
			return v, err
		}
		body, err := api.Marshal(v)
		if err == nil {
			s.answers.put(key, body)
		}
		return body, err
	}
}
