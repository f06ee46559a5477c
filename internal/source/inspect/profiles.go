package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
	"github.com/chimbuko/chimbuko/internal/source/nsight"
	"github.com/chimbuko/chimbuko/internal/source/profile"
	"github.com/chimbuko/chimbuko/internal/source/rocpd"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
)

// Profiles are open traces of profilers: Chrome traces, such as those of PyTorch, and SQLite databases.
type Profiles []*profile.File

// isProfile reports whether a file is a trace of a profiler, by its content.
func isProfile(path string) bool { return kineto.IsTrace(path) || sqlitetrace.IsDatabase(path) }

// databases are the formats of traces in SQLite databases.
var databases = []sqlitetrace.Format{nsight.Format, rocpd.Format}

// openFiles opens a trace of a profiler.
func openFiles(path string, opt profile.Options) (Profiles, error) {
	if sqlitetrace.IsDatabase(path) {
		return sqlitetrace.Open(path, opt, databases...)
	}
	return kineto.Open(path, opt)
}

// SplitProfiles separates paths of traces of profilers from those of datasets and streams.
func SplitProfiles(paths []string) (profiles, others []string) {
	for _, p := range paths {
		if isProfile(p) {
			profiles = append(profiles, p)
		} else {
			others = append(others, p)
		}
	}
	return profiles, others
}

// maxEvents is the number of events of all files to keep in memory, in 64 MB.
const maxEvents = 1 << 21

// OpenProfiles reads and sorts traces of profilers, as many at a time as workers, and determines
// their ranks. The caller must close them.
func OpenProfiles(ctx context.Context, paths []string, opt profile.Options, workers int) (Profiles, error) {
	if opt.MaxEvents == 0 && len(paths) > 0 {
		opt.MaxEvents = min(max(maxEvents/len(paths), 1<<12), 1<<19)
	}
	opened := make([]Profiles, len(paths))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	for i, path := range paths {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			files, err := openFiles(path, opt)
			opened[i] = files
			return err
		})
	}
	err := g.Wait()
	all := slices.Concat(opened...)
	if err == nil {
		err = all.checkRanks()
	}
	if err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// Close closes all files.
func (p Profiles) Close() {
	for _, f := range p {
		f.Close()
	}
}

// checkRanks returns an error unless each file has ranks of its own. A single path may have unknown
// ranks.
func (p Profiles) checkRanks() error {
	single := !slices.ContainsFunc(p, func(f *profile.File) bool { return f.Path != p[0].Path })
	owners := make(map[trace.Rank]string)
	for _, f := range p {
		if !f.RankKnown && !single {
			return fmt.Errorf("%s: neither the trace nor its name contains the rank (with --rank-pattern REGEXP the first group of a "+
				"match in the name is the rank)", f.Path)
		}
		for _, r := range f.Ranks {
			if other, ok := owners[r]; ok {
				return fmt.Errorf("%s and %s are both of rank %d (analyze them separately, or remove one)", other, f.Path, r)
			}
			owners[r] = f.Path
		}
	}
	return nil
}

// profileReader reads a trace of a profiler.
type profileReader struct {
	sequence
	files Profiles
	names trace.Names
}

func openProfile(path string, t *tally.Tally) (*profileReader, error) {
	files, err := openFiles(path, profile.Options{})
	if err != nil {
		return nil, err
	}
	r := &profileReader{files: files, names: trace.EmptyNames()}
	for _, f := range files {
		steps, err := f.Steps(t)
		if err != nil {
			files.Close()
			return nil, err
		}
		r.open = append(r.open, func() (trace.Steps, error) { return steps, nil })
		if len(files) == 1 {
			r.names = *steps.Names() // of any number of ranks
		} else {
			r.names.Add(f.Ranks[0], steps.Names())
		}
	}
	return r, nil
}

func (r *profileReader) Names() *trace.Names { return &r.names }
func (r *profileReader) Unit() trace.Unit    { return trace.Nanosecond }
func (r *profileReader) Format() string      { return r.files[0].Format }
func (r *profileReader) Version() string     { return "" }
func (r *profileReader) Active() bool        { return false }
func (r *profileReader) Modified() time.Time { return r.files[0].Modified }
func (r *profileReader) OneFile() bool       { return len(r.files) > 1 || len(r.files[0].Ranks) > 1 }
func (r *profileReader) Size() int64         { return r.files[0].Size }

func (r *profileReader) Gaps() (all []gap) {
	for _, g := range r.files[0].Gaps {
		all = append(all, gap{g.Kind.Name(), g.Offset, g.Length})
	}
	return all
}

func (r *profileReader) Close() error {
	r.files.Close()
	return nil
}
