package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newTopCmd(env *Env) *cobra.Command {
	var q questionFlags
	var top query.Top
	var live liveFlags
	cmd := &cobra.Command{
		Use:   "top RUN",
		Short: "functions, ranks, hosts, call paths or kinds that lost most to anomalies",
		Long: `List what lost most to anomalies, the worst first. Lost time is how much longer
than is typical of their function the anomalies took; severity is the sum of their
exclusive times. Anomalies that were withdrawn at the end of the run do not count.
Times count from the begin of the run.

With --live it is the overview of the page in the terminal, as for ssh: the verdict, key
figures, issues with their evidence, what ranks lost over time, and how the pipeline
fares. 80 columns and 24 lines are enough, and colors are not needed. RUN may be the
address of a page then.` + whereHelp,
		Example: `  chimbuko top run
  chimbuko top run --live
  chimbuko top run --by rank --order anomalies --limit 20
  chimbuko top run --by path --format markdown
  chimbuko top run --by kind`,
		Args: args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&top.By, "by", "function", "what is listed: function, rank, host, path or kind (slow, fast, comm-wait, gpu)")
	f.StringVar(&top.Order, "order", "lost", "what comes first: most lost time, anomalies, severity or score")
	f.IntVar(&top.Limit, "limit", 10, "rows of the answer")
	live.register(cmd)
	cmd = newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		if err := checkLimit(top.Limit); err != nil {
			return err
		}
		top.Program = q.only()
		rows, err := a.Top(ctx, top)
		return q.answer(ctx, env, rows, err)
	})
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		if !live.live {
			return list(cmd, given)
		}
		if err := live.check(cmd); err != nil {
			return err
		}
		return live.run(cmd.Context(), env, given[0], q.run)
	}
	return cmd
}

func newCountersCmd(env *Env) *cobra.Command {
	var q questionFlags
	var pattern string
	var limit int
	cmd := &cobra.Command{
		Use:   "counters RUN",
		Short: "what is known of the counters of a run",
		Long:  `List the counters of a run with the moments of their values over all ranks.` + whereHelp,
		Example: `  chimbuko counters run
  chimbuko counters run --name '*bytes*' --format csv`,
		Args: args(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&pattern, "name", "", "pattern of names, with * and ?")
	cmd.Flags().IntVar(&limit, "limit", 1000, "rows of the answer")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		rows, err := a.Counters(ctx, pattern, q.only(), limit)
		return q.answer(ctx, env, rows, err)
	})
}
