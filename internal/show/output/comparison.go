package output

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Difference returns what changed between two runs: "lost" time by call path, "time" by
// function or "metadata", at most limit rows. With all it includes what stayed the same.
func Difference(d *api.Difference, show string, limit int, all bool) *Answer {
	list := map[string]func(*api.Difference, int, bool) *provdb.Rows{"lost": lostRows, "time": timeRows, "metadata": factRows}
	rows := list[show](d, limit, all)
	return &Answer{JSON: d, Rows: rows, Text: func(w io.Writer) error {
		fmt.Fprintf(w, "%s\n\nLost to anomalies: %s in A, %s in B. Anomalies: %s in A, %s in B.\n\n", d.Verdict.Sentence,
			lostText(d, 0), lostText(d, 1), text.Int(d.Anomalies[0]), text.Int(d.Anomalies[1]))
		peerChanges(w, d)
		return writeTable(w, rows)
	}}
}

// peerChanges writes the changes of efficiency and of slow peers.
func peerChanges(w io.Writer, d *api.Difference) {
	written := false
	for i := range d.Efficiency {
		if words := comparison.EfficiencyText(&d.Efficiency[i], len(d.Efficiency) > 1); words != "" {
			fmt.Fprintf(w, "%s\n", words)
			written = true
		}
	}
	for i := range d.Slow {
		fmt.Fprintf(w, "slow peer, %s: %s\n", d.Slow[i].Kind, comparison.SlowText(&d.Slow[i]))
	}
	if written {
		fmt.Fprintln(w)
	}
}

// lostText describes how much of its time a run lost.
func lostText(d *api.Difference, i int) string {
	return fmt.Sprintf("%s of %s (%.3g %%)", text.Duration(float64(d.Lost[i])), text.Duration(d.Exclusive[i]), d.LostPercent[i])
}

const timesColumns = " calls_a:int calls_b:int mean_a_us:float mean_b_us:float distance:float moved_us:float program:int function "

func timesValues(t *api.CallTimes, program int64, function string) []any {
	return []any{t.Calls[0], t.Calls[1], t.Mean[0], t.Mean[1], t.Distance, t.Moved, program, function}
}

var (
	lostColumns = columns("change lost_a_us:int lost_b_us:int anomalies_a:int anomalies_b:int" + timesColumns + "call_path")
	timeColumns = columns("change time_a_us:float time_b_us:float" + timesColumns)
	factColumns = columns("change section program:int name a b")
)

func lostRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	list := firstOf(d.Changes, limit, func(c *api.PathChange) bool { return all || c.Kind != comparison.Same })
	return rowsOf(lostColumns, list, func(c *api.PathChange) []any {
		return slices.Concat([]any{c.Kind, c.Lost[0], c.Lost[1], c.Anomalies[0], c.Anomalies[1]},
			timesValues(&c.CallTimes, c.Program, c.Function), []any{c.CallPath})
	})
}

func timeRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	list := firstOf(d.Functions, limit, func(c *api.FunctionChange) bool { return all || c.Kind != comparison.Same })
	return rowsOf(timeColumns, list, func(c *api.FunctionChange) []any {
		return append([]any{c.Kind, c.Exclusive[0], c.Exclusive[1]}, timesValues(&c.CallTimes, c.Program, c.Function)...)
	})
}

func factRows(d *api.Difference, limit int, all bool) *provdb.Rows {
	list := firstOf(d.Metadata, limit, func(f *api.FactChange) bool { return all || f.Kind != comparison.Same && !f.Expected })
	return rowsOf(factColumns, list, func(f *api.FactChange) []any {
		return []any{f.Kind, f.Section, f.Program, f.Name, f.Values[0], f.Values[1]}
	})
}

var (
	trendColumns  = columns("started run lost_us:int of_all_percent:float anomalies:int time_us:float calls:int")
	seriesColumns = columns("change since before_us:float now_us:float runs program:int function")
)

// Trend returns the functions of many runs, by lost time or by the time of all calls. With
// all it includes what stayed the same. As a table it lists the runs, too.
func Trend(t *api.Trend, byLost, all bool) *Answer {
	list := t.Time
	if byLost {
		list = t.Lost
	}
	rows := rowsOf(seriesColumns, firstOf(list, len(list), func(s *api.TrendSeries) bool { return all || s.Since != nil }),
		func(s *api.TrendSeries) []any { return seriesValues(t, s) })
	places := make([]int, len(t.Runs))
	for i := range places {
		places[i] = i
	}
	runs := rowsOf(trendColumns, places, func(i *int) []any {
		r := &t.Runs[*i]
		return []any{r.Started.UTC().Format(time.DateTime), comparison.RunName(t, *i), r.Lost, r.LostPercent, r.Anomalies, r.Exclusive, r.Calls}
	})
	return &Answer{JSON: t, Rows: rows, Text: func(w io.Writer) error {
		fmt.Fprintf(w, "%s\n\n", t.Verdict.Sentence)
		for _, n := range t.Notices {
			fmt.Fprintf(w, "%s.\n\n", n.Sentence)
		}
		if err := writeTable(w, runs); err != nil {
			return err
		}
		fmt.Fprintln(w)
		return writeTable(w, rows)
	}}
}

func seriesValues(t *api.Trend, s *api.TrendSeries) []any {
	bars := make([]int64, len(s.Values))
	for i, v := range s.Values {
		if v != nil {
			bars[i] = int64(*v)
		}
	}
	now := s.Values[len(s.Values)-1]
	kind, since, before := comparison.Same, any(nil), now
	if s.Since != nil {
		kind, since, before = s.Since.Change, comparison.RunName(t, s.Since.Run), s.Values[s.Since.Before]
	}
	program, name := any(s.Program), s.Function
	if s.Program < 0 {
		program, name = nil, "all functions"
	}
	return []any{kind, since, before, now, sparkline(bars), program, name}
}
