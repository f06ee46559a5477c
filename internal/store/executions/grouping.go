package executions

import (
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// Grouping divides executions by the values of at most three columns. A copy may divide them further.
type Grouping []Column

func (g Grouping) sql() string {
	if len(g) == 0 {
		return "()"
	}
	var names []string
	for _, column := range g {
		names = append(names, column.sql)
	}
	return strings.Join(names, ", ")
}

// ByFunction divides executions by their functions.
var ByFunction = Grouping{FunctionNumber}

// SumText returns sums of functions as a parameter of function_table.sql.
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
	contrast.FieldFunction: {Name},
	contrast.FieldHost:     {ProgramRank},
	contrast.FieldRank:     {Rank},
	contrast.FieldThread:   {Thread, OnGPU},
	contrast.FieldDevice:   {ProgramRank, Thread, OnGPU},
	contrast.FieldStream:   {ProgramRank, Thread, OnGPU},
	contrast.FieldPath:     {PathNumber},
	contrast.FieldStep:     {Step},
}

// ByTime divides executions by parts of the run.
func ByTime(begin, width trace.Ticks) Grouping {
	return Grouping{{
		sql: fmt.Sprintf("floor((entry - %d)::DOUBLE PRECISION / %d)", begin, width),
		of: func(x *Columns) any {
			return func(row int32) int64 { return floorDiv(x.entry[row]-int64(begin), int64(width)) }
		},
	}}
}
