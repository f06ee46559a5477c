package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// RankList is the ranks of a run, compared with their peers.
type RankList struct {
	Unit       trace.Unit              // of times
	By         string                  `json:"by"` // rank, host, thread, device or role
	Efficiency []provenance.Efficiency `json:"efficiency"`
	ranks.List
	Functions *api.RankFunctions `json:"functions,omitempty"` // of selected ranks
	Corrected int64              // ranks whose clocks were corrected
}

// CorrectedClocks returns the number of ranks whose clocks the analysis corrected, by its notes.
func CorrectedClocks(notes []tally.Note) int64 {
	for _, n := range notes {
		if n.Name == tally.ClockCorrected.Name() {
			return n.Count
		}
	}
	return 0
}

var peerColumns = columns(`program:int ranks tid:int host role:int peers:int units:int units_with_data:int slow_units:int useful_us:int
	wait_us:int lost_us:int ratio:float pattern from_s:float to_s:float saved_us:int saved_share:float`)

// Answer returns the ranks as an answer.
func (l *RankList) Answer() *Answer {
	return &Answer{
		JSON: l.json(), Text: l.writeText,
		Markdown: func(w io.Writer) error {
			fmt.Fprintf(w, "%s\n", l.efficiency())
			if err := writeMarkdown(w, l.table()); err != nil || l.Functions == nil {
				return err
			}
			fmt.Fprintf(w, "\n### %s\n\n", functionsTitle)
			return writeMarkdown(w, l.functions())
		},
		Rows: rowsOf(peerColumns, l.Rows, func(r *ranks.Row) []any {
			return []any{
				r.Program, text.Ranges(r.Ranks), r.Thread, provdb.OrNull(r.Host), r.Role, r.Peers, r.Units, r.HaveData, r.Slow, r.Useful, r.Wait,
				r.Lost, r.Ratio, provdb.OrNull(r.Pattern), r.From, r.To, r.Saved, r.Share,
			}
		}),
	}
}

// json returns the list for programs.
func (l *RankList) json() any {
	list := struct {
		By         string      `json:"by"`
		Efficiency []ticksJSON `json:"efficiency"`
		ranks.List
		Functions *api.RankFunctions `json:"functions,omitempty"`
	}{l.By, nil, l.List, l.Functions}
	for i := range l.Efficiency {
		list.Efficiency = append(list.Efficiency, ticksJSON{l.Unit, &l.Efficiency[i]})
	}
	return list
}

func (l *RankList) writeText(w io.Writer) error {
	fmt.Fprintln(w, l.efficiency())
	if err := writeTrimmed(w, l.table()); err != nil {
		return err
	}
	l.footer(w)
	if l.Functions == nil {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n\n", functionsTitle)
	return writeTrimmed(w, l.functions())
}

const functionsTitle = "Functions with the most time"

// functions returns the functions of selected ranks.
func (l *RankList) functions() *provdb.Rows {
	of := columns("function calls:int time_us:int share at_peers_us:int ratio")
	return rowsOf(of, l.Functions.Functions, func(f *api.RankFunction) []any {
		var ratio *float64
		if f.Peers != nil && *f.Peers > 0 {
			ratio = new(float64(f.Time) / float64(*f.Peers))
		}
		return []any{text.ShortName(f.Function), f.Calls, f.Time, text.Percent(100 * f.Share), f.Peers, ratioText(ratio)}
	})
}

// efficiency describes the efficiency of each program in a line.
func (l *RankList) efficiency() string {
	var b strings.Builder
	for i := range l.Efficiency {
		e := &l.Efficiency[i]
		if len(l.Efficiency) > 1 {
			fmt.Fprintf(&b, "program %d: ", e.PID)
		}
		fmt.Fprintf(&b, "%s efficient: load balance %s, communication %s", wholePercent(e.Parallel), wholePercent(e.LoadBalance),
			wholePercent(e.Communication))
		if e.DeviceParallel != nil {
			fmt.Fprintf(&b, "; GPUs busy %s", wholePercent(*e.DeviceParallel))
		}
		if e.DeviceLoadBalance != nil {
			fmt.Fprintf(&b, ", balance %s", wholePercent(*e.DeviceLoadBalance))
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		b.WriteString("efficiency unknown\n")
	}
	return b.String()
}

// wholePercent formats a share as a whole percentage.
func wholePercent(share float64) string { return text.Number(100*share) + " %" }

// missing stands for values without data.
const missing = "–"

// orMissing formats a value, unless it is missing.
func orMissing[T any](v *T, format func(T) string) string {
	if v == nil {
		return missing
	}
	return format(*v)
}

// table returns the ranks as people read them.
func (l *RankList) table() *provdb.Rows {
	heads := map[string]string{
		"rank": "rank host", "host": "host ranks", "role": "role ranks", "thread": "rank thread host", "device": "rank gpu_thread host",
	}[l.By]
	if l.programs() {
		heads = "program " + heads
	}
	if l.By != "role" {
		heads += " role"
	}
	return rowsOf(columns(heads+" useful wait lost_to_findings ratio slow if_like_peers"), l.Rows, func(r *ranks.Row) []any {
		var row []any
		if l.programs() {
			row = append(row, r.Program)
		}
		row = append(row, l.place(r)...)
		if l.By != "role" {
			row = append(row, roleText(r))
		}
		return append(row, orMissing(r.Useful, text.Duration), orMissing(r.Wait, text.Duration), orMissing(r.Lost, text.Duration),
			orMissing(r.Ratio, func(v float64) string { return fmt.Sprintf("%.2f", v) }), l.slowText(r), savedText(r))
	})
}

// place returns the columns that identify a row.
func (l *RankList) place(r *ranks.Row) []any {
	host, ranks := text.SingleSpaced(r.Host), text.Ranges(r.Ranks)
	if host == "" {
		host = missing
	}
	switch l.By {
	case "host":
		return []any{host, ranks}
	case "role":
		return []any{roleText(r), ranks}
	case "thread", "device":
		return []any{ranks, r.Thread, host}
	}
	return []any{ranks, host}
}

func roleText(r *ranks.Row) string { return orMissing(r.Role, text.Int[int]) }

// programs reports whether the list has several programs.
func (l *RankList) programs() bool {
	for i := range l.Rows {
		if l.Rows[i].Program != l.Rows[0].Program {
			return true
		}
	}
	return len(l.Efficiency) > 1
}

// slowText describes when a row was slow.
func (l *RankList) slowText(r *ranks.Row) string {
	length := 0.0
	for i := range l.Efficiency {
		length = max(length, l.Efficiency[i].To)
	}
	at := func(s *float64) string { return orMissing(s, func(v float64) string { return text.Clock(v, length) }) }
	var words string
	switch r.Pattern {
	case "":
		switch {
		case r.HaveData == 0 || r.Ratio == nil:
			return missing
		case weak(r):
			return "unclear"
		case r.HaveData < r.Units:
			return fmt.Sprintf("no, as far as known (%s without data)", text.Int(r.Units-r.HaveData))
		}
		return "no"
	case provenance.Since:
		words = "since " + at(r.From)
	case provenance.Phase:
		words = at(r.From) + " to " + at(r.To)
	case provenance.ByRole:
		words = "its role has more work"
	case provenance.Roaming:
		words = "at times, others too"
	default:
		words = string(r.Pattern)
	}
	if r.Units > 1 && r.Slow < r.Units {
		words += fmt.Sprintf(" (%s of %s)", text.Int(r.Slow), text.Int(r.Units))
	}
	if weak(r) {
		words += ", weak evidence"
	}
	return words
}

// savedText describes by how much the run would be shorter.
func savedText(r *ranks.Row) string {
	switch {
	case r.Saved == nil || r.Ratio == nil:
		return missing
	case *r.Saved <= 0 || r.Share == nil:
		return "the same"
	}
	return fmt.Sprintf("run %s shorter (%s)", text.Percent(100**r.Share), text.Duration(*r.Saved))
}

// fewPeers is the number of peers below which a comparison is weak evidence.
const fewPeers = 4

func weak(r *ranks.Row) bool { return r.Peers != nil && *r.Peers < fewPeers }

// footer explains missing rows and values of the table.
func (l *RankList) footer(w io.Writer) {
	if len(l.Rows) == 0 {
		fmt.Fprintf(w, "\n%s\n", map[string]string{
			"thread": "All ranks have one thread: see --by rank.", "device": "The run has no GPUs.", "rank": "There are no such ranks.",
			"host": "There are no such ranks.", "role": "There are no such ranks.",
		}[l.By])
		return
	}
	if l.Corrected > 0 {
		fmt.Fprintf(w, "\nThe clocks of %s were corrected (chimbuko breakdown --collectives lists them).\n", text.Count(l.Corrected, "rank"))
	}
	if left := l.All - int64(len(l.Rows)); left > 0 {
		fmt.Fprintf(w, "\nand %s: give a larger --limit\n", text.Count(left, "more row"))
	}
	incomplete, least := l.Empty > 0, fewPeers
	for i := range l.Rows {
		r := &l.Rows[i]
		incomplete = incomplete || r.HaveData < r.Units
		if r.Peers != nil {
			least = min(least, *r.Peers)
		}
	}
	if incomplete {
		fmt.Fprintf(w, "\nSome ranks have no data to compare (–). They may be slow, too.\n")
	}
	switch {
	case least == 0:
		fmt.Fprintf(w, "\nSome have no peers: nothing else does the same work, so their speed cannot be judged.\n")
	case least < fewPeers:
		fmt.Fprintf(w, "\nWeak evidence: some have only %s. A ratio shows that they differ, not which is at fault;\n"+
			"one counts as slow only if it also became slower than its own past, or is far slower than several.\n", text.Count(least, "peer"))
	}
}
