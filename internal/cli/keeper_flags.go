package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// keeperFlags say where a run is stored.
type keeperFlags struct {
	out     string
	force   bool
	records string
	store   string
	name    string
	delay   time.Duration
}

func (k *keeperFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&k.out, "out", "o", "chimbuko-run", "run directory to create")
	f.BoolVar(&k.force, "force", false, "replacement of an existing run in the directory, or of that name in the store")
	f.StringVar(&k.store, "store", "", "postgres://… of a server that stores the records instead of the run directory")
	f.StringVar(&k.name, "name", "", "name of the run in the store; that of its directory by default")
	f.DurationVar(&k.delay, "store-delay", provdb.DefaultDelay, "longest time that records wait to be stored in one batch")
}

// config returns the flags as a configuration, or a usage error.
func (k *keeperFlags) config() (*rundir.Config, error) {
	cfg := &rundir.Config{Dir: k.out, Force: k.force, Store: k.store, Name: k.name, Delay: k.delay}
	switch k.records {
	case "db":
		cfg.Database = true
	case "json":
		cfg.Files = true
	case "both":
		cfg.Files, cfg.Database = true, true
	default:
		return nil, usagef("unknown --records %q (want db, json or both)", k.records)
	}
	switch {
	case k.store != "" && !rundir.IsServer(k.store):
		return nil, usagef("--store %q does not begin with postgres://", k.store)
	case k.store != "" && !cfg.Database:
		return nil, usagef("--store needs --records db or both, not %s", k.records)
	}
	return cfg, nil
}

// runName returns the name of the run in its store.
func (k *keeperFlags) runName() string {
	return (&rundir.Config{Dir: k.out, Name: k.name}).RunName()
}
