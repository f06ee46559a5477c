package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/settings"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/bp"
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
			settings.Print(w, cmd.Flags(), origin)
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
			settings[f.Name] = redact.URLs(f.Value.String())
		}
	})
	return settings
}

func runAnalyze(ctx context.Context, env *Env, flags *analyzeFlags, cfg analyzer.Config, inputs []analyzer.Input,
	settings map[string]string,
) (err error) {
	defer frugal(60)()
	sum := provdb.NewInfo(env.Version, env.Commit, settings)
	if flags.store != "" {
		sum.Store, sum.Name = redact.URLs(flags.store), flags.runName()
	}
	for _, in := range inputs {
		sum.Traces = append(sum.Traces, in.Path)
		sum.TraceBytes += bp.Size(in.Path)
	}
	store, err := flags.keeperFlags.config()
	if err != nil {
		return err
	}
	k, err := rundir.New(ctx, store, sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	cfg.SpoolDir = k.Dir.Spool()
	progress := newAnalysisProgress(env.Stderr, cfg.Passes)
	res, err := analyzer.New(cfg, k.Sink(), progress.show).Run(ctx, inputs)
	progress.clear()
	var known *provenance.Collections
	if err == nil {
		known, err = res.Collections()
	}
	if err == nil {
		end := progress.during(fmt.Sprintf("looking for what is behind %s anomalies", grouped(res.Review.Anomalies)))
		known.Issues, known.Links = k.Issues(res.Outcome)
		end()
		sum.SetIssues(known.Issues)
		end = progress.during("storing what is known of the whole run")
		err = k.WriteCollections(ctx, known)
		end()
	}
	if err != nil {
		sum.State, sum.Error = provdb.Failed, err.Error()
		return errors.Join(err, k.End(context.WithoutCancel(ctx), sum))
	}
	if flags.saveTo != "" {
		if err := rundir.SaveModels(flags.saveTo, res.Models); err != nil {
			return err
		}
	}
	sum.Finish(res.Outcome)
	if err := k.End(ctx, sum); err != nil {
		return err
	}
	end := progress.during("closing the store")
	err = k.Close()
	end()
	if err != nil {
		return err
	}
	sum.SetSize(k.Size()) // of the database when its log has been merged
	if err := k.Dir.WriteInfo(sum); err != nil {
		return err
	}
	if err := env.show(flags.asJSON, sum, func(w io.Writer) {
		printSummary(w, sum, flags.out)
	}); err != nil {
		return err
	}
	for _, broken := range res.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", broken)
		err = errReported
	}
	return err
}
