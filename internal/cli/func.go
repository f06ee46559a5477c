package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newFuncCmd(env *Env) *cobra.Command {
	var q queryFlags
	var part string
	var limit int
	cmd := &cobra.Command{
		Use:   "func RUN NAME",
		Short: "Show a function: profile, anomalies, call paths",
		Long: `Show the profile of a function, the distribution of its times, its anomalies by rank and
over time, and the call paths to it. NAME is its name, a part of it, or a pattern with *
and ?. CSV and Parquet files contain one part, the profile unless --part chooses another.` + runHelp,
		Example: `  chimbuko func run 'time_step(int)*'
  chimbuko func run MPI_Waitall --part ranks --format csv`,
		Args: usage.Args(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&part, "part", "", "only one part: profile, ranks, times or paths")
	cmd.Flags().IntVar(&limit, "limit", 20, "number of ranks and of call paths")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, args []string) (*output.Answer, error) {
		if part == "" && (q.format == "csv" || q.format == "parquet") {
			part = "profile"
		}
		if part != "" && !slices.Contains(output.FunctionParts(), part) {
			return nil, usage.Errorf("unknown part %q (want %s)", part, strings.Join(output.FunctionParts(), ", "))
		}
		f, err := a.Function(ctx, args[0], q.chosenProgram())
		switch {
		case err != nil:
			return nil, err
		case part != "":
			return rowsAnswer(output.FunctionPart(ctx, a, f, part, limit))
		}
		return output.Function(ctx, a, f, limit)
	})
}
