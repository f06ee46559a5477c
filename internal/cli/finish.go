package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
)

// finishFlags are the flags of `finish`.
type finishFlags struct {
	store string
	web   string
	force bool
	quiet bool
}

func newFinishCmd(env *Env) *cobra.Command {
	var flags finishFlags
	cmd := &cobra.Command{
		Use:   "finish RUN [TRACE...]",
		Short: "Complete a run that was stopped early",
		Long: `Complete a run whose services or analyzers were stopped before its end: by a crash, a
batch system, a full disk or a second Ctrl-C. The analyzers of the run read the remaining
traces with the same settings, from where they stopped. Then all records are reviewed with
the final model, and the results of all ranks are stored. Nothing is counted twice. If the
traces of a rank are missing, the records that it sent before are reviewed.

If the traces were moved, TRACE is their new place. For a finished run, the command checks
that the database can be read to its end. If it is missing or damaged, the exit code is 1.`,
		Example: `  chimbuko finish run
  chimbuko finish run /scratch/saved-traces`,
		Args: usage.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg := superviseConfig(env, args[0], flags.quiet)
			cfg.Store = flags.store
			err := supervise.Finish(cmd.Context(), cfg, &supervise.FinishOptions{
				Traces: args[1:], Listen: flags.web, Force: flags.force,
				End: new(node.Bus).Stop,
			})
			if errors.Is(err, supervise.ErrIncomplete) {
				return usage.ErrReported
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.store, "store", "", "postgres://… with the password, if the run is on a server")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "address the page of the run listens on meanwhile")
	f.BoolVar(&flags.force, "force", false, "finish a run that seems to be running on another machine although its job has ended")
	f.BoolVar(&flags.quiet, "quiet", false, "report problems only")
	return cmd
}
