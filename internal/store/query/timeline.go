package query

import (
	"context"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Timeline asks how much was lost over time by the anomalies that a filter chooses
// and that were not withdrawn.
type Timeline struct {
	From, To trace.Micros // since the run's begin; To is after From
	Columns  int          // of equal width, at least one
	// Lines tells in which line a rank is drawn; what is of other ranks is left out.
	// nil: one line for each kind of anomaly.
	Lines map[trace.RankKey]int
	// Filter chooses anomalies. Since, Until, Normal, Withdrawn, order and limits are
	// not looked at.
	Filter Filter
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
	var last *timelineRow
	err = provdb.Scan(rows, func(row *timelineRow) {
		if last == nil || row.Line != last.Line {
			key := *row
			last = &key
			l := Line{Lost: make([]int64, q.Columns), Anomalies: make([]int64, q.Columns)}
			l.Kind, _ = row.Line.(string)
			n, _ := row.Line.(int64)
			l.Number = int(n)
			lines = append(lines, l)
		}
		lines[len(lines)-1].add(row)
	})
	return lines, err
}

// timelineRow is a column of a line.
type timelineRow struct {
	Line      any   `sql:"k"` // its kind or number
	Column    int   `sql:"column"`
	Lost      int64 `sql:"lost_us"`
	Rate      int64 `sql:"rate_us"` // for this column and all that follow
	Anomalies int64 `sql:"anomalies"`
}

// add adds a column; those of a line come in order.
func (l *Line) add(row *timelineRow) {
	if row.Column < 0 || row.Column >= len(l.Lost) {
		return
	}
	l.Lost[row.Column] += row.Lost
	l.Anomalies[row.Column] += row.Anomalies
	if row.Rate != 0 {
		for i := row.Column; i < len(l.Lost); i++ {
			l.Lost[i] += row.Rate
		}
	}
}

// lineText writes which rank is in which line, for a parameter.
func lineText(lines map[trace.RankKey]int) string {
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
