package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Longer stacks and lists are cut to maxLines: the first firstLines and the last.
const maxLines, firstLines = 50, 15

// stack draws calls as a tree, the outermost first.
func (p *page) stack(title string, calls []provenance.StackEntry) {
	if len(calls) == 0 {
		p.missing = append(p.missing, "call stack")
		return
	}
	p.heading("%s", title)
	p.tree(calls)
}

func (p *page) tree(calls []provenance.StackEntry) {
	calls = slices.Clone(calls)
	slices.Reverse(calls)
	start := func(c *provenance.StackEntry) string {
		if c.Entry == 0 && p.Entry != 0 {
			return "?"
		}
		return text.Offset(p.sinceEntry(c.Entry))
	}
	took := func(c *provenance.StackEntry) string { return p.duration(c.Entry, c.Exit) }
	starts, times := max(5, widest(calls, start)), max(4, widest(calls, took))
	p.line("  %s  %s", right("START", starts), right("TIME", times))
	for i := range shownLines(len(calls), p.skip) {
		c := &calls[i]
		mark := ""
		if c.IsAnomaly {
			mark = "!"
		}
		line := fmt.Sprintf("  %s  %s %s ", right(start(c), starts), right(took(c), times), left(mark, 1))
		room := p.Width - width(line)
		branch := ""
		if i > 0 {
			branch = blank(3*min(i-1, room/6)) + "└─ "
		}
		p.line("%s%s%s", line, branch, short(provenance.CallName(c.Func, c.EventID), room-width(branch)))
	}
}

// skip reports n lines that are left out.
func (p *page) skip(n int) { p.line("  … %s more …", text.Number(float64(n))) }

// shownLines yields the indices of the lines to show of n, and calls skip where it leaves out some.
func shownLines(n int, skip func(int)) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n; i++ {
			if n > maxLines && i == firstLines {
				skip(n - maxLines)
				i += n - maxLines
			}
			if !yield(i) {
				return
			}
		}
	}
}

// duration returns the time that a call took.
func (p *page) duration(entry, exit trace.Ticks) string {
	if open(entry, exit) {
		return "still open"
	}
	return text.Duration(p.Unit.Between(entry, exit))
}

// open reports whether a call had not ended when the record was written.
func open(entry, exit trace.Ticks) bool { return exit == 0 || exit < entry }

// gpu describes where a kernel ran and which call launched it.
func (p *page) gpu() {
	if !p.IsGPUEvent && p.GPULocation == nil && p.GPUParent == nil {
		return
	}
	p.heading("GPU")
	where := "Its place on the GPU is unknown."
	if l := p.GPULocation; l != nil {
		thread := p.threadText(l.Thread)
		if place := locationText(l); strings.Contains(place, p.Threads[l.Thread]) { // it says no more
			thread = fmt.Sprintf("thread %d", l.Thread)
		}
		where = fmt.Sprintf("It ran on %s (%s of the trace).", locationText(l), thread)
	}
	p.paragraph("  ", where)
	parent, why := launch(p.GPUParent)
	switch {
	case parent == nil:
		p.paragraph("  ", "The call that launched it is unknown: "+why)
		return
	case len(parent.CallStack) == 0:
		p.paragraph("  ", fmt.Sprintf("It was launched by event %s on %s, without a stored call stack.",
			text.Shorten(escape(parent.EventID), minWidth/2), p.threadText(parent.TID)))
		return
	}
	p.paragraph("  ", fmt.Sprintf("It was launched on %s, %s, by event %s:", p.threadText(parent.TID), p.whenText(parent.CallStack[0].Entry),
		text.Shorten(escape(parent.EventID), minWidth/2)))
	p.line("")
	p.tree(parent.CallStack)
}

// locationText names the parts of a location that are known.
func locationText(l *provenance.GPULocation) string {
	var parts []string
	for _, p := range []struct {
		name   string
		number uint64
	}{{"device", l.Device}, {"context", l.Context}, {"stream", l.Stream}} {
		if p.number != math.MaxUint64 { // unknown
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.number))
		}
	}
	return strings.TrimSpace("GPU " + strings.Join(parts, ", "))
}

// launch returns the call of a gpu_parent. Without one it returns the reason.
func launch(v any) (parent *provenance.GPUParent, why string) {
	switch v := v.(type) {
	case nil:
		return nil, "the record has no data about it."
	case string:
		return nil, strings.TrimRight(escape(v), ".") + "."
	case provenance.GPUParent:
		return &v, ""
	}
	return nil, "the record has unreadable data about it."
}
