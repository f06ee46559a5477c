// Package cli is the command line: flags, help and wiring of each command. It is the only package that connects concrete
// types with interfaces, prints errors, and passes the real clock and environment to other packages.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/ad"
	"github.com/chimbuko/chimbuko/internal/cli/doctor"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

// Env is the environment of a command. Tests replace it.
type Env struct {
	Stdin   io.Reader // if nil, the standard input of the process
	Stdout  io.Writer
	Stderr  io.Writer
	Version string
	Commit  string
	Environ []string // environment of the process, as from os.Environ

	args  []string      // arguments of the command
	leash <-chan string // lines for a process that another one controls; otherwise nil
}

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1 // an operation failed
	exitUsage  = 2 // wrong command line
)

// Run executes the command line args and returns the exit code.
func Run(ctx context.Context, env *Env, args []string) int {
	root := Root(env) //nolint:contextcheck // commands get their context when they run
	env.args = args
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, usage.ErrReported):
		return exitFailed
	case errors.Is(err, errDiffers):
		return exitDiffers
	}
	if exit, ok := errors.AsType[*supervise.ExitError](err); ok {
		if exit.Err != nil {
			fmt.Fprintf(env.Stderr, "chimbuko: %v\n", err)
		}
		return exit.Code
	}
	fmt.Fprintf(env.Stderr, "chimbuko: %v\n", err)
	if _, ok := errors.AsType[usage.Error](err); ok || errors.Is(err, viewer.ErrSameStore) {
		fmt.Fprintln(env.Stderr, "Run the command with --help to see how it is used.")
		return exitUsage
	}
	return exitFailed
}

// Root returns the command with all of its subcommands.
func Root(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "chimbuko",
		Short: "Find performance anomalies in traces of parallel programs",
		Long: `Chimbuko analyzes the performance of parallel programs from their traces: it finds the few
function executions that went wrong among billions, stores them with their context, and
discards the rest. It reads traces of TAU (ADIOS2, also while they are written), Score-P and
APEX (OTF2), PyTorch (Kineto), Nsight Systems, rocprofv3 and NCCL Inspector.`,
		Version:       env.Version + " (" + env.Commit + ")",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          helpOnly,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRun: func(cmd *cobra.Command, args []string) {
			option.WarnOfSecrets(env.Stderr, cmd, args) // before settings of files and variables apply
		},
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	addLeashFlag(root, env)
	root.SetFlagErrorFunc(usage.FlagError)
	root.AddCommand(
		newAnalyzeCmd(env), newRunCmd(env), newFinishCmd(env), newServeCmd(env), ad.New(env.analyzer()), newViewCmd(env), newStatusCmd(env),
		newStopCmd(env), newImportCmd(env), newFindingsCmd(env), newRanksCmd(env), newBreakdownCmd(env), newExplainCmd(env), newTopCmd(env),
		newAnomaliesCmd(env), newEventCmd(env), newFuncCmd(env), newCountersCmd(env),
		newDiffCmd(env), newBaselineCmd(env), newQueryCmd(env), newRunsCmd(env), newExportCmd(env), newReportCmd(env), newEvalCmd(env),
		newUpgradeCmd(env), doctor.New(env.Version, env.Stdout),
		newSimulateCmd(env), newDemoCmd(env), newTraceCmd(env), newConfigCmd(env), newVersionCmd(env), newHelpMarkdownCmd(env), newHelpManCmd())
	return root
}

// newVersionCmd prints what --version prints.
func newVersionCmd(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(env.Stdout, "chimbuko version %s\n", cmd.Root().Version)
			return err
		},
	}
}

// helpOnly prints the help of a command that has only subcommands.
func helpOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage.Unknown(cmd, args[0])
	}
	return cmd.Help()
}

// show prints v to standard output, as JSON or with print. Errors stick to the writer passed to print.
func (env *Env) show(asJSON bool, v any, print func(io.Writer)) error {
	out := bufio.NewWriter(env.Stdout)
	if asJSON {
		return errors.Join(output.WriteJSON(out, v), out.Flush())
	}
	print(out)
	return out.Flush()
}

// firstHeap is the size of the heap at the first garbage collection, in percent of 4 MB. Short commands end before it.
const firstHeap = 400

// collectEarlier makes garbage collections run earlier than usual, unless GOGC is set, until end is called. It saves a fifth
// of the memory at little cost, because the data of steps is short-lived.
func collectEarlier(percent int) (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	var mu sync.Mutex
	ended := false
	before := debug.SetGCPercent(firstHeap)
	runtime.AddCleanup(new([64]byte), func(percent int) { // runs after the first collection
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			debug.SetGCPercent(percent)
		}
	}, percent)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		debug.SetGCPercent(before)
	}
}

// analyzer returns the environment of ad.
func (env *Env) analyzer() *ad.Env {
	return &ad.Env{
		Stdout: env.Stdout, Stderr: env.Stderr, Settings: env.settings,
		Leash: func() <-chan string { return env.leash },
	}
}

// stdin returns the standard input of the command.
func (env *Env) stdin() io.Reader { return cmp.Or(env.Stdin, io.Reader(os.Stdin)) }

// isInteractive reports whether standard input and output are a terminal.
func (env *Env) isInteractive() bool {
	in, ok := env.stdin().(*os.File)
	if !ok || !output.IsTerminal(in) || !output.IsTerminal(env.Stdout) {
		return false
	}
	info, err := in.Stat()
	null, nullErr := os.Stat(os.DevNull) // it is a character device as well
	return err == nil && (nullErr != nil || !os.SameFile(info, null))
}
