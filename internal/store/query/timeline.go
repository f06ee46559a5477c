package query

import (
	"context"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Timeline asks how much was lost over time by the anomalies that a filter chooses
// and that were not withdrawn.
type Timeline struct {
	From, To trace.Micros // since the run's begin; To is after From
	Columns  int          // of equal width, at least one
	// Lines tells in which line a rank is drawn; what is of other ranks is left out.
	// nil: one line for each kind of anomaly.
	Lines map[Process]int
	// Filter chooses anomalies. Since, Until, Normal, Withdrawn, order and limits are
	// not looked at.
	Filter Filter
}

// Process is a rank of a program.
type Process struct {
	Program trace.Program
	Rank    trace.Rank
}

// Line is what was lost in the columns of a timeline. An anomaly that is longer than
// a column is spread evenly over the time from its entry to its exit, and counted
// where it was entered. So of all lines together no more is told than was lost.
type Line struct {
	Kind      string // where lines are kinds; empty for anomalies that have none
	Number    int    // where lines are of ranks
	Lost      []int64
	Anomalies []int64
}

// ColumnWidth is the width of a column: a whole number of microseconds, with which the
// columns cover the whole time.
func (q *Timeline) ColumnWidth() trace.Micros {
	n := trace.Micros(q.Columns)
	return max(1, (q.To-q.From+n-1)/n)
}

// Timeline answers with the lines in which there is something, in the order of their
// number or kind.
func (a *Asker) Timeline(ctx context.Context, q Timeline) ([]Line, error) {
	a = a.bulk()
	from := int64(a.Begin + q.From)
	width := int64(q.ColumnWidth())
	c := &conditions{args: []any{int32(a.Run.ID), from, from + width*int64(q.Columns), width, int64(q.Columns)}}
	f := q.Filter
	f.Since, f.Until, f.Normal, f.Withdrawn = nil, nil, false, true // withdrawn ones never count here
	if f.Function != "" {
		if err := a.ofFunctions(ctx, c, f.Function); err != nil {
			return nil, err
		}
	}
	f.conditions(c, a.Begin)
	named := text("timeline_kinds")
	if q.Lines != nil {
		c.args = append(c.args, lineText(q.Lines))
		named = strings.ReplaceAll(text("timeline_lines"), "/*lines*/", fmt.Sprintf("$%d", len(c.args)))
	}
	sql := strings.ReplaceAll(strings.ReplaceAll(text("timeline"), "/*named*/", named), " /*where*/", c.sql.String())
	rows, err := a.Query(ctx, sql, c.args...)
	if err != nil {
		return nil, err
	}
	var lines []Line
	var key any
	for row, err := range rows.All {
		if err != nil {
			return nil, err
		}
		if len(lines) == 0 || row[0] != key {
			key = row[0]
			lines = append(lines, Line{Kind: word[string](key), Number: whole[int](key), Lost: make([]int64, q.Columns), Anomalies: make([]int64, q.Columns)})
		}
		lines[len(lines)-1].add(row, q.Columns)
	}
	return lines, nil
}

// add adds a row, which is that of a column; those of a line come in order. What is to
// be added to all that follow is added to them at once.
func (l *Line) add(row []any, columns int) {
	at := whole[int](row[1])
	if at < 0 || at >= columns {
		return
	}
	l.Lost[at] += whole[int64](row[2])
	l.Anomalies[at] += whole[int64](row[4])
	if rate := whole[int64](row[3]); rate != 0 {
		for i := at; i < columns; i++ {
			l.Lost[i] += rate
		}
	}
}

// lineText writes which rank is in which line, for a parameter.
func lineText(lines map[Process]int) string {
	var b strings.Builder
	for p, line := range lines {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d:%d:%d", p.Program, p.Rank, line)
	}
	if b.Len() == 0 {
		return "-1:-1:0" // nobody
	}
	return b.String()
}
