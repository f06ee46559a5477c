package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
)

func newBaselineCmd(env *Env) *cobra.Command {
	q := queryFlags{program: -1, format: "table"}
	cmd := &cobra.Command{
		Use:   "baseline RUN FILE",
		Short: "Write the comparable data of a run into a file",
		Long: `Write the data of a run that comparisons need into one small file: statistics, models and
call paths of its functions, the time lost to anomalies, hosts, settings and metadata, but
no records. chimbuko diff and chimbuko view --compare accept the file in place of the run,
which may be deleted. An existing file is replaced.` + runHelp,
		Example: `  chimbuko baseline run good.baseline
  chimbuko diff good.baseline today --fail-if 'lost>2%'
  chimbuko view today --compare good.baseline`,
		Args: usage.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.limited(cmd, func(ctx context.Context) error {
				r, err := q.places(env).Comparable(ctx, args[0], q.run)
				if err != nil {
					return err
				}
				var b bytes.Buffer
				if err := r.Encode(&b); err != nil {
					return err
				}
				if err := atomicfile.Write(args[1], b.Bytes(), 0o644); err != nil {
					return err
				}
				fmt.Fprintf(env.Stdout, "%s: baseline of run %q, %s, %s\n", args[1], r.Name, text.Count(len(r.Functions), "function"),
					text.Bytes(b.Len()))
				return nil
			})
		},
	}
	registerRun(cmd.Flags(), &q.run)
	cmd.Flags().DurationVar(&q.timeout, "timeout", time.Minute, "time limit; 0 for none")
	return cmd
}
