// Package legacy supports the statistics packets of the original Chimbuko: it builds them from the
// run-level statistics, delivers them in order to a web server and to files, reads them, and shows a
// run of which only packets exist. It also parses the queries of the original's dashboard.
package legacy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Packet is a statistics packet of the original's parameter server, of either schema.
// Schema 1 is the documented one: all data about anomalies are in anomaly_stats. Schema 2 is
// that of the original's last version: the metrics are beside anomaly_stats, and the packet
// has a version and a time.
type Packet struct {
	Metrics   []Metrics  `json:"anomaly_metrics,omitempty"`
	Anomalies *Anomalies `json:"anomaly_stats,omitempty"` // nil without news
	Counters  []Counter  `json:"counter_stats,omitempty"`
	Created   int64      `json:"created_at,omitempty"` // Unix time in milliseconds; 0 if unknown
	Version   int        `json:"version,omitempty"`
}

// Anomalies are the statistics of all functions, and those of the ranks that had anomalies
// since the previous packet.
type Anomalies struct {
	Ranks     []Rank     `json:"anomaly"`
	Metrics   []Metrics  `json:"anomaly_metrics,omitzero"` // in schema 1
	Created   *int64     `json:"created_at"`
	Functions []Function `json:"func"`
}

// Rank is a rank with anomalies.
type Rank struct {
	Steps []Step `json:"data"`  // with anomalies, since the previous packet
	Key   string `json:"key"`   // program:rank
	Stats Stats  `json:"stats"` // anomalies per step since the start of the run

	RankKey trace.RankKey `json:"-"` // of Key, set by ReadPacket
}

// Step is a step of a rank with anomalies. The original writes the first entry and the last
// exit of all calls of the step, this program those of the anomalies.
type Step struct {
	Program   trace.Program `json:"app"`
	Last      trace.Ticks   `json:"max_timestamp"`
	First     trace.Ticks   `json:"min_timestamp"`
	Anomalies int64         `json:"n_anomalies"`
	Scores    Stats         `json:"outlier_scores"`
	Rank      trace.Rank    `json:"rank"`
	Key       string        `json:"stat_id,omitempty"` // in schema 1
	Step      int64         `json:"step"`
}

// Metrics are the anomalies of a function on a rank.
type Metrics struct {
	ID      uint64  `json:"_id"` // the same in all packets of a run
	All     *Period `json:"all_data"`
	Program int64   `json:"app"`
	FID     int64   `json:"fid"`
	Name    string  `json:"fname"`
	New     *Period `json:"new_data"`
	Rank    int64   `json:"rank"`
}

// Period holds the anomalies of a function on a rank since the start of the run or since the
// previous packet. Its times are those of the first and the last step.
type Period struct {
	Count     Stats       `json:"count"` // anomalies per step
	FirstStep int32       `json:"first_io_step"`
	LastStep  int32       `json:"last_io_step"`
	Last      trace.Ticks `json:"max_timestamp"`
	First     trace.Ticks `json:"min_timestamp"`
	Score     Stats       `json:"score"`
	Severity  Stats       `json:"severity"`
}

// Function is a function since the start of the run.
type Function struct {
	Program   int64  `json:"app"`
	Exclusive Stats  `json:"exclusive"` // microseconds of each call
	FID       int64  `json:"fid"`
	Inclusive Stats  `json:"inclusive"`
	Name      string `json:"name"`
	Anomalies Stats  `json:"stats"` // per step of a rank
}

// Counter is a counter since the start of the run.
type Counter struct {
	Program int64  `json:"app"`
	Name    string `json:"counter"`
	Stats   Stats  `json:"stats"`
}

// Stats are statistics that are always written with a fraction or an exponent, so that readers
// that distinguish integers find the same types in every packet.
type Stats stats.Summary

// NewPacket returns the next packet for the given schema, 1 or 2, and takes the news of l. It
// keeps nothing of l. Equal additions in equal order give equal packets.
//
// Anomalies are present if anything was added since the previous packet, even without anomalies.
// Without news the packet has only counters, time and version.
func NewPacket(l *summary.Live, schema int, created time.Time) *Packet {
	if schema != 1 && schema != 2 {
		panic(fmt.Sprintf("legacy: unknown packet schema %d (want 1 or 2)", schema))
	}
	p, news, millis := new(Packet), l.TakeNews(), created.UnixMilli()
	names := make(map[int]string)
	a := &Anomalies{Ranks: []Rank{}, Created: &millis, Functions: []Function{}}
	for _, f := range l.Functions() {
		names[f.ID] = f.Name
		a.Functions = append(a.Functions, Function{
			Program: int64(f.Program), FID: int64(f.ID), Name: f.Name,
			Exclusive: sums(&f.Exclusive), Inclusive: sums(&f.Inclusive), Anomalies: sums(&f.PerStep),
		})
	}
	for i := range news.Ranks {
		a.Ranks = append(a.Ranks, newRank(&news.Ranks[i], schema))
	}
	metrics := []Metrics{}
	for i := range news.Metrics {
		m := &news.Metrics[i]
		metrics = append(metrics, Metrics{
			ID: m.Index, Program: int64(m.Program), Rank: int64(m.Rank), FID: int64(m.Function), Name: names[m.Function],
			All: newPeriod(&m.All), New: newPeriod(&m.New),
		})
	}
	for _, c := range l.Counters() {
		p.Counters = append(p.Counters, Counter{int64(c.Program), c.Name, sums(&c.Values)})
	}
	if news.Any {
		p.Anomalies = a
	}
	if schema == 1 {
		a.Metrics = metrics
	} else {
		p.Metrics, p.Created, p.Version = metrics, millis, 2
	}
	return p
}

func newRank(r *summary.RankNews, schema int) Rank {
	rank := Rank{Key: fmt.Sprintf("%d:%d", r.Program, r.Rank), Stats: sums(&r.PerStep)}
	for i := range r.Steps {
		s := &r.Steps[i]
		step := Step{
			Program: r.Program, Rank: r.Rank, Step: int64(s.Step), First: s.First, Last: s.Last,
			Anomalies: int64(s.Anomalies()), Scores: Stats(s.Scores.Summary()),
		}
		if schema == 1 {
			step.Key = rank.Key
		}
		rank.Steps = append(rank.Steps, step)
	}
	return rank
}

func newPeriod(m *summary.Metrics) *Period {
	return &Period{
		Count: sums(&m.Count), Score: Stats(m.Score.Summary()), Severity: sums(&m.Severity),
		FirstStep: m.FirstStep, LastStep: m.LastStep, First: m.First, Last: m.Last,
	}
}

func sums(s *stats.Sums) Stats { return Stats(s.Summary()) }

// Empty reports whether the packet encodes to {}.
func (p *Packet) Empty() bool { return p.Anomalies == nil && p.Counters == nil && p.Version == 0 }

// Encode returns the packet as JSON.
func (p *Packet) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // no value of a packet fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// MarshalJSON writes infinities as the largest numbers and NaN as 0.
func (s Stats) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 256)
	for _, f := range [...]struct {
		key   string
		value float64
	}{
		{`{"accumulate":`, s.Accumulate},
		{`,"count":`, s.Count},
		{`,"kurtosis":`, s.Kurtosis},
		{`,"maximum":`, s.Maximum},
		{`,"mean":`, s.Mean},
		{`,"minimum":`, s.Minimum},
		{`,"skewness":`, s.Skewness},
		{`,"stddev":`, s.Stddev},
	} {
		b = appendFloat(append(b, f.key...), f.value)
	}
	return append(b, '}'), nil
}

func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) {
		v = 0
	}
	v = min(max(v, -math.MaxFloat64), math.MaxFloat64)
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if bytes.IndexByte(b[from:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}
