// Package inputs opens recorded traces for the analyzer. It finds their programs, and the ranks and collective operations
// of traces of profilers and logs of NCCL Inspector. It corrects the clocks of ranks in Chrome traces that disagree about
// collective operations, and aligns hosts without a common clock by their first events.
package inputs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// Config configures Open.
type Config struct {
	Programs    []string // rules index=pattern, which give paths that match the pattern a program
	RankPattern string   // regular expression whose first group is the rank, for names of profiles without a rank
	Workers     int      // traces to read concurrently
	// Temp, if not nil, returns the directory for events of profiles that do not fit into memory, and a function
	// that Open calls if it cannot open them.
	Temp func() (dir string, discard func(), err error)
	// Reading, if not nil, is called with the size of all profiles before Open reads them. Open calls add with the
	// number of bytes of each read, and end after the last read.
	Reading func(size int64) (add func(int64), end func())
}

// UsageError is a mistake in a Config or in the choice of traces.
type UsageError struct{ error }

func usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Traces are recorded traces to analyze.
type Traces struct {
	Inputs   []analyzer.Input
	Programs []string // names of the programs by number, if there are several
	Unit     trace.Unit
	profiles inspect.Profiles
}

// Close frees the events of profiles.
func (t *Traces) Close() { t.profiles.Close() }

// Open opens the traces at paths, which inspect.Expand returned. The caller must close them.
func Open(ctx context.Context, paths []string, cfg Config) (*Traces, error) {
	archives, paths := inspect.SplitArchives(paths)
	profiles, datasets := inspect.SplitProfiles(paths)
	switch {
	case len(archives) > 0 && len(paths) > 0:
		return nil, usagef("%s is an OTF2 archive and %s is not; analyze them separately", archives[0], paths[0])
	case len(archives) > 0:
		return openArchives(archives, &cfg)
	case len(profiles) == 0:
		return openDatasets(datasets, &cfg)
	case len(datasets) > 0:
		return nil, usagef("%s is a trace of a profiler and %s is not; analyze them separately", profiles[0], datasets[0])
	}
	return openProfiles(ctx, profiles, &cfg)
}

// openArchives opens OTF2 archives. Each rank is an input. Without rules, programs are numbered in the order of archives.
func openArchives(paths []string, cfg *Config) (*Traces, error) {
	all, err := programsOf(paths, cfg.Programs)
	if err != nil {
		return nil, err
	}
	archives, err := inspect.OpenArchives(paths)
	if err != nil {
		return nil, err
	}
	t := &Traces{Unit: archives[0].Unit}
	for i, a := range archives {
		a.Program = trace.Program(i)
		if len(cfg.Programs) > 0 {
			a.Program = all[i].Program
		}
		for _, rank := range a.Ranks {
			t.Inputs = append(t.Inputs, analyzer.Input{
				Path: a.Path, Program: a.Program, Size: a.Size(rank),
				Steps: func(t *tally.Tally) (trace.Steps, error) { return a.Steps(rank, t) },
			})
		}
	}
	return t, nil
}

// openProfiles opens traces of profilers. It takes most of the time of their analysis.
func openProfiles(ctx context.Context, paths []string, cfg *Config) (t *Traces, err error) {
	pattern, err := regexp.Compile(cfg.RankPattern)
	if err != nil || pattern.NumSubexp() < 1 {
		return nil, usagef("--rank-pattern %q is not a regular expression with a group (…)", cfg.RankPattern)
	}
	opt := profile.Options{RankPattern: pattern}
	if cfg.Temp != nil {
		dir, discard, err := cfg.Temp()
		if err != nil {
			return nil, err
		}
		opt.Temp = dir
		defer func() {
			if t == nil {
				discard()
			}
		}()
	}
	if cfg.Reading != nil {
		size := int64(0)
		for _, p := range paths {
			if info, err := os.Stat(p); err == nil {
				size += info.Size()
			}
		}
		add, end := cfg.Reading(size)
		defer end()
		opt.Read = add
	}
	files, err := inspect.OpenProfiles(ctx, paths, opt, cfg.Workers)
	if err != nil {
		return nil, err
	}
	paths = make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	all, err := programsOf(paths, cfg.Programs)
	if err != nil {
		files.Close()
		return nil, err
	}
	t = &Traces{Inputs: all, Unit: trace.Nanosecond, profiles: files}
	for i, f := range files {
		f.SetProgram(t.Inputs[i].Program)
		t.Inputs[i].Steps = func(t *tally.Tally) (trace.Steps, error) { return f.Steps(t) }
	}
	t.align()
	return t, nil
}

// openDatasets returns datasets and logs of NCCL Inspector with their programs: by the rules, or else by the names of the
// traces.
func openDatasets(paths []string, cfg *Config) (*Traces, error) {
	t := new(Traces)
	var err error
	if t.Inputs, err = programsOf(paths, cfg.Programs); err != nil {
		return nil, err
	}
	if len(cfg.Programs) == 0 {
		var byName inspect.Programs
		byName.Add(paths)
		for i := range t.Inputs {
			t.Inputs[i].Program, _ = byName.Of(t.Inputs[i].Path)
		}
		t.Programs = byName.Names()
	}
	var logs Logs
	t.Inputs, err = logs.Bind(t.Inputs, inspect.LogsIn(paths))
	return t, err
}

func programsOf(paths, rules []string) ([]analyzer.Input, error) {
	all, unmatched, err := WithPrograms(paths, rules)
	if err == nil && unmatched != "" {
		err = usagef("program %q matches no trace", unmatched)
	}
	return all, err
}

// WithPrograms returns traces with the programs of rules, and a rule that matches no trace.
func WithPrograms(paths, rules []string) (all []analyzer.Input, unmatched string, err error) {
	all = make([]analyzer.Input, 0, len(paths))
	for _, p := range paths {
		all = append(all, analyzer.Input{Path: p})
	}
	for _, rule := range rules {
		index, pattern, ok := strings.Cut(rule, "=")
		n, err := strconv.ParseUint(index, 10, 32)
		if !ok || err != nil {
			return nil, "", usagef("program %q is not of the form index=pattern", rule)
		}
		match := outlier.Glob(pattern)
		matched := false
		for i := range all {
			if match.MatchString(all[i].Path) || match.MatchString(filepath.Base(all[i].Path)) {
				all[i].Program, matched = trace.Program(n), true
			}
		}
		if !matched {
			unmatched = rule
		}
	}
	return all, unmatched, nil
}
