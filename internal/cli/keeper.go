package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/pgstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// keeperFlags say where a run is kept.
type keeperFlags struct {
	out     string
	force   bool
	records string
	store   string
	name    string
	delay   time.Duration
}

func (k *keeperFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&k.out, "out", "o", "chimbuko-run", "directory of the run, which is made")
	f.BoolVar(&k.force, "force", false, "replace a run that is in the directory, or of that name in the store, already")
	f.StringVar(&k.store, "store", "", "postgres://… to keep records on a server instead of in the run directory")
	f.StringVar(&k.name, "name", "", "name of the run in the store; by default that of its directory")
	f.DurationVar(&k.delay, "store-delay", provdb.DefaultDelay, "how long records may wait to be stored together with others")
}

// forms returns which forms of records are kept.
func (k *keeperFlags) forms() (files, database bool, err error) {
	switch k.records {
	case "db":
		return false, true, nil
	case "json":
		return true, false, nil
	case "both":
		return true, true, nil
	}
	return false, false, usagef("records %q is none of db, json, both", k.records)
}

// runName is the name of the run in its store.
func (k *keeperFlags) runName() string {
	if k.name != "" {
		return k.name
	}
	path, err := filepath.Abs(k.out)
	if err != nil {
		path = k.out // as good as it gets where there is no working directory
	}
	return filepath.Base(path)
}

// keeper is where a run is kept while it is made.
type keeper struct {
	dir    *rundir.Dir
	files  bool
	store  provdb.Store // nil for none
	run    provdb.Run
	buffer *provdb.Buffer
	server io.Closer // answers other processes; nil for none
	found  anomalySink
}

// newKeeper makes the run directory and the run in the store.
func newKeeper(ctx context.Context, flags *keeperFlags, info *provdb.Info) (*keeper, error) {
	files, database, err := flags.forms()
	if err != nil {
		return nil, err
	}
	switch {
	case flags.store != "" && !isServer(flags.store):
		return nil, usagef("store %q does not begin with postgres://", flags.store)
	case flags.store != "" && !database:
		return nil, usagef("records as %s are not kept on a server: leave out --store, or give --records db or both", flags.records)
	}
	if c, err := remotestore.Open(ctx, rundir.Owner(flags.out)); err == nil {
		return nil, errors.Join(fmt.Errorf("%s: a run is being written there; wait for it to end, or choose another directory with --out", flags.out), c.Close())
	}
	k := &keeper{files: files}
	if k.dir, err = rundir.Create(flags.out, flags.force); err != nil {
		return nil, err
	}
	if err := k.dir.WriteInfo(info); err != nil {
		return nil, err
	}
	if !database {
		return k, nil
	}
	err = k.openStore(ctx, flags)
	if err == nil {
		err = k.createRun(ctx, flags, info)
	}
	if err != nil {
		return nil, errors.Join(err, k.close(), k.dir.Discard())
	}
	return k, nil
}

// openStore opens the store, and answers other processes if it is a file.
func (k *keeper) openStore(ctx context.Context, flags *keeperFlags) (err error) {
	if flags.store != "" {
		k.store, err = pgstore.Open(ctx, flags.store, pgstore.Options{})
	} else {
		k.store, err = duckstore.Open(ctx, k.dir.Database(), duckstore.Options{})
	}
	if err != nil {
		k.store = nil
		return err
	}
	if flags.store == "" {
		server, err := remotestore.Serve(ctx, k.store, rundir.Owner(flags.out))
		if err != nil {
			return err
		}
		k.server = server
	}
	return nil
}

// findRun finds the run in the store, to go on with it.
func (k *keeper) findRun(ctx context.Context, flags *keeperFlags) error {
	a, err := query.New(ctx, k.store, flags.runName())
	if err != nil {
		return err
	}
	k.run = provdb.Run{ID: a.Run.ID, Name: a.Run.Name, State: provdb.Running, Started: a.Run.Started, Info: a.Run.Info}
	return nil
}

// createRun makes the run in the store.
func (k *keeper) createRun(ctx context.Context, flags *keeperFlags, info *provdb.Info) (err error) {
	k.run = provdb.Run{Name: flags.runName(), State: provdb.Running, Started: info.Started}
	if k.run.Info, err = json.Marshal(info); err != nil {
		return err
	}
	k.run.ID, err = k.store.CreateRun(ctx, k.run)
	if errors.Is(err, provdb.ErrRunExists) && flags.force {
		k.run.ID, err = k.replaceRun(ctx)
	}
	if errors.Is(err, provdb.ErrRunExists) {
		return fmt.Errorf("%w; choose another with --name, or give --force to replace it", err)
	}
	if err != nil {
		return err
	}
	k.buffer = provdb.NewBuffer(ctx, k.store, k.run.ID, flags.delay, provdb.DefaultSize)
	return nil
}

// replaceRun makes the run in place of one of its name.
func (k *keeper) replaceRun(ctx context.Context) (provdb.RunID, error) {
	a, err := query.New(ctx, k.store, k.run.Name)
	if err != nil {
		return 0, err
	}
	if err := k.store.DeleteRun(ctx, a.Run.ID); err != nil {
		return 0, err
	}
	return k.store.CreateRun(ctx, k.run)
}

// recordSink takes what is kept.
func (k *keeper) recordSink() analyzer.RecordSink {
	sinks := rundir.Sinks{&k.found} // the first: it keeps nothing of records
	if k.files {
		sinks = append(sinks, k.dir)
	}
	if k.buffer != nil {
		sinks = append(sinks, rundir.NewStoreSink(k.buffer))
	}
	return sinks
}

// finish keeps what is known over all ranks.
func (k *keeper) finish(ctx context.Context, c *provenance.Collections) error {
	if k.files {
		if err := k.dir.WriteGlobal(c); err != nil {
			return err
		}
	}
	if k.buffer != nil {
		if err := rundir.NewStoreSink(k.buffer).Finish(ctx, c); err != nil {
			return err
		}
	}
	return k.dir.RemoveSpool()
}

// size is how many bytes of records there are, as far as they are in the
// directory.
func (k *keeper) size() int64 {
	return k.dir.Size() + duckstore.Size(k.dir.Database())
}

// end says in the store and in run.json what became of the run.
func (k *keeper) end(ctx context.Context, info *provdb.Info) error {
	if k.store != nil && k.run.ID != 0 {
		text, err := json.Marshal(info)
		if err != nil {
			return err
		}
		k.run.State, k.run.Finished, k.run.Info = info.State, time.Time{}, text
		if !info.State.Open() {
			k.run.Finished = time.Now()
		}
		if err := k.store.UpdateRun(ctx, k.run); err != nil {
			return errors.Join(err, k.dir.WriteInfo(info))
		}
	}
	return k.dir.WriteInfo(info)
}

// close gives the store up. It may be called twice.
func (k *keeper) close() error {
	var errs []error
	if k.server != nil {
		errs = append(errs, k.server.Close())
		k.server = nil
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
		k.store = nil
	}
	return errors.Join(errs...)
}
