package simulate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// write writes a scenario and returns the directory.
func write(t *testing.T, s *scenario.Scenario, change func(*simulate.Target)) (string, simulate.Stats) {
	t.Helper()
	to := simulate.Target{Dir: t.TempDir()}
	if change != nil {
		change(&to)
	}
	done, err := simulate.New(s).Write(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	return to.Dir, done
}

// readBack reads the steps of a dataset, and reports whether it is marked as being
// written. Anything else that is counted on the way is an error.
func readBack(t *testing.T, path string, program trace.Program) (steps []trace.Step, names *trace.Names, active bool) {
	t.Helper()
	var counts tally.Tally
	opt := bp.Default()
	opt.Tally = &counts
	r, err := bp.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := tau.NewReader(r, tau.Config{Program: program}, &counts)
	for {
		s, err := d.Next(t.Context())
		if errors.Is(err, io.EOF) || errors.Is(err, bp.ErrNotReady) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, clone(s))
	}
	all := maps.Collect(counts.All())
	delete(all, tally.NotClosed) // the caller checks that
	if len(all) > 0 {
		t.Errorf("%s: tallied %v, want nothing", path, all)
	}
	return steps, &d.Names, r.Active()
}

// datasetOf is where the dataset of a rank is.
func datasetOf(dir string, r *traced) string {
	return filepath.Join(dir, fmt.Sprintf("tau-metrics-%s-%d.bp", r.programName, r.rank))
}

// readTruth returns the lines of the truth in a directory.
func readTruth(t *testing.T, dir string) (troubles []truth.Trouble, calls []truth.Call) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, simulate.TruthFile))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var err error
		if line := lines.Bytes(); bytes.HasPrefix(line, []byte(`{"call"`)) {
			var c truth.Call
			err = json.Unmarshal(line, &c)
			calls = append(calls, c)
		} else {
			var tr truth.Trouble
			err = json.Unmarshal(line, &tr)
			troubles = append(troubles, tr)
		}
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
	}
	return troubles, calls
}

// byRank sorts calls as a rank after the other has them.
func byRank(calls []truth.Call) []truth.Call {
	slices.SortStableFunc(calls, func(a, b truth.Call) int {
		return strings.Compare(fmt.Sprintf("%03d %06d", a.Program, a.Rank), fmt.Sprintf("%03d %06d", b.Program, b.Rank))
	})
	return calls
}

// truthOf returns the calls of ranks in the truth.
func truthOf(all []*traced) (calls []truth.Call) {
	for _, r := range all {
		calls = append(calls, r.truth...)
	}
	return calls
}

func TestWrittenStepsEqualStreams(t *testing.T) {
	f := func(s *scenario.Scenario) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir, done := write(t, s, nil)
			all := record(t, s)
			var events, calls int64
			for _, r := range all {
				steps, names, active := readBack(t, datasetOf(dir, r), r.program)
				if active || len(steps) != len(r.steps) {
					t.Errorf("rank %d: %d steps, want %d; marked as being written: %v", r.rank, len(steps), len(r.steps), active)
				}
				for i := range min(len(steps), len(r.steps)) {
					if !sameStep(&steps[i], &r.steps[i]) {
						t.Errorf("rank %d step %d: %s", r.rank, i, difference(&steps[i], &r.steps[i]))
					}
					events += int64(steps[i].Funcs + steps[i].Comms + steps[i].Counters)
				}
				if !reflect.DeepEqual(gpusOf(r, names), gpusOf(r, r.names)) || !reflect.DeepEqual(namesOf(names), namesOf(r.names)) {
					t.Errorf("rank %d: names are %v, want %v", r.rank, namesOf(names), namesOf(r.names))
				}
				calls += int64(len(r.calls))
			}
			if done.Datasets != len(all) || done.Steps != len(all)*s.Steps || done.Events != events || done.Calls != calls || done.Bytes == 0 {
				t.Errorf("the result is %+v; there are %d datasets, %d events, %d calls", done, len(all), events, calls)
			}
			checkWrittenTruth(t, s, dir, all, &done)
		})
	}
	for _, name := range tracetest.Sample([]string{"workflow", "threads", "gpu-clock-drop", "memory-pressure", "message-size", "slow-link"}, 3) {
		f(builtin(t, name, 6, 4))
	}
	f(parse(t, busy))
	f(troubled(t, scenario.OSNoise))
	f(parse(t, breathless))
}

// breathless is a program that takes no time, so that all happens at once.
const breathless = `
name = "breathless"
steps = 2
iterations = 3
[[program]]
name = "breathless"
ranks = 3
hosts = ["x", "y", "z"]
body = ["f", "swap", "2 g", "all"]
[program.functions]
f = { calls = ["2 g", "h", "g"], counters = { "c" = { fixed = 1 } } }
g = { message = { fixed = 7 }, counters = { "d" = { fixed = 2 }, "c" = { integers = [0, 5] } } }
h = { calls = ["g"] }
swap = { kind = "exchange", neighbors = [1], counters = { "c" = { fixed = 3 } } }
all = { kind = "collective", counters = { "d" = { fixed = 4 } } }
[[program.counter]]
name = "load"
seconds = 0.001
value = { fixed = 9 }
`

func gpusOf(r *traced, names *trace.Names) map[trace.Thread]trace.GPU {
	gpus := make(map[trace.Thread]trace.GPU)
	for thread := range trace.Thread(100) {
		if gpu, ok := names.GPU(r.rank, thread); ok {
			gpus[thread] = gpu
		}
	}
	return gpus
}

func namesOf(n *trace.Names) []string {
	list := []string{n.Program()}
	for id, name := range n.Funcs() {
		list = append(list, fmt.Sprintf("function %d: %s", id, name))
	}
	for id, name := range n.Counters() {
		list = append(list, fmt.Sprintf("counter %d: %s", id, name))
	}
	return list
}

// difference returns the first difference of two steps.
func difference(got, want *trace.Step) string {
	if !slices.Equal(got.Metadata, want.Metadata) {
		return fmt.Sprintf("metadata are %v, want %v", got.Metadata, want.Metadata)
	}
	for i := range min(len(got.Batches), len(want.Batches)) {
		a, b := &got.Batches[i], &want.Batches[i]
		for j := range min(len(a.Events), len(b.Events)) {
			if a.Events[j] != b.Events[j] {
				return fmt.Sprintf("thread %d event %d is %+v, want %+v", a.Thread, j, a.Events[j], b.Events[j])
			}
		}
	}
	return fmt.Sprintf("%d batches, %d readings; want %d and %d", len(got.Batches), len(got.Readings), len(want.Batches), len(want.Readings))
}

// checkWrittenTruth compares the file with streams and the result.
func checkWrittenTruth(t *testing.T, s *scenario.Scenario, dir string, all []*traced, done *simulate.Stats) {
	t.Helper()
	troubles, calls := readTruth(t, dir)
	var want []truth.Trouble
	for _, tr := range simulate.New(s).Troubles() {
		want = append(want, *tr)
	}
	if !reflect.DeepEqual(troubles, want) {
		t.Errorf("the truth has the troubles %+v, want %+v", troubles, want)
	}
	if !reflect.DeepEqual(byRank(calls), truthOf(all)) {
		t.Errorf("the truth has %d calls, want %d, or others", len(calls), len(truthOf(all)))
	}
	var planted, minor, victims int64
	for _, c := range calls {
		switch {
		case c.Role == truth.Victim:
			victims++
		case c.Minor:
			minor++
		default:
			planted++
		}
	}
	if done.Planted != planted || done.Minor != minor || done.Victims != victims {
		t.Errorf("the result is %+v; the truth has %d, %d and %d", done, planted, minor, victims)
	}
	if _, err := truth.Read([]string{dir}); err != nil {
		t.Error(err)
	}
}

func TestHostDirectories(t *testing.T) {
	s := builtin(t, "workflow", 8, 1)
	dir, _ := write(t, s, func(to *simulate.Target) { to.HostDirs = true })
	for _, r := range record(t, s) {
		steps, _, _ := readBack(t, datasetOf(filepath.Join(dir, r.host), r), r.program)
		if len(steps) != 1 {
			t.Errorf("%s rank %d: %d steps in the directory of %s", r.programName, r.rank, len(steps), r.host)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 { // three hosts and the truth
		t.Errorf("%v in the directory, %v", entries, err)
	}
}

// TestStreamsCanBeReadConcurrently reads each in a goroutine, step
// by step.
func TestStreamsCanBeReadConcurrently(t *testing.T) {
	for _, s := range []*scenario.Scenario{builtin(t, "workflow", 8, 4), builtin(t, "gpu-clock-drop", 4, 3), troubled(t, scenario.SlowRank)} {
		want := record(t, s)
		run := simulate.New(s)
		var all []*traced
		for _, of := range run.Streams() {
			all = append(all, newTraced(of))
		}
		for range s.Steps {
			var wg sync.WaitGroup
			errs := make([]error, len(all))
			for i, of := range run.Streams() {
				wg.Go(func() { errs[i] = all[i].take(of, t) })
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range all {
			if !r.same(want[i]) {
				t.Errorf("%s: rank %d differs from that read by itself", s.Name, r.rank)
			}
		}
	}
}

// TestEndMayBeCalledConcurrently has one stream be at the next
// step already.
func TestEndMayBeCalledConcurrently(t *testing.T) {
	s := parse(t, busy)
	run := simulate.New(s)
	streams := run.Streams()
	for _, of := range streams {
		if _, err := of.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	end := streams[0].End()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := streams[1].Next(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if got := streams[0].End(); got != end {
		t.Errorf("the step ends at %d, and then at %d", end, got)
	}
	wg.Wait()
	if got := streams[0].End(); got != end || streams[1].End() <= end-100_000 {
		t.Errorf("the step ends at %d, and after another rank has continued at %d", end, got)
	}
}

func TestSkippedStreamReturnsError(t *testing.T) {
	run := simulate.New(parse(t, busy))
	streams := run.Streams()
	for range 2 {
		if _, err := streams[0].Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := streams[3].Next(t.Context())
	if err == nil || !strings.Contains(err.Error(), "busy, rank 3, step 0: ") || !strings.Contains(err.Error(), "skipped") {
		t.Errorf("a skipped stream returns %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := streams[0].Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestReleasedStreamContinues(t *testing.T) {
	s := troubled(t, scenario.SlowRank)
	want := record(t, s)
	run := simulate.New(s)
	for i := range s.Steps {
		if !run.Advance() {
			t.Fatalf("step %d is missing", i)
		}
		for j, of := range run.Streams() {
			step, err := of.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !sameStep(step, &want[j].steps[i]) {
				t.Errorf("rank %d step %d differs when memory is given back", of.Rank(), i)
			}
			of.Release()
			if of.Truth() != nil || of.End() != want[j].ends[i] {
				t.Errorf("rank %d step %d: after its release the truth has %d calls, and it ends at %d", of.Rank(), i, len(of.Truth()), of.End())
			}
		}
	}
	if run.Advance() {
		t.Error("there are more steps than the scenario has")
	}
}
