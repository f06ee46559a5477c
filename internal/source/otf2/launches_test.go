package otf2_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
)

// TestLaunches joins launches with kernels as the analysis does. The reference library wrote the archives.
func TestLaunches(t *testing.T) {
	f := func(name string, want ...string) {
		t.Helper()
		got := links(t, "testdata/launches/"+name)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// Kernels of the call path "both" run in two streams, and two threads launch "shared".
	f("hip",
		"thread 0 hipLaunchKernel at 0 started first at 50 in thread 2",
		"thread 0 hipLaunchKernel at 20 started first at 100 in thread 2",
		"thread 0 hipLaunchKernel at 40 started other at 60 in thread 3",
		"thread 0 hipLaunchKernel at 60 started first at 150 in thread 2",
		"thread 1 hipLaunchKernel at 10 started of second at 100 in thread 3")
	f("cuda",
		"thread 0 cuLaunchKernel at 0 started first at 50 in thread 2",
		"thread 0 cuLaunchKernel at 20 started both at 100 in thread 3",
		"thread 0 cuLaunchKernel at 40 started both at 80 in thread 2",
		"thread 0 cuLaunchKernel at 60 started first at 110 in thread 2",
		"thread 0 cuLaunchKernel at 80 started both at 140 in thread 2")
	f("references",
		"thread 0 cuLaunchKernel at 0 started third at 100 in thread 3",
		"thread 0 cuLaunchKernel at 20 started first at 50 in thread 2",
		"thread 0 cuLaunchKernel at 40 started second at 80 in thread 2")
	f("apex",
		"thread 0 cudaLaunchKernel at 10 started GPU: [CUDA] kernel 603 at 110 in thread 3",
		"thread 0 cudaLaunchKernel at 30 started GPU: [CUDA] kernel 601 at 60 in thread 2",
		"thread 0 cudaLaunchKernel at 50 started GPU: [CUDA] kernel 602 at 90 in thread 2")
	f("tau",
		"thread 0 cudaLaunchKernel at 0 started kernel at 60 in thread 2",
		"thread 0 cudaLaunchKernel at 20 started kernel at 50 in thread 3")
}

// TestRecordedLaunches links the kernels of a recorded archive, which run on two GPUs.
func TestRecordedLaunches(t *testing.T) {
	got := links(t, filepath.Dir(unpacked(t, "mi300-example")))
	want := []string{
		"thread 0 hipLaunchKernel at 407929206 started heavy_kernel(float*, float const*) at 408481551 in thread 30",
		"thread 0 hipLaunchKernel at 5557851142 started light_kernel(float*, float const*) at 5558316374 in thread 31",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// links returns the launches with their kernels, in order of threads and times.
func links(t *testing.T, path string) []string {
	t.Helper()
	anchor, _ := otf2.AnchorOf(path)
	a, err := otf2.Open(anchor)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Steps(0, new(tally.Tally))
	if err != nil {
		t.Fatal(err)
	}
	step, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := callstack.Default(trace.Nanosecond)
	cfg.Role = func(id trace.CounterID) callstack.CounterRole {
		if name, _ := r.Names().Counter(0, id); name == "Correlation ID" {
			return callstack.Correlation
		}
		return callstack.OfCall
	}
	builder := callstack.NewBuilder(cfg, new(tally.Tally))
	builder.Begin(0)
	for _, b := range step.Batches {
		builder.Add(b.Thread, b.Events)
	}
	start := builder.Threads()[0].Calls[0].Entry
	var all []string
	for _, thread := range builder.Threads() {
		if _, gpu := r.Names().GPU(0, thread.ID); gpu {
			continue
		}
		slices.SortFunc(thread.Links, func(x, y callstack.Link) int { return int(x.Call - y.Call) })
		for _, l := range thread.Links {
			launch, kernel := &thread.Calls[l.Call], &l.Thread.Calls[l.Partner]
			by, _ := r.Names().Func(0, launch.Func)
			started, _ := r.Names().Func(0, kernel.Func)
			all = append(all, fmt.Sprintf("thread %d %s at %d started %s at %d in thread %d",
				thread.ID, by, launch.Entry-start, started, kernel.Entry-start, l.Thread.ID))
		}
	}
	return all
}
