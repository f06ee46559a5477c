// Package gpus lays out how the GPUs of a run spent their time: by rank or training step, and its
// collective operations compared over ranks. Times become microseconds. It is pure.
package gpus

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Times returns the selected times, up to a limit, with the tallies of a run that concern them.
func Times(unit trace.Unit, times []provenance.GPUTime, steps bool, limit int, notes []tally.Note,
	selected func(t *provenance.GPUTime) bool,
) *api.GPUTimes {
	g := &api.GPUTimes{Steps: steps, Rows: []api.GPUTime{}, Notes: selectNotes(notes, breakdown.TimeTallies)}
	for i := range times {
		t := &times[i]
		switch {
		case (t.Step != nil) != steps || !selected(t):
		case len(g.Rows) == limit:
			g.More++
		default:
			g.Rows = append(g.Rows, Time(unit, t))
		}
	}
	return g
}

// Time returns a time of a unit.
func Time(unit trace.Unit, t *provenance.GPUTime) api.GPUTime {
	us := unit.Micros
	row := api.GPUTime{
		Program: int64(t.PID), Rank: int64(t.RID), Step: t.Step, Start: us(t.Start), Total: us(t.Total), Compute: us(t.Compute),
		Communication: us(t.Communication), Memory: us(t.Memory), ExposedCommunication: us(t.ExposedCommunication),
		ExposedMemory: us(t.ExposedMemory), Overlap: us(t.Overlap), Idle: us(t.Idle), HostWait: us(t.HostWait),
		KernelWait: us(t.KernelWait), OtherWait: us(t.OtherWait),
	}
	for _, s := range t.Streams {
		row.Streams = append(row.Streams, api.StreamTime{
			Thread: int64(s.TID), Activities: s.Activities, Busy: us(s.Busy), HostWait: us(s.HostWait), KernelWait: us(s.KernelWait),
			OtherWait: us(s.OtherWait), Overlap: us(s.Overlap),
		})
	}
	return row
}

// Collectives returns the collective operations of a program, or all if it is nil, up to a limit, with
// the tallies of the run that concern them.
func Collectives(b *provenance.Breakdown, program *trace.Program, limit int, notes []tally.Note) *api.Collectives {
	l := &api.Collectives{Rows: []api.Collective{}, Clocks: []api.Clock{}, Notes: selectNotes(notes, breakdown.CollectiveTallies)}
	for i := range b.Collectives {
		c := &b.Collectives[i]
		switch {
		case program != nil && c.PID != *program:
		case len(l.Rows) == limit:
			l.More++
		default:
			l.Rows = append(l.Rows, collective(b.Unit, c))
		}
	}
	for _, c := range b.Clocks {
		if program == nil || c.PID == *program {
			l.Clocks = append(l.Clocks, api.Clock{
				Program: int64(c.PID), Rank: int64(c.RID), Offset: b.Unit.Micros(c.Offset), Matched: c.Matched,
			})
		}
	}
	return l
}

func collective(unit trace.Unit, c *provenance.CollectiveStats) api.Collective {
	row := api.Collective{
		Program: int64(c.PID), Operation: c.Operation, Group: c.Group, Size: int64(c.Size), Seen: int64(c.Seen), Bytes: c.Bytes,
		DType: c.DType, Calls: c.Calls, MeanLatency: unit.Micros(c.LatencySum) / float64(max(c.Calls, 1)),
		MaxLatency: unit.Micros(c.LatencyMax), Last: []api.LastRank{}, Bandwidth: c.Bandwidth,
	}
	if c.Skews > 0 {
		row.MeanSkew, row.MaxSkew = new(unit.Micros(c.SkewSum)/float64(c.Skews)), new(unit.Micros(c.SkewMax))
	}
	for _, last := range c.Last {
		row.Last = append(row.Last, api.LastRank{Rank: int64(last.Rank), Calls: last.Calls})
	}
	return row
}

// selectNotes returns the notes of some kinds.
func selectNotes(notes []tally.Note, kinds []tally.Kind) []api.Tally {
	list := []api.Tally{}
	for _, n := range notes {
		if slices.ContainsFunc(kinds, func(k tally.Kind) bool { return k.Name() == n.Name }) {
			list = append(list, api.Tally(n))
		}
	}
	return list
}
