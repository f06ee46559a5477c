package node

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Engines of ADIOS2 for the traces of a program.
const (
	EngineAuto = "auto" // by the names
	EngineBP   = "bp"
	EngineSST  = "sst"
)

// traceFinder finds the traces of an analyzer as they appear.
type traceFinder struct {
	cfg          *Config
	now          func() time.Time
	programEnded func() bool                                                   // whether the program has ended; nil if unknown
	onFound      func(paths *[]string)                                         // called with all traces when there are new ones
	open         func(path string) func(*tally.Tally) (analyzer.Reader, error) // a stream

	streams []string  // all so far: a contact file disappears with its stream
	count   int       // of traces
	latest  time.Time // when count changed
	waiting bool      // for the first trace, as was logged

	programs inspect.Programs
	previous []string // traces of the previous search
	logs     logFinder
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
		logs, missing := t.logs.filter(some)
		paths, open = append(paths, logs...), open || more || missing
	}
	paths = append(paths, t.streams...)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) != t.count {
		t.count, t.latest = len(paths), t.now()
		t.onFound(&paths)
	}
	complete := t.complete(open)
	if t.count == 0 && !complete && !t.waiting {
		t.waiting = true
		t.cfg.Log.Info("waiting for traces: none matches yet", "traces", t.cfg.Patterns)
	}
	inputs, err := t.inputs(paths, complete)
	if err == nil {
		inputs, err = t.logs.bind(inputs, complete, t.now(), t.cfg.Linger)
	}
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
	return inputs, complete, nil
}

// complete reports whether no further traces will appear. open states whether more names are
// possible.
func (t *traceFinder) complete(open bool) bool {
	switch {
	case t.programEnded != nil && t.programEnded():
		return true
	case t.cfg.Traces > 0:
		return t.count >= t.cfg.Traces
	case t.cfg.UntilNotified:
		return false
	case !open:
		return true
	}
	return t.count > 0 && t.now().Sub(t.latest) >= t.cfg.Linger
}

// inputs returns traces with their programs. Unless the user assigned these, it numbers them by the
// names of the traces, and omits new programs until a second search finds no others, so that
// programs that start together are numbered in order of name.
func (t *traceFinder) inputs(paths []string, complete bool) (inputs []analyzer.Input, err error) {
	if t.cfg.Inputs != nil {
		return t.cfg.Inputs(paths)
	}
	if err := t.shareNumbers(); err != nil {
		return nil, err
	}
	names := inspect.ProgramNames(paths)
	if complete || slices.Equal(names, inspect.ProgramNames(t.previous)) &&
		(len(names) == 1 || inspect.AreSeveral(paths) || slices.Equal(paths, t.previous)) {
		before := len(t.programs.Names())
		t.programs.Add(paths)
		if list := t.programs.Names(); len(list) > before {
			t.cfg.Log.Info("recognized programs by the names of their traces", "programs", inspect.ProgramsText(list))
		}
		if err := t.shareNumbers(); err != nil {
			return nil, err
		}
	}
	t.previous = paths
	for _, p := range paths {
		if program, ok := t.programs.Of(p); ok {
			inputs = append(inputs, analyzer.Input{Path: p, Program: program})
		}
	}
	return inputs, nil
}

// shareNumbers exchanges the numbers of programs with the run directory, from which other
// analyzers and later processes of this one take them.
func (t *traceFinder) shareNumbers() error {
	if t.cfg.Bus.URL != "" { // the run directory may be of another run
		return nil
	}
	stored, own := runfiles.ReadPrograms(t.cfg.Dir), t.programs.Numbers()
	if err := t.programs.Adopt(stored); err != nil {
		return err
	}
	for name := range own {
		if _, ok := stored[name]; !ok {
			_ = runfiles.WritePrograms(t.cfg.Dir, t.programs.Numbers()) // tried again if the directory does not exist yet
			break
		}
	}
	return nil
}

// Traces returns the datasets, contact files and possible logs of NCCL Inspector that match a pattern now, and whether
// others can appear.
func Traces(pattern, engine string) (paths []string, more bool, err error) {
	var suffixes []string // ends of names
	if engine != EngineSST {
		suffixes = append(suffixes, ".bp", logSuffix)
	}
	if engine != EngineBP {
		suffixes = append(suffixes, sst.Suffix)
	}
	globs := []string{pattern}
	switch {
	case strings.ContainsAny(pattern, "*?["):
		if engine == EngineSST && !sst.IsContact(pattern) {
			globs = append(globs, pattern+sst.Suffix)
		}
	case sst.IsContact(pattern) && engine != EngineBP:
		return []string{pattern}, false, nil
	case strings.HasSuffix(pattern, logSuffix) && engine != EngineSST:
		return []string{pattern}, false, nil
	case strings.HasSuffix(filepath.Clean(pattern), ".bp"):
		if engine == EngineSST {
			return []string{filepath.Clean(pattern) + sst.Suffix}, false, nil
		}
		return []string{pattern}, false, nil
	default:
		globs = nil
		for _, end := range suffixes {
			globs = append(globs, filepath.Join(runfiles.EscapeGlob(pattern), "*"+end))
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
		return !slices.ContainsFunc(suffixes, func(end string) bool { return strings.HasSuffix(p, end) })
	}), true, nil
}
