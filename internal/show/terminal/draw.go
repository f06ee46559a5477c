package terminal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Keys of the last line.
const (
	keysOverview = "j/k move  Enter evidence  p pause  r refresh  ? help  q quit"
	keysFinding  = "j/k other findings  Space/PgUp scroll  Esc back  p pause  q quit"
)

// draw draws the whole screen, with exactly its number of lines.
func (m *model) draw() string {
	s := &screen{width: max(20, m.width), styled: true}
	if m.picture == nil {
		s.line(s.style(bold, "chimbuko"))
		if m.failed != nil {
			s.wrap(m.failed.Error(), 6, levels[api.LevelBad])
			s.line("retrying; q quits")
		} else {
			s.line("loading …")
		}
		return m.fill(s, "q quit")
	}
	s.head(m.picture, m.note())
	if m.failed != nil {
		s.wrap("no answer, data as of "+ago(m.now.Sub(m.seen))+": "+m.failed.Error(), 1, levels[api.LevelBad])
	}
	switch m.mode {
	case showHelp:
		m.help(s)
		return m.fill(s, keysOverview)
	case showFinding:
		if i := m.finding(); i != nil {
			m.details(s, i)
			return m.fill(s, keysFinding)
		}
	case showOverview:
	}
	m.overview(s)
	return m.fill(s, keysOverview)
}

// note returns the right end of the first line.
func (m *model) note() string {
	switch {
	case m.paused:
		return "[PAUSED, " + ago(m.now.Sub(m.seen)) + "]"
	case !m.picture.Overview.Live:
		return ""
	case m.now.Sub(m.seen) > 3*m.every:
		return ago(m.now.Sub(m.seen))
	}
	return "every " + m.every.String()
}

// fill pads a screen and puts the keys into its last line.
func (m *model) fill(s *screen, keys string) string {
	height := max(2, m.height)
	s.lines = s.lines[:min(len(s.lines), height-1)]
	for len(s.lines) < height-1 {
		s.lines = append(s.lines, "")
	}
	s.lines = append(s.lines, s.style(faint, ansi.Truncate(keys, s.width, "…")))
	return strings.Join(s.lines, "\n")
}

// overview divides the rest of the screen between findings, ranks and pipeline.
func (m *model) overview(s *screen) {
	pipeline := &screen{width: s.width, styled: s.styled}
	pipeline.pipeline(m.picture, 3)
	left := m.height - 1 - len(s.lines) - len(pipeline.lines) - 3 // a title each, and a line between
	ranks := 0
	if h := m.picture.Heatmap; h != nil {
		ranks = len(h.Rows)
	}
	findings := max(1, min(max(1, len(m.rows())), left-min(max(1, ranks), left/2)))
	m.top = max(0, min(m.top, m.cursor))
	if m.cursor >= m.top+findings {
		m.top = m.cursor - findings + 1
	}
	s.line("")
	s.findings(m.picture.Overview, m.cursor, m.top, findings)
	s.heat(m.picture.Heatmap, max(1, left-findings))
	s.lines = append(s.lines, pipeline.lines...)
}

// details shows a finding and its evidence.
func (m *model) details(s *screen, i *api.Finding) {
	d := &screen{width: s.width, styled: s.styled}
	section := func(title, text string) {
		if text != "" {
			d.line("")
			d.line(d.style(bold, title))
			d.wrap(text, 8, ansi.Style{})
		}
	}
	d.line(d.style(bold, fmt.Sprintf("Finding %d: %s", i.Number, clean(cmp.Or(text.ShortName(i.Function), i.Kind)))))
	d.wrap(i.Summary, 4, ansi.Style{})
	e := m.evidence[evidenceKey(i)]
	switch {
	case e != nil:
		section("Evidence "+clean(text.OneLine(e.Event)), e.Sentence)
		section("Why it was flagged", e.Why)
		section("Wait", e.Roles.Sentence)
		if e.Twin != nil {
			section("A typical execution", fmt.Sprintf("%s took %s on rank %d", text.OneLine(e.Twin.Event),
				text.Duration(float64(e.Twin.Exclusive)), e.Twin.Rank))
		}
		d.line("")
		d.line(d.style(bold, "Call stack, the outermost first"))
		for n, f := range e.Path {
			d.line(strings.Repeat(" ", min(n, 20)) + clean(text.ShortName(f)))
		}
		for n, f := range e.State {
			if n == 0 {
				d.line("")
				d.line(d.style(bold, "State of the node"))
			}
			d.line("  " + clean(text.OneLine(f.Name)) + ": " + clean(text.OneLine(f.Value)))
		}
	case m.missing[evidenceKey(i)] != nil:
		section("No evidence", m.missing[evidenceKey(i)].Error())
	case i.Example == "":
		section("Evidence", "none: a lasting change of a function has no anomalies")
	default:
		section("Evidence", "loading …")
	}
	room := max(1, m.height-2-len(s.lines))
	m.scroll = max(0, min(m.scroll, len(d.lines)-room))
	end := min(len(d.lines), m.scroll+room)
	s.line("")
	s.lines = append(s.lines, d.lines[m.scroll:end]...)
}

// help explains keys and terms.
func (m *model) help(s *screen) {
	s.line("")
	s.line(s.style(bold, "Keys"))
	for _, k := range [][2]string{
		{"j k ↓ ↑ g G", "move in the list of findings"},
		{"Enter", "show the evidence of the finding"},
		{"Esc", "back to the overview"},
		{"p", "pause updates"},
		{"r", "refresh"},
		{"?", "this help"},
		{"q Ctrl-C", "quit"},
	} {
		s.line("  " + pad(k[0], 13) + k[1])
	}
	s.line("")
	s.line(s.style(bold, "Terms"))
	s.wrap("Lost time is how much longer than usual anomalous executions took. A finding is all anomalies with the same function, call "+
		"path, kind and cause. "+
		"Anomalies are provisional until the review at the end of the run. Shades of ranks, from little to much: "+shades[1:], 6, ansi.Style{})
}

// shade returns the index of the character for a value, on a scale of four powers of ten.
func shade(value, most float64) int {
	if !(value > 0) || !(most > 0) {
		return 0
	}
	share := max(0, 1+math.Log10(value/most)/4)
	return 1 + min(len(shades)-2, int(share*float64(len(shades)-1)))
}

// worstRows returns the rows that lost most, in their order.
func worstRows(h *api.Heatmap, most int) []int {
	rows := make([]int, len(h.Rows))
	for i := range rows {
		rows[i] = i
	}
	if len(rows) > most {
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(h.Rows[b].Lost, h.Rows[a].Lost) })
		rows = rows[:most]
		slices.Sort(rows)
	}
	return rows
}
