package simulate_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// correlated returns the calls on threads of the host, or of GPUs, by the
// correlation ids that were read in them.
func correlated(t *testing.T, r *traced, onGPU bool) map[uint64]*call {
	t.Helper()
	calls := make(map[uint64]*call)
	for _, c := range r.calls {
		if _, is := r.names.GPU(r.rank, c.thread); is != onGPU {
			continue
		}
		for _, e := range c.sides {
			if r.counter(e.Counter()) != "Correlation ID" || e.Kind != trace.Count {
				continue
			}
			if calls[e.Value] != nil {
				t.Errorf("rank %d: %s and %s have the correlation id %d", r.rank, calls[e.Value].function, c.function, e.Value)
			}
			calls[e.Value] = c
		}
	}
	return calls
}

// checkGPU checks all kernels of a rank and returns how many there are.
func checkGPU(t *testing.T, s *scenario.Scenario, r *traced) int {
	t.Helper()
	launches, kernels := correlated(t, r, false), correlated(t, r, true)
	if len(launches) != len(kernels) {
		t.Errorf("rank %d: %d launches, %d kernels", r.rank, len(launches), len(kernels))
	}
	of := make(map[string]string) // kernel by launch
	for _, f := range s.Programs[r.program].Functions {
		if f.Kind == scenario.Launch {
			k := s.Programs[r.program].Functions[f.Kernel]
			of[nameOf(f.Kernel, &k)] = f.Name
		}
	}
	for id, k := range kernels {
		l := launches[id]
		if l == nil || k.entry <= l.exit {
			t.Errorf("rank %d: kernel %s at %d has the launch %+v", r.rank, k.function, k.entry, l)
		} else if name, ok := of[k.function]; !ok || name != "" && name != l.function {
			t.Errorf("rank %d: %s launches %s", r.rank, l.function, k.function)
		}
	}
	last := make(map[trace.Thread]*call)
	onGPU := 0
	for _, c := range r.calls {
		if _, is := r.names.GPU(r.rank, c.thread); !is {
			continue
		}
		onGPU++
		if before := last[c.thread]; before != nil && c.entry < before.exit {
			t.Errorf("rank %d thread %d: %s begins at %d, before %s ends at %d", r.rank, c.thread, c.function, c.entry, before.function, before.exit)
		}
		last[c.thread] = c
	}
	if onGPU != len(kernels) {
		t.Errorf("rank %d: %d of %d kernels have a separate correlation id", r.rank, len(kernels), onGPU)
	}
	checkSyncs(t, s, r, launches, kernels)
	return len(kernels)
}

// checkSyncs checks that kernels launched before a sync end before it.
func checkSyncs(t *testing.T, s *scenario.Scenario, r *traced, launches, kernels map[uint64]*call) {
	t.Helper()
	syncs := 0
	for key, f := range s.Programs[r.program].Functions {
		if f.Kind != scenario.DeviceSync {
			continue
		}
		for _, sync := range r.of(nameOf(key, &f)) {
			syncs++
			for id, l := range launches {
				if k := kernels[id]; l.exit <= sync.entry && k.exit > sync.exit {
					t.Fatalf("rank %d: a sync ends at %d, before %s at %d, which was launched at %d", r.rank, sync.exit, k.function, k.exit, l.exit)
				}
			}
		}
	}
	if syncs == 0 {
		t.Errorf("rank %d waits for no kernel", r.rank)
	}
}

func TestKernelsRunOnStreamsAfterLaunch(t *testing.T) {
	f := func(s *scenario.Scenario) {
		t.Run(s.Name, func(t *testing.T) {
			for _, r := range record(t, s) {
				if checkGPU(t, s, r) < 20 {
					t.Errorf("rank %d has hardly any kernel", r.rank)
				}
			}
		})
	}
	f(builtin(t, "gpu-clock-drop", 4, 4))
	f(parse(t, busy))
	// Launches without any time, on three streams, faster than kernels.
	f(parse(t, `
name = "tight"
steps = 2
iterations = 10
[[program]]
name = "tight"
ranks = 1
body = ["3 a", "2 b", "4 c", "sync"]
[program.functions]
a = { kind = "launch", kernel = "short" }
b = { kind = "launch", kernel = "short", stream = 1 }
c = { kind = "launch", kernel = "long", stream = 4, time = { fixed = 3 } }
short = { counters = { "registers" = { fixed = 32 } } }
long = { time = { integers = [0, 50] } }
sync = { kind = "device-sync" }
`))
}

func TestParallelRegionEndsWithSlowestThread(t *testing.T) {
	s := parse(t, `
steps = 4
iterations = 5
[[program]]
name = "p"
ranks = 2
body = ["region", "after"]
[program.functions]
region = { kind = "parallel", threads = 5, time = { fixed = 20 }, calls = ["3 strip", "outer"] }
strip = { time = { lognormal = [200, 0.5] } }
outer = { time = { fixed = 7 }, calls = ["strip"] }
after = { time = { fixed = 5 } }
`)
	for _, r := range record(t, s) {
		regions := r.of("region")
		if len(regions) != 20 {
			t.Fatalf("%d regions, want 20", len(regions))
		}
		for i, region := range regions {
			last := region.entry
			threads := make(map[trace.Thread]trace.Ticks) // when their first call begins
			for _, c := range r.calls {
				if c == region || c.entry < region.entry || c.exit > region.exit || c.function != "strip" && c.function != "outer" {
					continue
				}
				last = max(last, c.exit)
				if first, ok := threads[c.thread]; !ok || c.entry < first {
					threads[c.thread] = c.entry
				}
			}
			if region.exit != last+10 || len(threads) != 5 {
				t.Errorf("region %d has %d threads and ends at %d, its last thread at %d; want 10 us before", i, len(threads), region.exit, last)
			}
			for thread, first := range threads {
				if first != region.entry+10 {
					t.Errorf("region %d: thread %d begins %d after the region, want 10", i, thread, first-region.entry)
				}
			}
			if next := r.of("after")[i]; next.entry != region.exit {
				t.Errorf("what follows region %d begins at %d, the region ends at %d", i, next.entry, region.exit)
			}
		}
		if len(r.of("strip")) != 20*5*4 {
			t.Errorf("%d strips, want 400", len(r.of("strip")))
		}
	}
}

func TestAwaitEndsAfterAllRanksPublished(t *testing.T) {
	f := func(s *scenario.Scenario, publish, await string) {
		t.Run(s.Name, func(t *testing.T) {
			var published []trace.Ticks // by iteration: by the last rank
			waited := 0
			for _, r := range record(t, s) { // the program that publishes comes first
				for i, c := range r.of(publish) {
					if i == len(published) {
						published = append(published, 0)
					}
					published[i] = max(published[i], c.exit)
				}
				awaits := r.of(await)
				for i, c := range awaits {
					if c.exit < published[i] {
						t.Errorf("%s rank %d: the await of iteration %d ends at %d, the publish at %d", r.programName, r.rank, i, c.exit, published[i])
					}
					if c.entry < published[i] {
						waited++
					}
				}
				if n := len(awaits); r.program == 1 && n != s.Steps*s.Iterations {
					t.Errorf("%s rank %d awaits %d times", r.programName, r.rank, n)
				}
			}
			if len(published) != s.Steps*s.Iterations || waited < len(published) {
				t.Errorf("%d iterations are published, and %d awaits wait for them", len(published), waited)
			}
		})
	}
	f(builtin(t, "workflow", 8, 5), "adios2::EndStep", "adios2::BeginStep")
	f(parse(t, `
name = "three"
steps = 5
iterations = 7
[[program]]
name = "a"
ranks = 3
body = ["work", "out"]
[program.functions]
work = { time = { lognormal = [500, 0.5] } }
out = { kind = "publish", time = { fixed = 5 } }
[[program]]
name = "b"
ranks = 2
body = ["in", "work"]
[program.functions]
work = { time = { lognormal = [300, 0.5] } }
in = { kind = "await", from = "a", time = { fixed = 3 } }
`), "out", "in")
}
