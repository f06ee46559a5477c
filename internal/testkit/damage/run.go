package damage

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
)

var (
	count = flag.Int("damage", 0, "number of mutations of every format (0: a sample)")
	first = flag.Uint64("damage-seed", 1, "seed of the first mutation")
)

const (
	// maxCPU is the processor time of a hang, which does not depend on the load of the machine.
	maxCPU = 10 * time.Second
	// maxWait ends a test that waits without using the processor.
	maxWait = 5 * time.Minute
	// MaxMemory is the memory that reading a damaged file may take.
	MaxMemory = 500 << 20
	// maxFailures is the number of failures after which a format is given up.
	maxFailures = 20
)

// Format is a recorded format.
type Format struct {
	Files  Files
	Others []Files  // of other runs
	Sample int      // number of mutations if -damage is 0; 40 if it is 0; a quarter with -short
	Seeds  []uint64 // mutations that once failed; always read
	// Read reads the files and returns an error if the result violates a rule of the
	// format. Unreadable files are not a violation.
	Read func(Files) error
	// Process states that Read runs a program and checks its memory. Other tests may run
	// at the same time.
	Process bool
}

// Run reads mutations of a format and fails for each that panics, hangs, takes too much
// memory or violates a rule.
func Run(t *testing.T, f Format) {
	t.Helper()
	if err := guard(f, f.Files); err != nil {
		t.Fatalf("undamaged: %v", err)
	}
	n := *count
	if n == 0 {
		n = f.Sample
		if n == 0 {
			n = 40
		}
		if testing.Short() {
			n /= 4
		}
	}
	seeds := f.Seeds
	for i := range n {
		seeds = append(slices.Clip(seeds), *first+uint64(i))
	}
	failures := 0
	for _, seed := range seeds {
		files, what := Mutate(seed, f.Files, f.Others)
		err := guard(f, files)
		if err == nil {
			continue
		}
		t.Errorf("-damage-seed %d: %s: %v", seed, what, err)
		if failures++; failures == maxFailures {
			t.Fatal("too many failures")
		}
	}
	if *count > 0 {
		t.Logf("%d mutations read", len(seeds))
	}
}

// guard reads files and returns the error, or one for a panic or an exceeded limit. A hang
// leaves the goroutine behind.
func guard(f Format, files Files) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		done <- f.Read(files)
	}()
	start, cpu := time.Now(), cputime.OfProcess()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case err := <-done:
			runtime.ReadMemStats(&after)
			// An upper bound of the peak: nothing is subtracted for freed memory.
			if used := after.TotalAlloc - before.TotalAlloc; err == nil && used > MaxMemory && !f.Process {
				err = fmt.Errorf("%d bytes of memory allocated", used)
			}
			return err
		case <-ticks.C:
			if used := cputime.OfProcess() - cpu; used > maxCPU && !f.Process || time.Since(start) > maxWait {
				return fmt.Errorf("no end after %v of processor time", used)
			}
		}
	}
}
