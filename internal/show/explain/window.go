package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// moment is a line of the timeline: a call or a message.
type moment struct {
	start, end float64 // after the entry of the execution; those of a message are equal
	took       string
	mark       string
	name       string
	brief      string // if the name does not fit; may be empty
	depth      int
	arrow      string // of a message
	inner      bool   // has calls in the window
	self       bool
}

// window draws the calls and messages around the execution on a time axis.
func (p *page) window() {
	if len(p.EventWindow.Comms) == 0 {
		p.missing = append(p.missing, "messages")
	}
	moments := p.moments()
	if len(moments) == 0 {
		p.missing = append(p.missing, "calls around it")
		return
	}
	a := newAxis(p.Unit, moments)
	start := func(m *moment) string { return a.text(m.start) }
	starts := max(5, widest(moments, start))
	times := max(4, widest(moments, func(m *moment) string { return m.took }))
	room := p.Width - starts - times - 10
	step := 2
	label := func(m *moment) string { return blank(min(step*m.depth, room/5)) + m.name }
	names := widest(moments, label)
	if names > room*9/20 {
		step = 1
		messages := widest(moments, func(m *moment) string {
			if m.arrow == "" {
				return ""
			}
			return label(m)
		})
		names = min(widest(moments, label), max(room*9/20, min(messages, room*11/20)))
	}
	a.cells = room - names

	legend := "> this one, ! anomalous"
	if slices.ContainsFunc(moments, func(m moment) bool { return m.start < a.from || m.end > a.to }) {
		legend += ", « or » beyond the edge"
	}
	p.heading("Around it, on the same thread (%s)", legend)
	p.line("  %s  %s    %s  %s", right("START", starts), right("TIME", times), left("CALL", names), a.header())
	for i := range moments {
		m := &moments[i]
		name := label(m)
		if m.brief != "" && width(name) > names {
			name = strings.Replace(name, m.name, m.brief, 1)
		}
		p.line("  %s  %s %s %s  %s", right(start(m), starts), right(m.took, times), left(m.mark, 2),
			left(text.Shorten(name, names), names), a.draw(m))
	}
}

// moments returns calls and messages in order of time, messages after their calls.
func (p *page) moments() []moment {
	depths := p.depths()
	parents := map[string]bool{}
	for i := range p.EventWindow.Execs {
		parents[p.EventWindow.Execs[i].ParentID] = true
	}
	messages := slices.Clone(p.EventWindow.Comms)
	slices.SortStableFunc(messages, func(a, b provenance.CommEntry) int {
		return cmp.Compare(a.Timestamp, b.Timestamp)
	})
	var moments []moment
	shown := map[string]bool{}
	// until adds the messages up to a time.
	until := func(at float64) {
		for len(messages) > 0 {
			m := &messages[0]
			t := p.sinceEntry(m.Timestamp)
			if t > at || t == at && !shown[m.Exec] {
				return
			}
			moments = append(moments, message(m, t, depths))
			messages = messages[1:]
		}
	}
	for i := range p.EventWindow.Execs {
		c := &p.EventWindow.Execs[i]
		m := moment{
			start: p.sinceEntry(c.Entry), end: p.sinceEntry(c.Exit), took: p.duration(c.Entry, c.Exit),
			name:  text.WithoutSource(functionName(provenance.CallName(c.Func, c.EventID))),
			depth: depths[c.EventID], inner: parents[c.EventID], self: c.EventID == p.EventID,
		}
		if open(c.Entry, c.Exit) {
			m.end = math.Inf(1)
		}
		if m.self {
			m.mark = ">"
		}
		if c.IsAnomaly {
			m.mark += "!"
		}
		until(m.start)
		moments = append(moments, m)
		shown[c.EventID] = true
	}
	until(math.Inf(1))
	return moments
}

func message(c *provenance.CommEntry, at float64, depths map[string]int) moment {
	m := moment{start: at, end: at}
	size := "unknown size"
	if c.Bytes != nil {
		size = text.Bytes(*c.Bytes)
	}
	switch c.Type {
	case "SEND":
		m.arrow = "→"
		m.brief = fmt.Sprintf("→ %s to rank %d", size, c.Target)
	case "RECV":
		m.arrow = "←"
		m.brief = fmt.Sprintf("← %s from rank %d", size, c.Source)
	default:
		m.arrow = "?"
		m.brief = fmt.Sprintf("? %s from rank %d to %d", size, c.Source, c.Target)
	}
	m.name = fmt.Sprintf("%s, tag %d", m.brief, c.Tag)
	if depth, ok := depths[c.Exec]; ok {
		m.depth = depth + 1
	}
	return m
}

// depths returns the nesting depths of the calls of the window; the outermost is 0. Parents
// precede their children in the window, or are on the stack of the execution. Any other parent
// began before the window and ended before the execution, so it is nested, perhaps indirectly,
// in the innermost call of the stack that was open then.
func (p *page) depths() map[string]int {
	depths := map[string]int{}
	stack := make(map[string]int, len(p.CallStack))
	for i := range p.CallStack {
		stack[p.CallStack[i].EventID] = len(p.CallStack) - 1 - i
	}
	least := math.MaxInt
	for i := range p.EventWindow.Execs {
		c := &p.EventWindow.Execs[i]
		depth, known := depths[c.ParentID]
		if !known {
			depth, known = stack[c.ParentID]
		}
		switch {
		case c.ParentID == "root" || c.ParentID == "":
			depth = 0
		case known:
			depth++
		default:
			depth = p.openAt(c) + 2
		}
		depths[c.EventID] = depth
		least = min(least, depth)
	}
	for id := range depths {
		depths[id] -= least
	}
	return depths
}

// openAt returns the depth of the innermost caller that was open when c began, or -1.
func (p *page) openAt(c *provenance.WindowEntry) int {
	for i := 1; i < len(p.CallStack); i++ {
		if p.CallStack[i].Entry <= c.Entry {
			return len(p.CallStack) - 1 - i
		}
	}
	return -1
}

// axis maps times to cells.
type axis struct {
	from, to float64
	cells    int
	exact    func(us float64) string
}

// newAxis covers the execution, messages, and calls without inner calls. It covers callers only
// if they do not begin long before or end long after these.
func newAxis(unit trace.Unit, moments []moment) axis {
	a := axis{from: math.Inf(1), to: math.Inf(-1)}
	for i := range moments {
		if m := &moments[i]; m.self || !m.inner {
			a.from, a.to = min(a.from, m.start), max(a.to, m.start)
			if !math.IsInf(m.end, 1) {
				a.to = max(a.to, m.end)
			}
		}
	}
	if a.from > a.to { // cyclic parents
		a.from, a.to = 0, 0
	}
	most := 0.2 * (a.to - a.from)
	from, to := a.from, a.to
	for i := range moments {
		m := &moments[i]
		if from-m.start <= most {
			a.from = min(a.from, m.start)
		}
		if m.end-to <= most {
			a.to = max(a.to, m.end)
		}
	}
	a.exact = offsets(unit, max(math.Abs(a.from), math.Abs(a.to)))
	return a
}

// text formats a time; times on the axis have a common format.
func (a *axis) text(t float64) string {
	if t < a.from || t > a.to {
		return text.Offset(t)
	}
	return a.exact(t)
}

// at returns the position of a time in cells.
func (a *axis) at(t float64) float64 {
	if a.to <= a.from {
		return 0
	}
	return min(max(0, (t-a.from)/(a.to-a.from)), 1) * float64(a.cells)
}

// header labels both ends and, if there is room, the entry of the execution.
func (a *axis) header() string {
	first, last := a.text(a.from), a.text(a.to)
	if width(first)+width(last)+2 > a.cells {
		return ""
	}
	line := []rune(first + blank(a.cells-width(first)-width(last)) + last)
	zero := int(a.at(0))
	if a.from < 0 && a.to > 0 && zero > width(first) && zero < a.cells-width(last)-1 {
		line[zero] = '0'
	}
	return string(line)
}

func (a *axis) draw(m *moment) string {
	from, to := a.at(m.start), a.at(m.end)
	cell := min(int(from), a.cells-1)
	if m.arrow != "" {
		return blank(cell) + m.arrow
	}
	before, after := m.start < a.from, m.end > a.to
	length := blocks(int(math.Round(8 * (to - float64(cell)))))
	switch {
	case after:
		length = strings.Repeat("█", a.cells-1-cell) + "»"
	case to-from < 1: // shorter than a cell
		length = blocks(max(1, int(8*(to-from))))
	}
	if r := []rune(length); before && len(r) > 0 {
		r[0] = '«'
		length = string(r)
	}
	return blank(cell) + length
}
