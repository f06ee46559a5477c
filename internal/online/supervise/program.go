package supervise

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

// sameDelivery is the longest time between the effects of one signal. A terminal signals all
// processes of its foreground group, and batch systems signal those of a job in any order,
// some of them twice: the program may end before this process receives the signal.
const sameDelivery = time.Second

// signalCatcher receives the signals that would terminate this process.
// Receivers from c call repeats before they react.
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
// their effect has just happened.
func (s *signalCatcher) settle() { s.handled, s.at = nil, time.Now() }

// process is the program under analysis.
type process struct {
	crew   *Crew
	grace  time.Duration // how long it may take to end after SIGTERM
	period time.Duration // time between steps of its traces

	cmd        *exec.Cmd
	ended      chan struct{}
	end        *provdb.Program // how it ended, once it has
	interrupts int
}

// start starts a command with the standard input and output of the crew.
func (p *process) start(path string, command, environ []string) error {
	p.cmd = exec.Command(path, command[1:]...)
	p.cmd.Args[0] = command[0]
	p.cmd.Env = environ
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = cmp.Or(p.crew.Stdin, io.Reader(os.Stdin)), p.crew.Stdout, p.crew.Stderr
	p.end = &provdb.Program{Command: command}
	p.ended = make(chan struct{})
	adoptOrphans()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState has the result
		close(p.ended)
	}()
	return nil
}

// await waits until the program has ended, and forwards signals to it. With a limit it also
// returns when the program has not ended within its grace after SIGTERM. Signals that
// arrive as it returns are meant for the program, and settled.
func (p *process) await(signals *signalCatcher, limited bool) {
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
			p.forward(s)
			if s != os.Interrupt && limited && late == nil {
				late = time.After(p.grace)
			}
		case <-late:
			p.crew.warn("the program has not ended within %v; storing the results without waiting for it", p.grace)
			p.end.Running = true
			return
		}
	}
}

// note records how the program ended, with the exit code that a shell would report.
func (p *process) note() {
	p.end.Code, p.end.Running = p.cmd.ProcessState.ExitCode(), false
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		p.end.Code, p.end.Signal = 128+int(s.Signal()), s.Signal().String()
	}
}

// forward sends a signal to the program. The first Ctrl-C at a terminal reaches it anyway;
// the third kills it.
func (p *process) forward(s os.Signal) {
	if s == os.Interrupt {
		p.interrupts++
		switch {
		case p.interrupts == 1 && inForeground():
			return
		case p.interrupts > 2:
			p.crew.warn("killing the program")
			s = os.Kill
		}
	}
	_ = p.cmd.Process.Signal(s) // it may have ended
}

// quiet is the minimum time without trace output after which orphans of the program are no longer
// awaited.
const quiet = 5 * time.Second

// awaitOrphans waits for processes that the program left behind while they write traces.
func (p *process) awaitOrphans(signals *signalCatcher) {
	reported := false
	for {
		left := orphans(p.crew.group.has)
		if len(left) == 0 || time.Since(newestIn(p.crew.Traces())) > max(quiet, 3*p.period) {
			return
		}
		if !reported {
			reported = true
			p.crew.Printf("the program has ended; waiting for processes it left behind that write traces")
		}
		select {
		case s := <-signals.c:
			if signals.repeats(s) {
				continue
			}
			for _, pid := range left {
				if orphan, err := os.FindProcess(pid); err == nil {
					_ = orphan.Signal(s) // it may have ended
				}
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// newestIn returns the modification time of the newest file in a directory.
func newestIn(dir string) (newest time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // a file that is gone is not new
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}
