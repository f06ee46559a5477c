package quality

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/findings"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
)

// Scenario simulates a valid scenario and measures a detector on it. It uses the existing
// directory temp for temporary files.
func Scenario(ctx context.Context, s *scenario.Scenario, detector outlier.Algorithm, temp string) (*Result, error) {
	res, err := inDir(temp, func(dir string) (*Result, error) {
		flags, watches, troubles, err := analyzeScenario(ctx, s, settings(detector, dir))
		if err != nil {
			return nil, err
		}
		end := trace.Ticks(math.MinInt64)
		touched, late := int64(0), 0
		var calls []truth.Call
		for _, w := range watches {
			calls = append(calls, w.calls...)
			end = max(end, w.End())
			touched += w.touched()
			late += w.late
		}
		planted, err := truth.New(troubles, calls)
		if err != nil {
			return nil, err
		}
		res := flags.score(planted, end)
		res.Normal = res.Calls - touched
		res.Late.Missed = late - res.Late.Found
		return res, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d, %s: %w", s.Name, s.Seed, detector, err)
	}
	res.Data, res.Detector = s.Name, detector
	if !hasLate(res.Data) {
		res.Late = nil
	}
	return res, nil
}

// analyzeScenario simulates and analyzes a scenario.
func analyzeScenario(ctx context.Context, s *scenario.Scenario, cfg analyzer.Config) (*flags, []*watch, []*truth.Trouble, error) {
	run := simulate.New(s)
	var (
		inputs  []analyzer.Input
		watches []*watch
	)
	troubles := run.Troubles()
	for _, stream := range run.Streams() {
		w := newWatch(stream, troubles)
		watches = append(watches, w)
		inputs = append(inputs, analyzer.Input{
			Path:    fmt.Sprintf("tau-metrics-%s-%d.bp", stream.ProgramName(), stream.Rank()),
			Program: stream.Program(),
			Steps:   func(*tally.Tally) (trace.Steps, error) { return w, nil },
		})
	}
	flags, err := analyze(ctx, cfg, inputs)
	if err == nil {
		err = flags.checkTally()
	}
	return flags, watches, troubles, err
}

// Trace measures a detector on all datasets of a directory and the truth in files and directories. It uses the
// existing directory temp for temporary files.
func Trace(ctx context.Context, dir string, truths []string, detector outlier.Algorithm, temp string) (*Result, error) {
	res, err := inDir(temp, func(spool string) (*Result, error) {
		flags, planted, err := analyzeTrace(ctx, dir, truths, settings(detector, spool))
		if err != nil {
			return nil, err
		}
		res := flags.score(planted, truth.AtEnd)
		res.Normal = res.Calls - int64(res.Planted)
		res.Late = nil
		return res, nil
	})
	name := filepath.Base(dir)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", name, detector, err)
	}
	res.Data, res.Detector = name, detector
	return res, nil
}

// analyzeTrace analyzes all datasets of a directory, and reads the truth.
func analyzeTrace(ctx context.Context, dir string, truths []string, cfg analyzer.Config) (*flags, *truth.Truth, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("no datasets: %w", fs.ErrNotExist)
	}
	planted, err := truth.Read(truths)
	if err != nil {
		return nil, nil, err
	}
	var programs inspect.Programs
	programs.Add(paths)
	var inputs []analyzer.Input
	for _, p := range paths {
		program, _ := programs.Of(p)
		inputs = append(inputs, analyzer.Input{Path: p, Program: program})
	}
	flags, err := analyze(ctx, cfg, inputs)
	return flags, planted, err
}

// inDir calls f with a new directory in temp, and removes it afterwards.
func inDir[T any](temp string, f func(dir string) (T, error)) (res T, err error) {
	dir, err := os.MkdirTemp(temp, "quality-")
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}

// flag is a flagged call.
type flag struct {
	truth.Flag
	step   int32 // of its exit
	status provenance.Status
}

// flags is a sink that collects the flags of an analysis.
type flags struct {
	mu         sync.Mutex
	all        []flag
	calls      int64
	firstCalls int64
	tally      tally.Tally
	changes    []summary.Change
	collector  findings.Collector
	concluded  *findings.Result // nil for other detectors than the default
	outcome    *summary.Outcome
	peers      *provenance.Peers
}

// analyze runs the analysis. It fails if a trace cannot be read to its end.
func analyze(ctx context.Context, cfg analyzer.Config, inputs []analyzer.Input) (*flags, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := new(flags)
	rounds := 0
	res, err := analyzer.New(cfg, f, func(done analyzer.ProgressReport) {
		if rounds++; rounds == 1 {
			f.firstCalls = done.Calls
		}
	}).Run(ctx, inputs)
	if err != nil {
		return nil, err
	}
	f.calls, f.tally, f.changes, f.outcome = res.Totals.Calls, res.Tally, res.Changes, res.Outcome
	if cfg.Outlier.Algorithm == DefaultDetector {
		c, err := res.Collections()
		if err != nil {
			return nil, err
		}
		f.peers = peers.OfRun(res.Outcome)
		f.concluded = f.collector.Conclude(res.Outcome, c.PathStats, f.peers)
	}
	return f, errors.Join(res.Broken...)
}

// Metadata notes the rank of the metadata.
func (f *flags) Metadata(ctx context.Context, key trace.StepKey, _ []provenance.Metadata) error {
	return f.Records(ctx, key, nil, nil)
}

// Records adds anomalies.
func (f *flags) Records(_ context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.collector.Add(key.RankKey, anomalies, typical)
	for _, r := range anomalies {
		f.all = append(f.all, flag{step: r.IOStep, status: r.Status, Flag: Flag(r)})
	}
	return nil
}

// Flag returns the flag of a record, found at its exit.
func Flag(r *provenance.Record) truth.Flag {
	f := truth.Flag{
		Program: r.PID, Rank: r.RID, Event: r.EventID, Function: r.Func, Entry: r.Entry, Exit: r.Exit, Found: r.Exit,
		Recurring: r.Kind == provenance.Recurring, Induced: r.OnlyExplainsWaits(), Lost: r.LostTime,
	}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok && len(p.CallStack) > 0 {
		f.Launched, f.LaunchEntry, f.LaunchExit = true, p.CallStack[0].Entry, p.CallStack[0].Exit
	}
	return f
}

// checkTally returns an error if the analysis repaired or lost anything, which must not
// happen in a simulation.
func (f *flags) checkTally() error {
	var errs []error
	for kind, n := range f.tally.All() {
		if kind.Severity() != tally.Info {
			errs = append(errs, fmt.Errorf("%d %s", n, kind.Sentence()))
		}
	}
	return errors.Join(errs...)
}

// score compares the flags with the truth. end is the end of the run.
func (f *flags) score(planted *truth.Truth, end trace.Ticks) *Result {
	f.link()
	final, raised, first, late, withdrawn := planted.Matcher(), planted.Matcher(), planted.Matcher(), planted.Matcher(), planted.Matcher()
	for i := range f.all {
		n := &f.all[i]
		if n.status == provenance.Promoted {
			n.Found = end
		}
		raised.Add(&n.Flag)
		if n.step == 0 && n.status != provenance.Promoted {
			first.Add(&n.Flag)
		}
		if n.status == provenance.Withdrawn {
			withdrawn.Add(&n.Flag)
			continue
		}
		final.Add(&n.Flag)
		if n.step >= LateStep {
			late.Add(&n.Flag)
		}
	}
	for _, c := range f.changes {
		raised.AddChange(c.Program, c.Function, c.Since, end)
	}
	s, l := final.Score(float64(f.calls)), late.Score(0)
	res := &Result{
		Runs: 1, Calls: f.calls, Planted: s.Planted, Found: s.Found, Excused: s.Excused, Other: s.Other,
		Withdrawn: withdrawn.Score(0).Other, FirstFlags: first.Score(0).Other, FirstCalls: f.firstCalls,
		Late: &LateCounts{Found: l.Found, Other: l.Other},
	}
	if f.concluded != nil {
		res.Findings = f.scoreFindings(final)
	}
	for _, t := range raised.Score(0).Troubles {
		if t.Each && t.Planted == 0 {
			continue // it affected no call
		}
		after := math.Inf(1)
		if t.Seen {
			after = float64(t.After) / 1e6
		}
		res.Delays = append(res.Delays, after)
	}
	return res
}

// median returns the median, which may be infinite.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
