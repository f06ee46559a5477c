// Package inspect finds traces on disk and shows their content: a summary, the events
// as text, JSON or CSV, and the attributes.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
	"github.com/chimbuko/chimbuko/internal/source/sqlitetrace"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// reader is an open trace.
type reader interface {
	// Next returns the next step, valid until the next call, or io.EOF.
	Next(ctx context.Context) (*trace.Step, error)
	Names() *trace.Names
	Unit() trace.Unit
	Format() string // such as BP5
	Version() string
	Active() bool
	Modified() time.Time
	// OneFile reports whether several ranks share the file.
	OneFile() bool
	// Size returns the number of bytes.
	Size() int64
	Close() error
}

// tauReader is a dataset or a stream that TAU wrote.
type tauReader struct {
	steps  *tau.Reader
	source interface {
		tau.Source
		Close() error
		Engine() string
		Active() bool
	}
	path string
}

func (r *tauReader) Next(ctx context.Context) (*trace.Step, error) { return r.steps.Next(ctx) }
func (r *tauReader) Names() *trace.Names                           { return &r.steps.Names }
func (r *tauReader) Unit() trace.Unit                              { return trace.Microsecond }
func (r *tauReader) Format() string                                { return r.source.Engine() }
func (r *tauReader) Active() bool                                  { return r.source.Active() }
func (r *tauReader) OneFile() bool                                 { return r.steps.OneFile() }
func (r *tauReader) Close() error                                  { return r.source.Close() }

func (r *tauReader) Version() string {
	if d, ok := r.source.(*bp.Reader); ok {
		return d.Version()
	}
	return ""
}

func (r *tauReader) Modified() time.Time {
	if d, ok := r.source.(*bp.Reader); ok {
		return d.Modified()
	}
	return time.Time{}
}

func (r *tauReader) Size() int64 {
	if live, ok := r.source.(*sst.Reader); ok {
		return live.Received()
	}
	return bp.Size(r.path)
}

// open opens the trace or live stream at path. It always follows a stream, and waits for its
// program for up to connect.
func open(path string, opt bp.Options, connect time.Duration) (reader, error) {
	r := &tauReader{path: path}
	switch {
	case sst.IsContact(path):
		o := sst.Default()
		o.ConnectTimeout, o.Tally = connect, opt.Tally
		if opt.Follow {
			o.Idle = opt.Idle
		}
		live, err := sst.Open(path, o)
		if err != nil {
			return nil, err
		}
		r.source = live
	case isArchive(path):
		return openArchive(path, opt.Tally)
	case isProfile(path):
		return openProfile(path, opt.Tally)
	case nccl.IsLog(path):
		return openLog(path, opt.Tally)
	default:
		d, err := openDataset(path, opt)
		if err != nil {
			return nil, err
		}
		r.source = d
	}
	r.steps = tau.NewReader(r.source, tau.Config{}, opt.Tally)
	return r, nil
}

// openDataset opens a dataset. Its errors have a hint for a missing dataset.
func openDataset(path string, opt bp.Options) (*bp.Reader, error) {
	r, err := bp.Open(path, opt)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(err, bp.ErrNotReady):
		err = fmt.Errorf("%w (use --follow to wait for it)", err)
	case errors.Is(err, bp.ErrNotReady):
		err = fmt.Errorf("%w (its writer has just started, or it is not a dataset)", err)
	}
	return r, err
}

// Expand returns the paths of the datasets that files, directories and patterns name,
// each once and in the order given; those in a directory are sorted. It returns contact
// files of live streams where a directory has no datasets.
func Expand(patterns ...string) ([]string, error) {
	var paths []string
	for _, g := range patterns {
		more, err := expand(g)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	return paths, nil
}

func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
		matches, err := filepath.Glob(path)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", path, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("nothing matches %s", path)
		}
		if !sst.IsContact(path) {
			matches = slices.DeleteFunc(matches, isCompanion)
		}
		return Expand(matches...)
	}
	if err != nil || !info.IsDir() || isDataset(path) {
		return []string{path}, nil // open reports the error
	}
	return datasetsIn(path)
}

// isDataset reports whether a directory is a dataset, rather than a directory of datasets.
func isDataset(dir string) bool {
	if filepath.Ext(dir) == ".bp" {
		return true
	}
	for _, name := range []string{"md.idx", "data_oids.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// isCompanion reports whether a path belongs to a dataset of another name: a listing, or
// the data of a BP3 file.
func isCompanion(path string) bool {
	return filepath.Ext(path) != ".bp" && (strings.Contains(path, ".bp.") || strings.Contains(path, ".bpls."))
}

// mayBeProfile reports whether a file in a directory may be a trace of a profiler by its name. The
// content decides.
func mayBeProfile(path string) bool {
	name := strings.TrimSuffix(path, ".gz")
	switch filepath.Ext(name) {
	case "":
		return name != path
	case ".json", ".trace", ".sqlite", ".sqlite3", ".db", ".rocpd":
		return true
	}
	return false
}

// datasetsIn returns all datasets, OTF2 archives, traces of profilers and logs of NCCL Inspector below dir, or else all contact
// files.
func datasetsIn(dir string) ([]string, error) {
	var datasets, contacts []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case sst.IsContact(path):
			contacts = append(contacts, path)
		case d.Type().IsRegular() && isArchive(path):
			datasets = append(datasets, path)
		case d.Type().IsRegular() && mayBeProfile(path) && (kineto.IsTrace(path) || sqlitetrace.IsTrace(path, databases...)),
			d.Type().IsRegular() && mayBeLog(path) && nccl.IsLog(path):
			datasets = append(datasets, path)
		case filepath.Ext(path) == ".bp" || d.IsDir() && path != dir && isDataset(path):
			datasets = append(datasets, path)
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && strings.HasSuffix(path, ".bp.dir"):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(datasets) == 0 {
		datasets = contacts
	}
	if len(datasets) == 0 {
		return nil, fmt.Errorf("%s: no .bp dataset, no OTF2 archive, no trace of a profiler and no log of NCCL Inspector in this directory (set "+
			"TAU_ADIOS2_FILENAME to write TAU's traces into it)", dir)
	}
	return datasets, nil
}

// maxEntries limits the files that HasTraces examines.
const maxEntries = 10_000

// HasTraces reports whether a path is a trace, or a directory with one among its first files.
func HasTraces(path string) bool {
	ok, n := false, 0
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error { // unreadable files count as no trace
		n++
		switch {
		case err != nil || n > maxEntries:
			return fs.SkipAll
		case d.IsDir():
			ok = isDataset(path)
		default:
			ok = filepath.Ext(path) == ".bp" || sst.IsContact(path) || d.Type().IsRegular() &&
				(isArchive(path) || mayBeProfile(path) && (kineto.IsTrace(path) || sqlitetrace.IsTrace(path)) || mayBeLog(path) && nccl.IsLog(path))
		}
		if ok {
			return fs.SkipAll
		}
		return nil
	})
	return ok
}

// Relative returns the path of a dataset that Expand returned for the given path, relative to that
// path if it is a directory of datasets, else the base name.
func Relative(pattern, dataset string) string {
	info, err := os.Stat(pattern)
	if err == nil && info.IsDir() && !isDataset(filepath.Clean(pattern)) {
		if rel, err := filepath.Rel(pattern, dataset); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return filepath.Base(filepath.Clean(dataset))
}
