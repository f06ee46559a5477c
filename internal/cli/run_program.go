package cli

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// sameDelivery is how far apart the effects of one signal may be. A terminal signals all
// processes of its foreground group, and batch systems signal those of a job in any order,
// some of them twice: the program may end before this process learns of the signal.
const sameDelivery = time.Second

// signalCatcher receives the signals that ask this process to end, in place of ending it.
// Whoever receives from c asks repeats before reacting.
type signalCatcher struct {
	c       chan os.Signal
	handled os.Signal // the latest; nil stands for all
	at      time.Time // when it was handled
}

func catchSignals() *signalCatcher {
	s := &signalCatcher{c: make(chan os.Signal, 8)}
	signal.Notify(s.c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return s
}

func (s *signalCatcher) stop() { signal.Stop(s.c) }

// repeats reports whether a signal belongs to one that was handled less than sameDelivery
// ago. If not, it counts as handled from now on.
func (s *signalCatcher) repeats(sig os.Signal) bool {
	if (s.handled == nil || s.handled == sig) && time.Since(s.at) < sameDelivery {
		return true
	}
	s.handled, s.at = sig, time.Now()
	return false
}

// settle declares all signals handled, those included that arrive within sameDelivery:
// what they ask for has just happened.
func (s *signalCatcher) settle() { s.handled, s.at = nil, time.Now() }

// programRun is the program that is analyzed, while it runs.
type programRun struct {
	crew    *crew
	path    string
	command []string
	environ []string
	grace   time.Duration // for its end, after SIGTERM
	period  time.Duration // of steps

	cmd        *exec.Cmd
	ended      chan struct{}
	end        *provdb.Program // how it ended, or will have
	interrupts int
}

// start starts the program. What it says and is told is not ours.
func (p *programRun) start() error {
	p.cmd = exec.Command(p.path, p.command[1:]...)
	p.cmd.Args[0] = p.command[0]
	p.cmd.Env = p.environ
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = cmp.Or(p.crew.env.Stdin, io.Reader(os.Stdin)), p.crew.env.Stdout, p.crew.env.Stderr
	p.end = &provdb.Program{Command: p.command}
	p.ended = make(chan struct{})
	adoptOrphans()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // its state tells
		close(p.ended)
	}()
	return nil
}

// await waits until the program has ended, and hands it signals. With a limit it also
// returns when the program has not ended within its grace after SIGTERM. Signals that
// arrive as it returns are meant for the program, and settled.
func (p *programRun) await(signals *signalCatcher, limited bool) {
	defer signals.settle()
	var late <-chan time.Time
	for {
		select {
		case <-p.ended:
			p.note()
			if limited {
				p.awaitOrphans(signals)
			}
			return
		case s := <-signals.c:
			if signals.repeats(s) {
				continue
			}
			p.hand(s)
			if s != os.Interrupt && limited && late == nil {
				late = time.After(p.grace)
			}
		case <-late:
			p.crew.warn("the program has not ended within %v; what was found so far is stored without waiting for it", p.grace)
			p.end.Goes = true
			return
		}
	}
}

// note notes how the program ended, as shells tell it.
func (p *programRun) note() {
	p.end.Code, p.end.Goes = p.cmd.ProcessState.ExitCode(), false
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		p.end.Code, p.end.Signal = 128+int(s.Signal()), s.Signal().String()
	}
}

// hand hands a signal to the program. Ctrl-C at a terminal goes to it anyway; who
// insists is heard.
func (p *programRun) hand(s os.Signal) {
	if s == os.Interrupt {
		p.interrupts++
		switch {
		case p.interrupts == 1 && inForeground():
			return
		case p.interrupts > 2:
			p.crew.warn("the program is killed")
			s = os.Kill
		}
	}
	_ = p.cmd.Process.Signal(s) // it may have ended
}

// quiet is how long traces may have nothing new, at least, before processes that the
// program left are not waited for any more.
const quiet = 5 * time.Second

// awaitOrphans waits for processes that the program left behind, as long as they write
// traces.
func (p *programRun) awaitOrphans(signals *signalCatcher) {
	told := false
	for {
		left := orphans(p.crew.group.Has)
		if len(left) == 0 || time.Since(newestIn(p.crew.traces())) > max(quiet, 3*p.period) {
			return
		}
		if !told {
			told = true
			p.crew.say("the program has ended; processes that it left behind write traces and are waited for")
		}
		select {
		case s := <-signals.c:
			if signals.repeats(s) {
				continue
			}
			for _, pid := range left {
				if process, err := os.FindProcess(pid); err == nil {
					_ = process.Signal(s) // it may have ended
				}
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// newestIn is when the newest file in a directory was written.
func newestIn(dir string) (newest time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what is not there any more is not new
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}
