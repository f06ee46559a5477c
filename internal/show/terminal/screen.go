package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// screen is lines of at most a width.
type screen struct {
	width  int
	styled bool
	lines  []string
}

// Styles of all terminals.
var (
	bold    = ansi.NewStyle().Bold()
	faint   = ansi.NewStyle().Faint()
	reverse = ansi.NewStyle().Reverse(true)
	levels  = map[api.Level]ansi.Style{
		api.LevelGood: ansi.NewStyle().ForegroundColor(ansi.Green), api.LevelWatch: ansi.NewStyle().ForegroundColor(ansi.Yellow),
		api.LevelBad: ansi.NewStyle().ForegroundColor(ansi.Red), api.LevelUnknown: faint,
	}
)

func (s *screen) style(st ansi.Style, text string) string {
	if !s.styled || text == "" {
		return text
	}
	return st.Styled(text)
}

// line adds a line and truncates it to the width.
func (s *screen) line(text string) { s.lines = append(s.lines, ansi.Truncate(text, s.width, "…")) }

// wrap adds a text in at most that many lines.
func (s *screen) wrap(text string, most int, st ansi.Style) {
	lines := strings.Split(ansi.Wrap(clean(text), s.width, ""), "\n")
	for i, l := range lines {
		if i == most-1 && len(lines) > most {
			l = strings.Join(lines[i:], " ")
		}
		s.line(s.style(st, ansi.Truncate(strings.TrimSpace(l), s.width, "…")))
		if i == most-1 {
			return
		}
	}
}

// text returns all lines.
func (s *screen) text() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// clean removes control characters: names come from traces.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, text)
}

// head adds the name, verdict and figures of the run.
func (s *screen) head(p *Picture, note string) {
	o := p.Overview
	state := strings.ToUpper(string(o.State))
	if o.Live {
		state = "LIVE, " + string(o.State)
	}
	left := "chimbuko " + clean(text.OneLine(o.Run)) + "  " + state + "  " + text.Clock(o.Length, o.Length)
	gap := max(1, s.width-ansi.StringWidth(left)-ansi.StringWidth(note))
	s.line(s.style(bold, ansi.Truncate(left, max(10, s.width-ansi.StringWidth(note)-1), "…")) + strings.Repeat(" ", gap) + note)
	verdict := strings.ToUpper(string(o.Verdict.Level)) + ": " + o.Verdict.Sentence
	s.wrap(verdict, 2, levels[o.Verdict.Level])
	s.line(strings.Join(figures(o), "  "))
	if n := len(o.Notices); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (+%d more)", n-1)
		}
		text := ansi.Truncate(clean(o.Notices[0].Sentence), s.width-len(more), "…")
		s.line(s.style(levels[o.Notices[0].Level], text) + more)
	}
}

// figures returns the key figures, the most important first.
func figures(o *api.Overview) []string {
	f := &o.Figures
	lost := "lost " + text.Duration(float64(f.Lost))
	if f.LostPercent != nil {
		lost = "lost " + text.Percent(*f.LostPercent)
	}
	list := []string{lost, text.Int(f.Anomalies) + " anomalies"}
	for i := range o.Efficiency {
		e := &o.Efficiency[i]
		words := text.Whole(e.Parallel) + " efficient"
		if len(o.Efficiency) > 1 {
			words = fmt.Sprintf("program %d %s", e.Program, words)
		}
		list = append(list, words)
	}
	ranks := text.Int(f.Ranks)
	if f.RanksExpected != nil {
		ranks += "/" + text.Int(*f.RanksExpected)
	}
	list = append(list, ranks+" ranks")
	if f.EventsPerSecond != nil {
		list = append(list, text.About(int64(*f.EventsPerSecond))+" ev/s")
	} else if f.Events != nil {
		list = append(list, text.About(*f.Events)+" events")
	}
	if f.Dropped != nil {
		list = append(list, text.Int(*f.Dropped)+" dropped")
	}
	if f.Reduction != nil {
		list = append(list, "1 of "+text.Int(int64(*f.Reduction))+" stored")
	}
	return list
}

// findings lists findings, starting at from.
func (s *screen) findings(o *api.Overview, cursor, from, most int) {
	title := "Findings"
	if n := len(o.Findings); n > most {
		title = fmt.Sprintf("Findings %d–%d of %s", from+1, min(n, from+most), text.Int(o.Figures.Findings-o.Figures.FindingsMuted))
	}
	if len(o.Findings) > 0 {
		title += ", with own, caused and total lost time"
	}
	s.line(s.style(bold, ansi.Truncate(title, s.width, "…")))
	if len(o.Findings) == 0 {
		s.line("  none" + map[bool]string{true: " so far", false: ""}[o.Live])
		return
	}
	// number, lost times, count, kind, since: the rest is for function and host
	for i := from; i < min(len(o.Findings), from+most); i++ {
		x := &o.Findings[i]
		mark := "  "
		if i == cursor {
			mark = "> "
		}
		host := ""
		if len(x.Hosts) > 0 {
			host = clean(text.OneLine(x.Hosts[0]))
			if x.HostCount > 1 {
				host += fmt.Sprintf("+%d", x.HostCount-1)
			}
		}
		host = pad(host, 14)
		head := fmt.Sprintf("%s%3d %8s %8s %8s ", mark, x.Number, text.Duration(x.LostOwn), text.Duration(x.LostWaits), text.Duration(x.Lost))
		if s.width >= wide {
			head += fmt.Sprintf("%7s× ", text.Int(x.Calls))
		}
		head += fmt.Sprintf("%-12s ", x.Kind)
		since := text.Clock(x.From, o.Length)
		name := pad(clean(cmp.Or(text.ShortName(x.Function), subject(x))), max(8, s.width-ansi.StringWidth(head)-14-len(since)-2))
		text := ansi.Truncate(head+name+" "+host+" "+since, s.width, "…")
		if i == cursor {
			text = s.style(reverse, text)
		}
		s.line(text)
	}
}

// wide is the minimum number of columns at which findings show their number of calls.
const wide = 100

// subject describes a finding without a function.
func subject(x *api.Finding) string {
	if x.Kind == string(provenance.SlowPlace) {
		return "slower than peers"
	}
	return "whatever runs"
}

// pad returns text in exactly that many columns.
func pad(text string, columns int) string {
	text = ansi.Truncate(text, columns, "…")
	return text + strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}

// Sizes of the heatmap.
const (
	heatLabel   = 20
	maxHeatRows = 40
)

// heatColumns returns the columns of a heatmap on a screen of that width.
func heatColumns(width int) int { return max(10, width-heatLabel-11) }

// shades draw the lost time of a cell, from none to most. They are ASCII for all fonts and
// screen readers.
const shades = " .:-=+*#%@"

// heat draws the lost time of ranks, in at most that many rows: those that lost most.
func (s *screen) heat(h *api.Heatmap, most int) {
	if h == nil || len(h.Rows) == 0 {
		s.line(s.style(bold, "Ranks"))
		s.line("  no data yet")
		return
	}
	rows := worstRows(h, most)
	title := "Ranks: own slowness (causes)"
	if len(rows) < len(h.Rows) {
		title = fmt.Sprintf("Ranks: own slowness (causes), the worst %d of %d rows", len(rows), len(h.Rows))
	}
	title += fmt.Sprintf(" (%s to %s)", text.Clock(h.From, h.To), text.Clock(h.To, h.To))
	s.line(s.style(bold, title))
	cells := make(map[int][]byte)
	for _, r := range rows {
		cells[r] = []byte(strings.Repeat(shades[:1], h.Columns))
	}
	for _, c := range h.Cells {
		if line, ok := cells[c.Row]; ok && c.Column < len(line) {
			line[c.Column] = shades[shade(c.Value, h.Max)]
		}
	}
	for _, r := range rows {
		row := &h.Rows[r]
		lost := ""
		if row.Lost > 0 {
			lost = text.Duration(float64(row.Lost))
		}
		if row.Silent {
			lost = "silent"
		}
		s.line(pad(rowName(row), heatLabel) + "|" + s.colorCells(string(cells[r])) + "|" + fmt.Sprintf("%9s", lost))
	}
}

// colorCells marks the strong cells of a row.
func (s *screen) colorCells(cells string) string {
	if !s.styled {
		return cells
	}
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i
		strong := func(k int) bool { return strings.IndexByte(shades, cells[k]) > len(shades)/2 }
		for j < len(cells) && strong(j) == strong(i) {
			j++
		}
		if part := cells[i:j]; strong(i) {
			b.WriteString(s.style(levels[api.LevelBad], part))
		} else {
			b.WriteString(part)
		}
		i = j
	}
	return b.String()
}

// rowName returns the host and ranks of a row.
func rowName(row *api.HeatRow) string {
	ranks := fmt.Sprint(row.FirstRank)
	if row.Ranks > 1 {
		ranks = fmt.Sprintf("%d-%d", row.FirstRank, row.LastRank)
	}
	if row.Program > 0 {
		ranks = fmt.Sprintf("%d:%s", row.Program, ranks)
	}
	return pad(clean(text.OneLine(row.Host)), heatLabel-len(ranks)-2) + " " + ranks
}

// pipeline adds the state of analyzers and store, and up to that many problems.
func (s *screen) pipeline(p *Picture, most int) {
	st := p.Status
	if st == nil {
		s.line(s.style(bold, "Pipeline") + "  unknown")
		return
	}
	var behind float64
	var outbox int64
	states := make(map[api.NodeState]int)
	for i := range st.Nodes {
		n := &st.Nodes[i]
		behind, outbox = max(behind, n.Behind), outbox+n.OutboxMessages
		states[n.State]++
	}
	var parts []string
	if len(st.Nodes) > 0 {
		var text []string
		for _, state := range []api.NodeState{
			api.NodeSilent, api.NodeWaiting, api.NodeReading, api.NodeWaitingForReview, api.NodeReviewing, api.NodeDone,
		} {
			if n := states[state]; n > 0 {
				text = append(text, fmt.Sprintf("%d %s", n, state))
			}
		}
		parts = append(parts, "analyzers: "+strings.Join(text, ", "))
	}
	if p.Overview.Live {
		parts = append(parts, fmt.Sprintf("behind %.1f s", behind))
		if st.Store != nil {
			parts = append(parts, fmt.Sprintf("store %d waiting", st.Store.PendingMessages))
		}
		if outbox > 0 {
			parts = append(parts, fmt.Sprintf("outbox %d", outbox))
		}
	}
	s.line(s.style(bold, "Pipeline") + "  " + strings.Join(parts, "; "))
	wrong := 0
	for _, h := range st.Health {
		if h.OK {
			continue
		}
		if wrong++; wrong < most {
			s.line(s.style(levels[api.LevelBad], "  "+clean(h.Part+": "+h.Sentence)))
		}
	}
	if wrong == 0 && len(st.Health) > 0 {
		s.line("  no problems")
	}
}

// ago formats an age.
func ago(d time.Duration) string { return fmt.Sprintf("%d s ago", int(d.Round(time.Second).Seconds())) }
