package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// detectFlags are the flags of commands that analyze traces.
type detectFlags struct {
	cfg       analyzer.Config
	file      string
	programs  []string
	overrides []string
	leastLoss time.Duration
	minTime   time.Duration
	statistic string
	scope     string

	rankPattern string
}

func (d *detectFlags) register(f *pflag.FlagSet) {
	d.cfg = analyzer.Default()
	c, o := &d.cfg, &d.cfg.Outlier
	f.StringVar(&d.file, "config", "", "TOML file with settings; flags override it, and it overrides CHIMBUKO_* variables")
	f.StringArrayVar(&d.programs, "program", nil, "index=pattern: program of a workflow for traces whose path matches; recognized by "+
		"name by default")
	f.StringVar(&d.rankPattern, "rank-pattern", profile.DefaultRankPattern.String(),
		"regular expression for names of profiler traces without rank: its first group is the rank")
	f.StringVar((*string)(&o.Algorithm), "algorithm", string(o.Algorithm), "detector: tail, hbos, sstd or copod")
	f.Float64Var(&o.Sigma, "sigma", o.Sigma, "sstd: maximum normal distance from the mean, in standard deviations")
	f.Float64Var(&o.Threshold, "threshold", o.Threshold,
		"tail: decades of rarity, 0 for 6; hbos, copod: normal share of the range of scores, 0 for 0.99 and 0.72")
	f.StringArrayVar(&d.overrides, "function-threshold", nil, "pattern=value: sigma or threshold of matching functions")
	f.StringArrayVar(&o.Ignore, "ignore", nil, "pattern of functions that are never judged")
	f.IntVar(&o.MinSamples, "min-samples", o.MinSamples, "minimum number of calls of a function before any is judged")
	f.DurationVar(&d.leastLoss, "min-loss", time.Duration(o.LeastLoss)*time.Microsecond,
		"tail: minimum time that an anomaly takes longer than usual")
	f.BoolVar(&o.IncludeSelf, "include-self", false, "include the judged call in its model, as the original did; disables --review by default")
	f.BoolVar(&c.SkipFirst, "skip-first", c.SkipFirst, "no judgment of the first call of a function on each thread, and of waits before the "+
		"first collective call")
	f.StringVar(&d.statistic, "statistic", "exclusive", "judged time: exclusive or inclusive")
	f.StringVar(&d.scope, "scope", "program", "scope of a model: program (all its ranks) or rank")
	f.IntVar(&c.Window, "window", c.Window, "number of calls stored before and after an anomaly")
	f.BoolVar(&c.Review, "review", c.Review, "review of all records with the final model")
	f.DurationVar(&d.minTime, "min-time", 0, "minimum exclusive time of stored anomalies")
	f.IntVar(&c.Workers, "workers", 0, "number of ranks analyzed in parallel; 0 for the number of processors")
	f.StringVar(&c.StatePrefix, "state-prefix", c.StatePrefix, "prefix of counters that describe the state of the node")
	f.StringArrayVar(&c.IgnoreCorrelation, "ignore-correlation", nil, "pattern of functions whose GPU correlation IDs are ignored")
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

// load applies the settings of file and environment, and returns the origin of each. With
// --include-self there is no review by default, as in the original.
func (d *detectFlags) load(fs *pflag.FlagSet, env *Env) (origin map[string]string, err error) {
	origin, err = applySettings(fs, d.file, env.Environ)
	if d.cfg.Outlier.IncludeSelf && !fs.Changed("review") {
		d.cfg.Review = false
		origin["review"] = "default with --include-self"
	}
	return origin, err
}

// configure returns the configuration of the flags, and all mistakes in them as one error.
func (d *detectFlags) configure(passes int, models modelFlags) (analyzer.Config, error) {
	cfg := d.cfg
	var errs []error
	cfg.Outlier.Algorithm = outlier.Algorithm(strings.ToLower(string(cfg.Outlier.Algorithm)))
	cfg.Outlier.Unit = cfg.Unit
	cfg.Outlier.LeastLoss, cfg.MinTime = int64(cfg.Unit.Ticks(d.leastLoss)), cfg.Unit.Ticks(d.minTime)
	for _, o := range d.overrides {
		i := strings.LastIndexByte(o, '=')
		value, err := strconv.ParseFloat(o[i+1:], 64)
		if i < 0 || err != nil {
			errs = append(errs, fmt.Errorf("function threshold %q is not of the form pattern=value", o))
			continue
		}
		cfg.Outlier.Thresholds = append(cfg.Outlier.Thresholds, outlier.Override{Pattern: o[:i], Value: value})
	}
	choose := func(flag, value, no, yes string) bool {
		if value != no && value != yes {
			errs = append(errs, fmt.Errorf("unknown --%s %q (want %s or %s)", flag, value, no, yes))
		}
		return value == yes
	}
	cfg.Inclusive = choose("statistic", d.statistic, "exclusive", "inclusive")
	cfg.RankScope = choose("scope", d.scope, "program", "rank")
	cfg.Workers, cfg.Passes, cfg.Freeze = cmp.Or(cfg.Workers, analyzer.Default().Workers), passes, models.frozen
	if models.loadFrom != "" {
		m, err := rundir.LoadModels(models.loadFrom, outlier.NewRules(cfg.Outlier))
		if err != nil {
			errs = append(errs, err)
		}
		if m != nil && !models.frozen {
			m.Restart()
		}
		cfg.InitialModels = m
	}
	errs = append(errs, cfg.Validate())
	return cfg, errors.Join(errs...)
}

// traces returns the recorded traces at paths. The caller must close them.
func (d *detectFlags) traces(ctx context.Context, env *Env, paths []string, to rundir.Config) (*inputs.Traces, error) {
	paths, err := expandPaths(paths)
	if err != nil {
		return nil, err
	}
	t, err := inputs.Open(ctx, paths, inputs.Config{
		Programs: d.programs, RankPattern: d.rankPattern, Workers: cmp.Or(d.cfg.Workers, analyzer.Default().Workers),
		Temp: func() (dir string, discard func(), err error) { return rundir.Scratch(to.Dir, to.Force) },
		Reading: func(size int64) (add func(int64), end func()) {
			progress := output.NewReading(env.Stderr, size)
			return progress.Add, progress.Clear
		},
	})
	if _, ok := errors.AsType[inputs.UsageError](err); ok {
		err = usage.Error{Err: err}
	}
	return t, err
}
