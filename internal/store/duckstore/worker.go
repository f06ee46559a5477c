package duckstore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
)

// Statements with limits run in a process of their own, a worker, because DuckDB does not observe deadlines and its memory
// limit everywhere. A worker is this program with another name. It reads a task from its standard input, writes a byte when
// it no longer needs the file of the store, and then writes the frames of the answer. It ends when its input ends. See ADR
// 35.

// snapshotPrefix begins the names of the directories of snapshots, beside the database.
const snapshotPrefix = ".sql-"

// task is the input of a worker.
type task struct {
	Query    wire.Request
	Path     string
	Snapshot string // directory for a copy of the database if another process writes it; otherwise ""
}

// worker is a running statement with limits.
type worker struct {
	s       *Store
	ctx     context.Context //nolint:containedctx // context of the call of Query
	cancel  context.CancelCauseFunc
	memory  int64
	release func() // its slot

	mu     sync.Mutex // held by stop, and while the process starts
	cmd    *exec.Cmd
	in     io.Closer
	out    io.ReadCloser
	stderr firstBytes
	decode *wire.Decoder
	end    func() error
}

// queryLimited runs a statement in a worker.
func (s *Store) queryLimited(ctx context.Context, l provdb.Limits, query string, args []any) (*provdb.Rows, error) {
	q, err := wire.NewRequest(ctx, query, args)
	if err != nil {
		return nil, s.explain("query", err)
	}
	l.Memory = cmp.Or(l.Memory, defaultMemory())
	q.Limits = &l
	release, err := s.slots.Take(ctx)
	if err != nil {
		return nil, s.explain("query", err)
	}
	w := &worker{s: s, memory: l.Memory, release: release}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.end = sync.OnceValue(w.stop)
	rows, err := w.start(task{Query: q, Path: s.path})
	if err != nil {
		_ = w.end() // err is the cause
		return nil, w.explain(err)
	}
	return rows, nil
}

// start starts the process and reads the columns of its answer.
func (w *worker) start(t task) (_ *provdb.Rows, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.s.register(w) {
		return nil, provdb.ErrClosed
	}
	if err := w.send(&t); err != nil {
		return nil, err
	}
	in := bufio.NewReader(w.out)
	w.decode = wire.NewDecoder(in)
	columns, err := w.decode.Header()
	if err != nil {
		return nil, err
	}
	return &provdb.Rows{Columns: columns, All: w.all, Close: func() error { return w.abort(nil) }}, nil
}

// send starts the process, passes it the task, and waits until it no longer needs the file. No write may change the file in
// the meantime.
func (w *worker) send(t *task) error {
	if !w.s.readOnly {
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		if err := w.ctx.Err(); err != nil { // ended while another query or a write held the lock
			return err
		}
		dir, err := os.MkdirTemp(filepath.Dir(w.s.path), snapshotPrefix)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // otherwise the next writer removes it
		t.Snapshot = dir
	}
	if err := w.exec(); err != nil {
		return fmt.Errorf("start a process for the query: %w", err)
	}
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(t); err != nil {
		return err
	}
	if _, err := w.in.(io.Writer).Write(body.Bytes()); err != nil {
		return err
	}
	_, err := io.ReadFull(w.out, make([]byte, 1))
	return err
}

// exec starts the process.
func (w *worker) exec() (err error) {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat(selfExecutable); err == nil { // exists even if the file has been replaced
		path = selfExecutable
	}
	w.cmd = exec.CommandContext(w.ctx, path) //nolint:gosec // this program
	w.cmd.Args = []string{workerName}
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = time.Second
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	if w.out, err = w.cmd.StdoutPipe(); err != nil {
		return err
	}
	return w.cmd.Start()
}

// selfExecutable is this program on Linux.
const selfExecutable = "/proc/self/exe"

// all yields the rows.
func (w *worker) all(yield func([]any, error) bool) {
	defer w.cancel(nil)
	for {
		row, err := w.decode.Row()
		if errors.Is(err, wire.ErrEnd) {
			_ = w.end() // the answer is complete
			return
		}
		if err != nil {
			_ = w.end() // err is the cause
			yield(nil, w.explain(err))
			return
		}
		if !yield(row, nil) {
			_ = w.abort(nil) // the rest is not needed
			return
		}
	}
}

// stop waits until the process has ended and frees the slot. The end of the context ends the process.
func (w *worker) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.release()
	defer w.s.unregister(w)
	if w.cmd == nil || w.cmd.Process == nil {
		return nil
	}
	_ = w.in.Close() // ends the process as well
	_ = w.cmd.Wait() // explain has its state
	return nil
}

// abort ends the process.
func (w *worker) abort(cause error) error {
	w.cancel(cause)
	return w.end()
}

// explain returns the cause of an error: the end of the context, an error of the store in
// the worker, or the failure of the worker, which has ended.
func (w *worker) explain(err error) error {
	if w.ctx.Err() != nil {
		return w.s.explain("query", context.Cause(w.ctx))
	}
	if _, ok := errors.AsType[*wire.Error](err); ok {
		return err
	}
	if w.cmd == nil || w.cmd.ProcessState == nil {
		return w.s.explain("query", err)
	}
	if output := w.stderr.String(); strings.Contains(output, "out of memory") || strings.Contains(output, "malloc failed") ||
		strings.Contains(output, "bad_alloc") || strings.Contains(output, "cannot allocate memory") {
		return w.s.explain("query", memoryError(w.memory))
	}
	return w.s.explain("query", fmt.Errorf("the query made the SQL engine fail: %v (write it differently; other queries are not affected)",
		w.cmd.ProcessState))
}

// memoryError is the error of a statement that needs more memory than its limit.
func memoryError(limit int64) error {
	return fmt.Errorf("%w: it used more than %s of memory (aggregate or filter earlier, select fewer columns, or raise --sql-memory)",
		provdb.ErrLimit, text.Bytes(limit))
}

// firstBytes keeps the first bytes that a process writes.
type firstBytes struct {
	mu    sync.Mutex
	bytes []byte
}

func (b *firstBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 16 << 10
	b.bytes = append(b.bytes, p[:min(most-len(b.bytes), len(p))]...)
	return len(p), nil
}

func (b *firstBytes) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.bytes)
}

// maxDefaultMemory is the largest default of the memory limit of a statement.
const maxDefaultMemory = 2_000_000_000

// defaultMemory returns the memory limit of a statement if none is set: an eighth of the
// machine's memory, so that all statements together use at most a quarter.
func defaultMemory() int64 { return min(maxDefaultMemory, machineMemory()/8) }
