package cli

import (
	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
)

// addLeashFlag adds the flag for processes that another process of this program supervises.
func addLeashFlag(root *cobra.Command, env *Env) {
	held := root.PersistentFlags().Bool(supervise.Flag, false, "end with standard input instead of signals")
	_ = root.PersistentFlags().MarkHidden(supervise.Flag) // not for users
	before := root.PersistentPreRun
	root.PersistentPreRun = func(cmd *cobra.Command, args []string) {
		before(cmd, args)
		if *held {
			ctx, leash := supervise.OnLeash(cmd.Context(), env.stdin())
			env.leash = leash
			cmd.SetContext(ctx)
		}
	}
}
