package cli

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/lab/evaluate"
)

func newEvalCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval RUN TRUTH...",
		Short: "Compare the anomalies of a run with planted ones",
		Long: `Compare the anomalies of an analyzed run with those that were planted in the program:
how many were found, and how many other calls were flagged. RUN is a run directory or a
store. A TRUTH is a file, a directory (all files named truth.* in it) or a pattern. A
file describes anomalies either by place and time, one per line, in the format of
programs that plant anomalies:

  RANK ITERATION FUNCTION ENTRY_US EXIT_US INJECTED_US
  TRUTH kind=host_sleep func=NAME start_us=US end_us=US [rank=RANK]
  TRUTH kind=gpu_slow kernel=NAME launch_us=US [rank=RANK]

or exactly, if it begins with {. Then each line is a JSON object: first the troubles,
with kind, place and time, then the calls that they lengthened, with their events.
docs/formats/truth.md describes both formats and the scores.

If the truth is exact, a second table shows for each trouble the flags on its causes and
on its victims, and the time from its start to its first flag.`,
		Example: `  chimbuko eval run-directory truth.0 truth.1
  chimbuko eval run-directory trace-directory
  chimbuko eval run-directory truth.jsonl
  chimbuko eval --json run-directory 'truth.*' | jq .recall`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			score, err := evaluate.Run(cmd.Context(), paths[0], paths[1:])
			if errors.Is(err, filepath.ErrBadPattern) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return env.show(asJSON, score, func(w io.Writer) { evaluate.Print(w, score) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of tables")
	return cmd
}
