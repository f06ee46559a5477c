package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/online/service"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// runFlags are the flags of `run`.
type runFlags struct {
	keeperFlags
	detectFlags
	modelFlags
	web        string
	statsURL   string
	statsDir   string
	engine     string
	period     time.Duration
	keepTraces bool
	attach     bool
	quiet      bool
	grace      time.Duration
}

func (r *runFlags) register(f *pflag.FlagSet) {
	r.keeperFlags.register(f)
	r.detectFlags.register(f)
	r.modelFlags.register(f)
	f.StringVar(&r.web, "http", "127.0.0.1:0", "where the page of the run listens")
	f.StringVar(&r.statsURL, "stats-url", "", "URL to which statistics are posted")
	f.StringVar(&r.statsDir, "stats-dir", "", "directory for statistics as files pserver_output_stats_<n>.json")
	f.StringVar(&r.engine, "engine", "BP5", "ADIOS2 engine that TAU hands over traces with: BP5 or BP4 (files), or SST (live streams, no files)")
	f.DurationVar(&r.period, "period", time.Second, "how often TAU writes a step")
	f.BoolVar(&r.keepTraces, "keep-traces", false, "keep the traces when the run has ended well; they are large")
	f.BoolVar(&r.attach, "attach", false, "start services and analyzer only; the program is started by somebody else")
	f.BoolVar(&r.quiet, "quiet", false, "say nothing but what went wrong")
	f.DurationVar(&r.grace, "grace", 10*time.Second, "how long the program may take to end after SIGTERM, before what was found is stored without waiting for it")
}

// engines are the names that TAU takes.
var engines = map[string]string{"bp5": "BP5", "bp4": "BP4", service.EngineSST: "SST"}

// check says what is wrong with the flags.
func (r *runFlags) check(command []string) error {
	var errs []error
	engine, ok := engines[strings.ToLower(r.engine)]
	if !ok {
		errs = append(errs, fmt.Errorf("unknown engine %q (want BP5, BP4, SST)", r.engine))
	}
	r.engine = engine
	if r.period < time.Millisecond {
		errs = append(errs, fmt.Errorf("--period %v is shorter than a millisecond", r.period))
	}
	if r.grace < 0 {
		errs = append(errs, fmt.Errorf("--grace %v is negative", r.grace))
	}
	if _, _, err := net.SplitHostPort(r.web); err != nil {
		errs = append(errs, fmt.Errorf("--http %q is not of the form host:port", r.web))
	}
	switch {
	case r.attach && len(command) > 0:
		errs = append(errs, errors.New("with --attach the program is started by somebody else: leave out the command, or --attach"))
	case !r.attach && len(command) == 0:
		errs = append(errs, errors.New("no command is given: chimbuko run [flags] -- COMMAND"))
	}
	_, err := r.configure(1, r.modelFlags)
	return errors.Join(append(errs, err)...)
}

func newRunCmd(env *Env) *cobra.Command {
	flags := runFlags{keeperFlags: keeperFlags{records: "db"}}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "run a program on this machine and analyze it while it runs",
		Long: `Run a program that is instrumented with TAU, and analyze it while it runs: services and
an analyzer are started beside it, TAU is told by its environment (TAU_ADIOS2_*) to
write traces in the run directory, and when the program has ended everything that was
kept is judged once more, and the summary is printed to standard error.

The program has the standard input and output of this command, and this command ends
with its exit code (128 and the number of the signal that ended it). It is never
slowed or ended because something is wrong with the analysis. Services or analyzers that
die are started again, and nothing is lost.

Ctrl-C goes to the program as usual; when it has ended, what was found so far is
reviewed, stored and printed. Another Ctrl-C, a second or more after that, postpones the
review: the run is incomplete, and chimbuko finish completes it. SIGTERM, as batch
systems send it before SIGKILL, is handed to the program, which has --grace to end before
what was found is stored.

TAU must be in the program: linked into it, or by tau_exec -adios2_trace. Without
TAU, chimbuko simulate stands in for such a program.

With --attach there is no command: start the program elsewhere on this machine, with the
variables that are printed. The run ends when all traces have, or with chimbuko stop.`,
		Example: `  chimbuko run -- mpirun -n 4 tau_exec -T mpi -adios2_trace ./app input.txt
  chimbuko run --out monday --save-model good.model -- ./app
  chimbuko run --out try -- chimbuko simulate --scenario io-stall --live --duration 20s
  chimbuko run --attach --out run`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, command []string) error {
			if _, err := flags.load(cmd.Flags(), env); err != nil {
				return usageError{err}
			}
			if err := flags.check(command); err != nil {
				return usageError{err}
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
	cfg := superviseConfig(env, flags.out, flags.quiet)
	cfg.Store, cfg.Replace = flags.store, flags.force
	p := &supervise.Program{
		Command: command, Engine: flags.engine, Period: flags.period, Grace: flags.grace, KeepTraces: flags.keepTraces,
		ServeFlags:   append(argsFor(cmd, newServeCmd(env)), "--name="+flags.runName()), //nolint:contextcheck // for its flags only
		AnalyzeFlags: argsFor(cmd, newADCmd(env)),                                       //nolint:contextcheck // for its flags only
	}
	if flags.force && flags.store != "" {
		p.ServeFlags = append(p.ServeFlags, "--force")
	}
	return supervise.Run(ctx, cfg, p)
}

// superviseConfig returns the configuration to supervise the run in a directory.
func superviseConfig(env *Env, dir string, quiet bool) supervise.Config {
	return supervise.Config{
		Dir: dir, Quiet: quiet, Environ: env.Environ, Stdin: env.Stdin, Stdout: env.Stdout, Stderr: env.Stderr, Terminal: isTerminal(env.Stderr),
		Summarize: func(info *provdb.Info) { printSummary(env.Stderr, info, dir) },
	}
}

// argsFor returns the flags set on a command, on the command line or by settings, that
// another command has, too. It leaves out secrets and what run decides.
func argsFor(cmd, other *cobra.Command) (args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if other.Flags().Lookup(f.Name) != nil && !slices.Contains([]string{"config", "out", "force", "store", "engine"}, f.Name) {
			args = append(args, flagArgs(f)...)
		}
	})
	return args
}

// flagArgs returns the command line arguments that set a flag to its value.
func flagArgs(f *pflag.Flag) (args []string) {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, v := range values {
		args = append(args, "--"+f.Name+"="+v)
	}
	return args
}
