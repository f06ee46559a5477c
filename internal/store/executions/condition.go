package executions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Condition selects executions: in a store as SQL, where each ? stands for a value, and in a
// copy as a function of the row.
type Condition struct {
	sql    string
	values []any
	keep   func(row int32) bool
	// rows, if not nil, includes all rows that the condition selects.
	rows  []int32
	parts []Condition // of allOf
}

// AllOf selects executions that satisfy all conditions.
func AllOf(list ...Condition) Condition {
	all := Condition{sql: "TRUE"}
	var keeps []func(row int32) bool
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
		keeps = append(keeps, c.keep)
		if c.rows != nil && (all.rows == nil || len(c.rows) < len(all.rows)) {
			all.rows = c.rows
		}
	}
	if all.keep = func(row int32) bool {
		for _, keep := range keeps {
			if !keep(row) {
				return false
			}
		}
		return true
	}; len(keeps) == 1 {
		all.keep = keeps[0]
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
	return Condition{sql: "(" + strings.Join(parts, " OR ") + ")", values: values, keep: func(row int32) bool {
		return slices.ContainsFunc(list, func(c Condition) bool { return c.keep(row) })
	}}
}

// Not selects the other executions.
func Not(c Condition) Condition {
	return Condition{sql: "(" + c.sql + ") IS NOT TRUE", values: c.values, keep: func(row int32) bool { return !c.keep(row) }}
}

// bind returns SQL with numbered parameters and appends the values to args.
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

// within selects by a range of a column.
func within[T int32 | int64](name string, column []T, from, to int64) Condition {
	return Condition{sql: "(" + name + " BETWEEN ? AND ?)", values: []any{from, to}, keep: func(row int32) bool {
		v := int64(column[row])
		return from <= v && v <= to
	}}
}

// atLeast selects by the lower bound of a column.
func atLeast[T int64 | float64](name string, column []T, least T) Condition {
	return Condition{sql: name + " >= ?", values: []any{least}, keep: func(row int32) bool { return column[row] >= least }}
}

// oneOf selects executions whose value in a column satisfies has. numbers are the positions of
// the values of a copy in all.
func oneOf[N uint8 | int32, V any](numbers []N, all []V, has func(V) bool, sql string, values ...any) Condition {
	set := make([]bool, len(all))
	for i, v := range all {
		set[i] = has(v)
	}
	return Condition{sql: sql, values: values, keep: func(row int32) bool { return set[numbers[row]] }}
}

// Like turns a pattern with * and ? into one for LIKE.
func Like(glob string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(glob)
}

// matcher reports whether texts match a pattern with * and ?, as LIKE does.
func matcher(glob string) func(string) bool {
	return regexp.MustCompile(`(?s)^` + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob)) + `$`).MatchString
}

// InProgram selects the executions of a program.
func (x *Columns) InProgram(p trace.Program) Condition {
	return oneOf(x.place, x.places, func(k trace.RankKey) bool { return k.Program == p }, "pid = ?", int32(p))
}

// OfFunction selects the executions of a function.
func (x *Columns) OfFunction(p trace.Program, fn int32) Condition {
	c := oneOf(x.function, x.functions, func(f FunctionID) bool { return f == FunctionID{p, fn} }, "pid = ? AND fn = ?", int32(p), fn)
	c.rows = x.byFunction.of(slices.Index(x.functions, FunctionID{p, fn}))
	return c
}

// withID selects the execution of a program with an id.
func (x *Columns) withID(p trace.Program, id string) Condition {
	if n, ok := EventNumbers(id); ok {
		place := slices.Index(x.places, trace.RankKey{Program: p, Rank: trace.Rank(n[0])})
		return Condition{
			sql: "pid = ? AND rid = ? AND ev_step = ? AND ev_row = ?", values: []any{int32(p), n[0], n[1], n[2]},
			keep: func(row int32) bool {
				return int(x.place[row]) == place && x.row[row] == n[2] && int64(x.step[row]) == n[1] && x.texts[row] == ""
			},
			rows: x.byPlace.of(place),
		}
	}
	return Condition{sql: "pid = ? AND event_id = ?", values: []any{int32(p), id}, keep: func(row int32) bool {
		return x.texts[row] == id && x.places[x.place[row]].Program == p
	}}
}

// Flagged selects the anomalies that were not withdrawn.
func (x *Columns) Flagged() Condition {
	return Condition{sql: "anomalous AND status IS DISTINCT FROM 'withdrawn'", keep: func(row int32) bool { return x.isFlagged[row] }}
}

// Anomalies selects all anomalies.
func (x *Columns) Anomalies() Condition {
	return Condition{sql: "anomalous", keep: func(row int32) bool { return x.anomalous[row] }}
}

// Typical selects the executions that are not anomalies.
func (x *Columns) Typical() Condition {
	return Condition{sql: "NOT anomalous", keep: func(row int32) bool { return !x.anomalous[row] }}
}

// waitedFor selects the victims of a culprit, as stored when the run ended.
func (x *Columns) waitedFor(p trace.Program, id string) Condition {
	culprit := slices.Index(x.culprits, trace.EventKey{Program: p, ID: id})
	return Condition{
		sql: "(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links " +
			"WHERE run = $1 AND culprit_pid = ? AND culprit_event_id = ? AND \"role\" = 'victim')",
		values: []any{int32(p), id},
		keep:   func(row int32) bool { return int(x.culprit[row]) == culprit },
		rows:   x.byCulprit.of(culprit),
	}
}

// OfIssue selects the anomalies of an issue, as stored when the run ended.
func (x *Columns) OfIssue(number int) Condition {
	return Condition{
		sql:    "(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links WHERE run = $1 AND issue = ?)",
		values: []any{int32(number)},
		keep:   func(row int32) bool { return int(x.issue[row]) == number },
	}
}

// Named selects the executions of functions of a name.
func (x *Columns) Named(name string) Condition {
	c := Condition{
		sql:    "(pid, fn) IN (SELECT pid, fn FROM functions WHERE run = $1 AND name = ?)",
		values: []any{name},
		keep:   func(row int32) bool { return x.names[x.function[row]] == name },
	}
	if i := slices.Index(x.names, name); i < 0 || !slices.Contains(x.names[i+1:], name) {
		c.rows = x.byFunction.of(i)
	}
	return c
}

// OfFunctions selects the executions of functions, at most MaxFunctions.
func (x *Columns) OfFunctions(ids []FunctionID) Condition {
	c := oneOf(x.function, x.functions, func(f FunctionID) bool { return slices.Contains(ids, f) },
		"(pid, fn) IN (SELECT split_part(x, '/', 1)::INTEGER, split_part(x, '/', 2)::INTEGER "+
			"FROM (SELECT unnest(string_to_array(?::VARCHAR, ',')) AS x) t WHERE x <> '')", IDList(ids))
	if len(ids) == 1 {
		c.rows = x.byFunction.of(slices.Index(x.functions, ids[0]))
	}
	return c
}

// IDList writes functions as a parameter.
func IDList(ids []FunctionID) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf("%d/%d", id.Program, id.Number))
	}
	return strings.Join(list, ",")
}

// InSample selects executions by the upper bound of their Lot.
func (x *Columns) InSample(below int64) Condition {
	return Condition{sql: Lot + " < ?", values: []any{below}, keep: func(row int32) bool { return x.lot(row) < below }}
}
