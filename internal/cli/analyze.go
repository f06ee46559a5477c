package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/base/settings"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/inputs"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// analyzeFlags are the flags of `analyze`, which are also settings.
type analyzeFlags struct {
	keeperFlags
	option.Detect
	modelFlags
	asJSON bool
	passes int
}

func (a *analyzeFlags) register(f *pflag.FlagSet) {
	a.keeperFlags.register(f)
	a.Register(f)
	a.modelFlags.register(f)
	f.StringVar(&a.records, "records", "db", "form of the records: db (database), json (files) or both")
	f.BoolVar(&a.asJSON, "json", false, "summary as JSON")
	f.IntVar(&a.passes, "passes", analyzer.Default().Passes, "1 to judge while reading and review at the end, 2 to learn first")
}

// prepare applies the settings of file and environment, and returns the configuration and the origin of each setting.
func (a *analyzeFlags) prepare(cmd *cobra.Command, env *Env) (cfg analyzer.Config, origin map[string]string, err error) {
	origin, err = a.Load(cmd.Flags(), env.settings)
	if err == nil {
		cfg, err = a.Configure(a.passes, a.apply)
	}
	if err != nil {
		err = usage.Error{Err: err}
	}
	return cfg, origin, err
}

// traces returns the recorded traces at paths. The caller must close them.
func (a *analyzeFlags) traces(ctx context.Context, env *Env, paths []string) (*inputs.Traces, error) {
	paths, err := expandPaths(paths)
	if err != nil {
		return nil, err
	}
	t, err := inputs.Open(ctx, paths, inputs.Config{
		Programs: a.Programs, RankPattern: a.RankPattern, Workers: cmp.Or(a.Base.Workers, analyzer.Default().Workers),
		Temp: func() (dir string, discard func(), err error) { return rundir.Scratch(a.target.Dir, a.target.Force) },
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

func newAnalyzeCmd(env *Env) *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze TRACE...",
		Short: "Analyze recorded traces",
		Long: `Analyze recorded traces of all ranks of a run: reconstruct the calls, learn the typical
times of each function, and store the anomalies with their context. A TRACE is a dataset that
TAU wrote, an OTF2 archive (Score-P, TAU, APEX), a file of PyTorch's profiler (Kineto) or another
Chrome trace (JSON, also with gzip), a SQLite export of Nsight Systems, a rocpd database of
rocprofv3, a log of NCCL Inspector, a directory (all traces in it are read) or a pattern.

Traces may be of several programs of a workflow, each with ranks from 0. They are recognized
by the names of the traces, such as tau-metrics-sim-0.bp and tau-metrics-viz-0.bp, and
numbered 0, 1, … in order of name. --program assigns other numbers.

A file of PyTorch's profiler contains one rank, or several that wrote to the same file. Files
without distributedInfo are numbered by their names, see --rank-pattern. So are SQLite
databases with neither an MPI rank nor a launcher variable in their environment. GPU kernels
are compared with kernels of the same name and launch shape, and operators with operators of
the same input shapes. Times are in nanoseconds.

The run directory contains run.json (settings, totals) and provenance.duckdb, a database
for chimbuko findings, top, anomalies, event, func, diff, query and export. With --records
json or both it also contains JSON files: records/ (anomalies, typical executions and
metadata of each rank and step) and global/ (profiles, call paths, models, findings, loads
of ranks).

If traces are damaged, or were not closed because the program was killed, the command
analyzes everything that it can read. The summary states what is missing, and the exit code
is 1.`,
		Example: `  chimbuko analyze traces/ --out run
  chimbuko findings run
  chimbuko analyze profiles/ --out run
  chimbuko analyze traces/ --out run --algorithm sstd --sigma 8
  chimbuko analyze traces/ --out run --store postgres://user@server/chimbuko
  chimbuko analyze 'sim-*.bp' 'viz-*.bp' --program '0=*sim-*' --program '1=*viz-*'
  chimbuko eval run traces/truth.*`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			cfg, origin, err := flags.prepare(cmd, env)
			if err != nil {
				return err
			}
			defer collectEarlier(25)()
			traces, err := flags.traces(cmd.Context(), env, paths)
			if err != nil {
				return err
			}
			defer traces.Close()
			if flags.Base.Unit = traces.Unit; traces.Unit != cfg.Unit {
				if cfg, err = flags.Configure(flags.passes, flags.apply); err != nil {
					return err
				}
			}
			info := provdb.NewInfo(env.Version, env.Commit, settingsOf(cmd.Flags(), origin))
			info.Programs = traces.Programs
			err = runAnalyze(cmd.Context(), env, &flags, cfg, traces.Inputs, info)
			if rules := inputs.Separate(err, traces.Inputs); rules != nil {
				return usage.Repeat(err, env.args, append(rules, "--force")...) // the failed run is in the directory
			}
			return err
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
		Short: "Print the settings of analyze and their origin",
		Long: `Print the settings that analyze uses with the same flags, TOML file and CHIMBUKO_*
variables, as a TOML file.`,
		Example: `  chimbuko config > chimbuko.toml
  CHIMBUKO_SIGMA=8 chimbuko config --config chimbuko.toml --algorithm sstd`,
		Args: usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, origin, err := flags.prepare(cmd, env)
			if err != nil {
				return err
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
	info *provdb.Info,
) error {
	store, err := flags.config()
	if err != nil {
		return err
	}
	res, err := rundir.Analyze(ctx, store, cfg, inputs, info, output.NewAnalysis(env.Stderr, cfg.Passes))
	if err != nil {
		return err
	}
	if flags.saveTo != "" {
		if err := rundir.SaveModels(flags.saveTo, res.Models); err != nil {
			return err
		}
	}
	if err := env.show(flags.asJSON, info, func(w io.Writer) { output.Summary(w, info, store.Dir) }); err != nil {
		return err
	}
	for _, broken := range res.Broken {
		fmt.Fprintf(env.Stderr, "chimbuko: %v\n", broken)
	}
	if len(info.Incomplete) > 0 {
		return usage.ErrReported
	}
	return nil
}
