package inspect

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
)

// Profiles are open Chrome traces, such as those of PyTorch's profiler.
type Profiles []*kineto.File

// SplitProfiles separates paths of Chrome traces from those of datasets and streams.
func SplitProfiles(paths []string) (profiles, others []string) {
	for _, p := range paths {
		if kineto.IsTrace(p) {
			profiles = append(profiles, p)
		} else {
			others = append(others, p)
		}
	}
	return profiles, others
}

// OpenProfiles reads and sorts Chrome traces, so many at a time, and finds out their ranks. The
// caller must close them.
func OpenProfiles(ctx context.Context, paths []string, opt kineto.Options, workers int) (Profiles, error) {
	all := make(Profiles, len(paths))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	for i, path := range paths {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := kineto.Open(path, opt)
			all[i] = f
			return err
		})
	}
	err := g.Wait()
	all = slices.DeleteFunc(all, func(f *kineto.File) bool { return f == nil })
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

// checkRanks returns an error unless each file has ranks of its own. A single file may be
// silent about its rank.
func (p Profiles) checkRanks() error {
	if len(p) == 1 {
		return nil
	}
	owners := make(map[trace.Rank]string)
	for _, f := range p {
		if !f.RankKnown {
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
