package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
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

// config returns the flags as a configuration, and what is wrong with them as a usage
// error.
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
		return nil, usagef("unknown form of records %q (want db, json or both)", k.records)
	}
	switch {
	case k.store != "" && !rundir.IsServer(k.store):
		return nil, usagef("store %q does not begin with postgres://", k.store)
	case k.store != "" && !cfg.Database:
		return nil, usagef("records as %s are not kept on a server: leave out --store, or give --records db or both", k.records)
	}
	return cfg, nil
}

// runName returns the name of the run in its store.
func (k *keeperFlags) runName() string {
	return (&rundir.Config{Dir: k.out, Name: k.name}).RunName()
}
