package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/lab/demo"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/show/output"
)

// demoFlags are the flags of `demo`.
type demoFlags struct {
	demo.Config
	ranks    int
	scenario string
	keep     bool
}

func (f *demoFlags) check() error {
	const shortest = 3 * time.Second
	var bad usage.Errors
	bad.AddIf(f.Duration < shortest, "--duration %v is too short (want at least %v)", f.Duration, shortest)
	bad.AddIf(f.ranks < 0, "--ranks %d is negative", f.ranks)
	bad.CheckAddress("http", f.Web)
	return bad.Err()
}

// load loads the scenario with the selected size.
func (f *demoFlags) load() (err error) {
	if f.Scenario, _, err = scenario.Load(f.scenario); err != nil {
		return err
	}
	if f.ranks > 0 {
		if err := f.Scenario.Resize(f.ranks); err != nil {
			return usage.Errorf("--ranks %d: %w", f.ranks, err)
		}
	}
	if err := simulate.Stretch(f.Scenario, f.Duration); err != nil {
		return usage.Errorf("--duration %v: %w", f.Duration, err)
	}
	return nil
}

func newDemoCmd(env *Env) *cobra.Command {
	var flags demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Analyze a simulated program in one minute",
		Long: `Demonstrate Chimbuko without a program, MPI or TAU. A simulated program writes the traces
of all its ranks in real time. As with chimbuko run, services and analyzers run beside it,
here with one analyzer for each simulated host.

The analysis has no information about the troubles planted in the program. The demo reports
each trouble when it is found. At the end, it prints the summary of the run and compares it
with the truth, like chimbuko eval. The exit code is 0 if all troubles were found, and 1
otherwise.

The page of the run shows the same in the browser. In a terminal, the page stays open after
the end until you press Ctrl-C.

The run is written to a temporary directory and removed, unless --keep or --out is
given. Ctrl-C ends the demo and all its processes at any time.`,
		Example: `  chimbuko demo
  chimbuko demo --duration 20s --ranks 32
  chimbuko demo --keep && chimbuko view chimbuko-demo/run`,
		Args: usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			if flags.keep && flags.Out == "" {
				flags.Out = "chimbuko-demo"
			}
			if !cmd.Flags().Changed("stay") {
				flags.KeepPage = env.isInteractive()
			}
			if err := flags.load(); err != nil {
				return err
			}
			flags.Supervise, flags.Sleep, flags.Summarize = superviseConfig(env, "", false), wait.Sleep, output.Summary
			return demo.Run(cmd.Context(), flags.Config)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&flags.Duration, "duration", time.Minute, "run time of the simulated program")
	f.IntVar(&flags.ranks, "ranks", 0, "ranks of the simulated program; 0 is the number in the scenario, 16 for demo")
	f.StringVar(&flags.scenario, "scenario", "demo", "built-in scenario (see chimbuko simulate --list) or TOML file")
	f.BoolVar(&flags.keep, "keep", false, "keep the run, its traces and logs in the directory chimbuko-demo")
	f.StringVarP(&flags.Out, "out", "o", "", "keep them in this directory; replaces an earlier demo there")
	f.StringVar(&flags.Web, "http", "127.0.0.1:0", "address the page listens on")
	f.BoolVar(&flags.KeepPage, "stay", false, "keep the page open after the end, until Ctrl-C; default at a terminal")
	return cmd
}
