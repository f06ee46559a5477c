package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/redact"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/store/upgrade"
)

func newUpgradeCmd(env *Env) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "upgrade RUN...",
		Short: "Convert runs of an earlier version to this one",
		Long: `Convert runs of an earlier version of chimbuko to the formats of this version. Other commands
never convert a run; they report that it must be upgraded. Earlier versions cannot read a
converted run. The run must have ended. An interrupted conversion leaves either the old or
the new content and can be repeated. docs/compatibility.md lists the formats.

RUN is a run directory, a provenance.duckdb file, or postgres://user@server/database. All
runs of a database are converted.`,
		Example: `  chimbuko upgrade run
  chimbuko upgrade --dry-run runs/*`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			for _, where := range args {
				if env.upgrade(cmd, where, dryRun) != nil {
					err = usage.ErrReported
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be converted, and change nothing")
	return cmd
}

// upgrade converts a run and prints its changes and its error.
func (env *Env) upgrade(cmd *cobra.Command, where string, dryRun bool) error {
	changes, err := upgrade.Run(cmd.Context(), where, dryRun)
	verb := "converted"
	if dryRun {
		verb = "would convert"
	}
	for _, c := range changes {
		fmt.Fprintf(env.Stdout, "%s %s from format %d to %d\n", verb, c.Name, c.From, c.To)
	}
	switch {
	case err != nil:
		fmt.Fprintf(env.Stderr, "chimbuko: upgrade: %v\n", err)
	case len(changes) == 0:
		fmt.Fprintf(env.Stdout, "%s is up to date\n", redact.URLs(where))
	}
	return err
}
