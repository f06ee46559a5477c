package output

import (
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// GPUTimes is how the GPUs of ranks, or of their training steps, spent their time. Times are
// microseconds.
type GPUTimes struct {
	Rows  []GPUTime `json:"rows"`
	More  int       `json:"more"`  // rows beyond the limit
	Steps bool      `json:"steps"` // rows are training steps
}

// GPUTime is a row of GPUTimes.
type GPUTime struct {
	Program              trace.Program `json:"program"`
	Rank                 trace.Rank    `json:"rank"`
	Step                 *int64        `json:"step,omitempty"`
	Start                float64       `json:"start_us"`
	Total                float64       `json:"total_us"`
	Compute              float64       `json:"compute_us"`
	Communication        float64       `json:"communication_us"`
	Memory               float64       `json:"memory_us"`
	ExposedCommunication float64       `json:"exposed_communication_us"`
	ExposedMemory        float64       `json:"exposed_memory_us"`
	Overlap              float64       `json:"overlap_us"`
	Idle                 float64       `json:"idle_us"`
	HostWait             float64       `json:"host_wait_us"`
	KernelWait           float64       `json:"kernel_wait_us"`
	OtherWait            float64       `json:"other_wait_us"`
	Streams              []StreamTime  `json:"streams,omitempty"`
}

// StreamTime is how a stream of a GPU spent its time.
type StreamTime struct {
	Thread     trace.Thread `json:"tid"`
	Activities int64        `json:"activities"`
	Busy       float64      `json:"busy_us"`
	HostWait   float64      `json:"host_wait_us"`
	KernelWait float64      `json:"kernel_wait_us"`
	OtherWait  float64      `json:"other_wait_us"`
	Overlap    float64      `json:"overlap_us"`
}

// NewGPUTimes returns the times of a unit that are selected, up to a limit.
func NewGPUTimes(unit trace.Unit, times []provenance.GPUTime, steps bool, limit int, selected func(*provenance.GPUTime) bool) *GPUTimes {
	g := &GPUTimes{Steps: steps, Rows: []GPUTime{}}
	for i := range times {
		t := &times[i]
		switch {
		case (t.Step != nil) != steps || !selected(t):
			continue
		case len(g.Rows) == limit:
			g.More++
			continue
		}
		us := unit.Micros
		row := GPUTime{
			Program: t.PID, Rank: t.RID, Step: t.Step, Start: us(t.Start), Total: us(t.Total), Compute: us(t.Compute),
			Communication: us(t.Communication), Memory: us(t.Memory), ExposedCommunication: us(t.ExposedCommunication),
			ExposedMemory: us(t.ExposedMemory), Overlap: us(t.Overlap), Idle: us(t.Idle), HostWait: us(t.HostWait),
			KernelWait: us(t.KernelWait), OtherWait: us(t.OtherWait),
		}
		for _, s := range t.Streams {
			row.Streams = append(row.Streams, StreamTime{
				s.TID, s.Activities, us(s.Busy), us(s.HostWait), us(s.KernelWait), us(s.OtherWait), us(s.Overlap),
			})
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

var gpuTimeColumns = columns(`program:int rank:int step:int start_us:float total_us:float compute_us:float communication_us:float
	memory_us:float exposed_communication_us:float exposed_memory_us:float overlap_us:float idle_us:float host_wait_us:float
	kernel_wait_us:float other_wait_us:float`)

// Answer returns the times as an answer.
func (g *GPUTimes) Answer() *Answer {
	return &Answer{
		JSON: g,
		Text: func(w io.Writer) error {
			if err := writeTrimmed(w, g.table()); err != nil {
				return err
			}
			writeMore(w, g.More)
			return nil
		},
		Markdown: func(w io.Writer) error { return writeMarkdown(w, g.table()) },
		Rows: rowsOf(gpuTimeColumns, g.Rows, func(t *GPUTime) []any {
			return []any{
				t.Program, t.Rank, t.Step, t.Start, t.Total, t.Compute, t.Communication, t.Memory, t.ExposedCommunication, t.ExposedMemory,
				t.Overlap, t.Idle, t.HostWait, t.KernelWait, t.OtherWait,
			}
		}),
	}
}

// writeMore states how many rows the limit left out.
func writeMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "\nand %s: give a larger --limit\n", text.Count(more, "more row"))
	}
}

// table returns the times as people read them: shares of the total.
func (g *GPUTimes) table() *provdb.Rows {
	heads, programs := "rank", false
	for i := range g.Rows {
		programs = programs || g.Rows[i].Program != g.Rows[0].Program
	}
	if programs {
		heads = "program rank"
	}
	if g.Steps {
		heads += " step"
	}
	heads += " total compute communication memory idle host_wait kernel_wait other_wait overlap"
	return rowsOf(columns(heads), g.Rows, func(t *GPUTime) []any {
		var row []any
		if programs {
			row = append(row, t.Program)
		}
		row = append(row, t.Rank)
		if g.Steps {
			row = append(row, *t.Step)
		}
		row = append(row, text.Duration(t.Total))
		for _, part := range []float64{t.Compute, t.ExposedCommunication, t.ExposedMemory, t.Idle, t.HostWait, t.KernelWait, t.OtherWait} {
			row = append(row, shareOf(part, t.Total))
		}
		return append(row, shareOf(t.Overlap, t.Communication))
	})
}

// shareOf formats a share, which is missing of nothing.
func shareOf(part, of float64) string {
	if of <= 0 {
		return missing
	}
	return text.Percent(100 * part / of)
}

// Collectives are the collective operations of a run, compared over ranks. Times are microseconds.
type Collectives struct {
	Rows   []Collective `json:"rows"`
	More   int          `json:"more"` // rows beyond the limit
	Clocks []Clock      `json:"clocks"`
}

// Collective is a row of Collectives.
type Collective struct {
	Program     trace.Program         `json:"program"`
	Operation   string                `json:"operation"`
	Group       string                `json:"process_group"`
	Size        int                   `json:"group_size"`
	Seen        int                   `json:"ranks_seen"`
	Bytes       int64                 `json:"bytes"`
	DType       string                `json:"dtype"`
	Calls       int64                 `json:"calls"`
	MeanLatency float64               `json:"mean_latency_us"`
	MaxLatency  float64               `json:"max_latency_us"`
	MeanSkew    *float64              `json:"mean_skew_us"` // nil if only one rank recorded it
	MaxSkew     *float64              `json:"max_skew_us"`
	Last        []provenance.LastRank `json:"last_ranks"`
	Bandwidth   float64               `json:"bus_bandwidth"` // bytes per second; 0 if unknown
}

// Clock is the correction of the clock of a rank.
type Clock struct {
	Program trace.Program `json:"program"`
	Rank    trace.Rank    `json:"rank"`
	Offset  float64       `json:"offset_us"`
	Matched int64         `json:"matched"`
}

// NewCollectives returns the collective operations of a breakdown that are of a program, or all if
// it is nil, up to a limit.
func NewCollectives(b *provenance.Breakdown, program *trace.Program, limit int) *Collectives {
	l := &Collectives{Rows: []Collective{}, Clocks: []Clock{}}
	for i := range b.Collectives {
		c := &b.Collectives[i]
		switch {
		case program != nil && c.PID != *program:
			continue
		case len(l.Rows) == limit:
			l.More++
			continue
		}
		row := Collective{
			Program: c.PID, Operation: c.Operation, Group: c.Group, Size: c.Size, Seen: c.Seen, Bytes: c.Bytes, DType: c.DType, Calls: c.Calls,
			MeanLatency: b.Unit.Micros(c.LatencySum) / float64(max(c.Calls, 1)), MaxLatency: b.Unit.Micros(c.LatencyMax), Last: c.Last,
			Bandwidth: c.Bandwidth,
		}
		if c.Skews > 0 {
			row.MeanSkew, row.MaxSkew = new(b.Unit.Micros(c.SkewSum)/float64(c.Skews)), new(b.Unit.Micros(c.SkewMax))
		}
		l.Rows = append(l.Rows, row)
	}
	for _, c := range b.Clocks {
		if program == nil || c.PID == *program {
			l.Clocks = append(l.Clocks, Clock{c.PID, c.RID, b.Unit.Micros(c.Offset), c.Matched})
		}
	}
	return l
}

var collectiveColumns = columns(`program:int operation process_group group_size:int ranks_seen:int bytes:int dtype calls:int
	mean_latency_us:float max_latency_us:float mean_skew_us:float max_skew_us:float last_rank:int last_calls:int bus_bandwidth:float`)

// Answer returns the collective operations as an answer.
func (l *Collectives) Answer() *Answer {
	return &Answer{
		JSON: l, Text: l.writeText,
		Markdown: func(w io.Writer) error { return writeMarkdown(w, l.table()) },
		Rows: rowsOf(collectiveColumns, l.Rows, func(c *Collective) []any {
			var rank *trace.Rank
			var calls *int64
			if len(c.Last) > 0 {
				rank, calls = &c.Last[0].Rank, &c.Last[0].Calls
			}
			return []any{
				c.Program, c.Operation, c.Group, c.Size, c.Seen, c.Bytes, c.DType, c.Calls, c.MeanLatency, c.MaxLatency, c.MeanSkew, c.MaxSkew,
				rank, calls, c.Bandwidth,
			}
		}),
	}
}

func (l *Collectives) writeText(w io.Writer) error {
	if len(l.Rows) == 0 {
		fmt.Fprintln(w, "The traces have no collective operations with their details.")
		return nil
	}
	if err := writeTrimmed(w, l.table()); err != nil {
		return err
	}
	writeMore(w, l.More)
	fmt.Fprintf(w, "\nClocks, ahead of that of the lowest rank; skews are corrected\n\n")
	return writeTrimmed(w, rowsOf(columns("rank offset collectives:int"), l.Clocks, func(c *Clock) []any {
		return []any{c.Rank, text.Offset(c.Offset), c.Matched}
	}))
}

func (l *Collectives) table() *provdb.Rows {
	heads := columns("operation group ranks bytes calls:int latency longest skew greatest last bus_bandwidth")
	return rowsOf(heads, l.Rows, func(c *Collective) []any {
		last, bandwidth := missing, missing
		if len(c.Last) > 0 {
			last = fmt.Sprintf("rank %d (%s of %s)", c.Last[0].Rank, text.Int(c.Last[0].Calls), text.Int(c.Calls))
		}
		if c.Bandwidth > 0 {
			bandwidth = text.Bytes(int64(c.Bandwidth)) + "/s"
		}
		ranks := text.Int(c.Size)
		if c.Seen < c.Size {
			ranks = fmt.Sprintf("%s of %s", text.Int(c.Seen), text.Int(c.Size))
		}
		return []any{
			c.Operation, c.Group, ranks, text.Bytes(c.Bytes), c.Calls, text.Duration(c.MeanLatency), text.Duration(c.MaxLatency),
			orMissing(c.MeanSkew, text.Duration), orMissing(c.MaxSkew, text.Duration), last, bandwidth,
		}
	})
}
