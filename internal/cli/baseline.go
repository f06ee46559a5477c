package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

func newBaselineCmd(env *Env) *cobra.Command {
	q := questionFlags{program: -1, format: "table"}
	cmd := &cobra.Command{
		Use:   "baseline RUN FILE",
		Short: "keep what later runs are compared with, without the run itself",
		Long: `Write what is compared of a run to one small file: sums, models and call paths of its
functions, what anomalies lost, hosts, settings and metadata, but no records. The run
can be deleted then: chimbuko diff and chimbuko view --compare take the file in its
place. A file that is there already is replaced.` + whereHelp,
		Example: `  chimbuko baseline run good.baseline
  chimbuko diff good.baseline today --fail-if 'lost>2%'
  chimbuko view today --compare good.baseline`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return q.asking(cmd.Context(), func(ctx context.Context) error {
				r, err := q.comparable(ctx, env, given[0], q.run)
				if err != nil {
					return err
				}
				var b bytes.Buffer
				if err := r.Encode(&b); err != nil {
					return err
				}
				if err := rundir.Replace(given[1], b.Bytes(), 0o644); err != nil {
					return err
				}
				fmt.Fprintf(env.Stdout, "%s holds what is compared of run %q: %s, %s.\n", given[1], r.Name,
					counted(len(r.Functions), "function"), sizeText(int64(b.Len())))
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.run, "run", "", "name of the run, where the store holds several; by default the latest")
	f.DurationVar(&q.timeout, "timeout", time.Minute, "give up after this time; 0 is never")
	return cmd
}
