// Package option provides the flags that several commands share, and warns about passwords in arguments.
package option

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// Detect are the flags of commands that analyze traces.
type Detect struct {
	Base      analyzer.Config // defaults, and flags that need no conversion
	Programs  []string        // rules of --program
	file      string
	overrides []string
	leastLoss time.Duration
	minTime   time.Duration
	statistic string
	scope     string

	RankPattern string
}

// Register adds the flags.
func (d *Detect) Register(f *pflag.FlagSet) {
	d.Base = analyzer.Default()
	c, o := &d.Base, &d.Base.Outlier
	f.StringVar(&d.file, "config", "", "TOML file with settings; flags override it, and it overrides CHIMBUKO_* variables")
	f.StringArrayVar(&d.Programs, "program", nil, "index=pattern: program of a workflow for traces whose path matches; recognized by "+
		"name by default")
	f.StringVar(&d.RankPattern, "rank-pattern", profile.DefaultRankPattern.String(),
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

// Settings sets flags that the command line did not set to the values of a file and the environment, and returns the origin
// of each value.
type Settings func(fs *pflag.FlagSet, file string) (origin map[string]string, err error)

// Load applies settings and returns the origin of each. With --include-self there is no review by default, as in the original.
func (d *Detect) Load(fs *pflag.FlagSet, apply Settings) (origin map[string]string, err error) {
	origin, err = apply(fs, d.file)
	if d.Base.Outlier.IncludeSelf && !fs.Changed("review") {
		d.Base.Review = false
		origin["review"] = "default with --include-self"
	}
	return origin, err
}

// Configure returns the configuration of the flags, and all mistakes in them as one error. change, if not nil, completes the
// configuration before it is checked.
func (d *Detect) Configure(passes int, change func(*analyzer.Config) error) (analyzer.Config, error) {
	cfg := d.Base
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
	cfg.Workers, cfg.Passes = cmp.Or(cfg.Workers, analyzer.Default().Workers), passes
	if change != nil {
		errs = append(errs, change(&cfg))
	}
	errs = append(errs, cfg.Validate())
	return cfg, errors.Join(errs...)
}
