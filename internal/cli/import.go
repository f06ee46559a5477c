package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func newImportCmd(env *Env) *cobra.Command {
	flags := keeperFlags{records: "db"}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import RECORDS_DIR",
		Short: "Create a run from JSON record files",
		Long: `Read JSON record files and store them in a new run. RECORDS_DIR is a run
directory with records/, or the output of the original Chimbuko without its database:
PROGRAM/RANK/STEP.{anomalies,normalexecs,metadata}.json. Damaged files are imported as far
as possible and reported, and the command fails.`,
		Example: `  chimbuko import provdb-output --out run
  chimbuko import run-with-json --store postgres://user@server/chimbuko --name monday`,
		Args: usage.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := flags.config()
			if err != nil {
				return err
			}
			info := provdb.NewInfo(env.Version, env.Commit, nil)
			progress := output.NewCounter(env.Stderr, 0, "steps")
			size, err := rundir.Import(cmd.Context(), cfg, info, args[0], progress.Add)
			progress.Clear()
			if err != nil {
				return err
			}
			for _, b := range info.Broken {
				fmt.Fprintf(env.Stderr, "chimbuko: %s\n", b)
			}
			err = env.show(asJSON, info, func(w io.Writer) { output.Import(w, info, cfg.Dir, size) })
			if err == nil && len(info.Broken) > 0 {
				return usage.ErrReported
			}
			return err
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "summary as JSON")
	return cmd
}
