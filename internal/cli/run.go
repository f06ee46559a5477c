package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/cli/ad"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// runFlags are the flags of `run`.
type runFlags struct {
	keeperFlags
	option.Detect
	modelFlags
	web        string
	statsURL   string
	statsDir   string
	onFinding  string
	engine     string
	period     time.Duration
	keepTraces bool
	attach     bool
	quiet      bool
	grace      time.Duration
	sqlMemory  int64 // for serve
}

func (r *runFlags) register(f *pflag.FlagSet) {
	r.keeperFlags.register(f)
	r.Register(f)
	r.modelFlags.register(f)
	f.StringVar(&r.web, "http", "127.0.0.1:0", "address the page of the run listens on")
	f.StringVar(&r.statsURL, "stats-url", "", "URL to post statistics to")
	f.StringVar(&r.statsDir, "stats-dir", "", "directory for statistics as files pserver_output_stats_<n>.json")
	registerOnFinding(f, &r.onFinding)
	registerSQLMemory(f, &r.sqlMemory)
	f.StringVar(&r.engine, "engine", "BP5", "ADIOS2 engine of TAU: BP5 or BP4 (files), or SST (live streams, no files)")
	f.DurationVar(&r.period, "period", time.Second, "time between steps that TAU writes")
	f.BoolVar(&r.keepTraces, "keep-traces", false, "keep the traces, which are large, after a complete run")
	f.BoolVar(&r.attach, "attach", false, "start services and analyzer only, for a program that you start yourself")
	f.BoolVar(&r.quiet, "quiet", false, "report problems only")
	f.DurationVar(&r.grace, "grace", 10*time.Second, "time for the program to end after SIGTERM, before the results are stored without it")
}

// engines maps names in lower case to the names that TAU accepts.
var engines = map[string]string{"bp5": "BP5", "bp4": "BP4", node.EngineSST: "SST"}

// check reports all errors in the flags.
func (r *runFlags) check(command []string) error {
	var bad usage.Errors
	engine, ok := engines[strings.ToLower(r.engine)]
	bad.AddIf(!ok, "unknown engine %q (want BP5, BP4 or SST)", r.engine)
	r.engine = engine
	bad.AddIf(r.period < time.Millisecond, "--period %v is shorter than a millisecond", r.period)
	bad.AddIf(r.sqlMemory < 0, "--sql-memory %d is negative", r.sqlMemory)
	bad.AddIf(r.grace < 0, "--grace %v is negative", r.grace)
	bad.CheckAddress("http", r.web)
	bad.AddIf(r.attach && len(command) > 0, "--attach takes no command: you start the program yourself")
	bad.AddIf(!r.attach && len(command) == 0, "no command is given (usage: chimbuko run [flags] -- COMMAND)")
	_, err := r.Configure(1, r.apply)
	bad = append(bad, err)
	return bad.Err()
}

func newRunCmd(env *Env) *cobra.Command {
	flags := runFlags{keeperFlags: keeperFlags{records: "db"}}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a program and analyze it while it runs",
		Long: `Run a program that is instrumented with TAU on this machine, and analyze it while it
runs. The command starts services and an analyzer beside the program and sets the
environment (TAU_ADIOS2_*) that makes TAU write traces to the run directory. When the
program has ended, it reviews all records with the final model and prints a summary to
standard error.

The program has the standard input and output of this command, which exits with the
program's exit code (128 plus the number of the signal that killed it). Problems of the
analysis never slow or stop the program. Services and analyzers that die are restarted,
and no data in files is lost. With --engine sst, steps that pass in the meantime are lost.

Ctrl-C reaches the program as usual. After the program has ended, the results so far are
stored and printed. Another Ctrl-C, at least a second later, postpones this: the run stays
incomplete until chimbuko finish completes it. SIGTERM, which batch systems send before
SIGKILL, is forwarded to the program. The program then has --grace to end before the
results are stored.

The program must contain TAU: linked into it, or added by tau_exec -adios2_trace. Without
TAU, chimbuko simulate stands in for such a program.

--on-finding runs a command for each new finding while the program runs, such as one that
drains a node or posts to a chat. The command receives the finding as JSON on standard
input, in the format of chimbuko findings --format json.

With --attach, no program is started: start it yourself on this machine, with the printed
variables. The run ends when all traces have ended, or with chimbuko stop.`,
		Example: `  chimbuko run -- mpirun -n 4 tau_exec -T mpi -adios2_trace ./app input.txt
  chimbuko run --out monday --save-model good.model -- ./app
  chimbuko run --out try -- chimbuko simulate --scenario io-stall --live --duration 20s
  chimbuko run --on-finding 'jq -r .summary >> findings.log' -- ./app
  chimbuko run --attach --out run`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, command []string) error {
			if _, err := flags.Load(cmd.Flags(), env.settings); err != nil {
				return usage.Error{Err: err}
			}
			if err := flags.check(command); err != nil {
				return err
			}
			return runRun(cmd.Context(), env, cmd, &flags, command)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command is its own
	flags.register(cmd.Flags())
	return cmd
}

// runRun turns the flags into those of the services and the analyzer.
func runRun(ctx context.Context, env *Env, cmd *cobra.Command, flags *runFlags, command []string) error {
	cfg := superviseConfig(env, flags.target.Dir, flags.quiet)
	cfg.Store, cfg.Replace = flags.target.Store, flags.target.Force
	p := &supervise.Program{
		Command: command, Engine: flags.engine, Period: flags.period, Grace: flags.grace, KeepTraces: flags.keepTraces,
		ServeFlags:   append(argsFor(cmd, newServeCmd(env)), "--name="+flags.target.RunName()), //nolint:contextcheck // for its flags only
		AnalyzeFlags: argsFor(cmd, ad.New(env.analyzer())),                                     //nolint:contextcheck // for its flags only
	}
	if flags.target.Force && flags.target.Store != "" {
		p.ServeFlags = append(p.ServeFlags, "--force")
	}
	return supervise.Run(ctx, cfg, p)
}

// superviseConfig returns the configuration for supervising the run in a directory.
func superviseConfig(env *Env, dir string, quiet bool) supervise.Config {
	return supervise.Config{
		Dir: dir, Quiet: quiet, Environ: env.Environ, Stdin: env.Stdin, Stdout: env.Stdout, Stderr: env.Stderr,
		Terminal:  output.IsTerminal(env.Stderr),
		Summarize: func(info *provdb.Info) { output.Summary(env.Stderr, info, dir) },
	}
}

// argsFor returns the flags set on a command, by the command line or by settings, that another command has as well. It omits
// secrets and flags that run decides.
func argsFor(cmd, other *cobra.Command) (args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if other.Flags().Lookup(f.Name) != nil && !slices.Contains([]string{"config", "out", "force", "store", "engine"}, f.Name) {
			args = append(args, option.Args(f)...)
		}
	})
	return args
}
