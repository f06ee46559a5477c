package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// demoChild is a process of this very program that the demo started. Its output is
// in a file.
type demoChild struct {
	what  string // it is, for people
	cmd   *exec.Cmd
	log   string        // path of the file with its output
	ended chan struct{} // is closed when the process has ended
}

// demoChildren are the processes of a demo. A process that fails cancels the
// context of all with a childError.
type demoChildren struct {
	program string
	logs    string // directory
	environ []string
	failed  context.CancelCauseFunc
	starts  chan func() // are done by the thread that the processes depend on
	all     []*demoChild
}

// newDemoChildren returns none yet. stop must be called in the end.
func newDemoChildren(dir *demoDir, environ []string, failed context.CancelCauseFunc) (*demoChildren, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &demoChildren{program: program, logs: dir.logs(), environ: childEnviron(environ, dir.temporary()), failed: failed, starts: make(chan func())}
	go func() {
		// Linux ends a process with the thread that started it, see outlivesNobody.
		runtime.LockOSThread()
		for start := range c.starts {
			start()
		}
	}()
	return c, nil
}

// childEnviron is the environment without the settings of chimbuko, which are not
// meant for the demo, and with another directory for temporary files.
func childEnviron(environ []string, temporary string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, envPrefix) || strings.HasPrefix(v, "TMPDIR=")
	})
	return append(environ, "TMPDIR="+temporary)
}

// start starts a process, unless ctx has ended. name is that of its log, what says
// what it is.
func (c *demoChildren) start(ctx context.Context, name, what string, args ...string) (*demoChild, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	p := &demoChild{what: what, log: filepath.Join(c.logs, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600) // the token is in some of them
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has it
	p.cmd = exec.Command(c.program, args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = c.environ, log, log, outlivesNobody()
	started := make(chan error, 1)
	c.starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	c.all = append(c.all, p)
	go func() {
		if err := p.cmd.Wait(); err != nil {
			c.failed(&childError{p, err})
		}
		close(p.ended)
	}()
	return p, nil
}

// grace is how long processes may take to end after they were told to.
const grace = 5 * time.Second

// stop ends all processes that have not ended, and waits for them. It may be called
// twice.
func (c *demoChildren) stop() {
	if c.starts == nil {
		return
	}
	for _, p := range c.all {
		if p.cmd.Process.Signal(syscall.SIGTERM) != nil { // it has ended, or there are no signals here
			_ = p.cmd.Process.Kill()
		}
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	for _, p := range c.all {
		select {
		case <-p.ended:
			continue
		case <-patience.C:
		}
		for _, late := range c.all {
			_ = late.cmd.Process.Kill() // an error says that it has ended
		}
		<-p.ended
	}
	close(c.starts)
	c.starts = nil
}

// childError says that a process of the demo failed.
type childError struct {
	child *demoChild
	err   error
}

func (e *childError) Error() string {
	how := e.err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](e.err); ok && !exit.Exited() {
		how = "killed (" + how + ")"
	}
	return fmt.Sprintf("%s (chimbuko %s, process %d) ended: %s", e.child.what, e.child.cmd.Args[1], e.child.cmd.Process.Pid, how)
}

func (e *childError) Unwrap() error { return e.err }

// lastLines returns the end of a log for people, indented.
func lastLines(path string) string {
	const lines, width, most = 8, 400, 16 << 10
	text, err := tailOf(path, most)
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		all[0] = "(empty)"
	}
	var b strings.Builder
	for _, line := range all[max(0, len(all)-lines):] {
		if line = oneLine(line); len(line) > width {
			line = strings.ToValidUTF8(line[:width], "") + "…"
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// tailOf reads at most the last bytes of a file.
func tailOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-most)
	b := make([]byte, info.Size()-from)
	n, err := f.ReadAt(b, from)
	if n == len(b) {
		err = nil // whether or not the end was met
	}
	return string(b[:n]), err
}
