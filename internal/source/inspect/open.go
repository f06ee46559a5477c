// Package inspect finds traces on disk and shows their content: a summary, the events
// as text, JSON or CSV, and the attributes.
package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/kineto"
	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// reader is an open dataset or stream.
type reader interface {
	tau.Source
	Close() error
	Engine() string
	Version() string
	Active() bool
	Modified() time.Time
}

// stream is a live stream as a reader. It has neither a version nor a modification time.
type stream struct{ *sst.Reader }

func (stream) Version() string     { return "" }
func (stream) Modified() time.Time { return time.Time{} }

// open opens the dataset or live stream at path. It always follows a stream, and waits
// for its program as long as connect.
func open(path string, opt bp.Options, connect time.Duration) (reader, error) {
	if sst.IsContact(path) {
		o := sst.Default()
		o.ConnectTimeout, o.Tally = connect, opt.Tally
		if opt.Follow {
			o.Idle = opt.Idle
		}
		r, err := sst.Open(path, o)
		if err != nil {
			return nil, err
		}
		return stream{r}, nil
	}
	return openDataset(path, opt)
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
func Expand(given ...string) ([]string, error) {
	var paths []string
	for _, g := range given {
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

// mayBeProfile reports whether a file in a directory may be a Chrome trace by its name. The
// content decides.
func mayBeProfile(path string) bool {
	name := strings.TrimSuffix(path, ".gz")
	return name != path && filepath.Ext(name) == "" || filepath.Ext(name) == ".json" || filepath.Ext(name) == ".trace"
}

// datasetsIn returns all datasets and Chrome traces below dir, or else all contact files.
func datasetsIn(dir string) ([]string, error) {
	var datasets, contacts []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case sst.IsContact(path):
			contacts = append(contacts, path)
		case d.Type().IsRegular() && mayBeProfile(path) && kineto.IsTrace(path):
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
		return nil, fmt.Errorf("%s: no .bp dataset and no Chrome trace in this directory (set TAU_ADIOS2_FILENAME to write TAU's traces into it)", dir)
	}
	return datasets, nil
}

// Relative returns the path of a dataset that Expand returned for the path given: below
// that path if it is a directory of datasets, else the base name.
func Relative(given, dataset string) string {
	info, err := os.Stat(given)
	if err == nil && info.IsDir() && !isDataset(filepath.Clean(given)) {
		if rel, err := filepath.Rel(given, dataset); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return filepath.Base(filepath.Clean(dataset))
}
