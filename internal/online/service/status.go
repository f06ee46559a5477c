package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// rateMeter turns growing counts into rates.
type rateMeter struct {
	mu   sync.Mutex
	last map[string]rateSample
}

type rateSample struct {
	at    time.Time
	count int64
	rate  float64
}

// meterInterval is the shortest time over which a rate is measured.
const meterInterval = 900 * time.Millisecond

// rate returns the growth of a count per second since the last measurement.
func (m *rateMeter) rate(name string, count int64, now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = make(map[string]rateSample)
	}
	old, ok := m.last[name]
	if since := now.Sub(old.at); ok && since < meterInterval {
		return old.rate
	} else if ok {
		old.rate = float64(count-old.count) / since.Seconds()
	}
	m.last[name] = rateSample{now, count, old.rate}
	return old.rate
}

// paramsStatus returns the status of the parameter server of this process.
func (s *server) paramsStatus(rates *rateMeter) *api.Status {
	now := time.Now()
	st := s.params.Status(now, func(name string, count int64) float64 { return rates.rate(name, count, now) })
	if s.cfg.Shard == 0 {
		s.addSender(st)
	}
	return st
}

// addSender adds the status of the delivery of statistics.
func (s *server) addSender(st *api.Status) {
	if s.sender == nil {
		return
	}
	stats := s.sender.Stats()
	p := stats.Receiver
	if s.cfg.StatsURL == "" {
		p = stats.Files
	}
	st.Sender = &p.Sender
	if p.LastError != "" {
		st.Health = append(st.Health, api.Health{
			Part: "statistics", Severity: api.SeverityWarning,
			Sentence: fmt.Sprintf("%d packets wait for their receiver, retrying: %s", p.Pending, p.LastError),
		})
	}
}

// storeStatus returns the status of the store of this process.
func (s *server) storeStatus(ctx context.Context, rates *rateMeter) *api.Status {
	stats, now := s.storer.Stats(), time.Now()
	store := &api.StoreStatus{Kind: "DuckDB", Records: stats.Records, RecordsPerSecond: rates.rate("records", stats.Records, now)}
	if s.cfg.Store.Store != "" {
		store.Kind = "PostgreSQL"
	}
	if messages, size, err := s.stream.Pending(ctx); err == nil {
		store.PendingMessages, store.PendingBytes = int64(messages), int64(size)
		if messages > 0 && !stats.Newest.IsZero() {
			store.Lag = now.Sub(stats.Newest).Seconds()
		}
	}
	health := api.Health{Part: "store", OK: true, Severity: api.SeverityInfo, Sentence: "storing records"}
	if stats.Err != nil {
		store.LastError, store.LastErrorAt = stats.Err.Error(), stats.ErrAt
		health.OK, health.Severity = false, api.SeverityError
		health.Sentence = "records wait in the stream, retrying: " + stats.Err.Error()
	}
	return &api.Status{Store: store, Health: []api.Health{health}}
}
