package cli

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/lab/evaluate"
)

func newEvalCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval RUN TRUTH...",
		Short: "Compare anomalies and findings of a run with planted ones",
		Long: `Compare the anomalies of an analyzed run with those that were planted in the program:
how many were found, and how many other calls were flagged. RUN is a run directory or a
store. A TRUTH is a file, a directory (all files named truth.* in it) or a pattern. A
file describes anomalies either by place and time, one per line, in the format of
programs that plant anomalies:

  RANK ITERATION FUNCTION ENTRY_US EXIT_US INJECTED_US
  TRUTH kind=host_sleep func=NAME start_us=US end_us=US [rank=RANK]
  TRUTH kind=gpu_slow kernel=NAME launch_us=US [rank=RANK]

or exactly, if the file begins with {. Then each line is a JSON object: first the troubles,
with kind, place and time, then the calls that they lengthened, with their events. The
record of a run with trouble from outside also begins with {. It has the times at which
ranks were stopped or waited for a processor. docs/formats/truth.md describes the formats
and the scores.

If the truth is exact, a second table shows, for each trouble, the flags on its causes and
on its victims, and the time from its start to its first flag. If ranks were stopped, the
output says how many stops were found and named as culprits, and how many flags the
scheduler's record does not explain.

If the run has findings, another table shows, for each trouble, its lost time, the part of
it that findings of the right kind and place cover, and the costliest finding about it. A
list shows the findings that belong to no trouble (docs/quality.md).`,
		Example: `  chimbuko eval run-directory truth.0 truth.1
  chimbuko eval run-directory trace-directory
  chimbuko eval run-directory truth.jsonl
  chimbuko eval --json run-directory 'truth.*' | jq .recall`,
		Args: usage.Args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			score, err := evaluate.Run(cmd.Context(), paths[0], paths[1:])
			if errors.Is(err, filepath.ErrBadPattern) {
				return usage.Error{Err: err}
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
