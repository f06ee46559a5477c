package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Config describes where and in which forms a run is stored.
type Config struct {
	Dir      string        // the run directory
	Force    bool          // replace the run in that directory or of that name
	Files    bool          // write records as JSON files
	Database bool          // write records to a database
	Store    string        // URL of a PostgreSQL server; "" keeps the database in Dir
	Name     string        // of the run in the store; "" is the base name of Dir
	Small    bool          // few records are expected
	Delay    time.Duration // how long records may wait to be stored together with others
	Log      *slog.Logger  // nil for none
}

// RunName returns the name of the run in its store.
func (c *Config) RunName() string {
	if c.Name != "" {
		return c.Name
	}
	return runfiles.Name(c.Dir)
}

// absolute returns path as an absolute path, or unchanged without a working directory.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// Keeper writes a run: its directory, and its records to files or a store.
type Keeper struct {
	Dir   *Dir
	Store provdb.Store // nil for none
	Run   provdb.Run
	// Buffer collects writes to Store; nil without a store, and for a resumed run.
	Buffer *provdb.Buffer

	files     bool
	server    io.Closer // serves other processes; nil for none
	anomalies anomalySink
}

// New creates the run directory, and the run in its store.
func New(ctx context.Context, cfg *Config, info *provdb.Info) (*Keeper, error) {
	if c, err := remotestore.Open(ctx, Owner(cfg.Dir)); err == nil {
		err = fmt.Errorf("%s: the directory has a run in progress (wait for it to end, or choose another directory with --out)", cfg.Dir)
		return nil, errors.Join(err, c.Close())
	}
	dir, err := Create(cfg.Dir, cfg.Force)
	if err != nil {
		return nil, err
	}
	if cfg.Store != "" {
		info.Store, info.Name = redact.URLs(cfg.Store), cfg.RunName()
	}
	k := &Keeper{Dir: dir, files: cfg.Files}
	if err := k.Dir.WriteInfo(info); err != nil {
		return nil, err
	}
	if !cfg.Database {
		return k, nil
	}
	err = k.openStore(ctx, cfg)
	if err == nil {
		err = k.createRun(ctx, cfg, info)
	}
	if err != nil {
		return nil, errors.Join(err, k.Close(), k.Dir.Discard())
	}
	return k, nil
}

// Reopen opens the store of an existing run directory.
func Reopen(ctx context.Context, cfg *Config) (*Keeper, error) {
	dir, err := Join(cfg.Dir)
	if err != nil {
		return nil, err
	}
	k := &Keeper{Dir: dir}
	if err := k.openStore(ctx, cfg); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// NewOrResume creates a run that services write, or resumes one that has not ended. It
// copies start time, program and settings of a resumed run to info.
func NewOrResume(ctx context.Context, cfg *Config, info *provdb.Info) (*Keeper, error) {
	if cfg.Force && !HasOnlyServices(cfg.Dir) {
		return New(ctx, cfg, info)
	}
	for {
		if err := joinServices(cfg.Dir, info); err != nil {
			return nil, err
		}
		if k, err := resume(ctx, cfg, info); k != nil || err != nil {
			return k, err
		}
		k, err := New(ctx, cfg, info)
		if err == nil || !HasOnlyServices(cfg.Dir) { // other services have just started
			return k, err
		}
	}
}

// joinServices writes run.json to a directory where other services of the run started
// before the store, so that there is a run to resume.
func joinServices(path string, info *provdb.Info) error {
	if !HasOnlyServices(path) {
		return nil
	}
	dir, err := Join(path)
	if err != nil {
		return err
	}
	return dir.WriteInfo(info)
}

// resume continues a run. It returns nil without a run to resume.
func resume(ctx context.Context, cfg *Config, info *provdb.Info) (*Keeper, error) {
	old, err := runfiles.ReadInfo(cfg.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no run
	}
	if err != nil {
		return nil, err
	}
	if !old.Online || !old.State.Open() {
		return nil, nil //nolint:nilnil // New explains why
	}
	info.Started, info.Program = old.Started, old.Program
	if old.State == provdb.Incomplete {
		info.Settings = old.Settings
	}
	k, err := Reopen(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a, err := query.New(ctx, k.Store, cfg.RunName())
	switch {
	case errors.Is(err, provdb.ErrNotFound): // it ended before it was created in the store
		err = k.createRun(ctx, cfg, info)
	case err == nil:
		if k.Run, k.Run.State = a.Run, provdb.Running; old.State != provdb.Running {
			err = k.End(ctx, info)
		}
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// openStore opens the store. If the store is a file, it also serves other processes.
func (k *Keeper) openStore(ctx context.Context, cfg *Config) (err error) {
	if cfg.Store != "" {
		k.Store, err = pgstore.Open(ctx, cfg.Store, pgstore.Options{})
	} else {
		k.Store, err = openWriter(ctx, cfg, k.Dir.Database())
	}
	if err != nil {
		k.Store = nil
		return err
	}
	if cfg.Store == "" {
		server, err := remotestore.Serve(ctx, k.Store, Owner(cfg.Dir))
		if err != nil {
			return err
		}
		k.server = server
	}
	return nil
}

// lockTimeout is the time to wait for queries of other processes that keep a file from being opened for writing. It is
// longer than the usual time limit of a query.
const lockTimeout = 40 * time.Second

// openWriter opens a file for writing. Until a process owns the file, queries open it directly, and no process can open
// it for writing until they end.
func openWriter(ctx context.Context, cfg *Config, path string) (provdb.Store, error) {
	for begin, waiting := time.Now(), false; ; waiting = true {
		s, err := duckstore.Open(ctx, path, duckstore.Options{Small: cfg.Small})
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, provdb.ErrInUse) || time.Since(begin) > lockTimeout || hasOwner(ctx, cfg.Dir) {
			return nil, err
		}
		if !waiting && cfg.Log != nil {
			cfg.Log.Warn("waiting for a query of another process to close the store", "error", err)
		}
		if ctxErr := wait.Sleep(ctx, 100*time.Millisecond); ctxErr != nil {
			return nil, errors.Join(err, ctxErr)
		}
	}
}

// hasOwner reports whether a process answers queries of the store of a run directory.
func hasOwner(ctx context.Context, dir string) bool {
	c, err := remotestore.Open(ctx, Owner(dir))
	if err != nil {
		return errors.Is(err, provdb.ErrInUse) // of another host
	}
	_ = c.Close() // nothing to lose
	return true
}

// createRun creates the run in the store.
func (k *Keeper) createRun(ctx context.Context, cfg *Config, info *provdb.Info) (err error) {
	k.Run = provdb.Run{Name: cfg.RunName(), State: provdb.Running, Started: info.Started}
	if k.Run.Info, err = json.Marshal(info); err != nil {
		return err
	}
	k.Run.ID, err = k.Store.CreateRun(ctx, k.Run)
	if errors.Is(err, provdb.ErrRunExists) && cfg.Force {
		k.Run.ID, err = k.replaceRun(ctx)
	}
	if errors.Is(err, provdb.ErrRunExists) {
		return fmt.Errorf("%w (choose another name with --name, or replace it with --force)", err)
	}
	if err != nil {
		return err
	}
	k.Buffer = provdb.NewBuffer(ctx, k.Store, k.Run.ID, cfg.Delay, provdb.DefaultSize)
	return nil
}

// replaceRun creates the run in place of another with its name.
func (k *Keeper) replaceRun(ctx context.Context) (provdb.RunID, error) {
	a, err := query.New(ctx, k.Store, k.Run.Name)
	if err != nil {
		return 0, err
	}
	if err := k.Store.DeleteRun(ctx, a.Run.ID); err != nil {
		return 0, err
	}
	return k.Store.CreateRun(ctx, k.Run)
}

// Sink returns the sink that writes records.
func (k *Keeper) Sink() analyzer.RecordSink {
	sinks := Sinks{&k.anomalies} // first: it does not retain records
	if k.files {
		sinks = append(sinks, k.Dir)
	}
	if k.Buffer != nil {
		sinks = append(sinks, NewStoreSink(k.Buffer))
	}
	return sinks
}

// WriteCollections writes the collections over all ranks, after all records.
func (k *Keeper) WriteCollections(ctx context.Context, c *provenance.Collections) error {
	if k.files {
		if err := k.Dir.WriteGlobal(c); err != nil {
			return err
		}
	}
	if k.Buffer != nil {
		if err := NewStoreSink(k.Buffer).Finish(ctx, c); err != nil {
			return err
		}
	}
	return k.Dir.RemoveSpool()
}

// Size returns the size of the records in the directory, in bytes.
func (k *Keeper) Size() int64 {
	return k.Dir.Size() + duckstore.Size(k.Dir.Database())
}

// End writes info, with the state of the run, to the store and run.json.
func (k *Keeper) End(ctx context.Context, info *provdb.Info) error {
	if k.Store != nil && k.Run.ID != 0 {
		text, err := json.Marshal(info)
		if err != nil {
			return err
		}
		k.Run.State, k.Run.Finished, k.Run.Info = info.State, time.Time{}, text
		if !info.State.Open() {
			k.Run.Finished = time.Now()
		}
		err = k.Store.UpdateRun(ctx, k.Run)
		if err != nil && info.State != provdb.Finished { // it is finished when the store has that
			err = errors.Join(err, k.Dir.WriteInfo(info))
		}
		if err != nil {
			return err
		}
	}
	return k.Dir.WriteInfo(info)
}

// Close closes the store. It may be called twice.
func (k *Keeper) Close() error {
	var errs []error
	if k.server != nil {
		errs = append(errs, k.server.Close())
		k.server = nil
	}
	if k.Store != nil {
		errs = append(errs, k.Store.Close())
		k.Store = nil
	}
	return errors.Join(errs...)
}
