package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
)

// adProgress shows the progress of an analyzer.
type adProgress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
	events   int64
}

// Show writes a line, once in a while.
func (p *adProgress) Show(rep *analyzer.Report, unsent int64, alone bool) {
	interval := 10 * time.Second
	if p.terminal {
		interval = lineInterval
	}
	since := time.Since(p.shown)
	if since < interval || rep.Totals.Ranks == 0 {
		return
	}
	rate := float64(rep.Totals.Events-p.events) / since.Seconds()
	if p.shown.IsZero() {
		rate = 0
	}
	p.shown, p.events = time.Now(), rep.Totals.Events
	services := ""
	if alone {
		services = "; the services are away"
	}
	line := fmt.Sprintf("%d ranks, %s steps, %s events (%s/s), %s flagged, %s behind, %d steps to share%s", rep.Totals.Ranks,
		grouped(int64(rep.Totals.Steps)),
		grouped(rep.Totals.Events), grouped(int64(rate)), grouped(rep.Totals.Flagged), rep.Behind.Round(100*time.Millisecond), unsent, services)
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	} else {
		fmt.Fprintln(p.w, line)
	}
}

// Clear removes the line from a terminal.
func (p *adProgress) Clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
