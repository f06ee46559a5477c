package simulate_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestSameSeedGivesSameStepsAndTruth(t *testing.T) {
	each(t, func(t *testing.T, s *scenario.Scenario) {
		first := record(t, s)
		for i, r := range record(t, s) {
			if !r.same(first[i]) {
				t.Errorf("rank %d does not do the same again", r.rank)
			}
		}
		other := *s
		other.Seed++
		for i, r := range record(t, &other) {
			if slices.EqualFunc(r.calls, first[i].calls, func(a, b *call) bool { return a.entry == b.entry }) {
				t.Errorf("rank %d does the same with another seed", r.rank)
			}
		}
	})
}

// written writes a scenario and returns the hash of each file.
func written(t *testing.T, s *scenario.Scenario) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if _, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		files[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSameSeedGivesSameFiles(t *testing.T) {
	for _, name := range []string{"workflow", "gpu-clock-drop", "threads"} {
		s := builtin(t, name, 4, 4)
		first, second := written(t, s), written(t, s)
		if !maps.Equal(first, second) || len(first) < 5 {
			t.Errorf("%s: two runs of the same scenario give different files, of %d", name, len(first))
		}
		s.Seed++
		for path, hash := range written(t, s) {
			if strings.HasSuffix(path, "data.0") && hash == first[path] {
				t.Errorf("%s: another seed gives the same %s", name, path)
			}
		}
	}
}

// busy is a program in which everything happens: messages, threads, a GPU,
// counters of calls and of the node. Ranks 0 to 3 and 4 to 7 have nothing to do
// with each other.
const busy = `
name = "busy"
seed = 11
steps = 10
iterations = 10
notable_us = 0
notable_share = 0

[[program]]
name = "busy"
ranks = 8
hosts = ["a", "b"]
setup = ["init"]
body = ["iterate"]
finish = ["end"]

[program.functions]
init = { time = { normal = [3000, 100] } }
end = { time = { fixed = 100 } }
iterate = { time = { normal = [50, 5] }, calls = ["3 compute", "look", "region", "launch", "sync", "gather", "2 tidy"] }
compute = { time = { lognormal = [400, 0.2] }, message = { integers = [100, 9000] }, counters = { "cache misses" = { integers = [10, 99] } } }
look = { every = 2, time = { pareto = [20, 3] } }
tidy = { time = { normal = [60, 5], per_byte = 0.01 }, calls = ["leaf"] }
leaf = { time = { uniform = [10, 30] } }
region = { kind = "parallel", threads = 3, time = { fixed = 10 }, calls = ["2 strip"] }
strip = { time = { lognormal = [150, 0.1] } }
launch = { kind = "launch", kernel = "kernel", time = { fixed = 6 } }
kernel = { time = { lognormal = [700, 0.1] } }
sync = { kind = "device-sync", time = { fixed = 5 } }
gather = { kind = "collective", group = 4, time = { lognormal = [20, 0.1] } }

[[program.counter]]
name = "load"
seconds = 0.004
value = { normal = [50, 5] }

[[program.counter]]
name = "clock"
seconds = 0.01
value = { normal = [1400, 20] }
`

// troubles are one of each kind that the busy program can have, all on rank 1 or
// 2, in the second quarter of its 250 ms; excess-work and rare-call, which add calls, are apart.
var troubles = map[scenario.TroubleKind]string{
	scenario.SlowCall:       `ranks = [1]` + "\n" + `functions = ["compute"]` + "\nchance = 0.2\nfactor = 5",
	scenario.SlowMode:       `ranks = [1]` + "\n" + `functions = ["compute"]` + "\nchance = 0.2\nvalue = { uniform = [3000, 5000] }",
	scenario.SlowRank:       "ranks = [1]\nfactor = 2.5",
	scenario.SlowHost:       `hosts = ["a"]` + "\nfactor = 2.5",
	scenario.OSNoise:        "ranks = [1]\nperiod = 0.01\nextra = { uniform = [500, 3000] }",
	scenario.MemoryPressure: `ranks = [1]` + "\n" + `functions = ["compute"]` + "\nfactor = 4\n" + `counter = "load"` + "\nreading = 99",
	scenario.IOStall:        `ranks = [1, 2]` + "\n" + `functions = ["leaf"]` + "\nextra = { fixed = 20000 }",
	scenario.GPUClockDrop:   `ranks = [2]` + "\n" + `functions = ["kernel"]` + "\nfactor = 3\n" + `counter = "clock"` + "\nreading = 700",
	scenario.LevelShift:     `ranks = [1]` + "\n" + `functions = ["tidy"]` + "\nfactor = 3",
	scenario.Drift:          `ranks = [1]` + "\n" + `functions = ["tidy"]` + "\nfactor = 3",
	scenario.HugeValue:      `ranks = [1]` + "\n" + `functions = ["leaf"]` + "\nvalue = { fixed = 3e9 }",
	scenario.Burst:          `ranks = [1]` + "\n" + `functions = ["strip"]` + "\ncount = 7\nextra = { normal = [900, 50] }",
}

// someTroubles returns all kinds of trouble, or with -short every third.
func someTroubles() []scenario.TroubleKind {
	return tracetest.Sample(slices.Sorted(maps.Keys(troubles)), 3)
}

// troubled is the busy program with a trouble.
func troubled(t *testing.T, kind scenario.TroubleKind) *scenario.Scenario {
	t.Helper()
	return parse(t, fmt.Sprintf("%s\n[[trouble]]\nname = \"it\"\nkind = %q\nfrom = 0.06\nto = 0.12\n%s", busy, kind, troubles[kind]))
}

func TestTroubleChangesNothingBeforeItStarts(t *testing.T) {
	quiet := record(t, parse(t, busy))
	for _, kind := range someTroubles() {
		s := troubled(t, kind)
		from := start(s) + 60_000
		for i, r := range record(t, s) {
			before := func(r *traced) (events []string) {
				for thread, e := range r.events(trace.Enter, trace.Exit, trace.Send, trace.Recv, trace.Count) {
					if e.Time < from {
						events = append(events, fmt.Sprintf("thread %d %s %d at %d: %d", thread, e.Kind, e.ID, e.Time, e.Value))
					}
				}
				return events
			}
			got, want := before(r), before(quiet[i])
			if !slices.Equal(got, want) || len(want) < 100 {
				t.Errorf("%s: rank %d has %d events before it begins, want the same %d as without it", kind, r.rank, len(got), len(want))
			}
		}
	}
}

func TestTroubleChangesOnlyAffectedRanks(t *testing.T) {
	quiet := record(t, parse(t, busy))
	for kind := range troubles {
		s := troubled(t, kind)
		hit := map[string]bool{
			"kernel": kind == scenario.GPUClockDrop, "leaf": kind == scenario.IOStall || kind == scenario.HugeValue,
			"compute": kind == scenario.SlowCall || kind == scenario.SlowMode || kind == scenario.MemoryPressure, "strip": kind == scenario.Burst,
			"tidy": kind == scenario.LevelShift || kind == scenario.Drift,
		}
		waits := map[string]bool{"gather": true, "sync": true, "region": true}
		all := kind == scenario.SlowRank || kind == scenario.SlowHost || kind == scenario.OSNoise
		for i, r := range record(t, s) {
			if r.rank >= 4 {
				if !r.same(quiet[i]) || len(r.truth) > 0 {
					t.Errorf("%s: rank %d, which has nothing to do with it, differs", kind, r.rank)
				}
				continue
			}
			if len(r.calls) != len(quiet[i].calls) {
				t.Fatalf("%s: rank %d makes %d calls, without it %d", kind, r.rank, len(r.calls), len(quiet[i].calls))
			}
			differ := 0
			for j, c := range r.calls {
				of := quiet[i].calls[j]
				if c.function != of.function || c.own != of.own && !all && !hit[c.function] && !waits[c.function] {
					t.Fatalf("%s: rank %d: %s takes %d, without it %s takes %d", kind, r.rank, c.function, c.own, of.function, of.own)
				}
				if c.own != of.own {
					differ++
				}
			}
			if differ == 0 {
				t.Errorf("%s: rank %d does the same as without it", kind, r.rank)
			}
		}
	}
}
