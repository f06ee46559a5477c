package executions

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Condition selects executions: in a store with SQL, where each ? stands for a value, and in a copy with a test of rows.
type Condition struct {
	sql    string
	values []any
	// test returns a function that reports whether a row is selected and, if not nil, a list that includes all such rows.
	test  func(x *Columns) (keep func(row int32) bool, rows []int32)
	parts []Condition // of AllOf
}

// comparison is the requirement of a condition on a value: one of values, a pattern, or a range.
type comparison struct {
	values   []any
	matches  func(text string) bool
	from, to any
}

func (q *comparison) has(v any) bool {
	switch {
	case q.values != nil:
		return slices.Contains(q.values, v)
	case q.matches != nil:
		return q.matches(v.(string))
	}
	return compareValues(q.from, v) <= 0 && compareValues(v, q.to) <= 0
}

// condition returns a condition with equivalent SQL and comparison.
func (c Column) condition(sql string, values []any, q *comparison) Condition {
	if c.table != "" {
		sql = fmt.Sprintf(c.table, sql)
	}
	return Condition{sql: sql, values: values, test: func(x *Columns) (func(row int32) bool, []int32) {
		switch column := c.of(x).(type) {
		case []int64:
			return within(column, q.from.(int64), q.to.(int64)), nil
		case []int32:
			return within(column, q.from.(int64), q.to.(int64)), nil
		case []float64:
			return within(column, q.from.(float64), q.to.(float64)), nil
		case []bool:
			return func(row int32) bool { return column[row] }, nil
		case func(row int32) int64:
			from, to := q.from.(int64), q.to.(int64)
			return func(row int32) bool { v := column(row); return from <= v && v <= to }, nil
		case func(row int32) string:
			return func(row int32) bool { return q.has(column(row)) }, nil
		default:
			return column.(selector).test(q)
		}
	}}
}

func within[T int32 | int64 | float64, V int64 | float64](column []T, from, to V) func(row int32) bool {
	return func(row int32) bool { v := V(column[row]); return from <= v && v <= to }
}

// Is selects executions for which a column of truth values is true.
func (c Column) Is() Condition { return c.condition(c.sql, nil, nil) }

// Between selects executions by a range of an ordered column: int64, float64 or string.
func (c Column) Between(from, to any) Condition {
	sql, values := "("+c.sql+" BETWEEN ? AND ?)", []any{from, to}
	if from == to {
		sql, values = c.sql+" = ?", []any{from}
	}
	return c.condition(sql, values, &comparison{from: from, to: to})
}

// AtLeast selects executions by the lower bound of a column of numbers.
func (c Column) AtLeast(from any) Condition {
	var to any = int64(math.MaxInt64)
	if _, ok := from.(float64); ok {
		to = math.Inf(1)
	}
	return c.condition(c.sql+" >= ?", []any{from}, &comparison{from: from, to: to})
}

// AtMost selects executions by the upper bound of a column of integers.
func (c Column) AtMost(to int64) Condition {
	return c.condition(c.sql+" <= ?", []any{to}, &comparison{from: int64(math.MinInt64), to: to})
}

// Like selects executions by a pattern with * and ?.
func (c Column) Like(glob string) Condition {
	return c.condition(c.sql+` LIKE ? ESCAPE '\'`, []any{Like(glob)}, &comparison{matches: matcher(glob)})
}

// In selects executions with one of the values of a column with few values. The values must have the type of the column's
// dictionary.
func (c Column) In(list ...any) Condition {
	if len(list) == 0 {
		return never
	}
	var parts []string
	var values []any
	first, second, isPair := strings.Cut(c.sql, ", ")
	for rest := list; len(rest) > 0; {
		n := 1
		if a, _ := bound(rest[0]); isPair { // values with the same first part
			values = append(values, a)
			for n < len(rest) && firstBound(rest[n]) == a {
				n++
			}
		} else {
			n = len(rest)
		}
		for _, v := range rest[:n] {
			_, last := bound(v)
			values = append(values, last)
		}
		comparison := " = ?"
		if n > 1 {
			comparison = " IN (?" + strings.Repeat(", ?", n-1) + ")"
		}
		if isPair {
			parts = append(parts, first+" = ? AND "+second+comparison)
		} else {
			parts = append(parts, first+comparison)
		}
		rest = rest[n:]
	}
	sql := parts[0]
	if len(parts) > 1 {
		sql = "(" + strings.Join(parts, " OR ") + ")"
	}
	return c.condition(sql, values, &comparison{values: list})
}

// bound returns a value as parameters: both of a pair, or the value as the last one.
func bound(v any) (first, last any) {
	switch v := v.(type) {
	case FunctionID:
		return int64(v.Program), int64(v.Number)
	case PathID:
		return int64(v.Program), int64(v.Path)
	case trace.RankKey:
		return int64(v.Program), int64(v.Rank)
	case trace.EventKey:
		return int64(v.Program), v.ID
	}
	return nil, v
}

func firstBound(v any) any {
	first, _ := bound(v)
	return first
}

// never selects no execution.
var never = Condition{sql: "FALSE", test: func(*Columns) (func(row int32) bool, []int32) {
	return func(int32) bool { return false }, []int32{}
}}

// AllOf selects executions that satisfy all conditions.
func AllOf(list ...Condition) Condition {
	all := Condition{sql: "TRUE"}
	for _, c := range list {
		parts := c.parts
		if parts == nil && c.sql != "TRUE" {
			parts = []Condition{c}
		}
		all.parts = append(all.parts, parts...)
	}
	for _, c := range all.parts {
		all.sql += " AND " + c.sql
		all.values = append(all.values, c.values...)
	}
	all.test = func(x *Columns) (func(row int32) bool, []int32) {
		var fewest []int32
		var keeps []func(row int32) bool
		for _, c := range all.parts {
			keep, rows := c.test(x)
			if keeps = append(keeps, keep); rows != nil && (fewest == nil || len(rows) < len(fewest)) {
				fewest = rows
			}
		}
		if len(keeps) == 1 {
			return keeps[0], fewest
		}
		return func(row int32) bool {
			for _, keep := range keeps {
				if !keep(row) {
					return false
				}
			}
			return true
		}, fewest
	}
	return all
}

// AnyOf selects executions that satisfy at least one condition.
func AnyOf(list ...Condition) Condition {
	var parts []string
	var values []any
	for _, c := range list {
		parts, values = append(parts, c.sql), append(values, c.values...)
	}
	return Condition{sql: "(" + strings.Join(parts, " OR ") + ")", values: values, test: func(x *Columns) (func(row int32) bool, []int32) {
		var keeps []func(row int32) bool
		for _, c := range list {
			keep, _ := c.test(x)
			keeps = append(keeps, keep)
		}
		return func(row int32) bool {
			return slices.ContainsFunc(keeps, func(keep func(row int32) bool) bool { return keep(row) })
		}, nil
	}}
}

// Not selects the other executions.
func Not(c Condition) Condition {
	return Condition{sql: "(" + c.sql + ") IS NOT TRUE", values: c.values, test: func(x *Columns) (func(row int32) bool, []int32) {
		keep, _ := c.test(x)
		return func(row int32) bool { return !keep(row) }, nil
	}}
}

// bind returns SQL with numbered parameters, and args with the values appended.
func bind(args []any, sql string, values ...any) (string, []any) {
	var b strings.Builder
	for i, part := range strings.Split(sql, "?") {
		if i > 0 {
			args = append(args, values[i-1])
			fmt.Fprintf(&b, "$%d", len(args))
		}
		b.WriteString(part)
	}
	return b.String(), args
}

// Like turns a pattern with * and ? into one for LIKE.
func Like(glob string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(glob)
}

// matcher reports whether texts match a pattern with * and ?, as LIKE does.
func matcher(glob string) func(string) bool {
	return regexp.MustCompile(`(?s)^` + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob)) + `$`).MatchString
}

var (
	// Flagged selects the anomalies that were not withdrawn.
	Flagged = flagged.Is()
	// Typical selects the executions that are not anomalies.
	Typical = Condition{sql: "NOT anomalous", test: Not(Anomalous.Is()).test}
)

// withID selects the execution of a program, or those of all programs, with an id.
func withID(p *trace.Program, id string) Condition {
	var list []Condition
	if p != nil {
		list = append(list, Program.In(int64(*p)))
	}
	if n, ok := trace.EventNumbers(id); ok {
		list = append(list, Rank.Between(n[0], n[0]), eventStep.Between(n[1], n[1]), eventRow.Between(n[2], n[2]), Not(eventText.Like("?*")))
	} else if id != "" {
		list = append(list, eventText.Between(id, id))
	} else {
		return never
	}
	return AllOf(list...)
}

// OfFunction selects the executions of a function.
func OfFunction(f *Function) Condition { return FunctionNumber.In(FunctionID{f.Program, f.Number}) }

// OfFunctions selects the executions of functions, at most MaxFunctions.
func OfFunctions(ids []FunctionID) Condition { return FunctionNumber.In(anys(ids)...) }

// IDList writes functions as a parameter.
func IDList(ids []FunctionID) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf("%d/%d", id.Program, id.Number))
	}
	return strings.Join(list, ",")
}
