package dashboard

import (
	"encoding/json"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Bounds of cached answers in bytes.
const (
	maxCache       = 64 << 20
	maxCacheAnswer = 4 << 20
)

// answerCache keeps the recently used answers about finished runs.
type answerCache struct {
	mu      sync.Mutex
	answers *simplelru.LRU[string, json.RawMessage]
	bytes   int
}

func newAnswerCache() *answerCache {
	c := new(answerCache)
	var err error
	c.answers, err = simplelru.NewLRU(math.MaxInt, func(key string, body json.RawMessage) { c.bytes -= len(key) + len(body) })
	if err != nil {
		panic(err) // the size is constant
	}
	return c
}

func (c *answerCache) get(key string) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers.Get(key)
}

func (c *answerCache) add(key string, body json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size := len(key) + len(body); size <= maxCacheAnswer && !c.answers.Contains(key) {
		c.answers.Add(key, body)
		c.bytes += size
	}
	for c.bytes > maxCache {
		c.answers.RemoveOldest()
	}
}

// cached caches the answers of f about finished runs. They must depend on nothing but the store
// and the address.
func (s *server) cached(f handler) handler {
	return func(p *params) (any, error) {
		version, err := s.insight.Version(p.r.Context(), p.path("run"))
		if err != nil {
			return nil, err
		}
		key := version + " " + p.r.URL.Path + "?" + p.r.URL.Query().Encode()
		if body, ok := s.answers.get(key); ok && version != "" {
			return body, nil
		}
		v, err := f(p)
		if err != nil || version == "" {
			return v, err
		}
		body, err := api.Marshal(v)
		if err == nil {
			s.answers.add(key, body)
		}
		return body, err
	}
}
