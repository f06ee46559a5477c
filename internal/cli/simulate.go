package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/cli/usage"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/show/output"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

// simulateFlags are the flags of `simulate`.
type simulateFlags struct {
	scenario, out string
	list, show    bool
	fromStart     bool
	seed          uint64
	ranks, steps  int
	duration      time.Duration
	live, force   bool
	speed         string
	hostDirs      bool
	format        simulate.Format
}

func newSimulateCmd(env *Env) *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --scenario NAME|FILE --out DIR",
		Short: "Write traces of a simulated program with planted troubles",
		Long: `Simulate a parallel program and write the traces that TAU would write: a BP4 dataset for
each rank. The file truth.jsonl has the kind, place and time of each planted trouble, and
all calls that it affected, either as causes or as victims that had to wait. Analyze the
datasets like any others, and compare the results with the truth with chimbuko eval.

The program is a scenario: the name of a built-in one (see --list), a random one such as
random-17 or random-place-17, or a TOML file. docs/scenarios.md explains how to write a
scenario; --show prints one to start from. The same scenario and seed give the same traces.

With --live, the datasets grow in real time, with current times, as if the program were
running. Ctrl-C leaves them as a killed program would. Without --out, they are written to
the directory of TAU_ADIOS2_FILENAME, so that chimbuko run can run the command.`,
		Example: `  chimbuko simulate --list
  chimbuko simulate --scenario slow-rank --out traces && chimbuko analyze traces --out run && chimbuko eval run traces
  chimbuko simulate --scenario slow-rank --show > mine.toml
  chimbuko simulate --scenario mine.toml --out live --live --duration 2m
  chimbuko run -- chimbuko simulate --scenario slow-rank --live
  chimbuko simulate --scenario hidden-wait --format inspector --out logs`,
		Args: usage.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := cmd.Flags().Changed
			switch {
			case f.list:
				return listScenarios(env)
			case f.scenario == "":
				return usage.Errorf("--scenario is missing (--list shows the built-in ones)")
			case changed("steps") && changed("duration"):
				return usage.Errorf("--steps and --duration cannot both be given")
			case changed("speed") && !f.live:
				return usage.Errorf("--speed is for --live")
			}
			return runSimulate(cmd, env, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.scenario, "scenario", "", "name of a built-in scenario, or a TOML file")
	fl.StringVar(&f.out, "out", "", "directory to write to")
	fl.BoolVar(&f.list, "list", false, "list the built-in scenarios")
	fl.BoolVar(&f.show, "show", false, "print the scenario instead of running it")
	fl.Uint64Var(&f.seed, "seed", 0, "random seed instead of the scenario's")
	fl.IntVar(&f.ranks, "ranks", 0, "number of ranks instead of the scenario's")
	fl.BoolVar(&f.fromStart, "from-start", false, "let all troubles last from the start of the run to its end")
	fl.IntVar(&f.steps, "steps", 0, "number of steps instead of the scenario's; troubles keep their times")
	fl.DurationVar(&f.duration, "duration", 0, "run time of the program; the times of troubles scale in proportion")
	fl.BoolVar(&f.live, "live", false, "write in real time, with current times")
	fl.StringVar(&f.speed, "speed", "1", "with --live: factor relative to real time")
	fl.BoolVar(&f.hostDirs, "host-dirs", false, "put the datasets of each host into a separate directory")
	fl.StringVar((*string)(&f.format), "format", string(simulate.BP4),
		"form of the traces: bp4 (TAU), inspector (NCCL Inspector, only collective calls) or inspector-verbose (with their times)")
	fl.BoolVar(&f.force, "force", false, "write into a directory that is not empty")
	return cmd
}

func listScenarios(env *Env) error {
	t := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, name := range scenario.Names() {
		s, _, err := scenario.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%d ranks\t%s\n", name, s.Ranks(), s.Text)
	}
	return t.Flush()
}

// adapt applies the flags to the scenario.
func (f *simulateFlags) adapt(cmd *cobra.Command, s *scenario.Scenario) error {
	changed := cmd.Flags().Changed
	if changed("seed") {
		s.Seed = f.seed
	}
	if f.fromStart {
		if err := s.FromStart(); err != nil {
			return usage.Errorf("--from-start: %w", err)
		}
	}
	if changed("ranks") {
		if err := s.Resize(f.ranks); err != nil {
			return usage.Errorf("--ranks %d: %w", f.ranks, err)
		}
	}
	if changed("steps") {
		s.Steps = f.steps
		if err := s.Validate(); err != nil {
			return usage.Errorf("--steps %d: %w", f.steps, err)
		}
	}
	if changed("duration") {
		if err := simulate.Stretch(s, f.duration); err != nil {
			return usage.Errorf("--duration %s: %w", f.duration, err)
		}
	}
	return nil
}

func runSimulate(cmd *cobra.Command, env *Env, f *simulateFlags) error {
	s, content, err := scenario.Load(f.scenario)
	if err != nil {
		return err
	}
	if f.show {
		_, err := env.Stdout.Write(content)
		return err
	}
	if tau := viewer.Variable(env.Environ, "TAU_ADIOS2_FILENAME"); f.out == "" && tau != "" { // like TAU
		f.out, f.force = filepath.Dir(tau), true
	}
	if f.out == "" {
		return usage.Errorf("--out is missing (the directory to write to)")
	}
	if err := f.adapt(cmd, s); err != nil {
		return err
	}
	if entries, err := os.ReadDir(f.out); err == nil && len(entries) > 0 && !f.force {
		return fmt.Errorf("%s exists and is not empty (choose another --out, or use --force)", f.out)
	}
	target := simulate.Target{Dir: f.out, Format: f.format, HostDirs: f.hostDirs, Now: time.Now, Sleep: wait.Sleep}
	if f.live {
		if target.Speed, err = parseSpeed(f.speed); err != nil {
			return err
		}
		s.Start = time.Now().UTC()
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.out, "scenario.toml"), content, 0o644); err != nil {
		return err
	}
	return writeSimulation(cmd.Context(), env, s, target)
}

func writeSimulation(ctx context.Context, env *Env, s *scenario.Scenario, target simulate.Target) error {
	run := simulate.New(s)
	bar := output.NewCounter(env.Stderr, s.Steps*len(run.Streams()), "steps")
	target.OnStep = func(simulate.Stats) { bar.Add() }
	start := time.Now()
	done, err := run.Write(ctx, target)
	bar.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped after %s steps; the datasets in %s stay marked as being written", text.Int(done.Steps), target.Dir)
	}
	if err != nil {
		return err
	}
	content := text.Int(done.Events) + " events, " + text.Int(done.Bytes) + " bytes"
	printWritten(env, done.Datasets, done.Steps, content, time.Since(start), done.MaxDelay)
	fmt.Fprintf(env.Stdout, "%s, planted in %s (and %s with a minor effect); %s waited because of them: %s\n",
		text.Count(len(s.Troubles), "trouble"), text.Count(done.Planted, "call"), text.Int(done.Minor), text.Count(done.Victims, "call"),
		filepath.Join(target.Dir, simulate.TruthFile))
	return nil
}
