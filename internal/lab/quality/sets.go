package quality

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// Run measures a detector once; temp is a directory for what it needs meanwhile.
type Run func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error)

// Set is a data set that detectors are measured on.
type Set struct {
	Name string
	// Runs are those whose counts are added up.
	Runs []Run
	// Quick is what tests have the time for; of a large data set it is another.
	Quick Run
}

// A scenario runs with several seeds, its own first. Those of many ranks are large:
// they run once, and for tests with fewer ranks, as a data set of another name.
const (
	seeds      = 5
	seedStride = 100
	manyRanks  = 1000
	quickRanks = 200
)

// Scenarios returns the scenarios that are built in.
func Scenarios() ([]Set, error) {
	var sets []Set
	for _, name := range slices.Sorted(slices.Values(scenario.Names())) {
		s, err := seeded(name, 0)
		if err != nil {
			return nil, err
		}
		set := Set{Name: name, Quick: simulated(name, 0, 0)}
		n := seeds
		if ranks(s) > manyRanks {
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

// seeded returns a scenario that is built in, with a seed.
func seeded(name string, i int) (*scenario.Scenario, error) {
	text, err := scenario.Builtin(name)
	if err != nil {
		return nil, err
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		return nil, err
	}
	s.Seed += uint64(seedStride * i)
	return s, nil
}

func ranks(s *scenario.Scenario) (n int) {
	for i := range s.Programs {
		n += s.Programs[i].Ranks
	}
	return n
}

// simulated runs a scenario, with another number of ranks if that is not 0.
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

// Recorded are the names of the recorded traces with truth.
func Recorded() []string {
	return []string{"gpu-BP5", "gpu-late-BP4", "heat2d-BP4", "heat2d-BP5", "heat2d-large-BP4", "heat2d-large-BP5"}
}

// Find returns the recorded traces that are there, and the names of those that are
// not. root is the directory of the repository; unpack is asked for the directory of
// what is in an archive beside it.
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
