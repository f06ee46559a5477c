package output

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
)

// IsTerminal reports whether w is a terminal, or another character device.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine is a line that changes on a terminal. Elsewhere it is repeated from time to time.
type progressLine struct {
	w        io.Writer
	terminal bool
	interval time.Duration // between two lines
	shown    time.Time
}

func newProgressLine(w io.Writer, interval time.Duration) progressLine {
	if IsTerminal(w) {
		return progressLine{w: w, terminal: true, interval: 200 * time.Millisecond}
	}
	return progressLine{w: w, interval: interval}
}

// isDue reports whether it is time for another line.
func (p *progressLine) isDue() bool { return time.Since(p.shown) >= p.interval }

func (p *progressLine) write(line string) {
	p.shown = time.Now()
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
	} else {
		fmt.Fprintln(p.w, line)
	}
}

// Clear removes the line from a terminal.
func (p *progressLine) Clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Counter shows on a terminal how many things are done.
type Counter struct {
	progressLine
	mu     sync.Mutex
	n, of  int
	things string
}

// NewCounter counts things up to a number, or 0 if that is unknown.
func NewCounter(w io.Writer, of int, things string) *Counter {
	c := &Counter{progressLine: newProgressLine(w, 0), of: of, things: things}
	c.shown = time.Now()
	return c
}

// Add counts one more. It may be called concurrently.
func (c *Counter) Add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if !c.terminal || !c.isDue() {
		return
	}
	of := ""
	if c.of > 0 {
		of = " of " + text.Int(c.of)
	}
	c.write(text.Int(c.n) + of + " " + c.things)
}

// Analysis shows the progress of an analysis of recorded traces, phase by phase.
type Analysis struct {
	progressLine
	passes int

	mu    sync.Mutex
	phase string
	begun time.Time // the phase
}

// NewAnalysis shows an analysis that reads its traces in a number of passes.
func NewAnalysis(w io.Writer, passes int) *Analysis {
	a := &Analysis{progressLine: newProgressLine(w, 5*time.Second), passes: passes, begun: time.Now()}
	a.shown = a.begun
	return a
}

// Show shows the share that is read or reviewed.
func (a *Analysis) Show(done analyzer.ProgressReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	phase := "reading"
	switch {
	case done.Captures > 0:
		phase = "reviewing and storing records"
	case a.passes > 1:
		phase = fmt.Sprintf("reading, pass %d of %d", done.Pass, a.passes)
	}
	if phase != a.phase {
		if a.phase != "" {
			a.begun = time.Now()
		}
		a.phase = phase
	}
	if !a.isDue() {
		return
	}
	elapsed := time.Since(a.begun)
	share, amount := done.ReadShare, fmt.Sprintf("%s events, %.1f million/s, %s flagged",
		text.Int(done.Events), float64(done.Events)/max(elapsed.Seconds(), 1e-3)/1e6, text.Int(done.Flagged))
	if done.Captures > 0 {
		share, amount = float64(done.Reviewed)/float64(done.Captures), text.Int(done.Reviewed)+" of "+text.Int(done.Captures)
	}
	left := ""
	if share > 0 {
		left = fmt.Sprintf(", %v left", time.Duration(float64(elapsed)*(1-share)/share).Round(time.Second))
	}
	a.writeBar(share, fmt.Sprintf("%s: %3.0f %%, %s%s", phase, 100*share, amount, left))
}

// During shows an activity of unknown length, and for how long it has lasted, until the
// returned function is called.
func (a *Analysis) During(activity string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	begun := time.Now()
	if a.terminal || a.isDue() {
		a.writeBar(1, activity)
	}
	stop := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		tick := time.NewTicker(a.interval)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				a.mu.Lock()
				a.writeBar(1, fmt.Sprintf("%s, for %v", activity, time.Since(begun).Round(time.Second)))
				a.mu.Unlock()
			}
		}
	})
	return func() {
		close(stop)
		showing.Wait()
		a.Clear()
	}
}

// writeBar writes a line, on a terminal behind a bar of the share that is done. The caller
// holds mu.
func (a *Analysis) writeBar(share float64, line string) {
	const width = 20
	if a.terminal {
		full := int(max(0, min(1, share)) * width)
		line = fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", width-full), line)
	}
	a.write(line)
}

// Analyzer shows the progress of an analyzer of a live run.
type Analyzer struct {
	progressLine
	events int64
}

// NewAnalyzer shows the progress of an analyzer on w.
func NewAnalyzer(w io.Writer) *Analyzer {
	return &Analyzer{progressLine: newProgressLine(w, 10*time.Second)}
}

// Show updates the line when it is due. alone means that the services do not respond.
func (a *Analyzer) Show(rep *analyzer.Report, unsent int64, alone bool) {
	if !a.isDue() || rep.Totals.Ranks == 0 {
		return
	}
	rate := 0.0
	if !a.shown.IsZero() {
		rate = float64(rep.Totals.Events-a.events) / time.Since(a.shown).Seconds()
	}
	a.events = rep.Totals.Events
	services := ""
	if alone {
		services = "; no connection to the services"
	}
	a.write(fmt.Sprintf("%d ranks, %s steps, %s events (%s/s), %s flagged, %s behind, %d steps to share%s", rep.Totals.Ranks,
		text.Int(rep.Totals.Steps), text.Int(rep.Totals.Events), text.Number(rate), text.Int(rep.Totals.Flagged),
		rep.Lag.Round(100*time.Millisecond), unsent, services))
}

// Reading shows how many bytes of traces are read.
type Reading struct {
	progressLine
	mu    sync.Mutex
	n, of int64
	begun time.Time
}

// NewReading shows the progress of reading so many bytes.
func NewReading(w io.Writer, of int64) *Reading {
	r := &Reading{progressLine: newProgressLine(w, 5*time.Second), of: of, begun: time.Now()}
	r.shown = r.begun
	return r
}

// Add counts bytes that were read. It may be called concurrently.
func (r *Reading) Add(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n += bytes; r.isDue() {
		rate := float64(r.n) / max(time.Since(r.begun).Seconds(), 1e-3)
		r.write(fmt.Sprintf("reading and sorting: %3.0f %%, %s of %s, %s/s", 100*float64(r.n)/float64(max(r.of, 1)),
			text.Bytes(r.n), text.Bytes(r.of), text.Bytes(int64(rate))))
	}
}
