package executions

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Range is from First to Last, both included.
type Range struct{ First, Last int64 }

// Filter chooses executions. The zero value of a field does not filter.
type Filter struct {
	Normal    bool      // of normalexecs instead of anomalies
	Function  string    // pattern
	One       *Function `json:"-"` // only this one
	Kinds     []string  // any of them
	Host      string
	Ranks     []Range // any of them
	Steps     *Range
	Since     *trace.Micros // since the run's begin
	Until     *trace.Micros
	Severity  float64 // the least
	Took      *Range  // microseconds of exclusive time
	Lost      trace.Micros
	Score     float64
	Withdrawn bool // also those that were withdrawn
	Program   *trace.Program
	Order     string // severity, lost, score or time
	Limit     int
	Offset    int
}

// anomalyOrders are the orders of lists of executions. Their last columns make them total, so
// that pages do not overlap.
var anomalyOrders = map[string]func(x *Columns) order{
	"severity": func(x *Columns) order { return x.listOrder("outlier_severity DESC", descending(x.severity)) },
	"lost":     func(x *Columns) order { return x.listOrder("lost_time DESC", descending(x.lost)) },
	"score":    func(x *Columns) order { return x.listOrder("outlier_score DESC", descending(x.score)) },
	"time":     func(x *Columns) order { return x.listOrder("entry", ascending(x.entry)) },
}

func (x *Columns) listOrder(sql string, compare func(a, b int32) int) order {
	return order{sql: sql + ", run, pid, rid, ev_step, ev_row, ev_text", compare: func(a, b int32) int {
		if c := compare(a, b); c != 0 {
			return c
		}
		return cmp.Or(x.places[x.place[a]].Compare(x.places[x.place[b]]), cmp.Compare(x.step[a], x.step[b]), cmp.Compare(x.row[a], x.row[b]),
			strings.Compare(x.texts[a], x.texts[b]))
	}}
}

// kinds are those of anomalies.
var kinds = func() map[string]string {
	all := make(map[string]string)
	for _, k := range provenance.AnomalyKinds() {
		all[string(k)] = string(k)
	}
	return all
}()

// Executions returns the executions that a filter selects.
func (a *Reader) Executions(ctx context.Context, f Filter) (*provdb.Rows, error) {
	orderOf, err := Choose("order", f.Order, anomalyOrders)
	if err != nil {
		return nil, err
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	if a.Run.State.Open() && a.Memory != nil { // the copy may be older than the store
		b := *a
		b.Memory, a = nil, &b
	}
	x := a.Columns()
	by := orderOf(x)
	where, err := f.Condition(ctx, a)
	if err != nil {
		return nil, err
	}
	collection := Condition{sql: "anomalous = ?", values: []any{!f.Normal}, keep: func(row int32) bool { return x.anomalous[row] == !f.Normal }}
	where = AllOf(collection, where)
	if a.Memory != nil {
		return x.rows(x.first(where, by, f.Offset, f.Limit), a.Begin), nil
	}
	// The outer query has the columns of two tables.
	sql := strings.NewReplacer("/*where*/", where.sql, "/*order*/", by.sql, "/*outer*/", "e."+strings.ReplaceAll(by.sql, ", ", ", e.")).
		Replace(text("anomalies"))
	sql, args := bind([]any{int32(a.Run.ID), int64(a.Begin), int64(f.Limit), int64(f.Offset)}, sql, where.values...)
	return a.Query(ctx, sql, args...)
}

// rows returns rows of the copy as anomalies.sql does.
func (x *Columns) rows(list []int32, begin trace.Micros) *provdb.Rows {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return &provdb.Rows{
		Columns: []provdb.Column{
			{Name: "event_id", Type: provdb.Text}, {Name: "at_s", Type: provdb.Float}, {Name: "exclusive_us", Type: provdb.Int},
			{Name: "inclusive_us", Type: provdb.Int}, {Name: "lost_us", Type: provdb.Int}, {Name: "severity", Type: provdb.Float},
			{Name: "score", Type: provdb.Float}, {Name: "kind", Type: provdb.Text}, {Name: "status", Type: provdb.Text},
			{Name: "io_step", Type: provdb.Int}, {Name: "program", Type: provdb.Int}, {Name: "rank", Type: provdb.Int},
			{Name: "thread", Type: provdb.Int}, {Name: "host", Type: provdb.Text}, {Name: "function", Type: provdb.Text},
		},
		All: func(yield func([]any, error) bool) {
			for _, row := range list {
				e := x.execution(row)
				if !yield([]any{
					e.Event, float64(e.Entry-begin) / 1e6, int64(e.Exclusive), x.total[row], int64(e.Lost), x.severity[row], x.score[row],
					orNull(x.kinds[x.kind[row]]), orNull(e.Status), e.Step, int64(e.Program), int64(e.Rank), e.Thread, e.Host, e.Function,
				}, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}
}

// maxNumbers is how many functions a condition names by number.
const MaxFunctions = 200

// Check returns an error if a kind is unknown.
func (f *Filter) Check() error {
	for _, kind := range f.Kinds {
		if _, err := Choose("kind", kind, kinds); err != nil {
			return err
		}
	}
	return nil
}

// ofFunctions selects functions by a pattern. It looks up their numbers first, because a
// database that has them estimates the number of rows better.
func (a *Reader) ofFunctions(ctx context.Context, pattern string) (Condition, error) {
	x := a.Columns()
	matches, err := ReadAll[FunctionID](ctx, a, text("func_numbers"), Like(pattern), int64(MaxFunctions+1))
	if err != nil {
		return Condition{}, err
	}
	if len(matches) > MaxFunctions {
		has := matcher(pattern)
		names := make(map[FunctionID]string, len(x.names))
		for i, name := range x.names {
			names[x.functions[i]] = name
		}
		return oneOf(x.function, x.functions, func(f FunctionID) bool { return has(names[f]) },
			`(pid, fn) IN (SELECT pid, fn FROM functions WHERE run = $1 AND name LIKE ? ESCAPE '\')`, Like(pattern)), nil
	}
	if len(matches) == 0 {
		return Condition{sql: "FALSE", keep: func(int32) bool { return false }}, nil
	}
	var parts []string
	var values []any
	for rest := matches; len(rest) > 0; {
		program := rest[0].Program
		values = append(values, int32(program))
		n := 0
		for ; n < len(rest) && rest[n].Program == program; n++ {
			values = append(values, rest[n].Number)
		}
		parts = append(parts, "pid = ? AND fn IN (?"+strings.Repeat(", ?", n-1)+")")
		rest = rest[n:]
	}
	c := oneOf(x.function, x.functions, func(f FunctionID) bool { return slices.Contains(matches, f) },
		"("+strings.Join(parts, " OR ")+")", values...)
	c.rows = x.byFunction.ofFew(func(i int) bool { return slices.Contains(matches, x.functions[i]) })
	return c, nil
}

// Condition returns the condition of the filter.
func (f *Filter) Condition(ctx context.Context, a *Reader) (Condition, error) {
	x := a.Columns()
	var list []Condition
	add := func(isSet bool, c func() Condition) {
		if isSet {
			list = append(list, c())
		}
	}
	if f.Function != "" {
		c, err := a.ofFunctions(ctx, f.Function)
		if err != nil {
			return c, err
		}
		list = append(list, c)
	}
	add(len(f.Kinds) > 0, func() Condition {
		var values []any
		for _, kind := range f.Kinds {
			values = append(values, kind)
		}
		return oneOf(x.kind, x.kinds, func(kind string) bool { return slices.Contains(f.Kinds, kind) },
			"kind IN (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	})
	add(f.Host != "", func() Condition {
		has := matcher(f.Host)
		c := oneOf(x.host, x.hosts, has, `hostname LIKE ? ESCAPE '\'`, Like(f.Host))
		c.rows = x.byHost.ofFew(func(i int) bool { return has(x.hosts[i]) })
		return c
	})
	add(len(f.Ranks) > 0, func() Condition {
		var ranges []Condition
		for _, r := range f.Ranks {
			ranges = append(ranges, within("rid", x.rank, r.First, r.Last))
		}
		c := AnyOf(ranges...)
		c.rows = x.byPlace.ofFew(func(i int) bool {
			rank := int64(x.places[i].Rank)
			return slices.ContainsFunc(f.Ranks, func(r Range) bool { return r.First <= rank && rank <= r.Last })
		})
		return c
	})
	add(f.Steps != nil, func() Condition { return within("io_step", x.ioStep, f.Steps.First, f.Steps.Last) })
	add(f.Since != nil || f.Until != nil, func() Condition {
		from, to := int64(math.MinInt64), int64(math.MaxInt64)
		if f.Since != nil {
			from = int64(a.Begin + *f.Since)
		}
		if f.Until != nil {
			to = int64(a.Begin + *f.Until)
		}
		return within("entry", x.entry, from, to)
	})
	add(f.Severity > 0, func() Condition { return atLeast("outlier_severity", x.severity, f.Severity) })
	add(f.Took != nil, func() Condition { return within("runtime_exclusive", x.exclusive, f.Took.First, f.Took.Last) })
	add(f.Lost > 0, func() Condition { return atLeast("lost_time", x.lost, int64(f.Lost)) })
	add(f.Score > 0, func() Condition { return atLeast("outlier_score", x.score, f.Score) })
	add(!f.Withdrawn && !f.Normal, x.Flagged)
	add(f.Program != nil, func() Condition { return x.InProgram(*f.Program) })
	add(f.One != nil, func() Condition { return x.OfFunction(f.One.Program, f.One.Number) })
	return AllOf(list...), nil
}
