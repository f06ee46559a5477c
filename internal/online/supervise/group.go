// Package supervise runs a program together with the processes that analyze it: services
// and analyzers, which are processes of this very program. It restarts those that die,
// forwards signals to the program, and completes runs that were stopped early.
//
// It holds each process by a leash: a pipe to its standard input. Such a process ignores
// the signals of terminals and batch systems, which go to all processes at once; it ends
// when the leash is closed, and so never outlives this process.
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

// Flag is the flag of a process that is held by a leash.
const Flag = "leash"

// group is a set of processes of this program.
type group struct {
	program string
	logs    string // directory
	environ []string

	mu  sync.Mutex
	all []*child
}

// newGroup returns a group without processes, whose logs will be in an existing directory.
// The caller must call stop.
func newGroup(logs string, environ []string) (*group, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &group{program: program, logs: logs, environ: environ}, nil
}

// child is a process that writes its output to a file.
type child struct {
	what string // description for people
	log  string // path of its output

	cmd   *exec.Cmd
	leash io.WriteCloser
	ended chan struct{}
	err   error // its result; valid when ended is closed
}

// start starts a process, unless ctx has ended. It appends the output to the log with
// that name.
func (g *group) start(ctx context.Context, name, what string, args ...string) (*child, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c := &child{what: what, log: filepath.Join(g.logs, name+".log"), ended: make(chan struct{})}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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
		return nil, fmt.Errorf("start %s: %w", what, err)
	}
	g.mu.Lock()
	g.all = append(g.all, c)
	g.mu.Unlock()
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (g *group) snapshot() []*child {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

// has reports whether the group started a process.
func (g *group) has(pid int) bool {
	return slices.ContainsFunc(g.snapshot(), func(c *child) bool { return c.pid() == pid })
}

// grace is the time in which processes must end after their leash is closed.
const grace = 10 * time.Second

// stop ends all processes and waits for them. It may be called more than once.
func (g *group) stop() {
	all := g.snapshot()
	for _, c := range all {
		c.release()
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	for _, c := range all {
		select {
		case <-c.ended:
			continue
		case <-late.C:
		}
		for _, c := range all {
			_ = c.cmd.Process.Kill() // fails if it has ended
		}
		<-c.ended
	}
}

// release closes the leash, which ends the process.
func (c *child) release() { _ = c.leash.Close() } // fails if it has ended

// send sends a line to the process.
func (c *child) send(line string) error {
	_, err := io.WriteString(c.leash, strings.ReplaceAll(line, "\n", " ")+"\n")
	return err
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// failure describes the end of a failed process.
func (c *child) failure() string {
	how := c.err.Error()
	if exit, ok := errors.AsType[*exec.ExitError](c.err); ok && !exit.Exited() {
		how = "killed (" + how + ")"
	}
	return fmt.Sprintf("%s (chimbuko %s, process %d) ended: %s", c.what, c.cmd.Args[1], c.pid(), how)
}
