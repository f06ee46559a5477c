// Package children starts further processes of this very program, with their output
// in log files, and holds each by a leash: a pipe to its standard input. Such a
// process heeds no signals of the terminal or of a batch system, which go to all
// processes at once; it ends when the leash does, and so never outlives who holds it.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Flag is the flag with which a process of this program is told that it is held.
const Flag = "leash"

// Group are the processes that were started together.
type Group struct {
	program string
	logs    string // directory
	environ []string
	failed  func(*Failure)

	mu  sync.Mutex
	all []*Child
}

// New returns a group without processes; their logs will be in a directory, which is
// there. failed is called for each that ends with an error, before its end is told,
// and may be nil. Stop must be called in the end.
func New(logs string, environ []string, failed func(*Failure)) (*Group, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &Group{program: program, logs: logs, environ: environ, failed: failed}, nil
}

// Child is a process. Its output is in a file.
type Child struct {
	What string // it is, for people
	Log  string // path of the file with its output

	cmd   *exec.Cmd
	leash io.WriteCloser
	ended chan struct{}
	err   error // of its end
}

// Start starts a process, unless ctx has ended. name is that of its log, to which
// is appended what it says; what says what it is.
func (g *Group) Start(ctx context.Context, name, what string, args ...string) (*Child, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c := &Child{What: what, Log: filepath.Join(g.logs, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has it
	c.cmd = exec.Command(g.program, append(slices.Clone(args), "--"+Flag)...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = g.environ, log, log, ownGroup()
	if c.leash, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	g.mu.Lock()
	g.all = append(g.all, c)
	g.mu.Unlock()
	go func() {
		if c.err = c.cmd.Wait(); c.err != nil && g.failed != nil {
			g.failed(&Failure{c, c.err})
		}
		close(c.ended)
	}()
	return c, nil
}

// Wait returns when all processes that were started so far have ended.
func (g *Group) Wait() {
	for _, c := range g.snapshot() {
		<-c.ended
	}
}

func (g *Group) snapshot() []*Child {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*Child(nil), g.all...)
}

// Has reports whether a process was started by the group.
func (g *Group) Has(pid int) bool {
	for _, c := range g.snapshot() {
		if c.PID() == pid {
			return true
		}
	}
	return false
}

// grace is how long processes may take to end after they were let go.
const grace = 10 * time.Second

// Stop ends all processes that have not ended, and waits for them. It may be called
// twice.
func (g *Group) Stop() {
	all := g.snapshot()
	for _, c := range all {
		c.LetGo()
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	for _, c := range all {
		select {
		case <-c.ended:
			continue
		case <-patience.C:
		}
		for _, late := range all {
			_ = late.cmd.Process.Kill() // an error says that it has ended
		}
		<-c.ended
	}
}

// LetGo has the process end.
func (c *Child) LetGo() { _ = c.leash.Close() } // it may have ended

// Tell tells the process something, in one line.
func (c *Child) Tell(line string) error {
	_, err := io.WriteString(c.leash, strings.ReplaceAll(line, "\n", " ")+"\n")
	return err
}

// Ended is closed when the process has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Err is how the process ended; nil is well. It may be asked for when it has.
func (c *Child) Err() error { return c.err }

// Used is the processor time of a process that has ended.
func (c *Child) Used() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Failure says that a process ended with an error.
type Failure struct {
	Child *Child
	Err   error
}

func (e *Failure) Error() string {
	how := e.Err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](e.Err); ok && !exit.Exited() {
		how = "killed (" + how + ")"
	}
	return fmt.Sprintf("%s (chimbuko %s, process %d) ended: %s", e.Child.What, e.Child.cmd.Args[1], e.Child.PID(), how)
}

func (e *Failure) Unwrap() error { return e.Err }
