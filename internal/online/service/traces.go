package service

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// Engines of ADIOS2 for the traces of a program.
const (
	EngineAuto = "auto" // by the names
	EngineBP   = "bp"
	EngineSST  = "sst"
)

// traceFinder finds the traces of an analyzer as they appear.
type traceFinder struct {
	cfg     *AnalyzerConfig
	now     func() time.Time
	over    func() bool                                                   // whether the program has ended; nil if unknown
	onFound func(paths *[]string)                                         // called with all traces when there are new ones
	open    func(path string) func(*tally.Tally) (analyzer.Reader, error) // a stream

	streams []string  // all so far: a contact file disappears with its stream
	count   int       // of inputs
	latest  time.Time // when count changed
}

// find returns the traces that exist, and whether no others will appear.
func (t *traceFinder) find() ([]analyzer.Input, bool, error) {
	var paths []string
	open := false // whether more can appear
	for _, p := range t.cfg.Patterns {
		some, more, err := Traces(p, t.cfg.Engine)
		if err != nil {
			return nil, false, err
		}
		paths, open = append(paths, some...), open || more
	}
	paths = append(paths, t.streams...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	inputs, err := t.cfg.Inputs(paths)
	if err != nil {
		return nil, false, err
	}
	t.streams = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !sst.IsContact(p) })
	for i := range inputs {
		if sst.IsContact(inputs[i].Path) {
			inputs[i].Open = t.open(inputs[i].Path)
		}
		switch {
		case t.cfg.Rank >= 0:
			inputs[i].Rank, inputs[i].Ranks = trace.Rank(t.cfg.Rank), tau.VerifyRank
		case t.cfg.OverrideRank >= 0:
			inputs[i].Rank, inputs[i].Ranks = trace.Rank(t.cfg.OverrideRank), tau.OverrideRank
		}
	}
	if len(inputs) != t.count {
		t.count, t.latest = len(inputs), t.now()
		t.onFound(&paths)
	}
	switch {
	case t.over != nil && t.over():
		return inputs, true, nil
	case t.cfg.Traces > 0:
		return inputs, len(inputs) >= t.cfg.Traces, nil
	case t.cfg.UntilNotified:
		return inputs, false, nil
	case !open:
		return inputs, true, nil
	}
	return inputs, len(inputs) > 0 && t.now().Sub(t.latest) >= t.cfg.Linger, nil
}

// Traces returns the datasets and contact files that match a pattern now, and whether
// others can appear.
func Traces(pattern, engine string) (paths []string, more bool, err error) {
	var wanted []string // ends of names
	if engine != EngineSST {
		wanted = append(wanted, ".bp")
	}
	if engine != EngineBP {
		wanted = append(wanted, sst.Suffix)
	}
	globs := []string{pattern}
	switch {
	case strings.ContainsAny(pattern, "*?["):
		if engine == EngineSST && !sst.IsContact(pattern) {
			globs = append(globs, pattern+sst.Suffix)
		}
	case sst.IsContact(pattern) && engine != EngineBP:
		return []string{pattern}, false, nil
	case strings.HasSuffix(filepath.Clean(pattern), ".bp"):
		if engine == EngineSST {
			return []string{filepath.Clean(pattern) + sst.Suffix}, false, nil
		}
		return []string{pattern}, false, nil
	default:
		globs = nil
		for _, end := range wanted {
			globs = append(globs, filepath.Join(rundir.EscapeGlob(pattern), "*"+end))
		}
	}
	for _, g := range globs {
		some, err := filepath.Glob(g)
		if err != nil {
			return nil, true, err
		}
		paths = append(paths, some...)
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		return !slices.ContainsFunc(wanted, func(end string) bool { return strings.HasSuffix(p, end) })
	}), true, nil
}
