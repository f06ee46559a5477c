package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/gpus"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newBreakdownCmd(env *Env) *cobra.Command {
	var q queryFlags
	var steps, collectives bool
	var only []trace.Range
	var limit int
	cmd := &cobra.Command{
		Use:   "breakdown RUN",
		Short: "Show how the GPUs of each rank spent their time",
		Long: `Show how the GPUs of each rank spent their time, from the first to the last activity. The
shares of compute, communication, memory and idle add up to the total:

  compute        kernels compute
  communication  kernels of NCCL or RCCL run, and none computes
  memory         memory is copied, and no kernel runs
  idle           nothing runs, which is the sum of
    host_wait    the host launched the next kernel too late
    kernel_wait  the next kernel was launched in time, and the gap is shorter than 30 µs
    other_wait   other gaps, such as waits for another stream
  overlap        share of the time of communication that computation hides

With --steps, each row is a training step, from the start of ProfilerStep on the host to the
start of the next one. docs/breakdown.md has the definitions and compares them with those of
Holistic Trace Analysis. JSON also has the streams of each rank.

Runs with collective operations but without GPUs have only the data of --collectives, as do
live runs that follow logs of NCCL Inspector.` + runHelp,
		Example: `  chimbuko breakdown run
  chimbuko breakdown run --steps --rank 0
  chimbuko breakdown run --collectives
  chimbuko breakdown run --format json`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&steps, "steps", false, "a row for each training step")
	cmd.Flags().BoolVar(&collectives, "collectives", false, "collective operations compared over ranks, and the corrections of clocks")
	cmd.Flags().Func("rank", "only these ranks, as in 0,4-7", func(text string) (err error) {
		only, err = query.ParseRanks(text)
		return err
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "number of rows")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		if collectives && (steps || len(only) > 0) {
			return nil, usage.Errorf("--collectives is over all ranks and steps (omit --steps and --rank)")
		}
		program, notes := q.chosenProgram(), a.Run.Decoded().Notes
		hasGPUs, hasCollectives, err := a.HasBreakdown(ctx)
		switch {
		case err != nil:
			return nil, err
		case !hasGPUs && !hasCollectives:
			return nil, fmt.Errorf("run %s has no times of GPUs and no collective operations: its traces do not have them, "+
				"it is live (times of GPUs need chimbuko analyze), or it was imported from records without them", a.Run.Name)
		case !hasGPUs && (steps || len(only) > 0):
			return nil, fmt.Errorf("run %s has no times of GPUs (--collectives lists its collective operations)", a.Run.Name)
		case collectives || !hasGPUs:
			b, err := a.Collectives(ctx)
			if err != nil {
				return nil, err
			}
			return output.Collectives{Collectives: gpus.Collectives(b, program, limit, notes)}.Answer(), nil
		}
		times, err := a.GPUTimes(ctx, steps, nil)
		if err != nil {
			return nil, err
		}
		selected := func(t *provenance.GPUTime) bool {
			return (program == nil || t.PID == *program) && trace.Selects(only, int64(t.RID))
		}
		return output.GPUTimes{GPUTimes: gpus.Times(a.Unit, times, steps, limit, notes, selected)}.Answer(), nil
	})
}
