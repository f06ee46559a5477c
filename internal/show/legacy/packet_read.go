package legacy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Bounds of numbers in packets, so that sums of them fit in 64 bits.
const (
	maxPacketTime  = trace.Ticks(1) << 56 // two thousand years
	maxPacketCount = 1 << 40
)

// ReadPacket reads a packet of either schema. Metrics and Created are set as in schema 2, and
// Anomalies is not nil. The memory used is proportional to the size of b. The error names the
// invalid part.
func ReadPacket(b []byte) (*Packet, error) {
	p := &Packet{Version: 1}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("read packet: %w", err)
	}
	if p.Version != 1 && p.Version != 2 {
		return nil, fmt.Errorf("read packet: unsupported version %d (want 1 or 2)", p.Version)
	}
	if p.Anomalies == nil {
		p.Anomalies = &Anomalies{Created: new(int64)}
	}
	a := p.Anomalies
	if a.Created == nil {
		return nil, errors.New("anomaly_stats has no created_at")
	}
	p.Created = cmp.Or(p.Created, *a.Created)
	if p.Created < 0 {
		return nil, fmt.Errorf("created_at %d is negative", p.Created)
	}
	p.Metrics, a.Metrics = append(p.Metrics, a.Metrics...), nil
	err := errors.Join(
		normalize("anomaly_stats.anomaly", a.Ranks, (*Rank).normalize), normalize("anomaly_metrics", p.Metrics, (*Metrics).normalize),
		normalize("anomaly_stats.func", a.Functions, func(f *Function) error { return checkProgram(f.Program) }),
		normalize("counter_stats", p.Counters, func(c *Counter) error { return checkProgram(c.Program) }))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// normalize calls f for each element of a list up to the first error.
func normalize[T any](name string, list []T, f func(*T) error) error {
	for i := range list {
		if err := f(&list[i]); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return nil
}

// normalize reads the key, and drops what only schema 1 has.
func (r *Rank) normalize() error {
	app, rank, ok := strings.Cut(r.Key, ":")
	a, err1 := strconv.ParseInt(app, 10, 32)
	n, err2 := strconv.ParseInt(rank, 10, 32)
	if !ok || err1 != nil || err2 != nil || a < 0 || n < 0 {
		return fmt.Errorf("key %.40q is not program:rank", r.Key)
	}
	r.RankKey = trace.RankKey{Program: trace.Program(a), Rank: trace.Rank(n)}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Anomalies < 0 || s.Anomalies > maxPacketCount || !validTimes(s.First, s.Last) {
			return fmt.Errorf("data[%d]: invalid %d anomalies from %d to %d", i, s.Anomalies, s.First, s.Last)
		}
		s.Key = ""
	}
	return nil
}

// normalize drops the data since the previous packet.
func (m *Metrics) normalize() error {
	switch {
	case !valid32(m.Program) || !valid32(m.Rank) || m.All == nil:
		return fmt.Errorf("app %d and rank %d must be ≥ 0, with all_data", m.Program, m.Rank)
	case !validTimes(m.All.First, m.All.Last):
		return fmt.Errorf("invalid times from %d to %d", m.All.First, m.All.Last)
	}
	m.New = nil
	return nil
}

func checkProgram(n int64) error {
	if !valid32(n) {
		return fmt.Errorf("invalid app %d", n)
	}
	return nil
}

func valid32(n int64) bool { return n >= 0 && n <= math.MaxInt32 }

func validTimes(first, last trace.Ticks) bool {
	return first >= 0 && first <= last && last <= maxPacketTime
}
