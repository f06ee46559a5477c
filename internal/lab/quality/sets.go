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

// Run measures a detector once; temp is a directory for temporary files.
type Run func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error)

// Set is a data set.
type Set struct {
	Name string
	Dir  string // of recorded traces
	// Runs are the runs whose counts are added.
	Runs []Run
	// More are further runs of the default detector, for findings only.
	More []Run
	// Quick is a run for tests, with fewer ranks if the data set is large.
	Quick Run
	// Fit reports whether the i-th of Runs and More is in the fit half.
	Fit func(i int) bool
	// Unlike runs are of different programs, which have different findings.
	Unlike bool
}

// Data sets are split into two halves: constants may be chosen on the fit half, and results are measured on the
// report half. Seeds alternate, because the seeds of a scenario differ only by chance. Of traces, the fit half has the
// programs on which the rules were chosen (HPCG, heat2d, mpi_comm_outlier and the first GPU trace), and the other
// recordings of these programs and programs of others are in the report half.
var fitTraces = []string{
	"gpu-BP5", "heat2d-BP4", "heat2d-large-BP4", "hpcg-clean-BP5", "hpcg-slow-BP5", "hpcg-stall-BP5", "mpi_comm_outlier-BP5",
}

// Measure returns the sum of the runs of a detector and, of the default one, the measures of findings. If quick is
// true, it is only Quick.
func (s *Set) Measure(ctx context.Context, detector outlier.Algorithm, temp string, quick bool) (*Result, *FindingResult, error) {
	runs := slices.Clone(s.Runs)
	switch {
	case quick:
		runs = []Run{s.Quick}
	case detector == DefaultDetector:
		runs = append(runs, s.More...)
	}
	var results []*Result
	for _, run := range runs {
		r, err := run(ctx, detector, temp)
		if err != nil {
			return nil, nil, err
		}
		results = append(results, r)
	}
	sum := Sum(results[:min(len(results), len(s.Runs))])
	if detector != DefaultDetector {
		return sum, nil, nil
	}
	findings := &FindingResult{Data: s.Name}
	for i, r := range results {
		findings.add(r.Findings, s.Fit(i))
	}
	if s.Unlike {
		findings.Fit.Lists, findings.Report.Lists = nil, nil
	}
	sum.Findings = new(findings.All())
	return sum, findings, nil
}

// A scenario runs with several seeds, its own first, and the default detector with more. One with many ranks runs
// once, and for tests with fewer ranks as a data set of another name.
const (
	seeds      = 5
	moreSeeds  = 5
	seedStride = 100
	manyRanks  = 1000
	quickRanks = 200
)

// Scenarios returns the built-in scenarios, and random ones.
func Scenarios() ([]Set, error) {
	var sets []Set
	for _, name := range scenario.Names() {
		s, err := seeded(name, 0)
		if err != nil {
			return nil, err
		}
		set := Set{Name: name, Quick: simulated(name, 0, 0), Fit: func(i int) bool { return i%2 == 0 }}
		n, more := seeds, moreSeeds
		if s.Ranks() > manyRanks {
			n, more = 1, 0
			set.Quick = simulated(name, 0, quickRanks)
			set.Fit = func(int) bool { return false }
		}
		for i := range n {
			set.Runs = append(set.Runs, simulated(name, i, 0))
		}
		for i := range more {
			set.More = append(set.More, simulated(name, n+i, 0))
		}
		sets = append(sets, set)
	}
	return append(sets, random()), nil
}

// randomPrograms is the number of random programs.
const randomPrograms = 40

// random returns random programs as one data set.
func random() Set {
	set := Set{Name: scenario.RandomName, Fit: func(i int) bool { return i%2 == 0 }, Unlike: true}
	for i := range randomPrograms {
		set.More = append(set.More, simulated(fmt.Sprintf("%s-%d", scenario.RandomName, i+1), 0, 0))
	}
	set.Runs, set.More = set.More[:seeds], set.More[seeds:]
	set.Quick = set.Runs[0]
	return set
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
	return []string{
		"func_multimodal-BP4", "gpu-BP5", "gpu-late-BP4", "heat2d-BP4", "heat2d-BP5", "heat2d-large-BP4", "heat2d-large-BP5",
		"hpcg-clean-BP5", "hpcg-slow-BP5", "hpcg-stall-BP5", "lulesh-clean-BP5", "lulesh-iohog-BP4", "lulesh-slow-BP5", "lulesh-stall-BP5",
		"mpi_comm_outlier-BP5", "mpi_threaded_comm_outlier-BP4", "openmp_cpu-BP5",
	}
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
		sets = append(sets, TraceSet(root, dir))
	}
	return sets, missing, nil
}

// TraceSet returns the recorded traces in a directory. Their truth is in the directory testdata/truth of the
// repository, root, or with them.
func TraceSet(root, dir string) Set {
	name := filepath.Base(dir)
	truths := filepath.Join(root, "testdata", "truth", name)
	if _, err := os.Stat(truths); err != nil {
		truths = dir
	}
	run := func(ctx context.Context, detector outlier.Algorithm, temp string) (*Result, error) {
		return Trace(ctx, dir, []string{truths}, detector, temp)
	}
	fit := slices.Contains(fitTraces, name)
	return Set{Name: name, Dir: dir, Runs: []Run{run}, Quick: run, Fit: func(int) bool { return fit }}
}
