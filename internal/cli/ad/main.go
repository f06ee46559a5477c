package ad

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/base/settings"
	"github.com/chimbuko/chimbuko/internal/cli/option"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

// SettingsOfOthers are the settings of other commands, because one file or environment may serve all commands.
var SettingsOfOthers = []string{
	"attach", "compare", "force", "freeze-model", "grace", "http", "http-host", "keep-traces", "load-model", "metrics-open", "nats-listen",
	"on-finding", "out", "passes", "period", "quiet", "ranks", "read-only", "records", "roles", "runs", "save-model", "shards", "snapshot",
	"sql-memory", "stats-dir", "stats-flush", "stats-period", "stats-schema", "stats-url", "stay", "store", "store-delay",
	"stream-replicas", "stream-size", "tls-cert", "tls-client-ca", "tls-key", "ui-dir",
}

// Main runs the command as a separate program, with the arguments, environment and files of the process, and returns the exit
// code: 1 for a failure, and 2 for a wrong command line.
func Main(ctx context.Context, version string) int {
	env := &Env{Stdout: os.Stdout, Stderr: os.Stderr, Settings: settingsOfProcess}
	cmd := New(env) //nolint:contextcheck // the command gets its context when it runs
	cmd.Use = "chimbuko-ad TRACE..."
	cmd.Version = version
	cmd.Example = strings.ReplaceAll(cmd.Example, "chimbuko ad ", "chimbuko-ad ")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(usage.FlagError)
	cmd.PreRun = func(cmd *cobra.Command, args []string) { option.WarnOfSecrets(env.Stderr, cmd, args) }
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, usage.ErrReported):
		return 1
	}
	fmt.Fprintf(env.Stderr, "chimbuko-ad: %v\n", err)
	if _, ok := errors.AsType[usage.Error](err); ok {
		fmt.Fprintln(env.Stderr, "Run the command with --help to see how it is used.")
		return 2
	}
	return 1
}

func settingsOfProcess(fs *pflag.FlagSet, file string) (origin map[string]string, err error) {
	return settings.Apply(fs, file, os.Environ(), func(name string) bool { return slices.Contains(SettingsOfOthers, name) })
}
