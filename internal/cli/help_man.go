package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/manual"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

// newHelpManCmd writes the help of all commands as manual pages. That of ad is also the page of chimbuko-ad.
func newHelpManCmd() *cobra.Command {
	var seconds int64
	cmd := &cobra.Command{
		Use:    "help-man DIR",
		Short:  "Write the help of all commands as manual pages",
		Hidden: true,
		Args:   usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			date := time.Now()
			if cmd.Flags().Changed("date") {
				date = time.Unix(seconds, 0)
			}
			return manual.WriteAll(args[0], cmd.Root(), date)
		},
	}
	cmd.Flags().Int64Var(&seconds, "date", 0, "date of the pages, in seconds since 1970; today by default")
	return cmd
}
