// Package alert runs a command of the user for each new finding of a run.
package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Bounds of commands.
const (
	maxRunning = 4    // commands that run at the same time
	maxQueue   = 100  // commands that wait or run
	maxOutput  = 4096 // bytes of the output of a command that are logged
)

// Runner runs a command for each new finding. Its fields must not change after the first Check.
type Runner struct {
	Command string   // for the shell
	Environ []string // of the command
	// TimeLimit is the time after which a command is ended, with all processes that it started.
	TimeLimit time.Duration
	Log       *slog.Logger

	started map[string]bool // findings for which the command was started
	slots   chan struct{}
	wg      sync.WaitGroup
	mu      sync.Mutex
	queued  int
}

// Check starts the command for the alarms among these findings that are new: not minor, not
// withdrawn, and not caused by another. It does not wait for the command. If too many are running,
// it leaves the rest to the next Check. Concurrent calls are not allowed.
func (r *Runner) Check(ctx context.Context, list []provenance.Finding) {
	if r.slots == nil {
		r.started, r.slots = make(map[string]bool), make(chan struct{}, maxRunning)
	}
	for i, key := range findings.Keys(list) {
		f := &list[i]
		if !f.Listed() || r.started[key] || !r.enqueue() {
			continue
		}
		r.started[key] = true
		input, err := json.Marshal(f)
		if err != nil {
			r.Log.Error("cannot encode a finding", "finding", f.Summary, "error", err)
			r.dequeue()
			continue
		}
		r.wg.Go(func() {
			defer r.dequeue()
			r.slots <- struct{}{}
			defer func() { <-r.slots }()
			if err := r.run(ctx, input); err != nil {
				r.Log.Warn("the command of --on-finding failed", "command", r.Command, "finding", f.Summary, "error", err)
			}
		})
	}
}

func (r *Runner) enqueue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queued >= maxQueue {
		return false
	}
	r.queued++
	return true
}

func (r *Runner) dequeue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued--
}

// run runs the command once.
func (r *Runner) run(ctx context.Context, input []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.TimeLimit, fmt.Errorf("it took longer than %v", r.TimeLimit))
	defer cancel()
	var out tail
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.Command) //nolint:gosec // the user's own command
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Environ, bytes.NewReader(append(input, '\n')), &out, &out
	cmd.WaitDelay = time.Second
	endWithGroup(cmd)
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && len(out.b) > 0 {
		err = fmt.Errorf("%w; its output ends with %q", err, out.b)
	}
	return err
}

// Wait waits until all commands have ended.
func (r *Runner) Wait() { r.wg.Wait() }

// tail keeps the end of the written bytes.
type tail struct{ b []byte }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if more := len(t.b) - maxOutput; more > 0 {
		t.b = append(t.b[:0], t.b[more:]...)
	}
	return len(b), nil
}
