package cli

import (
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

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

// apply loads the models of a configuration.
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
