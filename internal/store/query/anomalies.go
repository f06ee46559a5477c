package query

import (
	"context"
	"fmt"
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

// anomalyOrder are the orders of executions. The columns that follow make them
// total, so that pages do not overlap.
var anomalyOrder = map[string]string{
	"severity": "outlier_severity DESC",
	"lost":     "lost_time DESC",
	"score":    "outlier_score DESC",
	"time":     "entry",
}

// kinds are those of anomalies.
var kinds = func() map[string]string {
	all := make(map[string]string)
	for _, k := range provenance.AnomalyKinds() {
		all[string(k)] = string(k)
	}
	return all
}()

const orderTies = ", run, pid, rid, ev_step, ev_row, ev_text"

// conditions collects parts of a WHERE and what they bind.
type conditions struct {
	sql  strings.Builder
	args []any
}

// add adds a condition, in which each ? stands for a value.
func (c *conditions) add(sql string, values ...any) {
	c.sql.WriteString(" AND ")
	for _, part := range strings.SplitAfter(sql, "?") {
		body, bound := strings.CutSuffix(part, "?")
		c.sql.WriteString(body)
		if bound {
			c.args = append(c.args, values[0])
			values = values[1:]
			fmt.Fprintf(&c.sql, "$%d", len(c.args))
		}
	}
}

// Executions answers with the executions that a filter chooses.
func (a *Asker) Executions(ctx context.Context, f Filter) (*provdb.Rows, error) {
	order, err := choose("order", f.Order, anomalyOrder)
	if err != nil {
		return nil, err
	}
	for _, kind := range f.Kinds {
		if _, err := choose("kind", kind, kinds); err != nil {
			return nil, err
		}
	}
	if !a.Run.State.Open() { // the copy of an open run may be older than the store
		a = a.bulk()
	}
	c := &conditions{args: []any{int32(a.Run.ID), int64(a.Begin), !f.Normal, int64(f.Limit), int64(f.Offset)}}
	if f.Function != "" {
		if err := a.ofFunctions(ctx, c, f.Function); err != nil {
			return nil, err
		}
	}
	f.conditions(c, a.Begin)
	sql := strings.ReplaceAll(text("anomalies"), "/*order*/", order+orderTies)
	// The outer query has the columns of two tables.
	outer := strings.LastIndex(sql, "ORDER BY")
	sql = sql[:outer] + "ORDER BY e." + strings.ReplaceAll(order+orderTies, ", ", ", e.")
	sql = strings.ReplaceAll(sql, " /*where*/", c.sql.String())
	return a.Query(ctx, sql, c.args...)
}

// maxNumbers is how many functions a condition names by number.
const maxNumbers = 200

// ofFunctions chooses functions by a pattern. It looks for their numbers first:
// a database that knows them can tell how many rows to expect.
func (a *Asker) ofFunctions(ctx context.Context, c *conditions, pattern string) error {
	found, err := readAll[numberKey](ctx, a, text("func_numbers"), like(pattern), int64(maxNumbers+1))
	if err != nil {
		return err
	}
	if len(found) > maxNumbers {
		c.add(`(pid, fn) IN (SELECT pid, fn FROM functions WHERE run = $1 AND name LIKE ? ESCAPE '\')`, like(pattern))
		return nil
	}
	if len(found) == 0 {
		c.add("FALSE")
		return nil
	}
	var ways []string
	var values []any
	for len(found) > 0 {
		program := found[0].Program
		var marks []string
		values = append(values, int32(program))
		for len(found) > 0 && found[0].Program == program {
			marks = append(marks, "?")
			values = append(values, found[0].Number)
			found = found[1:]
		}
		ways = append(ways, "pid = ? AND fn IN ("+strings.Join(marks, ", ")+")")
	}
	c.add("("+strings.Join(ways, " OR ")+")", values...)
	return nil
}

func (f *Filter) conditions(c *conditions, begin trace.Micros) {
	if len(f.Kinds) > 0 {
		var values []any
		for _, kind := range f.Kinds {
			values = append(values, kind)
		}
		c.add("kind IN (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	if f.Host != "" {
		c.add(`hostname LIKE ? ESCAPE '\'`, like(f.Host))
	}
	if len(f.Ranks) > 0 {
		var ways []string
		var values []any
		for _, r := range f.Ranks {
			ways = append(ways, "rid BETWEEN ? AND ?")
			values = append(values, r.First, r.Last)
		}
		c.add("("+strings.Join(ways, " OR ")+")", values...)
	}
	if f.Steps != nil {
		c.add("io_step BETWEEN ? AND ?", f.Steps.First, f.Steps.Last)
	}
	if f.Since != nil {
		c.add("entry >= ?", int64(begin+*f.Since))
	}
	if f.Until != nil {
		c.add("entry <= ?", int64(begin+*f.Until))
	}
	if f.Severity > 0 {
		c.add("outlier_severity >= ?", f.Severity)
	}
	if f.Took != nil {
		c.add("runtime_exclusive BETWEEN ? AND ?", f.Took.First, f.Took.Last)
	}
	if f.Lost > 0 {
		c.add("lost_time >= ?", int64(f.Lost))
	}
	if f.Score > 0 {
		c.add("outlier_score >= ?", f.Score)
	}
	if !f.Withdrawn && !f.Normal {
		c.add("status IS DISTINCT FROM 'withdrawn'")
	}
	if f.Program != nil {
		c.add("pid = ?", program(f.Program))
	}
	if f.One != nil {
		c.add("pid = ? AND fn = ?", int32(f.One.Program), f.One.Number)
	}
}
