package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// storePlace is where the records of a run are.
type storePlace struct {
	server string // its URL, or else
	file   string // the database, and
	owner  string // the file that tells how to ask the process that owns it
	run    string // name of the run that is meant; "" is the latest
}

// findStore finds the store of a run directory, a database file or a server.
func findStore(where string) (storePlace, error) {
	if isServer(where) {
		return storePlace{server: where}, nil
	}
	info, err := os.Stat(where)
	if err != nil {
		return storePlace{}, fmt.Errorf("%w; give a run directory, a database file or postgres://…", err)
	}
	if !info.IsDir() {
		return storePlace{file: where, owner: rundir.Owner(filepath.Dir(where))}, nil
	}
	if run, err := rundir.ReadInfo(where); err == nil && run.Store != "" {
		return storePlace{server: run.Store, run: run.Name}, nil
	}
	file := filepath.Join(where, duckstore.FileName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(where, "records")); err == nil {
			return storePlace{}, fmt.Errorf("%s holds JSON records but no database; chimbuko import %s --out DIR makes one", where, where)
		}
		return storePlace{}, fmt.Errorf("%s is no run directory: %s is not there", where, duckstore.FileName)
	}
	return storePlace{file: file, owner: rundir.Owner(where)}, nil
}

// sameFile reports whether two places are one database file, which a process can
// open only once.
func (p storePlace) sameFile(o storePlace) bool {
	a, errA := os.Stat(p.file)
	b, errB := os.Stat(o.file)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// open opens the store for questions. closeStore must be called when all has been
// asked.
func (p storePlace) open(ctx context.Context) (r provdb.Reader, closeStore func() error, err error) {
	if p.server != "" {
		s, err := pgstore.Open(ctx, p.server, pgstore.Options{ReadOnly: true})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
	return p.openFile(ctx)
}

// patience is how long a process may take to give a file up, or to offer answers.
const patience = 3 * time.Second

// openFile opens the file, or asks the process that owns it. An owner that just
// begins or ends does neither for a moment.
func (p storePlace) openFile(ctx context.Context) (provdb.Reader, func() error, error) {
	for begin := time.Now(); ; {
		s, err := duckstore.Open(ctx, p.file, duckstore.Options{ReadOnly: true})
		if err == nil {
			return s, s.Close, nil
		}
		if !errors.Is(err, provdb.ErrInUse) {
			return nil, nil, err
		}
		c, remoteErr := remotestore.Open(ctx, p.owner)
		if remoteErr == nil {
			return c, c.Close, nil
		}
		away := errors.Is(remoteErr, remotestore.ErrGone) || errors.Is(remoteErr, provdb.ErrNotFound)
		if !away || time.Since(begin) > patience {
			return nil, nil, fmt.Errorf("%w; it could not be asked either: %w", err, remoteErr)
		}
		if err := sleep(ctx, patience/50); err != nil {
			return nil, nil, err
		}
	}
}

// isServer tells the URL of a server from a path.
func isServer(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}
