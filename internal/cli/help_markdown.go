package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

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
