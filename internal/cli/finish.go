package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/online/service"
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
		Short: "complete a run that was cut: read what is left, review, store what is known over all ranks",
		Long: `Complete a run whose services or analyzers were ended before it was: by a crash, a
batch system, a full disk or a second Ctrl-C. Traces that are still there are read once
more, from where they were, by the analyzers that had them and with their settings;
everything that was kept is judged once more with all that is known, and what is known
over all ranks is stored. Nothing counts twice. Of ranks whose traces are gone, what had
been sent before is judged.

TRACE says where the traces are now, if that is not where they were.`,
		Example: `  chimbuko finish run
  chimbuko finish run /scratch/saved-traces`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			cfg := superviseConfig(env, given[0], flags.quiet)
			cfg.Store = flags.store
			err := supervise.Finish(cmd.Context(), cfg, &supervise.Unfinished{
				Traces: given[1:], Listen: flags.web, Force: flags.force,
				End: new(service.Bus).Stop,
			})
			if errors.Is(err, supervise.ErrIncomplete) {
				return errReported
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.store, "store", "", "postgres://… where the run is kept, with the password that the run directory does not hold")
	f.StringVar(&flags.web, "http", "127.0.0.1:0", "where the page of the run listens meanwhile")
	f.BoolVar(&flags.force, "force", false, "also if the run seems to go on on another machine, whose job is over")
	f.BoolVar(&flags.quiet, "quiet", false, "say nothing but what went wrong")
	return cmd
}
