package executions

import (
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// ByFunction divides executions by their functions.
var ByFunction = Grouping{"pid, fn", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.function[row])} }}

// SumText writes sums of functions as a parameter of function_table.sql.
func SumText(groups []Sums) string {
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:%d:%d:%d:%d:%t", g.Program, g.Number, g.Anomalies, g.Lost, g.Exclusive, g.OnGPU)
	}
	return b.String()
}

// Groupings divide executions by fields.
var Groupings = map[contrast.FieldKind]Grouping{
	contrast.FieldFunction: {"func", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.function[row])} }},
	contrast.FieldHost:     {"pid, rid", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.place[row])} }},
	contrast.FieldRank:     {"rid", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.rank[row])} }},
	contrast.FieldThread:   {"tid, is_gpu_event", func(x *Columns, row int32) [2]int64 { return [2]int64{x.thread[row], x.gpu(row)} }},
	contrast.FieldDevice:   byStream,
	contrast.FieldStream:   byStream,
	contrast.FieldPath:     ByPath,
	contrast.FieldStep:     {"io_step", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.ioStep[row])} }},
}

var (
	// Together is one group of all.
	Together = Grouping{columns: "()"}
	// ByRankAndHost divides executions by rank and host.
	ByRankAndHost = Grouping{"rid, hostname", func(x *Columns, row int32) [2]int64 { return [2]int64{int64(x.rank[row]), int64(x.host[row])} }}
	byStream      = Grouping{"pid, rid, tid, is_gpu_event", func(x *Columns, row int32) [2]int64 {
		return [2]int64{int64(x.place[row]), 2*x.thread[row] + x.gpu(row)}
	}}
	ByPath = Grouping{"pid, path", func(x *Columns, row int32) [2]int64 {
		return [2]int64{int64(x.places[x.place[row]].Program), int64(x.path[row])}
	}}
)

// ByTime divides executions by parts of the run.
func ByTime(begin, width trace.Micros) Grouping {
	return Grouping{
		fmt.Sprintf("floor((entry - %d)::DOUBLE PRECISION / %d)", begin, width),
		func(x *Columns, row int32) [2]int64 {
			return [2]int64{floorDiv(x.entry[row]-int64(begin), int64(width))}
		},
	}
}
