package cli

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
)

// holdable lets commands be held by the process that starts them.
func holdable(root *cobra.Command, env *Env) {
	held := root.PersistentFlags().Bool(supervise.Flag, false, "end when standard input does, and not by signals")
	_ = root.PersistentFlags().MarkHidden(supervise.Flag) // only for the processes that others of this program start
	before := root.PersistentPreRun
	root.PersistentPreRun = func(cmd *cobra.Command, args []string) {
		before(cmd, args)
		if *held {
			ctx, leash := supervise.Held(cmd.Context(), cmp.Or(env.Stdin, io.Reader(os.Stdin)))
			env.leash = leash
			cmd.SetContext(ctx)
		}
	}
}

// childEnviron is the environment without the settings of chimbuko, which are not
// meant for processes that get theirs from flags, and with another directory for
// temporary files.
func childEnviron(environ []string, temporary string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, envPrefix) || strings.HasPrefix(v, "TMPDIR=")
	})
	return append(environ, "TMPDIR="+temporary)
}
