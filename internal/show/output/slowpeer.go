package output

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// slowSheet writes the evidence of a slow peer as text or Markdown.
type slowSheet struct {
	*api.SlowEvidence
	write func(w io.Writer, rows *provdb.Rows) error
	head  string // format of a heading
}

func textSheet(e *api.SlowEvidence) *slowSheet { return &slowSheet{e, writeTrimmed, "\n%s\n\n"} }

func markdownSheet(e *api.SlowEvidence) *slowSheet {
	return &slowSheet{e, writeMarkdown, "\n### %s\n\n"}
}

// writeTrimmed writes a table without spaces at the ends of lines.
func writeTrimmed(w io.Writer, rows *provdb.Rows) error {
	var b strings.Builder
	if err := writeTable(&b, rows); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	return nil
}

func (s *slowSheet) writeAll(w io.Writer) error {
	for _, part := range []struct {
		title string
		rows  *provdb.Rows
	}{
		{s.Measure, s.ratios()},
		{s.functionsTitle(), s.functions()},
		{"While it was slow, compared with a typical peer", s.sides()},
		{"Counters that differ from those of its peers", s.counters()},
	} {
		if part.rows == nil {
			continue
		}
		fmt.Fprintf(w, s.head, part.title)
		if err := s.write(w, part.rows); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of the ratios over time.
const (
	mostRatioRows = 16
	ratioCells    = 20 // of a bar with the ratio 1
	mostCells     = 60
)

// ratios returns the ratio over time, in few rows.
func (s *slowSheet) ratios() *provdb.Rows {
	if len(s.Windows) == 0 {
		return nil
	}
	var rows []api.RatioWindow
	size := (len(s.Windows) + mostRatioRows - 1) / mostRatioRows
	for from := 0; from < len(s.Windows); from += size {
		rows = append(rows, mergeWindows(s.Windows[from:min(from+size, len(s.Windows))]))
	}
	length := s.Windows[len(s.Windows)-1].To
	return rowsOf(columns("from to ratio slow bar"), rows, func(r *api.RatioWindow) []any {
		slow := ""
		if r.Slow {
			slow = "slow"
		}
		return []any{text.Clock(r.From, length), text.Clock(r.To, length), ratioText(r.Ratio), slow, bar(r.Ratio)}
	})
}

// mergeWindows returns neighboring windows as one. It has the mean ratio, and is slow if most of them are.
func mergeWindows(windows []api.RatioWindow) api.RatioWindow {
	sum, n, slow := 0.0, 0, 0
	for i := range windows {
		if r := windows[i].Ratio; r != nil {
			sum, n = sum+*r, n+1
		}
		if windows[i].Slow {
			slow++
		}
	}
	all := api.RatioWindow{From: windows[0].From, To: windows[len(windows)-1].To, Slow: 2*slow >= len(windows)}
	if n > 0 {
		all.Ratio = new(sum / float64(n))
	}
	return all
}

func bar(ratio *float64) string {
	if ratio == nil {
		return ""
	}
	return strings.Repeat("█", int(math.Round(min(mostCells, ratioCells*max(0, *ratio)))))
}

func ratioText(ratio *float64) string {
	return orMissing(ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) })
}

// extra reports whether the place does extra work.
func (s *slowSheet) extra() bool {
	return len(s.Slow.Functions) > 0 && s.Slow.Functions[0].PeerCalls != nil
}

func (s *slowSheet) functionsTitle() string {
	peers := text.Count(s.Slow.Peers, "peer")
	if s.extra() {
		return fmt.Sprintf("Functions that it calls more often than its %s", peers)
	}
	return fmt.Sprintf("Functions that take longer than on its %s", peers)
}

// functions returns the functions that contribute.
func (s *slowSheet) functions() *provdb.Rows {
	if len(s.Slow.Functions) == 0 {
		return nil
	}
	if s.extra() {
		return rowsOf(columns("function calls:int calls_of_a_peer time_us:int lost_us:int of_lost"), s.Slow.Functions,
			func(f *api.SlowFunction) []any {
				calls := orMissing(f.PeerCalls, func(v float64) string { return text.Int(int64(math.Round(v))) })
				lost := text.Percent(100 * float64(f.Lost) / float64(max(1, s.LostOwn)))
				return []any{text.ShortName(f.Function), f.Calls, calls, int64(float64(f.Calls) * f.Mean), f.Lost, lost}
			})
	}
	return rowsOf(columns("function calls:int time_us:int at_peers_us:int ratio lost_us:int of_lost"), s.Slow.Functions,
		func(f *api.SlowFunction) []any {
			time, expected := float64(f.Calls)*f.Mean, float64(f.Calls)*f.Peers
			var ratio *float64
			if expected > 0 {
				ratio = new(time / expected)
			}
			return []any{
				text.ShortName(f.Function), f.Calls, int64(time), int64(expected), ratioText(ratio), f.Lost,
				text.Percent(100 * float64(f.Lost) / float64(max(1, s.LostOwn))),
			}
		})
}

// sides returns the place and its twin side by side.
func (s *slowSheet) sides() *provdb.Rows {
	if s.Twin == nil {
		return nil
	}
	return rowsOf(columns("place host useful_us:int wait_us:int of_time_waiting"), []api.Side{s.Here, *s.Twin}, func(a *api.Side) []any {
		all := max(1, a.Useful+a.Wait)
		return []any{
			a.Place, provdb.OrNull(a.Host), a.Useful, a.Wait, text.Percent(100 * float64(a.Wait) / float64(all)),
		}
	})
}

// counters returns the counters that differ.
func (s *slowSheet) counters() *provdb.Rows {
	if len(s.Slow.Counters) == 0 {
		return nil
	}
	value := func(c *api.SlowCounter, v float64) string {
		if c.Rate {
			return text.ThreeDigits(v) + "/s"
		}
		return text.ThreeDigits(v)
	}
	return rowsOf(columns("counter here peers rest_of_run spreads"), s.Slow.Counters, func(c *api.SlowCounter) []any {
		past := orMissing(c.Past, func(v float64) string { return value(c, v) })
		return []any{c.Counter, value(c, c.Value), value(c, c.Peers), past, text.ThreeDigits(c.Spreads)}
	})
}
