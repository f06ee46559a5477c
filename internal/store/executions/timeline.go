package executions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Timeline describes a query for the time lost over time by the anomalies that a filter selects and that were not withdrawn.
type Timeline struct {
	From, To trace.Ticks // relative to the start of the run; To is after From
	Columns  int         // number of columns of equal width, at least one
	// Lines maps ranks to lines; other ranks are omitted. If nil, there is one line for
	// each kind of anomaly.
	Lines map[trace.RankKey]int
	// Filter selects anomalies. Since, Until, Normal, Withdrawn, order and limits are ignored.
	Filter Filter
}

// Line is the time lost in the columns of a timeline. The lost time of an anomaly that crosses
// columns is spread evenly from its entry to its exit; the anomaly counts in the column of its
// entry. The sum over all lines is the lost time.
type Line struct {
	Kind      string // of anomalies, if lines are kinds; may be empty
	Number    int    // of the line, if lines are ranks
	Lost      []int64
	Anomalies []int64

	each []int64 // added to this column and all that follow
}

// ColumnWidth returns the width of a column: a whole number of ticks, with which the
// columns cover the whole time.
func (q *Timeline) ColumnWidth() trace.Ticks {
	n := trace.Ticks(q.Columns)
	return max(1, (q.To-q.From+n-1)/n)
}

// Timeline returns the lines with anomalies, in the order of their number or kind.
func (a *Reader) Timeline(ctx context.Context, q Timeline) ([]Line, error) {
	f := q.Filter
	f.Since, f.Until, f.Normal, f.Withdrawn = nil, nil, false, true // the condition excludes withdrawn anomalies
	filtered, err := f.Condition(ctx, a)
	if err != nil {
		return nil, err
	}
	t := &timeline{from: int64(a.Begin + q.From), width: int64(q.ColumnWidth()), columns: q.Columns, lines: make(map[lineKey]*Line)}
	where := AllOf(Flagged, filtered)
	err = a.source().timeline(ctx, t, where, q.Lines)
	return t.finish(), err
}

// timeline adds up the lines of a Timeline.
type timeline struct {
	from, width int64
	columns     int
	lines       map[lineKey]*Line
}

type lineKey struct {
	kind   string
	number int
}

// line returns a line, which finish completes.
func (t *timeline) line(key lineKey) *Line {
	l := t.lines[key]
	if l == nil {
		l = &Line{Kind: key.kind, Number: key.number, Lost: make([]int64, t.columns), Anomalies: make([]int64, t.columns)}
		l.each = make([]int64, t.columns)
		t.lines[key] = l
	}
	return l
}

// add adds n anomalies from entry to exit to a line, which lost the same each if they cross columns.
// Then their lost time is spread evenly: each goes to every column that they fill, tail to the
// last one, and the rest to the first one, so that the sum is exact.
func (t *timeline) add(l *Line, entry, exit, n, lost int64) {
	first := floorDiv(entry-t.from, t.width)
	last, each, tail := first, int64(0), int64(0)
	if exit-t.from > (first+1)*t.width {
		last = floorDiv(exit-1-t.from, t.width)
		one, long := float64(lost/n), float64(exit-entry)
		each = n * int64(one*float64(t.width)/long)
		tail = n * int64(one*float64(exit-t.from-last*t.width)/long)
	}
	if first >= 0 {
		l.Lost[first] += lost - tail - each*max(last-first-1, 0)
		l.Anomalies[first] += n
	}
	if last == first {
		return
	}
	columns := int64(t.columns)
	if last < columns {
		l.Lost[last] += tail
	}
	if next := max(first+1, 0); next < last && next < columns {
		l.each[next] += each
		if last < columns {
			l.each[last] -= each
		}
	}
}

// finish returns the lines in order.
func (t *timeline) finish() (lines []Line) {
	for _, l := range t.lines {
		each := int64(0)
		for i := range l.Lost {
			each += l.each[i]
			l.Lost[i] += each
		}
		l.each = nil
		lines = append(lines, *l)
	}
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Kind, b.Kind)) })
	return lines
}

func (x *Columns) timeline(_ context.Context, t *timeline, where Condition, numbers map[trace.RankKey]int) error {
	byPlace, byKind := make([]*Line, len(x.places)), make([]*Line, len(x.kinds))
	end := t.from + t.width*int64(t.columns)
	keep, rows := where.test(x)
	n := len(x.entry)
	if rows != nil {
		n = len(rows)
	}
	for i := range n {
		row := int32(i)
		if rows != nil {
			row = rows[i]
		}
		entry, exit := x.entry[row], max(x.exit[row], x.entry[row]+1)
		if entry >= end {
			break // rows are in the order of their entries
		}
		if exit <= t.from || !keep(row) {
			continue
		}
		var l **Line
		if numbers == nil {
			if l = &byKind[x.kind[row]]; *l == nil {
				*l = t.line(lineKey{kind: x.kinds[x.kind[row]]})
			}
		} else if l = &byPlace[x.place[row]]; *l == nil {
			number, ok := numbers[x.places[x.place[row]]]
			if !ok {
				continue
			}
			*l = t.line(lineKey{number: number})
		}
		t.add(*l, entry, exit, 1, x.lost[row])
	}
	return nil
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

func (a stored) timeline(ctx context.Context, t *timeline, where Condition, numbers map[trace.RankKey]int) error {
	args := []any{int32(a.Run.ID), t.from, t.from + t.width*int64(t.columns), t.width}
	line, values := text("timeline_kinds"), where.values
	if numbers != nil {
		line, values = text("timeline_lines"), append(slices.Clone(values), lineText(numbers))
	}
	sql := strings.NewReplacer("/*lines*/", line, "/*where*/", where.sql).Replace(text("timeline"))
	sql, args = bind(args, sql, values...)
	type row struct {
		Kind   string `sql:"kind"`
		Number int    `sql:"line"`
		Entry  int64  `sql:"entry"`
		Exit   int64  `sql:"exit"`
		N      int64  `sql:"anomalies"`
		Lost   int64  `sql:"lost_us"`
	}
	return ReadEach(ctx, a, sql, func(r *row) {
		t.add(t.line(lineKey{r.Kind, r.Number}), r.Entry, r.Exit, r.N, r.Lost)
	}, args[1:]...)
}

// lineText writes the lines of ranks as a parameter.
func lineText(lines map[trace.RankKey]int) string {
	var b strings.Builder
	for p, line := range lines {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:%d:%d", p.Program, p.Rank, line)
	}
	if b.Len() == 0 {
		return "-1:-1:0" // no rank
	}
	return b.String()
}
