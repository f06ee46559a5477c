package analyzer_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/sample"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// simulated returns a small version of a built-in scenario.
func simulated(t *testing.T, name string, ranks, steps int) *scenario.Scenario {
	t.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Resize(ranks), s.Stretch(steps)); err != nil {
		t.Fatal(err)
	}
	return s
}

// analyzeInputs analyzes inputs and returns the hashes of all files and the result.
func analyzeInputs(t *testing.T, inputs []analyzer.Input, change func(*analyzer.Config)) (map[string]string, *analyzer.Result) {
	t.Helper()
	cfg := analyzer.Default()
	if change != nil {
		change(&cfg)
	}
	path := filepath.Join(t.TempDir(), "run")
	dir := recordfile.NewWriter(path)
	cfg.SpoolDir = t.TempDir()
	res, err := analyzer.New(cfg, dir, nil).Run(t.Context(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	known, err := res.Collections()
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteGlobal(known); err != nil {
		t.Fatal(err)
	}
	return analyzed{res, path}.hashes(t), res
}

// TestStepsEqualDatasets analyzes a simulation directly and through datasets, and
// compares all output files. Two passes request the steps twice.
func TestStepsEqualDatasets(t *testing.T) {
	for _, name := range tracetest.Sample([]string{"threads", "gpu-clock-drop", "workflow"}, 3) {
		t.Run(name, func(t *testing.T) {
			if name != "workflow" && tracetest.WithoutRace(t) {
				return
			}
			s := simulated(t, name, 4, 3)
			dir := t.TempDir()
			if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			var datasets, steps []analyzer.Input
			var run *simulate.Run
			opened := 0
			for i, of := range simulate.New(s).Streams() {
				in := analyzer.Input{
					Path:    filepath.Join(dir, fmt.Sprintf("tau-metrics-%s-%d.bp", of.ProgramName(), of.Rank())),
					Program: of.Program(),
				}
				datasets = append(datasets, in)
				in.Rank, in.Ranks = 77, tau.OverrideRank // ignored
				in.Steps = func(*tally.Tally) (trace.Steps, error) {
					if i == 0 { // a pass begins
						run = simulate.New(s)
					}
					opened++
					return run.Streams()[i], nil
				}
				steps = append(steps, in)
			}
			f := func(what string, passes int, change func(*analyzer.Config)) {
				t.Helper()
				opened = 0
				want, read := analyzeInputs(t, datasets, change)
				got, res := analyzeInputs(t, steps, change)
				if !maps.Equal(got, want) || len(want) < 5 {
					t.Errorf("%s: some of %d files differ", what, len(want))
					for path, hash := range want {
						if got[path] != hash {
							t.Logf("%s differs", path)
						}
					}
				}
				if opened != passes*len(steps) || res.Totals.Calls != read.Totals.Calls || res.Totals.Calls == 0 {
					t.Errorf("%s: steps were requested %d times; %d calls, want %d", what, opened, res.Totals.Calls, read.Totals.Calls)
				}
			}
			f("one pass", 1, nil)
			f("two passes", 2, func(c *analyzer.Config) { c.Passes = 2 })
			f("memory freed", 1, func(c *analyzer.Config) { c.KeepOpen = 0 })
			f("many workers", 1, func(c *analyzer.Config) { c.Workers = 7 })
		})
	}
}

// TestMissingStepsAreError requests steps that do not exist.
func TestMissingStepsAreError(t *testing.T) {
	none := errors.New("none today")
	in := analyzer.Input{Path: "nowhere", Program: trace.Program(1), Steps: func(*tally.Tally) (trace.Steps, error) { return nil, none }}
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	if _, err := analyzer.New(cfg, nil, nil).Run(t.Context(), []analyzer.Input{in}); !errors.Is(err, none) {
		t.Errorf("got %v", err)
	}
}

func TestChangesHaveNumbersOfCallsMade(t *testing.T) {
	s := simulated(t, "refinement", 2, 50)
	dir := t.TempDir()
	if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	var inputs []analyzer.Input
	for rank := range 2 {
		inputs = append(inputs, analyzer.Input{Path: filepath.Join(dir, fmt.Sprintf("tau-metrics-amr-%d.bp", rank))})
	}
	_, res := analyzeInputs(t, inputs, nil)
	if len(res.Changes) != 1 || res.Changes[0].Function != "time_step" {
		t.Fatalf("got %+v", res.Changes)
	}
	if c := &res.Changes[0]; c.MadeBefore < 12 || c.MadeBefore > 15 || c.MadeAfter < 28 || c.MadeAfter > 33 || !c.ByWork() {
		t.Errorf("got %+v", c)
	}
}

// manySlowCalls is a program with a rank that becomes slow for so many calls that recorded traces keep only a sample of them.
const manySlowCalls = `
name = "many"
text = "many slow calls"
seed = 1
steps = 50
iterations = 20
[[program]]
name = "many"
ranks = 2
body = ["time_step"]
[program.functions]
time_step = { time = { normal = [60, 5] }, calls = ["150 update_row"] }
update_row = { time = { lognormal = [150, 0.08] } }
[[trouble]]
name = "slow"
kind = "slow-rank"
ranks = [1]
from = 4
to = 14
factor = 3
`

// TestAllOfManyFlagsAreReviewed follows a run whose first slow calls are outliers, and its last ones belong to a slow mode, of
// which a sample is kept. While it runs, a smaller sample of the flags is sent. The services would have to review those that the
// analyzer forgets. In the end the anomalies are those of the recorded traces.
func TestAllOfManyFlagsAreReviewed(t *testing.T) {
	tracetest.SkipShort(t, "analyzes large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	s, err := scenario.Parse("many", []byte(manySlowCalls))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	datasets, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil {
		t.Fatal(err)
	}
	res, list := follow(t, newLedger(), analyzer.Online{Find: inputsOf(datasets)})
	missing := 0
	for id := range list.provisional {
		if _, ok := list.final[id]; !ok {
			missing++
		}
	}
	// Rank 1 has two call paths with many slow calls: their losses are between few powers of two.
	if sent := len(list.provisional); missing > 0 || sent < sample.Few || sent > 12*sample.Few || res.Totals.Flagged < 5000 {
		t.Errorf("of %d flags, %d were sent, and %d of these never reviewed", res.Totals.Flagged, sent, missing)
	}
	offline := newRecordList()
	cfg := analyzer.Default()
	cfg.SpoolDir = t.TempDir()
	inputs, _, _ := inputsOf(datasets)()
	if _, err := analyzer.New(cfg, offline, nil).Run(t.Context(), inputs); err != nil {
		t.Fatal(err)
	}
	if got, want := list.anomalies(), offline.anomalies(); !slices.Equal(got, want) {
		t.Errorf("%d anomalies live, %d of the recorded traces", len(got), len(want))
	}

	// An analyzer that is restarted does not send again what the one before sent.
	restarted := newLedger()
	restarted.earlier = 10
	_, again := follow(t, restarted, analyzer.Online{Find: inputsOf(datasets)})
	for id := range again.provisional { // a call may begin in the step before the one in which it ends
		if n, _ := trace.EventNumbers(id); int(n[1]) < restarted.earlier-1 {
			t.Errorf("%s was sent again", id)
		}
	}
	if got, want := again.anomalies(), offline.anomalies(); !slices.Equal(got, want) || len(again.provisional) == 0 {
		t.Errorf("%d anomalies after a restart, %d of the recorded traces", len(got), len(want))
	}
}
