package provenance

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// Breakdown divides the time of the GPUs of a run, and compares its collective operations.
type Breakdown struct {
	Unit        trace.Unit        // of all times; the other fields are stored
	Times       []GPUTime         // by program, rank and step; the rank itself before its steps
	Collectives []CollectiveStats // by program, the one with the longest total latency first
	Clocks      []RankClock       // by program and rank
}

// Len returns the number of its rows.
func (b *Breakdown) Len() int {
	if b == nil {
		return 0
	}
	return len(b.Times) + len(b.Collectives) + len(b.Clocks)
}

// GPUTime is how the GPUs of a rank spent their time, or a training step of it. Times are in ticks,
// also those named _us. Total is the sum of Compute, ExposedCommunication, ExposedMemory and Idle;
// Idle is the sum of the three waits.
type GPUTime struct {
	PID   trace.Program `json:"pid"`
	RID   trace.Rank    `json:"rid"`
	Step  *int64        `json:"step"`     // its number; nil: the entire rank
	Start trace.Ticks   `json:"start_us"` // of the step on the host, or of the first activity of the rank
	Total trace.Ticks   `json:"total_us"`
	// Compute, Communication and Memory are the times in which such activities ran, also at the same
	// time; the exposed ones without computation, and Memory also without communication.
	Compute              trace.Ticks `json:"compute_us"`
	Communication        trace.Ticks `json:"communication_us"`
	Memory               trace.Ticks `json:"memory_us"`
	ExposedCommunication trace.Ticks `json:"exposed_communication_us"`
	ExposedMemory        trace.Ticks `json:"exposed_memory_us"`
	Overlap              trace.Ticks `json:"overlap_us"` // of communication with computation
	Idle                 trace.Ticks `json:"idle_us"`
	HostWait             trace.Ticks `json:"host_wait_us"`
	KernelWait           trace.Ticks `json:"kernel_wait_us"`
	OtherWait            trace.Ticks `json:"other_wait_us"`
	// Streams are those of the rank; none of steps.
	Streams []StreamTime `json:"streams"`
}

// StreamTime is how a stream of a GPU spent its time: busy, and in gaps between its activities.
type StreamTime struct {
	TID        trace.Thread `json:"tid"`
	Activities int64        `json:"activities"`
	Busy       trace.Ticks  `json:"busy_us"`
	HostWait   trace.Ticks  `json:"host_wait_us"`
	KernelWait trace.Ticks  `json:"kernel_wait_us"`
	OtherWait  trace.Ticks  `json:"other_wait_us"`
	Overlap    trace.Ticks  `json:"overlap_us"` // by which activities began before the end of the previous one
}

// CollectiveStats sums up the executions of a collective operation of a process group.
type CollectiveStats struct {
	PID       trace.Program `json:"pid"`
	Operation string        `json:"operation"`
	Group     string        `json:"process_group"`
	Size      int           `json:"group_size"`
	Seen      int           `json:"ranks_seen"` // the most ranks of an execution that recorded it
	Bytes     int64         `json:"bytes"`
	DType     string        `json:"dtype"`
	Calls     int64         `json:"calls"`
	// Latency is the shortest duration of an execution over its ranks, and Skew the time from the first to
	// the last arrival, by corrected clocks, of the executions that several ranks recorded.
	LatencySum trace.Ticks `json:"latency_sum_us"`
	LatencyMax trace.Ticks `json:"latency_max_us"`
	Skews      int64       `json:"skews"` // executions with a skew
	SkewSum    trace.Ticks `json:"skew_sum_us"`
	SkewMax    trace.Ticks `json:"skew_max_us"`
	Last       []LastRank  `json:"last_ranks"`    // the most often first
	Bandwidth  float64     `json:"bus_bandwidth"` // bytes per second at the mean latency; 0 if unknown
}

// LastRank is the number of executions for which a rank was the last to arrive.
type LastRank struct {
	Rank  trace.Rank `json:"rank"`
	Calls int64      `json:"calls"`
}

// RankClock is the correction of the clock of a rank.
type RankClock struct {
	PID     trace.Program `json:"pid"`
	RID     trace.Rank    `json:"rid"`
	Offset  trace.Ticks   `json:"offset_us"` // by which it is ahead of the lowest rank that it communicates with
	Matched int64         `json:"matched"`   // ends of collective operations that were compared
}

// NewBreakdown returns the breakdown of a run, or nil without one.
func NewBreakdown(unit trace.Unit, run *breakdown.Run) *Breakdown {
	if run == nil {
		return nil
	}
	b := &Breakdown{Unit: unit}
	for i := range run.Ranks {
		r := &run.Ranks[i]
		whole := gpuTime(r.RankKey, nil, r.First, &r.Sums)
		for _, s := range r.Streams {
			whole.Streams = append(whole.Streams, StreamTime{
				TID: s.Thread, Activities: s.Activities, Busy: s.Busy, HostWait: s.Idle.HostWait, KernelWait: s.Idle.KernelWait,
				OtherWait: s.Idle.Other, Overlap: s.Overlap,
			})
		}
		b.Times = append(b.Times, whole)
		for k := range r.Steps {
			s := &r.Steps[k]
			b.Times = append(b.Times, gpuTime(r.RankKey, &s.Number, s.Start, &s.Sums))
		}
	}
	for i := range run.Collectives {
		c := &run.Collectives[i]
		for k := range c.Operations {
			b.Collectives = append(b.Collectives, collectiveStats(c.Program, unit, &c.Operations[k]))
		}
		for _, clock := range c.Clocks {
			b.Clocks = append(b.Clocks, RankClock{PID: c.Program, RID: clock.Rank, Offset: clock.Offset, Matched: clock.Matched})
		}
	}
	return b
}

func gpuTime(key trace.RankKey, step *int64, start trace.Ticks, s *breakdown.Sums) GPUTime {
	return GPUTime{
		PID: key.Program, RID: key.Rank, Step: step, Start: start, Total: s.Total(), Compute: s.Active(breakdown.Compute),
		Communication: s.Active(breakdown.Communication), Memory: s.Active(breakdown.Memory),
		ExposedCommunication: s.ExposedCommunication(), ExposedMemory: s.ExposedMemory(), Overlap: s.Overlap(),
		Idle: s.IdleTime(), HostWait: s.Idle.HostWait, KernelWait: s.Idle.KernelWait, OtherWait: s.Idle.Other, Streams: []StreamTime{},
	}
}

func collectiveStats(program trace.Program, unit trace.Unit, o *breakdown.OperationStats) CollectiveStats {
	c := CollectiveStats{
		PID: program, Operation: o.Name, Group: o.Group, Size: o.Size, Seen: o.Ranks, Bytes: o.Bytes, DType: o.DType, Calls: o.Count,
		LatencySum: o.Latency.Sum, LatencyMax: o.Latency.Max, Skews: o.Skew.Count, SkewSum: o.Skew.Sum, SkewMax: o.Skew.Max,
		Last: make([]LastRank, 0, len(o.Last)), Bandwidth: o.BusBandwidth(unit),
	}
	for _, l := range o.Last {
		c.Last = append(c.Last, LastRank{l.Rank, l.Count})
	}
	return c
}
