package legacy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Bounds of the data kept from packets, so that senders cannot fill the memory.
const (
	maxPacketSteps    = 2_000_000
	maxPacketRanks    = 200_000
	maxPacketNames    = 50_000 // functions, and counters
	maxPacketMetrics  = 200_000
	maxPacketNameSize = 4096 // bytes
	packetsShown      = 10
)

// MaxPacket is the maximum size of a packet in bytes.
const MaxPacket = 64 << 20

// Path is the path of requests with packets from the original's parameter server.
const Path = "/api/anomalydata"

// Packets is a run that has only statistics packets, and the Source of a dashboard that shows it.
// It is safe for concurrent use. NewPackets returns one.
type Packets struct {
	name, version string
	receive       bool

	mu        sync.Mutex
	info      api.PacketsInfo
	ended     bool // of a replay
	started   time.Time
	steps     int
	ranks     map[trace.RankKey]*packetRank
	functions map[functionKey]*Function
	metrics   map[metricsKey]*Metrics
	counters  map[trace.FuncKey]*Counter
	begin     trace.Ticks // of the first anomaly
	end       trace.Ticks
}

type packetRank struct {
	total int64 // anomalies since the start, as counted by the parameter server
	sum   int64 // of those of steps
	steps []packetStep
}

type packetStep struct {
	step      int64
	first     trace.Ticks
	anomalies int64
}

type functionKey struct{ program, fid int64 }

type metricsKey struct{ program, rank, fid int64 }

// NewPackets returns a run without packets. If receive is set, the dashboard accepts packets at
// Path without a token, since the original's parameter server has none.
func NewPackets(run, version string, receive bool) *Packets {
	return &Packets{
		name: run, version: version, receive: receive, started: time.Now(),
		ranks: make(map[trace.RankKey]*packetRank), functions: make(map[functionKey]*Function),
		metrics: make(map[metricsKey]*Metrics), counters: make(map[trace.FuncKey]*Counter),
	}
}

// Receives reports whether r may bring a packet.
func (p *Packets) Receives(r *http.Request) bool { return p != nil && p.receive && r.URL.Path == Path }

// Receive reads a packet from the body of a request and adds it. It counts and returns the
// problem of an invalid one.
func (p *Packets) Receive(body io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(body, MaxPacket+1))
	problem := &api.Problem{Status: api.Invalid, Hint: "docs/api.md describes packets"}
	var packet *Packet
	switch {
	case err != nil:
	case len(b) > MaxPacket:
		problem.Status, problem.Hint = api.TooLarge, ""
		err = fmt.Errorf("a packet has %d bytes at most", MaxPacket)
	default:
		packet, err = ReadPacket(b)
	}
	if err != nil {
		p.refuse(err)
		problem.Message = err.Error()
		return problem
	}
	p.take(packet)
	return nil
}

// refuse counts an invalid packet.
func (p *Packets) refuse(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Refused++
	p.info.Problem = text.OneLine(why.Error())
}

// take adds a packet that ReadPacket returned. It ignores repeated packets.
func (p *Packets) take(packet *Packet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Taken++
	if packet.Created > 0 && packet.Created < math.MaxInt64/int64(time.Millisecond) {
		p.info.Created = time.UnixMilli(packet.Created).UTC()
	}
	for i := range packet.Anomalies.Ranks {
		p.takeRank(&packet.Anomalies.Ranks[i])
	}
	for _, f := range packet.Anomalies.Functions {
		keep(p, p.functions, functionKey{f.Program, f.FID}, &f, maxPacketNames, f.Name)
	}
	for _, m := range packet.Metrics {
		p.span(m.All.First, m.All.Last)
		keep(p, p.metrics, metricsKey{m.Program, m.Rank, m.FID}, &m, maxPacketMetrics, m.Name)
	}
	for _, c := range packet.Counters {
		keep(p, p.counters, trace.FuncKey{Program: trace.Program(c.Program), Name: c.Name}, &c, maxPacketNames, c.Name)
	}
}

// keep sets an entry, or counts it if the map is full.
func keep[K comparable, V any](p *Packets, all map[K]V, key K, value V, most int, name string) {
	if _, ok := all[key]; !ok && len(all) >= most || len(name) > maxPacketNameSize {
		p.info.LeftOut++
		return
	}
	all[key] = value
}

// span extends the time of the run; 0 and 0 are unknown times.
func (p *Packets) span(first, last trace.Ticks) {
	if first == 0 && last == 0 {
		return
	}
	if p.begin == 0 || first < p.begin {
		p.begin = first
	}
	p.end = max(p.end, last)
}

func (p *Packets) takeRank(r *Rank) {
	rank := p.ranks[r.RankKey]
	if rank == nil {
		if len(p.ranks) >= maxPacketRanks {
			p.info.LeftOut++
			return
		}
		rank = new(packetRank)
		p.ranks[r.RankKey] = rank
	}
	rank.total = count(r.Stats.Accumulate)
	for i := range r.Steps {
		s := &r.Steps[i]
		p.span(s.First, s.Last)
		step := packetStep{s.Step, s.First, s.Anomalies}
		at, ok := slices.BinarySearchFunc(rank.steps, s.Step, func(x packetStep, step int64) int { return cmp.Compare(x.step, step) })
		switch {
		case ok:
			rank.sum += s.Anomalies - rank.steps[at].anomalies
			rank.steps[at] = step
		case p.steps >= maxPacketSteps:
			p.info.LeftOut++
		default:
			rank.steps = slices.Insert(rank.steps, at, step)
			rank.sum += s.Anomalies
			p.steps++
		}
	}
}

// anomalies returns the count of the parameter server, or that of the steps if it is larger.
func (r *packetRank) anomalies() int64 { return max(r.sum, r.total) }

// count returns a count of a packet, which may be any number.
func count(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(min(math.Round(x), 1<<53))
}

// Reader returns nil: packets cannot be queried.
func (p *Packets) Reader() provdb.Reader { return nil }

// Status returns the totals of the packets.
func (p *Packets) Status(context.Context) (*api.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &api.Status{
		Run:    api.RunStatus{Name: p.name, State: p.state(), Started: p.started, Now: time.Now().UTC(), Version: p.version},
		Totals: api.Totals{Ranks: int64(len(p.ranks)), Functions: int64(len(p.functions))},
	}
	s.Totals.Anomalies, s.Totals.Calls = p.totals()
	if p.info.Refused > 0 {
		s.Health = []api.Health{{Part: "packets", OK: true, Severity: api.SeverityWarning, Sentence: p.refusedText()}}
	}
	return s, nil
}

func (p *Packets) totals() (anomalies, calls int64) {
	for _, r := range p.ranks {
		anomalies += r.anomalies()
	}
	for _, f := range p.functions {
		calls += count(f.Exclusive.Count)
	}
	return anomalies, calls
}

func (p *Packets) refusedText() string {
	return text.Count(p.info.Refused, "packet") + " rejected as invalid: " + p.info.Problem
}

func (p *Packets) state() api.State {
	switch {
	case p.ended:
		return api.Finished
	case p.info.Taken == 0:
		return api.Waiting
	}
	return api.Running
}
