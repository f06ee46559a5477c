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

// ErrReleased is the cause of the end of a process whose leash was closed.
var ErrReleased = errors.New("the supervising process closed the leash or has ended")

// OnLeash makes this process ignore the signals that terminate it. It returns a context that
// ends with the cause ErrReleased when in, the leash, is closed, and the lines sent to this
// process until then. If the process continues for twice grace after that, OnLeash ends it.
func OnLeash(ctx context.Context, in io.Reader) (context.Context, <-chan string) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // unread
			}
		}
		cancel(ErrReleased)
		time.AfterFunc(2*grace, func() { os.Exit(1) }) //nolint:forbidigo // the parent has ended
	}()
	return ctx, lines
}
