package quality

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/truth"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// PeerRun compares the slow ranks, hosts and GPUs that an analysis names with the trouble of the run.
type PeerRun struct {
	Name     string // of the data set, and the seed
	Troubled bool
	Named    bool // the first slow peer is the right one
	First    bool // the first finding is about it
	// Start is by how many seconds its start is wrong, and Cost its saved time divided by the true one. They are
	// NaN if it is not named, or if the truth lacks it.
	Start, Cost float64
	Blamed      []string // all others that are blamed
	Notes       []string // properties of the program, which blame no place
	Measured    string   // result for the right place
}

// PeerSet is a data set for the comparison of peers. Rules may be chosen on the fit half.
type PeerSet struct {
	Name        string
	Fit, Report []func(ctx context.Context, temp string) (*PeerRun, error)
}

// Seeds of the comparison of peers, which no other measurement uses.
const (
	fitSeed        = 1001
	reportSeed     = 2001
	fitSeeds       = 5
	troubledSeeds  = 20
	cleanSeeds     = 100
	peerScaleRanks = 400
)

// PeerScenarios returns the scenarios with a slow rank, host or GPU, each also with the trouble from the start to the
// end, and those in which no place is to blame.
func PeerScenarios() (sets []PeerSet) {
	for _, name := range []string{"slow-rank", "slow-host", "memory-pressure", "gpu-clock-drop", "scale"} {
		for _, fromStart := range []bool{false, true} {
			c := peerCase{name: name, fromStart: fromStart}
			if name != "scale" {
				sets = append(sets, c.set(fitSeeds, troubledSeeds))
				continue
			}
			small := c
			small.ranks = peerScaleRanks
			sets = append(sets, small.set(fitSeeds, troubledSeeds), c.set(0, 1))
		}
	}
	for _, c := range []peerCase{
		{name: "slow-from-start"}, {name: "extra-work"}, {name: "hidden-wait"}, {name: "hidden-wait", fromStart: true},
	} {
		sets = append(sets, c.set(fitSeeds, troubledSeeds))
	}
	for _, c := range []peerCase{{name: "clean"}, {name: "role-imbalance"}, {name: "uneven-gpus"}, {name: "hidden-wait", quiet: true}} {
		sets = append(sets, c.set(fitSeeds, cleanSeeds))
	}
	return sets
}

// peerCase is a scenario, and how it is changed.
type peerCase struct {
	name      string
	fromStart bool
	quiet     bool // without its trouble
	ranks     int  // 0: as in the scenario
}

// set returns the scenario with the given number of seeds in each half.
func (c *peerCase) set(fit, report int) PeerSet {
	set := PeerSet{Name: c.name}
	if c.ranks > 0 {
		set.Name += fmt.Sprintf(" with %d ranks", c.ranks)
	}
	if c.fromStart {
		set.Name += " from start"
	}
	if c.quiet {
		set.Name += " without trouble"
	}
	run := func(seed int) func(context.Context, string) (*PeerRun, error) {
		return func(ctx context.Context, temp string) (*PeerRun, error) {
			name := fmt.Sprintf("%s, seed %d", set.Name, seed)
			s, err := c.scenario()
			if err != nil {
				return nil, err
			}
			s.Seed = uint64(seed)
			r, err := ComparePeers(ctx, s, temp)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r.Name = name
			return r, nil
		}
	}
	for i := range fit {
		set.Fit = append(set.Fit, run(fitSeed+i))
	}
	for i := range report {
		set.Report = append(set.Report, run(reportSeed+i))
	}
	return set
}

// maxCleanSteps bounds the length of scenarios without trouble, because they run with many seeds.
const maxCleanSteps = 50

// scenario returns the changed scenario.
func (c *peerCase) scenario() (*scenario.Scenario, error) {
	s, _, err := scenario.Load(c.name)
	if err != nil {
		return nil, err
	}
	if c.quiet {
		s.Troubles = nil
	}
	if len(s.Troubles) == 0 {
		s.Steps = min(s.Steps, maxCleanSteps)
	}
	if c.ranks > 0 {
		err = s.Resize(c.ranks)
	}
	if err == nil && c.fromStart {
		err = s.FromStart()
	}
	return s, err
}

// PeerTraces are the recorded traces with a slow rank, or none.
var PeerTraces = []string{"hpcg-clean-BP5", "hpcg-slow-BP5", "lulesh-clean-BP5", "lulesh-slow-BP5"}

// PeerTrace returns the recorded traces in a directory.
func PeerTrace(dir string) PeerSet {
	set := PeerSet{Name: filepath.Base(dir)}
	run := func(ctx context.Context, temp string) (*PeerRun, error) {
		return inDir(temp, func(spool string) (*PeerRun, error) {
			f, planted, err := analyzeTrace(ctx, dir, []string{dir}, settings(DefaultDetector, spool))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", set.Name, err)
			}
			var slow []*truth.Trouble
			for i := range planted.Troubles {
				if t := &planted.Troubles[i]; t.Kind == "slow" {
					slow = append(slow, t)
				}
			}
			r := f.comparePeers(slow)
			r.Name = set.Name
			return r, nil
		})
	}
	if slices.Contains(fitTraces, set.Name) {
		set.Fit = append(set.Fit, run)
	} else {
		set.Report = append(set.Report, run)
	}
	return set
}

// ComparePeers simulates and analyzes a scenario with one trouble or none. It uses the existing directory temp for
// temporary files.
func ComparePeers(ctx context.Context, s *scenario.Scenario, temp string) (*PeerRun, error) {
	return inDir(temp, func(dir string) (*PeerRun, error) {
		f, _, troubles, err := analyzeScenario(ctx, s, settings(DefaultDetector, dir))
		if err != nil {
			return nil, err
		}
		return f.comparePeers(troubles), nil
	})
}

// comparePeers compares the slow peers with the trouble, which may be missing.
func (f *flags) comparePeers(troubles []*truth.Trouble) *PeerRun {
	all := f.peers
	begin := trace.Ticks(math.MaxInt64) // of the run
	for _, lane := range f.outcome.Load.Lanes() {
		begin = min(begin, lane.First)
	}
	r := &PeerRun{Troubled: len(troubles) > 0, Start: math.NaN(), Cost: math.NaN()}
	first := true
	for i := range all.Slow {
		s := &all.Slow[i]
		if s.Pattern == provenance.ByRole || s.Pattern == provenance.Roaming {
			r.Notes = append(r.Notes, peerText(s))
			continue
		}
		if r.Troubled && !r.Named && isRight(s, troubles[0]) {
			t := troubles[0]
			r.Named, r.Measured = first, peerText(s)
			r.Start = s.From - float64(max(t.From, begin)-begin)/1e6
			if t.Saved != nil {
				r.Cost = float64(s.Saved) / float64(*t.Saved)
			}
			r.Measured += fmt.Sprintf("; true cost %s", savedText(t.Saved))
		} else {
			r.Blamed = append(r.Blamed, peerText(s))
		}
		first = false
	}
	if list := f.concluded.Findings; r.Troubled && len(list) > 0 && list[0].OfPeers() {
		t := troubles[0]
		r.First = list[0].PID == t.Program && slices.Equal(list[0].Ranks, t.Ranks)
	}
	return r
}

// isRight reports whether a slow peer is the place of a trouble: all its ranks, and no others.
func isRight(s *provenance.SlowPeer, t *truth.Trouble) bool {
	return s.PID == t.Program && slices.Equal(s.Ranks, t.Ranks)
}

func savedText(saved *trace.Ticks) string {
	if saved == nil {
		return "unknown"
	}
	return text.Duration(float64(*saved))
}

// peerText describes a slow peer.
func peerText(s *provenance.SlowPeer) string {
	place := "ranks " + text.Ranges(s.Ranks)
	if s.Host != "" {
		place = s.Host + ", " + place
	}
	if s.Device {
		place += " (device)"
	}
	if s.TID != provenance.AllThreads {
		place += fmt.Sprintf(" thread %d", s.TID)
	}
	to := "the end"
	if s.To != nil {
		to = fmt.Sprintf("%.2f s", *s.To)
	}
	weak := ""
	if s.Weak {
		weak = ", weak"
	}
	return fmt.Sprintf("program %d %s: %s, %.3f times, %.2f s to %s, saves %s, %d peers%s",
		s.PID, place, s.Pattern, s.Ratio, s.From, to, text.Duration(float64(s.Saved)), s.Peers, weak)
}
