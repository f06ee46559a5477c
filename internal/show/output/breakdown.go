package output

import (
	"fmt"
	"io"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// GPUTimes prints how GPUs spent their time.
type GPUTimes struct{ *api.GPUTimes }

var gpuTimeColumns = columns(`program:int rank:int step:int start_us:float total_us:float compute_us:float communication_us:float
	memory_us:float exposed_communication_us:float exposed_memory_us:float overlap_us:float idle_us:float host_wait_us:float
	kernel_wait_us:float other_wait_us:float`)

// Answer returns the times as an answer.
func (g GPUTimes) Answer() *Answer {
	return &Answer{
		JSON: g.GPUTimes,
		Text: func(w io.Writer) error {
			if err := writeTrimmed(w, g.table()); err != nil {
				return err
			}
			writeMore(w, g.More)
			writeTallies(w, g.Notes)
			return nil
		},
		Markdown: func(w io.Writer) error { return writeMarkdown(w, g.table()) },
		Rows: rowsOf(gpuTimeColumns, g.Rows, func(t *api.GPUTime) []any {
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
func (g GPUTimes) table() *provdb.Rows {
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
	return rowsOf(columns(heads), g.Rows, func(t *api.GPUTime) []any {
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

// shareOf formats a share, or a missing value if the whole is 0.
func shareOf(part, of float64) string {
	if of <= 0 {
		return missing
	}
	return text.Percent(100 * part / of)
}

// Collectives prints the collective operations of a run.
type Collectives struct{ *api.Collectives }

var collectiveColumns = columns(`program:int operation process_group group_size:int ranks_seen:int bytes:int dtype calls:int
	mean_latency_us:float max_latency_us:float mean_skew_us:float max_skew_us:float last_rank:int last_calls:int bus_bandwidth:float`)

// Answer returns the collective operations as an answer.
func (l Collectives) Answer() *Answer {
	return &Answer{
		JSON: l.Collectives, Text: l.writeText,
		Markdown: func(w io.Writer) error { return writeMarkdown(w, l.table()) },
		Rows: rowsOf(collectiveColumns, l.Rows, func(c *api.Collective) []any {
			var rank, calls *int64
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

func (l Collectives) writeText(w io.Writer) error {
	if len(l.Rows) == 0 {
		fmt.Fprintln(w, "The traces have no collective operations with their details.")
		writeTallies(w, l.Notes)
		return nil
	}
	if err := writeTrimmed(w, l.table()); err != nil {
		return err
	}
	writeMore(w, l.More)
	if !slices.ContainsFunc(l.Clocks, func(c api.Clock) bool { return c.Matched > 0 }) {
		writeTallies(w, l.Notes)
		return nil
	}
	fmt.Fprintf(w, "\nClocks, ahead of that of the lowest rank; skews are corrected\n\n")
	err := writeTrimmed(w, rowsOf(columns("rank offset collectives:int"), l.Clocks, func(c *api.Clock) []any {
		return []any{c.Rank, text.Offset(c.Offset), c.Matched}
	}))
	writeTallies(w, l.Notes)
	return err
}

func (l Collectives) table() *provdb.Rows {
	heads := columns("operation group ranks bytes calls:int latency longest skew greatest last bus_bandwidth")
	return rowsOf(heads, l.Rows, func(c *api.Collective) []any {
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

// writeTallies lists tallies after a blank line.
func writeTallies(w io.Writer, list []api.Tally) {
	if len(list) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range list {
		fmt.Fprintf(w, "%s: %s %s\n", n.Severity, text.Int(n.Count), n.Sentence)
	}
}
