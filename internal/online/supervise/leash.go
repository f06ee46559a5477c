package supervise

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ErrLetGo says that the process which held this one let it go, or has ended.
var ErrLetGo = errors.New("the process that started this one ended it, or has ended itself")

// Leash is the end of a leash in the process that is held.
type Leash struct{ lines chan string }

// Held has this process end when it is let go: ctx that is returned ends then, with
// the cause ErrLetGo. A process that does not end by that is ended after some time.
// Signals that ask it to end are not heeded any more.
func Held(ctx context.Context, in io.Reader) (context.Context, *Leash) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// The signals may have ended ctx already only if they came before this.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &Leash{lines: make(chan string, 16)}
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case l.lines <- s.Text():
			default: // nobody listens
			}
		}
		cancel(ErrLetGo)
		time.AfterFunc(2*grace, func() { os.Exit(1) }) //nolint:forbidigo // nobody waits for it any more
	}()
	return ctx, l
}

// ProgramEnded is the line that tells an analyzer that its program has ended: no more traces
// will come, and those that exist will not grow.
const ProgramEnded = "over"

// Lines are what this process is told; closed when it is let go.
func (l *Leash) Lines() <-chan string { return l.lines }
