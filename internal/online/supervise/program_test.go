package supervise

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// timedSignal is a signal that arrives some time after the start of a test.
type timedSignal struct {
	after  time.Duration
	signal os.Signal
}

// interruptedRun is a run whose program and review end at set times.
type interruptedRun struct {
	program, review time.Duration // 0: ended before the start
	signals         []timedSignal
}

// play waits for the program and the review, and returns its output and how many
// interrupts the program was handed.
func (r interruptedRun) play(t *testing.T, ended *exec.Cmd) (said string, interrupts int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stderr strings.Builder
		c := &Crew{Config: Config{Stderr: &stderr, Quiet: true}, group: new(group), dir: t.TempDir()}
		c.ctx, c.end = context.WithCancel(t.Context())
		defer c.end()
		closeAfter := func(d time.Duration) chan struct{} {
			done := make(chan struct{})
			if d == 0 {
				close(done)
				return done
			}
			go func() {
				defer close(done)
				select {
				case <-c.ctx.Done(): // the crew was stopped
				case <-time.After(d):
				}
			}()
			return done
		}
		signals := &signalCatcher{c: make(chan os.Signal, 8)}
		for _, s := range r.signals {
			if s.after == 0 {
				signals.c <- s.signal
			} else {
				time.AfterFunc(s.after, func() { signals.c <- s.signal })
			}
		}
		p := &process{crew: c, cmd: ended, ended: closeAfter(r.program), end: new(provdb.Program), grace: time.Minute}
		reviewed := closeAfter(r.review)
		p.await(signals, true)
		c.awaitReview(signals, reviewed)
		time.Sleep(time.Minute) //nolint:forbidigo // in fake time, for signals that are left
		said, interrupts = stderr.String(), p.interrupts
	})
	return said, interrupts
}

// endedCommand returns a command that has ended.
func endedCommand(t *testing.T) *exec.Cmd {
	t.Helper()
	tracetest.SkipShort(t, "starts a process")
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	return cmd
}

func TestOneSignalKeepsReview(t *testing.T) {
	cmd := endedCommand(t)
	const ms = time.Millisecond
	f := func(name string, postponed bool, program time.Duration, signals ...timedSignal) {
		t.Run(name, func(t *testing.T) {
			for range 32 { // select chooses among what is ready at random
				said, _ := interruptedRun{program, 10 * time.Second, signals}.play(t, cmd)
				if got := strings.Contains(said, "ending without the review"); got != postponed {
					t.Fatalf("the review is postponed: %t, want %t; output %q", got, postponed, said)
				}
			}
		})
	}
	f("signal with the end of the program", false, 0, timedSignal{0, os.Interrupt})
	f("signal after the end of the program", false, 0, timedSignal{200 * ms, os.Interrupt})
	f("signal before the end of the program", false, 50*ms, timedSignal{40 * ms, syscall.SIGTERM})
	f("same signal twice", false, 50*ms, timedSignal{40 * ms, syscall.SIGTERM}, timedSignal{60 * ms, syscall.SIGTERM})
	f("two signals at once", false, 50*ms, timedSignal{40 * ms, syscall.SIGTERM}, timedSignal{60 * ms, syscall.SIGHUP})
	f("second signal", true, 50*ms, timedSignal{40 * ms, os.Interrupt}, timedSignal{2000 * ms, os.Interrupt})
	f("signal during the review", true, 0, timedSignal{2000 * ms, syscall.SIGTERM})
}

func TestSignalAfterReviewIsIgnored(t *testing.T) {
	for range 32 {
		var stderr strings.Builder
		signals, reviewed := &signalCatcher{c: make(chan os.Signal, 1)}, make(chan struct{})
		signals.c <- os.Interrupt
		close(reviewed)
		(&Crew{Config: Config{Stderr: &stderr}}).awaitReview(signals, reviewed)
		if stderr.Len() > 0 {
			t.Fatalf("output %q", stderr.String())
		}
	}
}

func TestRepeatedInterruptCountsOnce(t *testing.T) {
	cmd := endedCommand(t)
	f := func(want int, after ...time.Duration) {
		t.Helper()
		r := interruptedRun{program: time.Minute, review: 2 * time.Minute}
		for _, d := range after {
			r.signals = append(r.signals, timedSignal{d, os.Interrupt})
		}
		if said, got := r.play(t, cmd); got != want || strings.Contains(said, "killing") != (want > 2) {
			t.Errorf("interrupts after %v count as %d, want %d; output %q", after, got, want, said)
		}
	}
	f(1, 0)
	f(1, 0, 0, 5*time.Millisecond)
	f(2, 0, 2*time.Second)
	f(3, 0, 2*time.Second, 4*time.Second)
}
