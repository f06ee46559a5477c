package query

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// condition selects executions: in a store as SQL, where each ? stands for a value, and in a
// copy as a function of the row.
type condition struct {
	sql    string
	values []any
	keep   func(row int32) bool
	// rows, if not nil, includes all rows that the condition selects.
	rows  []int32
	parts []condition // of allOf
}

// allOf selects executions that satisfy all conditions.
func allOf(list ...condition) condition {
	all := condition{sql: "TRUE"}
	var keeps []func(row int32) bool
	for _, c := range list {
		parts := c.parts
		if parts == nil && c.sql != "TRUE" {
			parts = []condition{c}
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

// anyOf selects executions that satisfy at least one condition.
func anyOf(list ...condition) condition {
	var parts []string
	var values []any
	for _, c := range list {
		parts, values = append(parts, c.sql), append(values, c.values...)
	}
	return condition{sql: "(" + strings.Join(parts, " OR ") + ")", values: values, keep: func(row int32) bool {
		return slices.ContainsFunc(list, func(c condition) bool { return c.keep(row) })
	}}
}

// not selects the other executions.
func not(c condition) condition {
	return condition{sql: "(" + c.sql + ") IS NOT TRUE", values: c.values, keep: func(row int32) bool { return !c.keep(row) }}
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
func within[T int32 | int64](name string, column []T, from, to int64) condition {
	return condition{sql: "(" + name + " BETWEEN ? AND ?)", values: []any{from, to}, keep: func(row int32) bool {
		v := int64(column[row])
		return from <= v && v <= to
	}}
}

// atLeast selects by the lower bound of a column.
func atLeast[T int64 | float64](name string, column []T, least T) condition {
	return condition{sql: name + " >= ?", values: []any{least}, keep: func(row int32) bool { return column[row] >= least }}
}

// oneOf selects executions whose value in a column satisfies has. numbers are the positions of
// the values of a copy in all.
func oneOf[N uint8 | int32, V any](numbers []N, all []V, has func(V) bool, sql string, values ...any) condition {
	set := make([]bool, len(all))
	for i, v := range all {
		set[i] = has(v)
	}
	return condition{sql: sql, values: values, keep: func(row int32) bool { return set[numbers[row]] }}
}

// like turns a pattern with * and ? into one for LIKE.
func like(glob string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(glob)
}

// matcher reports whether texts match a pattern with * and ?, as LIKE does.
func matcher(glob string) func(string) bool {
	return regexp.MustCompile(`(?s)^` + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob)) + `$`).MatchString
}

// inProgram selects the executions of a program.
func (x *columns) inProgram(p trace.Program) condition {
	return oneOf(x.place, x.places, func(k trace.RankKey) bool { return k.Program == p }, "pid = ?", int32(p))
}

// ofFunction selects the executions of a function.
func (x *columns) ofFunction(p trace.Program, fn int32) condition {
	c := oneOf(x.function, x.functions, func(f functionID) bool { return f == functionID{p, fn} }, "pid = ? AND fn = ?", int32(p), fn)
	c.rows = x.byFunction.of(slices.Index(x.functions, functionID{p, fn}))
	return c
}

// withID selects the execution of a program with an id.
func (x *columns) withID(p trace.Program, id string) condition {
	if n, ok := eventNumbers(id); ok {
		place := slices.Index(x.places, trace.RankKey{Program: p, Rank: trace.Rank(n[0])})
		return condition{
			sql: "pid = ? AND rid = ? AND ev_step = ? AND ev_row = ?", values: []any{int32(p), n[0], n[1], n[2]},
			keep: func(row int32) bool {
				return int(x.place[row]) == place && x.row[row] == n[2] && int64(x.step[row]) == n[1] && x.texts[row] == ""
			},
			rows: x.byPlace.of(place),
		}
	}
	return condition{sql: "pid = ? AND event_id = ?", values: []any{int32(p), id}, keep: func(row int32) bool {
		return x.texts[row] == id && x.places[x.place[row]].Program == p
	}}
}

// flagged selects the anomalies that were not withdrawn.
func (x *columns) flagged() condition {
	return condition{sql: "anomalous AND status IS DISTINCT FROM 'withdrawn'", keep: func(row int32) bool { return x.isFlagged[row] }}
}

// anomalies selects all anomalies.
func (x *columns) anomalies() condition {
	return condition{sql: "anomalous", keep: func(row int32) bool { return x.anomalous[row] }}
}

// typical selects the executions that are not anomalies.
func (x *columns) typical() condition {
	return condition{sql: "NOT anomalous", keep: func(row int32) bool { return !x.anomalous[row] }}
}

// waitedFor selects the victims of a culprit, as stored when the run ended.
func (x *columns) waitedFor(p trace.Program, id string) condition {
	culprit := slices.Index(x.culprits, trace.EventKey{Program: p, ID: id})
	return condition{
		sql: "(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links " +
			"WHERE run = $1 AND culprit_pid = ? AND culprit_event_id = ? AND \"role\" = 'victim')",
		values: []any{int32(p), id},
		keep:   func(row int32) bool { return int(x.culprit[row]) == culprit },
		rows:   x.byCulprit.of(culprit),
	}
}

// ofIssue selects the anomalies of an issue, as stored when the run ended.
func (x *columns) ofIssue(number int) condition {
	return condition{
		sql:    "(pid, rid, event_id) IN (SELECT pid, rid, event_id FROM links WHERE run = $1 AND issue = ?)",
		values: []any{int32(number)},
		keep:   func(row int32) bool { return int(x.issue[row]) == number },
	}
}

// named selects the executions of functions of a name.
func (x *columns) named(name string) condition {
	c := condition{
		sql:    "(pid, fn) IN (SELECT pid, fn FROM functions WHERE run = $1 AND name = ?)",
		values: []any{name},
		keep:   func(row int32) bool { return x.names[x.function[row]] == name },
	}
	if i := slices.Index(x.names, name); i < 0 || !slices.Contains(x.names[i+1:], name) {
		c.rows = x.byFunction.of(i)
	}
	return c
}
