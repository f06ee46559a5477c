package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/analyzer"
	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/rundir"
	"github.com/chimbuko/chimbuko/internal/summary"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// analyzeFlags are the flags of `analyze`, which are also its settings.
type analyzeFlags struct {
	keeperFlags
	asJSON    bool
	config    string
	programs  []string
	algorithm string
	sigma     float64
	threshold float64
	overrides []string
	ignore    []string
	samples   int
	self      bool
	skipFirst bool
	statistic string
	scope     string
	window    int
	passes    int
	review    bool
	minTime   time.Duration
	workers   int
	prefix    string
	uncoupled []string
	saveModel string
	loadModel string
	freeze    bool
}

func (a *analyzeFlags) register(f *pflag.FlagSet) {
	d := analyzer.Default()
	a.keeperFlags.register(f)
	f.StringVar(&a.records, "records", "db", "how records are kept: db (database), json (files) or both")
	f.BoolVar(&a.asJSON, "json", false, "print the summary as JSON")
	f.StringVar(&a.config, "config", "", "TOML file with settings; flags go first, CHIMBUKO_* variables last")
	f.StringArrayVar(&a.programs, "program", nil, "index=pattern: traces whose path matches belong to this program of a workflow")
	f.StringVar(&a.algorithm, "algorithm", string(d.Outlier.Algorithm), "detector: hbos, sstd or copod")
	f.Float64Var(&a.sigma, "sigma", d.Outlier.Sigma, "sstd: standard deviations from the mean that are still normal")
	f.Float64Var(&a.threshold, "threshold", d.Outlier.Threshold, "share of the range of scores that is still normal; 0 is 0.99 for hbos and 0.72 for copod")
	f.StringArrayVar(&a.overrides, "function-threshold", nil, "pattern=value: another sigma or threshold for functions that match")
	f.StringArrayVar(&a.ignore, "ignore", nil, "pattern of functions that are never judged")
	f.IntVar(&a.samples, "min-samples", d.Outlier.MinSamples, "calls of a function that must be known before any is judged")
	f.BoolVar(&a.self, "include-self", false, "let a call's own time help to hide it, as the original did; without --review, then")
	f.BoolVar(&a.skipFirst, "skip-first", d.SkipFirst, "leave out the first call of a function on each thread")
	f.StringVar(&a.statistic, "statistic", "exclusive", "time that is judged: exclusive or inclusive")
	f.StringVar(&a.scope, "scope", "program", "who shares a model: program (all its ranks) or rank")
	f.IntVar(&a.window, "window", d.Window, "calls before and after an anomaly that are kept with it")
	f.IntVar(&a.passes, "passes", d.Passes, "1: judge while reading and review at the end; 2: learn all first, then judge")
	f.BoolVar(&a.review, "review", d.Review, "judge all that was kept once more at the end")
	f.DurationVar(&a.minTime, "min-time", 0, "exclusive time below which anomalies are not kept")
	f.IntVar(&a.workers, "workers", 0, "ranks that are worked on at once; 0 is one for each processor")
	f.StringVar(&a.prefix, "state-prefix", d.StatePrefix, "beginning of the names of counters that tell the state of the node")
	f.StringArrayVar(&a.uncoupled, "ignore-correlation", nil, "pattern of functions whose GPU correlation ids are ignored")
	f.StringVar(&a.saveModel, "save-model", "", "write what was learned to this file")
	f.StringVar(&a.loadModel, "load-model", "", "begin with what was learned in an earlier run")
	f.BoolVar(&a.freeze, "freeze-model", false, "judge by the loaded model alone and learn nothing")
}

// load applies the settings of file and environment, and returns where each
// came from. The original had no review, so its way of judging has none unless
// it is asked for.
func (a *analyzeFlags) load(fs *pflag.FlagSet, env *Env) (origin map[string]string, err error) {
	origin, err = applySettings(fs, a.config, env.Environ)
	if a.self && !fs.Changed("review") {
		a.review = false
		origin["review"] = "default with --include-self"
	}
	return origin, err
}

// configure turns the flags into a configuration; all that is wrong with them
// is one error.
func (a *analyzeFlags) configure() (analyzer.Config, error) {
	cfg := analyzer.Default()
	var errs []error
	cfg.Outlier = outlier.Config{
		Algorithm: outlier.Algorithm(strings.ToLower(a.algorithm)), Sigma: a.sigma, Threshold: a.threshold,
		MinSamples: a.samples, IncludeSelf: a.self, Ignore: a.ignore,
	}
	for _, o := range a.overrides {
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
	cfg.Inclusive = oneOf("statistic", a.statistic, "exclusive", "inclusive")
	cfg.RankScope = oneOf("scope", a.scope, "program", "rank")
	cfg.SkipFirst, cfg.Window, cfg.Passes, cfg.Review = a.skipFirst, a.window, a.passes, a.review
	cfg.MinTime, cfg.StatePrefix, cfg.Uncoupled = trace.Micros(a.minTime.Microseconds()), a.prefix, a.uncoupled
	if a.workers != 0 {
		cfg.Workers = a.workers
	}
	cfg.Freeze = a.freeze
	if a.loadModel != "" {
		m, err := rundir.LoadModels(a.loadModel, outlier.NewRules(cfg.Outlier))
		if err != nil {
			errs = append(errs, err)
		}
		cfg.Learned = m
	}
	errs = append(errs, cfg.Validate())
	return cfg, errors.Join(errs...)
}

func newAnalyzeCmd(env *Env) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze TRACE...",
		Short: "find the anomalies in recorded traces and keep them with all around them",
		Long: `Analyse recorded traces, all ranks of a run at once: rebuild the calls, learn how
long each function takes, keep the executions that do not fit with everything
around them, and throw the rest away. A TRACE is a dataset, a directory (all .bp
inside it are read) or a pattern.

The run directory gets run.json (settings, totals) and provenance.duckdb, a
database of all that was kept: chimbuko top, anomalies, event, func, diff, query
and export ask it. With --records json or both it gets the same as JSON files:
records/ (anomalies, typical executions and metadata of each rank and step) and
global/ (profiles, models).`,
		Example: `  chimbuko analyze traces/ --out run
  chimbuko top run
  chimbuko analyze traces/ --out run --algorithm sstd --sigma 8
  chimbuko analyze traces/ --out run --store postgres://user@server/chimbuko
  chimbuko analyze 'sim-*.bp' 'viz-*.bp' --program '0=*sim-*' --program '1=*viz-*'
  chimbuko eval run traces/truth.*`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			origin, err := flags.load(cmd.Flags(), env)
			if err != nil {
				return usageError{err}
			}
			cfg, err := flags.configure()
			if err != nil {
				return usageError{err}
			}
			inputs, err := flags.inputs(paths)
			if err != nil {
				return err
			}
			return runAnalyze(cmd.Context(), env, &flags, cfg, inputs, settingsOf(cmd.Flags(), origin))
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// newConfigCmd prints the settings of analyze.
func newConfigCmd(env *Env) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "config",
		Short: "print the effective settings of analyze, and where each comes from",
		Long: `Print the settings that analyze would use with the same flags, TOML file and
CHIMBUKO_* variables, as a TOML file.`,
		Example: `  chimbuko config > chimbuko.toml
  CHIMBUKO_SIGMA=8 chimbuko config --config chimbuko.toml --algorithm sstd`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			origin, err := flags.load(cmd.Flags(), env)
			if err != nil {
				return usageError{err}
			}
			if _, err := flags.configure(); err != nil {
				return usageError{err}
			}
			w := bufio.NewWriter(env.Stdout)
			printSettings(w, cmd.Flags(), origin)
			return w.Flush()
		},
	}
	flags.register(cmd.Flags())
	return cmd
}

// settingsOf returns the settings for run.json.
func settingsOf(fs *pflag.FlagSet, origin map[string]string) map[string]string {
	settings := make(map[string]string)
	fs.VisitAll(func(f *pflag.Flag) {
		if _, ok := origin[f.Name]; ok {
			settings[f.Name] = f.Value.String()
		}
	})
	return settings
}

// inputs finds the traces and the program that each belongs to.
func (a *analyzeFlags) inputs(paths []string) ([]analyzer.Input, error) {
	paths, err := expandPaths(paths)
	if err != nil {
		return nil, err
	}
	inputs := make([]analyzer.Input, 0, len(paths))
	for _, p := range paths {
		inputs = append(inputs, analyzer.Input{Path: p})
	}
	for _, rule := range a.programs {
		index, pattern, ok := strings.Cut(rule, "=")
		n, err := strconv.ParseUint(index, 10, 32)
		if !ok || err != nil {
			return nil, usagef("program %q is not of the form index=pattern", rule)
		}
		match := outlier.Glob(pattern)
		matched := false
		for i := range inputs {
			if match.MatchString(inputs[i].Path) || match.MatchString(filepath.Base(inputs[i].Path)) {
				inputs[i].Program, matched = trace.Program(n), true
			}
		}
		if !matched {
			return nil, usagef("program %q matches none of the traces", rule)
		}
	}
	return inputs, nil
}

func runAnalyze(ctx context.Context, env *Env, flags *analyzeFlags, cfg analyzer.Config, inputs []analyzer.Input, settings map[string]string) (err error) {
	sum := &runSummary{State: provdb.Running, Version: env.Version, Commit: env.Commit, Started: time.Now().UTC(), Settings: settings}
	if flags.store != "" {
		sum.Store, sum.Name = withoutPassword(flags.store), flags.runName()
	}
	for _, in := range inputs {
		sum.Traces = append(sum.Traces, in.Path)
		sum.TraceBytes += sizeOf(in.Path)
	}
	k, err := newKeeper(ctx, &flags.keeperFlags, sum.Started, sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	cfg.SpoolDir = k.dir.Spool()
	progress := newAnalysisProgress(env.Stderr, cfg.Passes, sum.TraceBytes)
	res, err := analyzer.New(cfg, k.recordSink(), progress.show).Run(ctx, inputs)
	var known *provenance.Collections
	if err == nil {
		known, err = res.Collections()
	}
	if err == nil {
		err = k.finish(ctx, known)
	}
	progress.done()
	if err != nil {
		sum.State, sum.Error = provdb.Failed, err.Error()
		return errors.Join(err, k.end(context.WithoutCancel(ctx), provdb.Failed, sum))
	}
	if flags.saveModel != "" {
		if err := rundir.SaveModels(flags.saveModel, res.Models); err != nil {
			return err
		}
	}
	sum.finish(res.Outcome)
	if err := k.end(ctx, provdb.Finished, sum); err != nil {
		return err
	}
	if err := k.close(); err != nil {
		return err
	}
	sum.measure(k.size()) // of the database when its log has been merged
	if err := k.dir.WriteInfo(sum); err != nil {
		return err
	}
	if err := env.show(flags.asJSON, sum, func(w io.Writer) {
		sum.print(w, flags.out)
	}); err != nil {
		return err
	}
	for _, broken := range res.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", broken)
		err = errReported
	}
	return err
}

// runSummary is run.json, and what is printed at the end.
type runSummary struct {
	State    provdb.State      `json:"state"`
	Error    string            `json:"error,omitempty"`
	Version  string            `json:"version"`
	Commit   string            `json:"commit"`
	Started  time.Time         `json:"started"`
	Seconds  float64           `json:"seconds"`
	Settings map[string]string `json:"settings"`
	Traces   []string          `json:"traces"`
	Store    string            `json:"store,omitempty"` // the server, where records are not in the directory
	Name     string            `json:"name,omitempty"`  // of the run on the server

	Totals      totals         `json:"totals"`
	Review      summary.Review `json:"review"`
	TraceBytes  int64          `json:"trace_bytes"`
	RecordBytes int64          `json:"record_bytes"`
	Reduction   float64        `json:"reduction"` // trace bytes for each byte kept
	EventRate   float64        `json:"events_per_second"`
	Top         []topFunction  `json:"top_functions"`
	Notes       []noteInfo     `json:"notes"`
	Broken      []string       `json:"broken,omitempty"`
}

type totals struct {
	summary.Totals
	Functions int   `json:"functions"`
	Anomalies int64 `json:"anomalies"`
}

// topFunction is one of the functions that lost most time.
type topFunction struct {
	Function  string       `json:"function"`
	Program   int          `json:"program"`
	Anomalies int64        `json:"anomalies"`
	LostUS    int64        `json:"lost_us"`
	TypicalUS float64      `json:"typical_us"`
	Ranks     []trace.Rank `json:"ranks"`
	Hosts     []string     `json:"hosts"`
	FirstUS   int64        `json:"first_us"`
	LastUS    int64        `json:"last_us"`
}

const topFunctions = 10

func (s *runSummary) finish(res *summary.Outcome) {
	s.State = provdb.Finished
	s.Seconds = time.Since(s.Started).Seconds()
	s.Totals = totals{Totals: res.Totals, Functions: len(res.Functions), Anomalies: res.Review.Anomalies}
	s.Review = res.Review
	s.EventRate = float64(res.Totals.Events) / s.Seconds
	s.Top, s.Notes = []topFunction{}, append([]noteInfo{}, notes(&res.Tally)...)
	worst := slices.Clone(res.Functions)
	slices.SortStableFunc(worst, func(a, b *summary.FunctionResult) int { return int(b.LostTime - a.LostTime) })
	for _, f := range worst {
		if f.Metrics == nil || len(s.Top) == topFunctions {
			break
		}
		s.Top = append(s.Top, topFunction{
			Function: f.Name, Program: int(f.Program), Anomalies: int64(f.Metrics.Score.N), LostUS: int64(f.LostTime),
			TypicalUS: f.Typical, Ranks: f.Ranks, Hosts: f.Hosts, FirstUS: int64(f.Metrics.First), LastUS: int64(f.Metrics.Last),
		})
	}
	for _, b := range res.Broken {
		s.Broken = append(s.Broken, b.Error())
	}
}

// measure says how large what is kept is.
func (s *runSummary) measure(recordBytes int64) {
	s.RecordBytes = recordBytes
	if recordBytes > 0 {
		s.Reduction = float64(s.TraceBytes) / float64(recordBytes)
	}
}
