package quality

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// Run measures a detector once; temp is a directory for temporary files.
type Run func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error)

// Set is a data set.
type Set struct {
	Name string
	// Runs are the runs whose counts are added.
	Runs []Run
	// Quick is a run for tests, with fewer ranks if the data set is large.
	Quick Run
}

// A scenario runs with several seeds, its own first. One with many ranks runs once, and
// for tests with fewer ranks as a data set of another name.
const (
	seeds      = 5
	seedStride = 100
	manyRanks  = 1000
	quickRanks = 200
)

// Scenarios returns the built-in scenarios.
func Scenarios() ([]Set, error) {
	var sets []Set
	for _, name := range scenario.Names() {
		s, err := seeded(name, 0)
		if err != nil {
			return nil, err
		}
		set := Set{Name: name, Quick: simulated(name, 0, 0)}
		n := seeds
		if s.Ranks() > manyRanks {
			n = 1
			set.Quick = simulated(name, 0, quickRanks)
		}
		for i := range n {
			set.Runs = append(set.Runs, simulated(name, i, 0))
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// seeded returns a built-in scenario with its i-th seed.
func seeded(name string, i int) (*scenario.Scenario, error) {
	s, _, err := scenario.Load(name)
	if err == nil {
		s.Seed += uint64(seedStride * i)
	}
	return s, err
}

// simulated runs a scenario, with another number of ranks unless that is 0.
func simulated(name string, seed, ranks int) Run {
	return func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error) {
		s, err := seeded(name, seed)
		if err == nil && ranks > 0 {
			s.Name = fmt.Sprintf("%s with %d ranks", name, ranks)
			err = s.Resize(ranks)
		}
		if err != nil {
			return nil, err
		}
		return Scenario(ctx, s, detector, temp)
	}
}

// Recorded returns the names of the recorded traces with truth.
func Recorded() []string {
	return []string{"gpu-BP5", "gpu-late-BP4", "heat2d-BP4", "heat2d-BP5", "heat2d-large-BP4", "heat2d-large-BP5"}
}

// Find returns the recorded traces, and the names of those that are missing. root is the
// directory of the repository; unpack unpacks an archive and returns the directory.
func Find(root string, unpack func(archive, name string) (dir string, err error)) (sets []Set, missing []string, err error) {
	for _, name := range Recorded() {
		dir := filepath.Join(root, "testdata", "traces", name)
		if _, err := os.Stat(dir); err != nil {
			archive := filepath.Join(root, "..", "shared", "traces", name+".tar.zst")
			if _, err := os.Stat(archive); err != nil {
				missing = append(missing, name)
				continue
			}
			if dir, err = unpack(archive, name); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", archive, err)
			}
		}
		sets = append(sets, TraceSet(dir))
	}
	return sets, missing, nil
}

// TraceSet returns the recorded traces in a directory.
func TraceSet(dir string) Set {
	run := func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error) {
		return Trace(ctx, dir, detector, temp)
	}
	return Set{Name: filepath.Base(dir), Runs: []Run{run}, Quick: run}
}
