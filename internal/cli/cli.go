// Package cli is the command line: one file for each sub-command, which turns
// flags into a configuration, checks it and runs a role. It is the only place
// where concrete types meet interfaces, where errors become messages, and
// where the clock and the environment are real.
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

// Env is the outside world of a command, so that tests can give it another.
type Env struct {
	Stdin   io.Reader // nil: that of the process
	Stdout  io.Writer
	Stderr  io.Writer
	Version string
	Commit  string
	Environ []string // of the process, as os.Environ returns it

	leash *supervise.Leash // by which this process is held; nil: it is not
}

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1 // something could not be read or done
	exitUsage  = 2 // the command line makes no sense
)

// errReported ends a command that has told all its errors already.
var errReported = errors.New("errors were reported")

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run executes the command line args and returns the exit code.
func Run(ctx context.Context, env *Env, args []string) int {
	root := newRootCmd(env) //nolint:contextcheck // commands get their context when they run
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
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
	if _, ok := errors.AsType[usageError](err); ok || errors.Is(err, viewer.ErrSameStore) {
		fmt.Fprintln(env.Stderr, "Run the command with --help to see how it is used.")
		return exitUsage
	}
	return exitFailed
}

func newRootCmd(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "chimbuko",
		Short: "find the few function executions that went wrong among billions",
		Long: `Chimbuko analyses the performance of parallel programs from the traces that TAU
writes with ADIOS2: it finds the few function executions that went wrong, keeps
them with all that is needed to explain them, and throws the rest away.`,
		Version:       env.Version + " (" + env.Commit + ")",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
		PersistentPreRun: func(cmd *cobra.Command, args []string) {
			warnOfSecrets(env, cmd, args) // before anything but the command line sets flags
		},
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	holdable(root, env)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		newAnalyzeCmd(env), newRunCmd(env), newFinishCmd(env), newServeCmd(env), newADCmd(env), newViewCmd(env), newStatusCmd(env),
		newStopCmd(env), newImportCmd(env), newIssuesCmd(env), newExplainCmd(env), newTopCmd(env), newAnomaliesCmd(env), newEventCmd(env),
		newFuncCmd(env), newCountersCmd(env),
		newDiffCmd(env), newBaselineCmd(env), newQueryCmd(env), newRunsCmd(env), newExportCmd(env), newReportCmd(env), newEvalCmd(env),
		newSimulateCmd(env), newDemoCmd(env), newTraceCmd(env), newConfigCmd(env), newHelpMarkdownCmd(env))
	return root
}

// exactly, like cobra's own checks, but an error of it is one of usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usagef("%s: %w", cmd.CommandPath(), err)
		}
		return nil
	}
}

// show prints v to standard output, as JSON for programs or with print for
// people. Errors stick to the writer that print gets.
func (env *Env) show(asJSON bool, v any, print func(io.Writer)) error {
	out := bufio.NewWriter(env.Stdout)
	if !asJSON {
		print(out)
		return out.Flush()
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return errors.Join(enc.Encode(v), out.Flush())
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// frugal has garbage collected earlier than usual, unless GOGC says when, and
// returns what ends that. For work on steps, which are soon garbage, it costs next
// to nothing and saves a tenth of the memory.
func frugal(percent int) (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// isTerminal reports whether a person looks at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// isInteractive reports whether standard input and output are a terminal.
func (env *Env) isInteractive() bool {
	in, ok := env.Stdin.(*os.File)
	if env.Stdin == nil {
		in, ok = os.Stdin, true
	}
	if !ok || !isTerminal(in) || !isTerminal(env.Stdout) {
		return false
	}
	info, err := in.Stat()
	null, nullErr := os.Stat(os.DevNull) // a character device, too
	return err == nil && (nullErr != nil || !os.SameFile(info, null))
}
