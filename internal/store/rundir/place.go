package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Place is where the records of a run are: on a server, or in a database file.
type Place struct {
	Server string // URL
	File   string
	Owner  string // file with the address of the process that owns File
	Run    string // name of the run; "" is the latest
}

// FindStore finds the store of a run directory, a database file or a server.
func FindStore(where string) (Place, error) {
	if IsServer(where) {
		return Place{Server: where}, nil
	}
	info, err := os.Stat(where)
	if err != nil {
		return Place{}, fmt.Errorf("%w (want a run directory, a database file or postgres://…)", err)
	}
	if !info.IsDir() {
		if inspect.HasTraces(where) {
			return Place{}, fmt.Errorf("%s is a trace, not a run%s", where, analyzeHint(where))
		}
		return Place{File: where, Owner: Owner(filepath.Dir(where))}, nil
	}
	switch run, err := runfiles.ReadInfo(where); {
	case fileformat.IsOther(err):
		return Place{}, err
	case err == nil && run.Store != "":
		return Place{Server: run.Store, Run: run.Name}, nil
	}
	file := filepath.Join(where, duckstore.FileName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(where, "records")); err == nil {
			return Place{}, fmt.Errorf("%s has JSON records but no database (create one with chimbuko import %s --out DIR)", where, where)
		}
		if inspect.HasTraces(where) {
			return Place{}, fmt.Errorf("%s has traces, but no analyzed run%s", where, analyzeHint(where))
		}
		return Place{}, fmt.Errorf("%s is not a run directory: it has no %s", where, duckstore.FileName)
	}
	return Place{File: file, Owner: Owner(where)}, nil
}

// analyzeHint returns the command that makes a run of traces.
func analyzeHint(traces string) string {
	to := filepath.Clean(traces) + "-run"
	return fmt.Sprintf(" (to analyze it, run: chimbuko analyze %s --out %s)", text.ShellWord(traces), text.ShellWord(to))
}

// Find returns the run directory of a path, which is the directory or its database; "" for
// anything else.
func Find(where string) string {
	if IsServer(where) {
		return ""
	}
	if filepath.Base(where) == duckstore.FileName {
		where = filepath.Dir(where)
	}
	info, err := os.Stat(where)
	if err != nil || !info.IsDir() {
		return ""
	}
	if _, err := runfiles.ReadServices(where); err == nil {
		return where
	}
	if _, err := runfiles.ReadInfo(where); err != nil {
		return ""
	}
	return where
}

// IsServer reports whether where is the URL of a server, not a path.
func IsServer(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// String returns the place as commands take it, without passwords.
func (p Place) String() string {
	if p.Server != "" {
		return redact.URLs(p.Server)
	}
	return absolute(p.File)
}

// Raw returns the place as String does, but a file as it was given.
func (p Place) Raw() string { return cmp.Or(redact.URLs(p.Server), p.File) }

// SameStore reports whether two places are one server or one file, which a process can
// open only once.
func (p Place) SameStore(o Place) bool {
	if p.Server != "" {
		return p.Server == o.Server
	}
	a, errA := os.Stat(p.File)
	b, errB := os.Stat(o.File)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// Reader is an open store. After an error of Open it must not be used.
type Reader interface {
	provdb.Reader
	io.Closer
}

// Open opens the store for reading.
func (p Place) Open(ctx context.Context) (Reader, error) {
	if p.Server != "" {
		return pgstore.Open(ctx, p.Server, pgstore.Options{ReadOnly: true})
	}
	return p.openFile(ctx)
}

// ownerTimeout is how long a process may take to close a file, or to start answering.
const ownerTimeout = 3 * time.Second

// openFile opens the file, or connects to the process that owns it. For a moment at its
// start and its end, an owner allows neither.
func (p Place) openFile(ctx context.Context) (Reader, error) {
	for begin := time.Now(); ; {
		s, err := duckstore.Open(ctx, p.File, duckstore.Options{ReadOnly: true})
		if !errors.Is(err, provdb.ErrInUse) {
			return s, err
		}
		c, remoteErr := remotestore.Open(ctx, p.Owner)
		if remoteErr == nil {
			return c, nil
		}
		away := errors.Is(remoteErr, remotestore.ErrGone) || errors.Is(remoteErr, provdb.ErrNotFound)
		if !away || time.Since(begin) > ownerTimeout {
			return nil, fmt.Errorf("%w; its owner does not answer either: %w", err, remoteErr)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(ownerTimeout / 50):
		}
	}
}
