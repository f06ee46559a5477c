package summary

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Packet is what a packet of the original's parameter server, or of Live.Packet, tells:
// of either schema. Parts that were not in it are empty.
type Packet struct {
	Version   int   // 2, or 1 where the packet does not say
	Created   int64 // milliseconds since the epoch of Unix; 0: the packet does not say
	Ranks     []PacketRank
	Functions []PacketFunction
	Metrics   []PacketMetrics
	Counters  []PacketCounter
}

// PacketRank are the anomalies of a rank.
type PacketRank struct {
	Program trace.Program
	Rank    trace.Rank
	Steps   []PacketStep  // with anomalies, since the packet before
	Stats   stats.Summary // of anomalies in a step, since the begin of the run
}

// PacketStep are the anomalies of a step of a rank. The original writes the first entry
// and the last exit of all calls of the step, Live.Packet those of anomalies.
type PacketStep struct {
	Step        int64
	First, Last trace.Micros
	Anomalies   int64
}

// PacketFunction is a function since the begin of the run.
type PacketFunction struct {
	Program              trace.Program
	FID                  int64
	Name                 string
	Anomalies            stats.Summary // in a step of a rank
	Inclusive, Exclusive stats.Summary // times of calls, in microseconds
}

// PacketMetrics are the anomalies of a function on a rank since the begin of the run.
type PacketMetrics struct {
	Program     trace.Program
	Rank        trace.Rank
	FID         int64
	Name        string
	First, Last trace.Micros
	Count       stats.Summary // of anomalies in a step
	Score       stats.Summary
	Severity    stats.Summary
}

// PacketCounter are the values of a counter since the begin of the run.
type PacketCounter struct {
	Program trace.Program
	Name    string
	Stats   stats.Summary
}

// The packet as it is written. Of the two schemas one has the metrics, time and version
// at the top, the other within the anomalies.
type (
	packetJSON struct {
		Version   *int64         `json:"version"`
		Created   int64          `json:"created_at"`
		Anomalies *anomaliesJSON `json:"anomaly_stats"`
		Metrics   []metricsJSON  `json:"anomaly_metrics"`
		Counters  []counterJSON  `json:"counter_stats"`
	}
	anomaliesJSON struct {
		Created   *int64         `json:"created_at"`
		Ranks     []rankJSON     `json:"anomaly"`
		Metrics   []metricsJSON  `json:"anomaly_metrics"`
		Functions []functionJSON `json:"func"`
	}
	rankJSON struct {
		Key   string        `json:"key"`
		Stats stats.Summary `json:"stats"`
		Data  []struct {
			Step      int64        `json:"step"`
			First     trace.Micros `json:"min_timestamp"`
			Last      trace.Micros `json:"max_timestamp"`
			Anomalies int64        `json:"n_anomalies"`
		} `json:"data"`
	}
	functionJSON struct {
		App       int64         `json:"app"`
		FID       int64         `json:"fid"`
		Name      string        `json:"name"`
		Stats     stats.Summary `json:"stats"`
		Inclusive stats.Summary `json:"inclusive"`
		Exclusive stats.Summary `json:"exclusive"`
	}
	metricsJSON struct {
		App  int64  `json:"app"`
		Rank int64  `json:"rank"`
		FID  int64  `json:"fid"`
		Name string `json:"fname"`
		All  *struct {
			First    trace.Micros  `json:"min_timestamp"`
			Last     trace.Micros  `json:"max_timestamp"`
			Count    stats.Summary `json:"count"`
			Score    stats.Summary `json:"score"`
			Severity stats.Summary `json:"severity"`
		} `json:"all_data"`
	}
	counterJSON struct {
		App   int64         `json:"app"`
		Name  string        `json:"counter"`
		Stats stats.Summary `json:"stats"`
	}
)

// ReadPacket reads a packet. It allocates no more than some times the size of b. The error
// says which part makes no sense; then nothing is to be taken from the packet.
func ReadPacket(b []byte) (*Packet, error) {
	var raw packetJSON
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("no packet of statistics: %w", err)
	}
	p := &Packet{Version: 1, Created: raw.Created}
	if raw.Version != nil {
		if *raw.Version != 1 && *raw.Version != 2 {
			return nil, fmt.Errorf("a packet of version %d, only 1 and 2 are known", *raw.Version)
		}
		p.Version = int(*raw.Version)
	}
	metrics := raw.Metrics
	var errs []error
	if a := raw.Anomalies; a != nil {
		if a.Created == nil {
			errs = append(errs, errors.New("anomaly_stats has no created_at"))
		} else if p.Created == 0 {
			p.Created = *a.Created
		}
		metrics = append(metrics, a.Metrics...)
		errs = append(errs, p.readRanks(a.Ranks), p.readFunctions(a.Functions))
	}
	errs = append(errs, p.readMetrics(metrics), p.readCounters(raw.Counters))
	if p.Created < 0 {
		errs = append(errs, fmt.Errorf("created_at %d is no time", p.Created))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Packet) readRanks(list []rankJSON) error {
	for i := range list {
		r := &list[i]
		app, rank, ok := strings.Cut(r.Key, ":")
		a, err1 := strconv.ParseInt(app, 10, 32)
		n, err2 := strconv.ParseInt(rank, 10, 32)
		if !ok || err1 != nil || err2 != nil || a < 0 || n < 0 {
			return fmt.Errorf("anomaly_stats.anomaly[%d]: key %.40q is not of the form program:rank", i, r.Key)
		}
		out := PacketRank{Program: trace.Program(a), Rank: trace.Rank(n), Stats: r.Stats}
		for k, d := range r.Data {
			if d.Anomalies < 0 || d.Anomalies > maxPacketCount || !times(d.First, d.Last) {
				return fmt.Errorf("anomaly_stats.anomaly[%d].data[%d]: %d anomalies from %d to %d make no sense", i, k, d.Anomalies, d.First, d.Last)
			}
			out.Steps = append(out.Steps, PacketStep{d.Step, d.First, d.Last, d.Anomalies})
		}
		p.Ranks = append(p.Ranks, out)
	}
	return nil
}

// Bounds of numbers of packets, so that whoever adds them up stays within 64 bits.
const (
	maxPacketTime  = trace.Micros(1) << 56 // two thousand years
	maxPacketCount = 1 << 40
)

// times reports whether one time is before another, and both can be ones.
func times(first, last trace.Micros) bool {
	return first >= 0 && first <= last && last <= maxPacketTime
}

// number32 reports whether a number of a program or rank can be one.
func number32(n int64) bool { return n >= 0 && n <= math.MaxInt32 }

func (p *Packet) readFunctions(list []functionJSON) error {
	for i := range list {
		f := &list[i]
		if !number32(f.App) {
			return fmt.Errorf("anomaly_stats.func[%d]: app %d is no program", i, f.App)
		}
		p.Functions = append(p.Functions, PacketFunction{trace.Program(f.App), f.FID, f.Name, f.Stats, f.Inclusive, f.Exclusive})
	}
	return nil
}

func (p *Packet) readMetrics(list []metricsJSON) error {
	for i := range list {
		m := &list[i]
		if !number32(m.App) || !number32(m.Rank) || m.All == nil {
			return fmt.Errorf("anomaly_metrics[%d]: app %d and rank %d with all_data are wanted", i, m.App, m.Rank)
		}
		if !times(m.All.First, m.All.Last) {
			return fmt.Errorf("anomaly_metrics[%d]: from %d to %d makes no sense", i, m.All.First, m.All.Last)
		}
		p.Metrics = append(p.Metrics, PacketMetrics{
			Program: trace.Program(m.App), Rank: trace.Rank(m.Rank), FID: m.FID, Name: m.Name,
			First: m.All.First, Last: m.All.Last, Count: m.All.Count, Score: m.All.Score, Severity: m.All.Severity,
		})
	}
	return nil
}

func (p *Packet) readCounters(list []counterJSON) error {
	for i := range list {
		c := &list[i]
		if !number32(c.App) {
			return fmt.Errorf("counter_stats[%d]: app %d is no program", i, c.App)
		}
		p.Counters = append(p.Counters, PacketCounter{trace.Program(c.App), c.Name, c.Stats})
	}
	return nil
}
