package peers

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// workTimes returns the times of the work of ranks by window. names has the names of functions.
func workTimes(load *workload.Load, names map[uint32]string) *provenance.WorkTimes {
	begin, end := load.Span()
	first := int64(begin) >> load.Shift()
	n := int(int64(end)>>load.Shift()-first) + 1
	out := &provenance.WorkTimes{
		Begin: trace.Ticks(first << load.Shift()), Width: load.Width(), Of: make(map[callpath.Context][]trace.Ticks),
	}
	times := make([][]trace.Ticks, len(load.Works())) // by work; different work on the same path shares them
	for i, w := range load.Works() {
		path := callpath.Context{FuncKey: trace.FuncKey{Program: w.Program, Name: names[w.Function]}, Path: w.Path.Path()}
		if out.Of[path] == nil {
			out.Of[path] = make([]trace.Ticks, n)
		}
		times[i] = out.Of[path]
	}
	var cells []workload.Cell
	for _, lane := range load.Lanes() {
		if lane.Device {
			continue
		}
		for i := range lane.Windows {
			w := &lane.Windows[i]
			cells = w.Cells(cells[:0])
			for _, cell := range cells {
				times[cell.Work][w.Number-first] += trace.Ticks(cell.Exclusive)
			}
		}
	}
	return out
}
