package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/terminal"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

func newTopCmd(env *Env) *cobra.Command {
	var q queryFlags
	var top query.Top
	var live bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top RUN",
		Short: "List where most time was lost to anomalies",
		Long: `List the functions, ranks, hosts, call paths or kinds that lost most time to anomalies.
Lost time is how much longer the anomalies took than is typical of their function. Own time
is the sum of their exclusive times. Withdrawn anomalies do not count. Waits for other ranks
count only with --waits, because a rank that waits is not the cause. Times are relative to
the start of the run.

With --live, the command shows the overview of the page in the terminal, for example over
ssh: the verdict, key figures, findings with their evidence, time lost by ranks over time,
and the state of the pipeline. It needs 80 columns and 24 lines, but no colors. RUN may also be the
address of a page.` + runHelp,
		Example: `  chimbuko top run
  chimbuko top run --live
  chimbuko top run --by rank --order anomalies --limit 20
  chimbuko top run --by path --format markdown
  chimbuko top run --by kind`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&top.By, "by", "function",
		"rows: function, rank, host, path or kind (slow, fast, comm-wait, gpu, recurring, excess-work, rare)")
	f.StringVar(&top.Order, "order", "lost", "order, greatest first: lost, anomalies, severity (own time) or score")
	f.IntVar(&top.Limit, "limit", 10, "number of rows")
	f.BoolVar(&top.Waits, "waits", false, "include waits for other ranks; rows of kinds always do")
	f.BoolVar(&live, "live", false, "overview of the page in this terminal; printed once if there is no terminal")
	f.DurationVar(&every, "every", 2*time.Second, "interval of updates with --live")
	cmd = newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		top.Program = q.chosenProgram()
		return rowsAnswer(a.Top(ctx, top))
	})
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !live {
			return list(cmd, args)
		}
		for _, name := range []string{"by", "order", "limit", "waits", "program", "format", "output", "show-sql", "timeout"} {
			if f.Changed(name) {
				return usage.Errorf("--%s does not apply to --live", name)
			}
		}
		if every <= 0 {
			return usage.Errorf("--every %v is not positive", every)
		}
		return showLive(cmd.Context(), env, args[0], q.run, every)
	}
	return cmd
}

// showLive shows the overview of a run until it ends or the user quits.
func showLive(ctx context.Context, env *Env, where, run string, every time.Duration) (err error) {
	const width = 100 // without a terminal
	source, err := viewer.NewLive(ctx, where, run, env.Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	kind := viewer.Variable(env.Environ, "TERM")
	if kind != "" && kind != "dumb" && output.IsTerminal(env.stdin()) && output.IsTerminal(env.Stdout) {
		return terminal.Show(ctx, source, terminal.Options{Input: env.Stdin, Output: env.Stdout, Environ: env.Environ, Every: every})
	}
	for {
		open, err := terminal.Print(ctx, env.Stdout, source, width)
		if err != nil || !open || !output.IsTerminal(env.Stdout) {
			return err
		}
		if wait.Sleep(ctx, max(every, 5*time.Second)) != nil {
			return nil
		}
		fmt.Fprintln(env.Stdout)
	}
}

func newCountersCmd(env *Env) *cobra.Command {
	var q queryFlags
	var pattern string
	var limit int
	cmd := &cobra.Command{
		Use:   "counters RUN",
		Short: "List the counters of a run",
		Long:  `List the counters of a run with the moments of their values over all ranks.` + runHelp,
		Example: `  chimbuko counters run
  chimbuko counters run --name '*bytes*' --format csv`,
		Args: usage.Args(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&pattern, "name", "", "pattern of counter names, with * and ?")
	cmd.Flags().IntVar(&limit, "limit", 1000, "number of rows")
	return newRunQueryCmd(env, cmd, &q, func(ctx context.Context, a *query.Queries, _ []string) (*output.Answer, error) {
		return rowsAnswer(a.Counters(ctx, pattern, q.chosenProgram(), limit))
	})
}
