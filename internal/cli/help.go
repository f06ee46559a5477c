package cli

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/manual"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

// newHelpManCmd writes the help of all commands as manual pages. The page of ad is also that of chimbuko-ad.
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

// newHelpMarkdownCmd prints the help of all commands as the page docs/cli.md.
func newHelpMarkdownCmd(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:    "help-markdown",
		Short:  "Print the help of all commands as one page",
		Hidden: true,
		Args:   usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := bufio.NewWriter(env.Stdout)
			fmt.Fprintf(w, "# The commands of chimbuko\n\n`make docs` generates this page from the help of the program.\n")
			writeMarkdown(w, cmd.Root())
			return w.Flush()
		},
	}
}

func writeMarkdown(w *bufio.Writer, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	cmd.InitDefaultHelpFlag()
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	usage := strings.ReplaceAll(cmd.UsageString(), "\t", "    ")
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), long, strings.TrimSpace(usage))
	for _, sub := range cmd.Commands() {
		writeMarkdown(w, sub)
	}
}
