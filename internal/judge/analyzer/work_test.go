package analyzer_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// stepsOf returns the traces of a simulated run, which take their steps from it.
func stepsOf(s *scenario.Scenario) (inputs []analyzer.Input) {
	for i, of := range simulate.New(s).Streams() {
		inputs = append(inputs, analyzer.Input{
			Path: filepath.Join("nowhere", fmt.Sprintf("tau-metrics-%s-%d.bp", of.ProgramName(), of.Rank())), Program: of.Program(),
			Steps: func(*tally.Tally) (trace.Steps, error) { return simulate.New(s).Streams()[i], nil },
		})
	}
	return inputs
}

func TestLoadIsIndependentOfWorkersAndOrder(t *testing.T) {
	for _, name := range tracetest.Sample([]string{"threads", "gpu-clock-drop", "workflow", "slow-host"}, 4) {
		t.Run(name, func(t *testing.T) {
			if name != "workflow" && tracetest.WithoutRace(t) {
				return
			}
			inputs := stepsOf(simulated(t, name, 6, 4))
			_, res := analyzeInputs(t, slices.Clone(inputs), func(c *analyzer.Config) { c.Workers = 1 })
			want := res.Load.AppendBinary(nil)
			checkLoadAgainstPaths(t, name, res)
			checkActivitiesAgainstPaths(t, name, res)
			f := func(what string, change func(*analyzer.Config)) {
				t.Helper()
				slices.Reverse(inputs)
				if _, res := analyzeInputs(t, slices.Clone(inputs), change); !bytes.Equal(res.Load.AppendBinary(nil), want) {
					t.Errorf("%s, %s: the load differs", name, what)
				}
			}
			f("other order", nil)
			f("many workers", func(c *analyzer.Config) { c.Workers = 7 })
			f("two passes", func(c *analyzer.Config) { c.Passes = 2 })
			f("set-up judged", func(c *analyzer.Config) { c.SkipFirst = false })
		})
	}
}

// TestLoadAddsUpToCallPaths compares the load of recorded traces with their call paths, and
// with the sum of all contributions while they are written.
func TestLoadAddsUpToCallPaths(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-BP4", "ring-onefile-BP5"} {
		a := analyze(t, tracetest.Recorded(t, run), nil)
		checkLoadAgainstPaths(t, run, a.Result)
		l := newLedger()
		res, _ := follow(t, l, analyzer.Online{Find: inputsOf(tracetest.Recorded(t, run))})
		ids := make(map[trace.FuncKey]uint32)
		for _, f := range a.Functions {
			ids[f.FuncKey] = uint32(f.ID)
		}
		got := workload.New()
		got.Merge(l.load, func(_ trace.Program, function uint32) uint32 { return ids[l.names[function]] })
		if res.Load != nil || !bytes.Equal(got.AppendBinary(nil), a.Load.AppendBinary(nil)) {
			t.Errorf("%s: the load differs while the traces are written", run)
		}
	}
}

// checkActivitiesAgainstPaths compares the sum of all activities with the time of all calls, except those of entire streams.
func checkActivitiesAgainstPaths(t *testing.T, what string, res *analyzer.Result) {
	t.Helper()
	got, want := uint64(0), uint64(0)
	for _, rank := range res.Load.Activities().Ranks() {
		for _, c := range res.Load.Activities().Cells(nil, rank) {
			got += c.Ticks
		}
	}
	for i := range res.Paths {
		want += uint64(res.Paths[i].Exclusive)
	}
	onGPU := what == "gpu-clock-drop" // whose program sends no messages
	if all, _ := res.Load.Activities().Messages(0); got == 0 || got > want || !onGPU && (got != want || len(all) == 0) {
		t.Errorf("%s: activities of %d ticks and %d pairs of ranks with messages, want %d ticks", what, got, len(all), want)
	}
}

// checkLoadAgainstPaths compares the sums of the load with those of call paths: by function for
// those that work, and by program for those that wait.
func checkLoadAgainstPaths(t *testing.T, what string, res *analyzer.Result) {
	t.Helper()
	got, want := make(map[int]callpath.Sums), make(map[int]callpath.Sums)
	waited, waits := make(map[trace.Program]uint64), make(map[trace.Program]uint64)
	for _, lane := range res.Load.Lanes() {
		for i := range lane.Windows {
			w := &lane.Windows[i]
			waited[lane.Program] += w.Wait
			for _, c := range w.Cells(nil) {
				id := int(res.Load.Works()[c.Work].Function)
				got[id] = callpath.Sums{Calls: got[id].Calls + c.Calls, Exclusive: got[id].Exclusive + c.Exclusive}
			}
		}
	}
	for _, p := range res.Paths {
		switch {
		case p.Calls == 0:
		case provenance.Useful(p.Name):
			want[p.ID] = callpath.Sums{Calls: want[p.ID].Calls + p.Calls, Exclusive: want[p.ID].Exclusive + p.Exclusive}
		default:
			waits[p.Program] += p.Exclusive
		}
	}
	for id, sums := range want {
		if got[id] != sums {
			t.Errorf("%s: %s: the load has %v, paths have %v", what, res.Functions[id].Name, got[id], sums)
		}
	}
	if len(got) != len(want) || len(want) == 0 || fmt.Sprint(waited) != fmt.Sprint(waits) {
		t.Errorf("%s: %d functions wait %v, want %d that wait %v", what, len(got), waited, len(want), waits)
	}
}

func TestLoadHasHostsAndDevices(t *testing.T) {
	_, res := analyzeInputs(t, stepsOf(simulated(t, "gpu-clock-drop", 4, 3)), nil)
	hosts, devices := make(map[string]bool), 0
	for _, lane := range res.Load.Lanes() {
		hosts[lane.Host] = true
		if lane.Device {
			devices++
		}
	}
	if devices != 8 || hosts[""] || len(hosts) < 2 {
		t.Errorf("%d devices, hosts %v", devices, hosts)
	}
}

func TestLoadWaitsForNames(t *testing.T) {
	p := newProgram()
	p.enter(1)
	for range 40 {
		p.call(9, 100)
	}
	p.step()
	p.at().Attrs = [][2]string{{"timer 9", "late()"}}
	p.call(9, 100)
	load := analyze(t, p.write(t), nil).Load
	var sums callpath.Sums
	for _, lane := range load.Lanes() {
		for _, c := range lane.Windows[0].Cells(nil) {
			sums.Calls, sums.Exclusive = sums.Calls+c.Calls, sums.Exclusive+c.Exclusive
		}
	}
	if want := (callpath.Sums{Calls: 41, Exclusive: 4100}); sums != want || load.Shift() != workload.MinShift {
		t.Errorf("got %v, want %v", sums, want)
	}
}

func TestWorkWithoutNamesIsLimited(t *testing.T) {
	p := newProgram()
	p.enter(1)
	for range 5000 {
		p.call(9, 100_000) // longer than a window
	}
	p.step()
	p.at().Attrs = [][2]string{{"timer 9", "late()"}}
	p.call(9, 100)
	a := analyze(t, p.write(t), nil)
	calls := uint64(0)
	for _, lane := range a.Load.Lanes() {
		for i := range lane.Windows {
			for _, c := range lane.Windows[i].Cells(nil) {
				calls += c.Calls
			}
		}
	}
	if lost := a.Tally.Count(tally.WorkUnnamed); lost < 900 || calls+uint64(lost) != 5001 {
		t.Errorf("the load has %d calls, and %d are reported as missing, want 5001 in all", calls, lost)
	}
}
