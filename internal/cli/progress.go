package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a person at a terminal how far long work has come.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: nobody looks
	n, of int       // of: 0 where that is not known
	what  string
	shown time.Time
}

func newProgress(w io.Writer, of int, what string) *progress {
	p := &progress{of: of, what: what, shown: time.Now()}
	if isTerminal(w) {
		p.w = w
	}
	return p
}

const progressInterval = 500 * time.Millisecond

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if p.w != nil && time.Since(p.shown) > progressInterval {
		p.shown = time.Now()
		of := ""
		if p.of > 0 {
			of = fmt.Sprintf(" of %d", p.of)
		}
		fmt.Fprintf(p.w, "\r%d%s %s ", p.n, of, p.what)
	}
}

func (p *progress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
