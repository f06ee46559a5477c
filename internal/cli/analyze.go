package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// analyzeFlags are the flags of `analyze`, which are also its settings.
type analyzeFlags struct {
	keeperFlags
	detectFlags
	modelFlags
	asJSON bool
	passes int
}

func (a *analyzeFlags) register(f *pflag.FlagSet) {
	a.keeperFlags.register(f)
	a.detectFlags.register(f)
	a.modelFlags.register(f)
	f.StringVar(&a.records, "records", "db", "how records are kept: db (database), json (files) or both")
	f.BoolVar(&a.asJSON, "json", false, "print the summary as JSON")
	f.IntVar(&a.passes, "passes", analyzer.Default().Passes, "1: judge while reading and review at the end; 2: learn all first, then judge")
}

// load applies the settings of file and environment, and returns where each came
// from. Two passes judge all calls by the whole run, so that nothing is forgotten
// unless it is asked for.
func (a *analyzeFlags) load(fs *pflag.FlagSet, env *Env) (origin map[string]string, err error) {
	origin, err = a.detectFlags.load(fs, env)
	if a.passes == 2 && !fs.Changed("half-life") {
		a.halfLife = 0
		origin["half-life"] = "default with --passes 2"
	}
	return origin, err
}

// configure turns the flags into a configuration; all that is wrong with them
// is one error.
func (a *analyzeFlags) configure() (analyzer.Config, error) {
	return a.detectFlags.configure(a.passes, a.modelFlags)
}

func newAnalyzeCmd(env *Env) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze TRACE...",
		Short: "find the anomalies in recorded traces and keep them with all around them",
		Long: `Analyze recorded traces, all ranks of a run at once: rebuild the calls, learn how
long each function takes, keep the executions that do not fit with everything
around them, and throw the rest away. A TRACE is a dataset, a directory (all .bp
inside it are read) or a pattern.

The run directory gets run.json (settings, totals) and provenance.duckdb, a
database of all that was kept: chimbuko issues, top, anomalies, event, func, diff,
query and export ask it. With --records json or both it gets the same as JSON files:
records/ (anomalies, typical executions and metadata of each rank and step) and
global/ (profiles, call paths, models, issues).`,
		Example: `  chimbuko analyze traces/ --out run
  chimbuko issues run
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
			settings[f.Name] = withoutSecrets(f.Value.String())
		}
	})
	return settings
}

func runAnalyze(ctx context.Context, env *Env, flags *analyzeFlags, cfg analyzer.Config, inputs []analyzer.Input, settings map[string]string) (err error) {
	defer frugal(60)()
	sum := &runSummary{State: provdb.Running, Version: env.Version, Commit: env.Commit, Started: time.Now().UTC(), Settings: settings}
	if flags.store != "" {
		sum.Store, sum.Name = withoutSecrets(flags.store), flags.runName()
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
	progress := newAnalysisProgress(env.Stderr, cfg.Passes)
	res, err := analyzer.New(cfg, k.recordSink(), progress.show).Run(ctx, inputs)
	progress.clear()
	var known *provenance.Collections
	if err == nil {
		known, err = res.Collections()
	}
	if err == nil {
		end := progress.during(fmt.Sprintf("looking for what is behind %s anomalies", grouped(res.Review.Anomalies)))
		known.Issues, known.Links = k.found.conclude(res.Outcome)
		end()
		sum.setIssues(known.Issues)
		end = progress.during("storing what is known of the whole run")
		err = k.finish(ctx, known)
		end()
	}
	if err != nil {
		sum.State, sum.Error = provdb.Failed, err.Error()
		return errors.Join(err, k.end(context.WithoutCancel(ctx), provdb.Failed, sum))
	}
	if flags.saveTo != "" {
		if err := rundir.SaveModels(flags.saveTo, res.Models); err != nil {
			return err
		}
	}
	sum.finish(res.Outcome)
	if err := k.end(ctx, provdb.Finished, sum); err != nil {
		return err
	}
	end := progress.during("closing the store")
	err = k.close()
	end()
	if err != nil {
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
	Name     string            `json:"name,omitempty"`  // of the run in the store
	Online   bool              `json:"online,omitempty"`
	Program  *programEnd       `json:"program,omitempty"` // that chimbuko run ran
	// Incomplete says what is missing, in sentences without full stops.
	Incomplete []string `json:"incomplete,omitempty"`

	Totals      totals           `json:"totals"`
	Review      summary.Review   `json:"review"`
	TraceBytes  int64            `json:"trace_bytes"`
	RecordBytes int64            `json:"record_bytes"`
	Reduction   float64          `json:"reduction"` // trace bytes for each byte kept
	EventRate   float64          `json:"events_per_second"`
	Top         []topFunction    `json:"top_functions"`
	Issues      issueSummary     `json:"issues"`
	Changes     []summary.Change `json:"changes"`
	Notes       []noteInfo       `json:"notes"`
	Broken      []string         `json:"broken,omitempty"`
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
	s.Review, s.Changes = res.Review, res.Changes
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
	s.Incomplete = append(s.Incomplete, s.missing()...)
}

// measure says how large what is kept is.
func (s *runSummary) measure(recordBytes int64) {
	s.RecordBytes = recordBytes
	if recordBytes > 0 {
		s.Reduction = float64(s.TraceBytes) / float64(recordBytes)
	}
}
