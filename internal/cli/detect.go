package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// detectFlags say how traces are analyzed, recorded or being written.
type detectFlags struct {
	config    string
	programs  []string
	algorithm string
	sigma     float64
	threshold float64
	overrides []string
	ignore    []string
	samples   int
	halfLife  time.Duration
	self      bool
	skipFirst bool
	statistic string
	scope     string
	window    int
	review    bool
	minTime   time.Duration
	workers   int
	prefix    string
	uncoupled []string
}

func (d *detectFlags) register(f *pflag.FlagSet) {
	usual := analyzer.Default()
	f.StringVar(&d.config, "config", "", "TOML file with settings: a flag overrides it, and it overrides CHIMBUKO_* variables")
	f.StringArrayVar(&d.programs, "program", nil, "index=pattern: traces whose path matches belong to this program of a workflow")
	f.StringVar(&d.algorithm, "algorithm", string(usual.Outlier.Algorithm), "detector: modal, hbos, sstd or copod")
	f.Float64Var(&d.sigma, "sigma", usual.Outlier.Sigma, "sstd: standard deviations from the mean that are still normal")
	f.Float64Var(&d.threshold, "threshold", usual.Outlier.Threshold,
		"modal: decades of rarity, 0 is 6; hbos, copod: share of the range of scores that is still normal, 0 is 0.99 and 0.72")
	f.StringArrayVar(&d.overrides, "function-threshold", nil, "pattern=value: another sigma or threshold for functions that match")
	f.StringArrayVar(&d.ignore, "ignore", nil, "pattern of functions that are never judged")
	f.IntVar(&d.samples, "min-samples", usual.Outlier.MinSamples, "calls of a function that must be known before any is judged")
	f.DurationVar(&d.halfLife, "half-life", time.Duration(usual.Outlier.HalfLife)*time.Microsecond,
		"modal: time of the run after which what was learned counts half; 0 forgets nothing, as --passes 2 does unless it is given")
	f.BoolVar(&d.self, "include-self", false, "let a call's own time help to hide it, as the original did; without --review, then")
	f.BoolVar(&d.skipFirst, "skip-first", usual.SkipFirst, "leave out the first call of a function on each thread, and waits before "+
		"ranks have met")
	f.StringVar(&d.statistic, "statistic", "exclusive", "time that is judged: exclusive or inclusive")
	f.StringVar(&d.scope, "scope", "program", "who shares a model: program (all its ranks) or rank")
	f.IntVar(&d.window, "window", usual.Window, "calls before and after an anomaly that are kept with it")
	f.BoolVar(&d.review, "review", usual.Review, "judge all that was kept once more at the end")
	f.DurationVar(&d.minTime, "min-time", 0, "exclusive time below which anomalies are not kept")
	f.IntVar(&d.workers, "workers", 0, "ranks that are worked on at once; 0 is one for each processor")
	f.StringVar(&d.prefix, "state-prefix", usual.StatePrefix, "beginning of the names of counters that tell the state of the node")
	f.StringArrayVar(&d.uncoupled, "ignore-correlation", nil, "pattern of functions whose GPU correlation ids are ignored")
}

// modelFlags say what is done with models before and after a run.
type modelFlags struct {
	saveTo   string
	loadFrom string
	frozen   bool
}

func (m *modelFlags) register(f *pflag.FlagSet) {
	f.StringVar(&m.saveTo, "save-model", "", "write what was learned to this file")
	f.StringVar(&m.loadFrom, "load-model", "", "begin with what was learned in an earlier run")
	f.BoolVar(&m.frozen, "freeze-model", false, "judge by the loaded model alone and learn nothing")
}

// load applies the settings of file and environment, and returns where each
// came from. The original had no review, so its way of judging has none unless
// it is asked for.
func (d *detectFlags) load(fs *pflag.FlagSet, env *Env) (origin map[string]string, err error) {
	origin, err = applySettings(fs, d.config, env.Environ)
	if d.self && !fs.Changed("review") {
		d.review = false
		origin["review"] = "default with --include-self"
	}
	return origin, err
}

// configure turns the flags into a configuration; all that is wrong with them
// is one error.
func (d *detectFlags) configure(passes int, models modelFlags) (analyzer.Config, error) {
	cfg := analyzer.Default()
	var errs []error
	cfg.Outlier = outlier.Config{
		Algorithm: outlier.Algorithm(strings.ToLower(d.algorithm)), Sigma: d.sigma, Threshold: d.threshold,
		MinSamples: d.samples, HalfLife: d.halfLife.Microseconds(), SlowOnly: cfg.Outlier.SlowOnly, IncludeSelf: d.self, Ignore: d.ignore,
	}
	for _, o := range d.overrides {
		i := strings.LastIndexByte(o, '=')
		value, err := strconv.ParseFloat(o[i+1:], 64)
		if i < 0 || err != nil {
			errs = append(errs, fmt.Errorf("function threshold %q is not of the form pattern=value", o))
			continue
		}
		cfg.Outlier.Thresholds = append(cfg.Outlier.Thresholds, outlier.Override{Pattern: o[:i], Value: value})
	}
	oneOf := func(what, value, no, yes string) bool {
		if value != no && value != yes {
			errs = append(errs, fmt.Errorf("%s %q is neither %s nor %s", what, value, no, yes))
		}
		return value == yes
	}
	cfg.Inclusive = oneOf("statistic", d.statistic, "exclusive", "inclusive")
	cfg.RankScope = oneOf("scope", d.scope, "program", "rank")
	cfg.SkipFirst, cfg.Window, cfg.Passes, cfg.Review = d.skipFirst, d.window, passes, d.review
	cfg.MinTime, cfg.StatePrefix, cfg.Uncoupled = trace.Micros(d.minTime.Microseconds()), d.prefix, d.uncoupled
	if d.workers != 0 {
		cfg.Workers = d.workers
	}
	cfg.Freeze = models.frozen
	if models.loadFrom != "" {
		m, err := rundir.LoadModels(models.loadFrom, outlier.NewRules(cfg.Outlier))
		if err != nil {
			errs = append(errs, err)
		}
		if m != nil && !models.frozen {
			m.Restart()
		}
		cfg.Learned = m
	}
	errs = append(errs, cfg.Validate())
	return cfg, errors.Join(errs...)
}

// inputs finds recorded traces and the program that each belongs to.
func (d *detectFlags) inputs(paths []string) ([]analyzer.Input, error) {
	paths, err := expandPaths(paths)
	if err != nil {
		return nil, err
	}
	inputs, unmatched, err := d.inputsOf(paths)
	if err == nil && unmatched != "" {
		err = usagef("program %q matches none of the traces", unmatched)
	}
	return inputs, err
}

// inputsOf tells the programs that traces belong to, and one of the rules that
// none of them matches.
func (d *detectFlags) inputsOf(paths []string) (all []analyzer.Input, unmatched string, err error) {
	inputs := make([]analyzer.Input, 0, len(paths))
	for _, p := range paths {
		inputs = append(inputs, analyzer.Input{Path: p})
	}
	for _, rule := range d.programs {
		index, pattern, ok := strings.Cut(rule, "=")
		n, err := strconv.ParseUint(index, 10, 32)
		if !ok || err != nil {
			return nil, "", usagef("program %q is not of the form index=pattern", rule)
		}
		match := outlier.Glob(pattern)
		matched := false
		for i := range inputs {
			if match.MatchString(inputs[i].Path) || match.MatchString(filepath.Base(inputs[i].Path)) {
				inputs[i].Program, matched = trace.Program(n), true
			}
		}
		if !matched {
			unmatched = rule
		}
	}
	return inputs, unmatched, nil
}
