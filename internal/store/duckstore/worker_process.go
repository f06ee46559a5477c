package duckstore

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/wire"
)

// workerName is the name of the program by which it becomes a worker.
const workerName = "chimbuko-sql"

// init makes this process a worker if it was started as one. Every program that imports this package can start workers,
// including tests.
func init() {
	if len(os.Args) != 1 || os.Args[0] != workerName {
		return
	}
	if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // the process is a worker only
	}
	os.Exit(0) //nolint:forbidigo // the process is a worker only
}

// maxRow is the size of the largest row that a worker sends. Its reader keeps rows in memory.
const maxRow = 64 << 20

// work performs a task.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	var t task
	if err := gob.NewDecoder(in).Decode(&t); err != nil {
		return err
	}
	go func() { // the other process has ended, or no longer needs the answer
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1) //nolint:forbidigo // the process is a worker only
	}()
	lowerPriority()
	store, err := t.open(ctx)
	if _, err := out.Write([]byte{0}); err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 64<<10)
	frames := gob.NewEncoder(w)
	send := func(f wire.Frame, now bool) error {
		if size := sizeOf(f.Row); size > maxRow {
			return fmt.Errorf("%w: a row has more than %s (shorten its values)", provdb.ErrLimit, text.Bytes(maxRow))
		}
		if err := frames.Encode(f); err != nil || !now {
			return err
		}
		return w.Flush()
	}
	if err == nil {
		err = wire.Answer(ctx, store, t.Query, send)
	}
	return send(wire.Last(err), true)
}

// open opens the database, and then limits the memory of this process.
func (t *task) open(ctx context.Context) (*Store, error) {
	path := t.Path
	if t.Snapshot != "" {
		path = filepath.Join(t.Snapshot, filepath.Base(t.Path))
		if err := copyDatabase(path, t.Path); err != nil {
			return nil, fmt.Errorf("copy %s for the query: %w", t.Path, err)
		}
	}
	limit := t.Query.Limits.Memory
	s, err := Open(ctx, path, Options{ReadOnly: true, memory: limit})
	if err != nil {
		return nil, err
	}
	s.path = t.Path // for error texts
	return s, limitMemory(limit)
}

// copyDatabase copies a database and its log. No process may change them in the meantime.
func copyDatabase(to, from string) error {
	if size, free := Size(from), freeSpace(filepath.Dir(to)); free < 2*size {
		return fmt.Errorf("only %s are free on its disk, the copy needs %s", text.Bytes(free), text.Bytes(size))
	}
	err := copyFile(to+".wal", from+".wal")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, copyFile(to, from))
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()                                                      //nolint:errcheck // only read from
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in a new directory
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeLeftovers removes the snapshots and temporary files that killed processes left, and files that they were creating.
// The caller must be the only writer of the database.
func removeLeftovers(path string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // if this fails, nothing is removed
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if strings.HasPrefix(e.Name(), snapshotPrefix) || ours && isLeftover(rest) {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(path), e.Name())) // harmless
		}
	}
}

// isLeftover reports whether the file with the name of a database and this suffix, without a dot, is temporary.
func isLeftover(suffix string) bool {
	return "."+suffix == spillSuffix || strings.HasSuffix(strings.TrimSuffix(suffix, ".wal"), newSuffix)
}

func sizeOf(row []any) (bytes int) {
	for _, v := range row {
		switch v := v.(type) {
		case string:
			bytes += len(v)
		case json.RawMessage:
			bytes += len(v)
		case json.Number:
			bytes += len(v)
		}
	}
	return bytes
}
