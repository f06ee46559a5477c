package executions

import (
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// OfTerm returns the condition of a term. ok is false if the term is about details.
func (a *Reader) OfTerm(t *contrast.Term) (c Condition, ok bool) {
	wholeNumbers := func(c Column) Condition { return c.Between(wholeNumber(t.From), wholeNumber(t.To)) }
	switch t.Field.Kind {
	case contrast.FieldFunction:
		return Name.In(t.Label), true
	case contrast.FieldHost:
		unknown := AnyOf(Not(Host.Like("?*")), Host.In("Unknown"))
		return AnyOf(Host.In(t.Label), AllOf(unknown, metadataHost.In(t.Label))), true
	case contrast.FieldDevice:
		return AllOf(OnGPU.Is(), device.Between(t.Label, t.Label)), true
	case contrast.FieldStream:
		return AllOf(OnGPU.Is(), stream.Between(t.Label, t.Label)), true
	case contrast.FieldPath:
		return PathName.In(t.Label), true
	case contrast.FieldRank:
		return wholeNumbers(Rank), true
	case contrast.FieldThread:
		return AllOf(Not(OnGPU.Is()), wholeNumbers(Thread)), true
	case contrast.FieldStep:
		return wholeNumbers(Step), true
	case contrast.FieldTime:
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		if !math.IsInf(t.From, 0) {
			from = int64(a.Begin + a.Unit.FromSeconds(t.From))
		}
		if !math.IsInf(t.To, 0) {
			to = int64(a.Begin+a.Unit.FromSeconds(t.To)) - 1
		}
		return Entry.Between(from, to), true
	}
	return Condition{}, false
}

// wholeNumber returns the bound of a range of ranks, threads or steps.
func wholeNumber(v float64) int64 { return int64(min(max(v, 0), math.MaxInt32)) }

// Inside returns the conditions for executions inside a lasso: a line to the right of each crosses its edge an odd number of times.
func (a *Reader) Inside(lasso []contrast.Vertex) []Condition {
	begin, second, tick := a.Begin, a.Unit.PerSecond(), a.Unit.Micros(1)
	low, high := lasso[0], lasso[0]
	for _, v := range lasso {
		low = contrast.Vertex{Seconds: min(low.Seconds, v.Seconds), Micros: min(low.Micros, v.Micros)}
		high = contrast.Vertex{Seconds: max(high.Seconds, v.Seconds), Micros: max(high.Micros, v.Micros)}
	}
	list := []Condition{
		Entry.Between(int64(begin)+int64(math.Floor(low.Seconds*second)), int64(begin)+int64(math.Ceil(high.Seconds*second))),
		Exclusive.Between(int64(math.Floor(low.Micros/tick)), int64(math.Ceil(high.Micros/tick))),
	}
	height := func(ticks float64) float64 { return math.Log(max(1, ticks)) }
	type edge struct{ low, high, at, slope float64 } // at: seconds at height 0
	var edges []edge
	var crossings []string
	var values []any
	const logTicks = "ln(greatest(1, runtime_exclusive)::DOUBLE PRECISION)"
	seconds := a.InSeconds("(entry - ?::BIGINT)::DOUBLE PRECISION / 1e6::DOUBLE PRECISION")
	for i, v := range lasso {
		w := lasso[(i+1)%len(lasso)]
		from, to := height(v.Micros/tick), height(w.Micros/tick)
		if from == to {
			continue
		}
		slope := (w.Seconds - v.Seconds) / (to - from)
		e := edge{min(from, to), max(from, to), v.Seconds - slope*from, slope}
		edges = append(edges, e)
		crossings = append(crossings, fmt.Sprintf(
			"CASE WHEN %s >= ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION AND %s < ?::DOUBLE PRECISION + ?::DOUBLE PRECISION * %s THEN 1 "+
				"ELSE 0 END", logTicks, logTicks, seconds, logTicks))
		values = append(values, e.low, e.high, int64(begin), e.at, e.slope)
	}
	if len(edges) == 0 { // the lasso has no height
		return append(list, never)
	}
	return append(list, Condition{
		sql: "(" + strings.Join(crossings, " + ") + ") % 2 = 1", values: values,
		test: func(x *Columns) (func(row int32) bool, []int32) {
			return func(row int32) bool {
				at, y, odd := a.Unit.Seconds(trace.Ticks(x.entry[row])-begin), height(float64(x.exclusive[row])), false
				for _, e := range edges {
					if y >= e.low && y < e.high && at < e.at+e.slope*y {
						odd = !odd
					}
				}
				return odd
			}, nil
		},
	})
}
