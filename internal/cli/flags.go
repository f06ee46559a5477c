package cli

import (
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// keeperFlags select where and in which forms to store a run.
type keeperFlags struct {
	target  rundir.Config
	records string
}

func (k *keeperFlags) register(f *pflag.FlagSet) {
	t := &k.target
	f.StringVarP(&t.Dir, "out", "o", "chimbuko-run", "run directory to create")
	f.BoolVar(&t.Force, "force", false, "replace an existing run in the directory, or a run of that name in the store")
	f.StringVar(&t.Store, "store", "", "postgres://… of a server that stores the records instead of the run directory")
	f.StringVar(&t.Name, "name", "", "name of the run in the store; that of its directory by default")
	f.DurationVar(&t.Delay, "store-delay", provdb.DefaultDelay, "maximum time that records wait to be stored in one batch")
}

// config returns the configuration, or a usage error.
func (k *keeperFlags) config() (*rundir.Config, error) {
	t := &k.target
	t.Files, t.Database = k.records != "db", k.records != "json"
	switch {
	case k.records != "db" && k.records != "json" && k.records != "both":
		return nil, usage.Errorf("unknown --records %q (want db, json or both)", k.records)
	case t.Store != "" && !rundir.IsServer(t.Store):
		return nil, usage.Errorf("--store %q does not begin with postgres://", t.Store)
	case t.Store != "" && !t.Database:
		return nil, usage.Errorf("--store needs --records db or both, not %s", k.records)
	}
	return t, nil
}

// modelFlags save and load models.
type modelFlags struct {
	saveTo   string
	loadFrom string
	frozen   bool
}

func (m *modelFlags) register(f *pflag.FlagSet) {
	f.StringVar(&m.saveTo, "save-model", "", "file for the learned model")
	f.StringVar(&m.loadFrom, "load-model", "", "file with the model of an earlier run to start with")
	f.BoolVar(&m.frozen, "freeze-model", false, "judge by the loaded model without further learning")
}

// apply loads the models into a configuration.
func (m *modelFlags) apply(cfg *analyzer.Config) error {
	cfg.Freeze = m.frozen
	if m.loadFrom == "" {
		return nil
	}
	models, err := rundir.LoadModels(m.loadFrom, outlier.NewRules(cfg.Outlier))
	if models != nil && !m.frozen {
		models.Restart()
	}
	cfg.InitialModels = models
	return err
}
