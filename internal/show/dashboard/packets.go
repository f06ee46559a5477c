package dashboard

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Bounds of what is kept of packets, so that nobody who sends them fills the memory.
const (
	maxPacketSteps    = 2_000_000 // 32 bytes each
	maxPacketRanks    = 200_000
	maxPacketNames    = 50_000 // functions, and counters
	maxPacketMetrics  = 200_000
	maxPacketNameSize = 4096 // bytes
	packetsShown      = 10
)

// Packets is the picture of a run that packets of statistics give, and the Source of a
// dashboard that shows it. Several goroutines may use it; NewPackets makes one.
type Packets struct {
	name, version string
	receive       bool // over HTTP, from whoever reaches it

	mu        sync.Mutex
	info      api.PacketsInfo
	over      bool // of a replay
	started   time.Time
	steps     int
	ranks     map[trace.RankKey]*packetRank
	functions map[packetFunction]*summary.PacketFunction
	metrics   map[packetMetric]*summary.PacketMetrics
	counters  map[trace.FuncKey]*summary.PacketCounter
	begin     trace.Micros // of the first anomaly
	end       trace.Micros
}

type packetRank struct {
	total int64 // anomalies since the begin, as the parameter server counted them
	sum   int64 // of those of steps
	steps []summary.PacketStep
}

type packetFunction struct {
	program trace.Program
	fid     int64
}

type packetMetric struct {
	trace.RankKey
	fid int64
}

// NewPackets returns the picture of a run of which no packet has been taken yet. receive
// says that the dashboard takes packets at api/anomalydata, and asks no token of those who
// send them, since the original's parameter server has none.
func NewPackets(run, version string, receive bool) *Packets {
	return &Packets{
		name: run, version: version, receive: receive, started: time.Now(),
		ranks: make(map[trace.RankKey]*packetRank), functions: make(map[packetFunction]*summary.PacketFunction),
		metrics: make(map[packetMetric]*summary.PacketMetrics), counters: make(map[trace.FuncKey]*summary.PacketCounter),
	}
}

// Replay says that so many packets come from files, at some times the speed at which they
// were made.
func (p *Packets) Replay(total int, speed float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Replay, p.info.Total, p.info.Speed = true, int64(total), speed
}

// End says that no more packets come.
func (p *Packets) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// Refuse counts a packet that made no sense.
func (p *Packets) Refuse(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Refused++
	p.info.Problem = text.OneLine(why.Error())
}

// Take adds a packet. One that comes again changes nothing.
func (p *Packets) Take(packet *summary.Packet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.Taken++
	if packet.Created > 0 && packet.Created < math.MaxInt64/int64(time.Millisecond) {
		p.info.Created = time.UnixMilli(packet.Created).UTC()
	}
	for i := range packet.Ranks {
		p.takeRank(&packet.Ranks[i])
	}
	for i := range packet.Functions {
		f := packet.Functions[i]
		keepPacket(p, p.functions, packetFunction{f.Program, f.FID}, &f, maxPacketNames, len(f.Name))
	}
	for i := range packet.Metrics {
		m := packet.Metrics[i]
		p.span(m.First, m.Last)
		keepPacket(p, p.metrics, packetMetric{trace.RankKey{Program: m.Program, Rank: m.Rank}, m.FID}, &m, maxPacketMetrics, len(m.Name))
	}
	for i := range packet.Counters {
		c := packet.Counters[i]
		keepPacket(p, p.counters, trace.FuncKey{Program: c.Program, Name: c.Name}, &c, maxPacketNames, len(c.Name))
	}
}

// keepPacket sets an entry, if there is room for it.
func keepPacket[K comparable, V any](p *Packets, all map[K]V, key K, value V, most, name int) {
	if _, ok := all[key]; !ok && len(all) >= most || name > maxPacketNameSize {
		p.info.LeftOut++
		return
	}
	all[key] = value
}

// span notes that something happened from one time to another.
func (p *Packets) span(first, last trace.Micros) {
	if first == 0 && last == 0 {
		return // not told
	}
	if p.begin == 0 || first < p.begin {
		p.begin = first
	}
	p.end = max(p.end, last)
}

func (p *Packets) takeRank(r *summary.PacketRank) {
	process := trace.RankKey{Program: r.Program, Rank: r.Rank}
	rank := p.ranks[process]
	if rank == nil {
		if len(p.ranks) >= maxPacketRanks {
			p.info.LeftOut++
			return
		}
		rank = new(packetRank)
		p.ranks[process] = rank
	}
	rank.total = wholeOf(r.Stats.Accumulate)
	for _, s := range r.Steps {
		p.span(s.First, s.Last)
		at, ok := slices.BinarySearchFunc(rank.steps, s.Step, func(x summary.PacketStep, step int64) int { return cmp.Compare(x.Step, step) })
		switch {
		case ok:
			rank.sum += s.Anomalies - rank.steps[at].Anomalies
			rank.steps[at] = s
		case p.steps >= maxPacketSteps:
			p.info.LeftOut++
		default:
			rank.steps = slices.Insert(rank.steps, at, s)
			rank.sum += s.Anomalies
			p.steps++
		}
	}
}

// anomalies are those of a rank: as the parameter server counted them, or as its steps
// tell where that is more.
func (r *packetRank) anomalies() int64 { return max(r.sum, r.total) }

// wholeOf is a count of a packet, which may be any number.
func wholeOf(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(min(math.Round(x), 1<<53))
}

// Reader is none: packets hold nothing that could be asked for.
func (p *Packets) Reader() provdb.Reader { return nil }

// Status is how far packets have come.
func (p *Packets) Status(context.Context) (*api.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &api.Status{
		Run:    api.RunStatus{Name: p.name, State: p.state(), Started: p.started, Now: time.Now().UTC(), Version: p.version},
		Totals: api.Totals{Ranks: int64(len(p.ranks)), Functions: int64(len(p.functions))},
	}
	for _, r := range p.ranks {
		s.Totals.Anomalies += r.anomalies()
	}
	for _, f := range p.functions {
		s.Totals.Calls += wholeOf(f.Exclusive.Count)
	}
	if p.info.Refused > 0 {
		s.Health = []api.Health{{Part: "packets", OK: true, Severity: api.SeverityWarning, Sentence: text.Count(p.info.Refused, "packet") +
			" made no sense: " + p.info.Problem}}
	}
	return s, nil
}

func (p *Packets) state() api.State {
	switch {
	case p.over:
		return api.Finished
	case p.info.Taken == 0:
		return api.Waiting
	}
	return api.Running
}
