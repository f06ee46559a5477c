package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
)

// analysisProgress tells a person how far the analysis has come, phase by phase: on a
// terminal by a line that changes, else by a line now and then.
type analysisProgress struct {
	w        io.Writer
	terminal bool
	passes   int

	mu    sync.Mutex
	phase string
	begun time.Time // the phase
	shown time.Time
}

func newAnalysisProgress(w io.Writer, passes int) *analysisProgress {
	return &analysisProgress{w: w, terminal: isTerminal(w), passes: passes, begun: time.Now(), shown: time.Now()}
}

// Intervals between two signs of progress.
const (
	lineInterval = 200 * time.Millisecond
	logInterval  = 5 * time.Second
)

func (p *analysisProgress) interval() time.Duration {
	if p.terminal {
		return lineInterval
	}
	return logInterval
}

// show tells how far reading, or the review, has come.
func (p *analysisProgress) show(done analyzer.Done) {
	p.mu.Lock()
	defer p.mu.Unlock()
	phase := "reading"
	switch {
	case done.Kept > 0:
		phase = "reviewing and storing what was kept"
	case p.passes > 1:
		phase = fmt.Sprintf("reading, pass %d of %d", done.Pass, p.passes)
	}
	if phase != p.phase {
		if p.phase != "" {
			p.begun = time.Now()
		}
		p.phase = phase
	}
	if time.Since(p.shown) < p.interval() {
		return
	}
	elapsed := time.Since(p.begun)
	share, what := done.Read, fmt.Sprintf("%s events, %.1f million/s, %s flagged",
		grouped(done.Events), float64(done.Events)/max(elapsed.Seconds(), 1e-3)/1e6, grouped(done.Flagged))
	if done.Kept > 0 {
		share, what = float64(done.Reviewed)/float64(done.Kept), fmt.Sprintf("%s of %s", grouped(done.Reviewed), grouped(done.Kept))
	}
	left := ""
	if share > 0 {
		left = fmt.Sprintf(", %v left", time.Duration(float64(elapsed)*(1-share)/share).Round(time.Second))
	}
	p.write(share, fmt.Sprintf("%s: %3.0f %%, %s%s", phase, 100*share, what, left))
}

// during says what is being done of which the end is not known, and for how long, until
// the function that it returns is called.
func (p *analysisProgress) during(what string) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := time.Now()
	if p.terminal || time.Since(p.shown) >= p.interval() {
		p.write(1, what)
	}
	stop := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		tick := time.NewTicker(p.interval())
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.mu.Lock()
				p.write(1, fmt.Sprintf("%s, for %v", what, time.Since(begun).Round(time.Second)))
				p.mu.Unlock()
			}
		}
	})
	return func() {
		close(stop)
		saying.Wait()
		p.clear()
	}
}

// write writes a line; the caller holds mu. share is how much of the phase is done.
func (p *analysisProgress) write(share float64, line string) {
	p.shown = time.Now()
	if !p.terminal {
		fmt.Fprintln(p.w, line)
		return
	}
	const width = 20
	full := int(max(0, min(1, share)) * width)
	fmt.Fprintf(p.w, "\r[%s%s] %s\x1b[K", strings.Repeat("#", full), strings.Repeat(".", width-full), line)
}

// clear takes the line away.
func (p *analysisProgress) clear() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
