package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/source/inspect"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// NoRuns is the value of Options.Runs for a page without neighbors.
const NoRuns = "none"

// Bounds of the list of runs: entries of the directory that are considered, runs that are listed, and names of programs of a run.
const (
	maxEntries   = 10_000
	maxNeighbors = 500
	maxPrograms  = 4
)

// neighbors are the runs of a directory besides the one of a page. It is a compare.Neighbors.
type neighbors struct {
	dir string // absolute
	own string // directory of the run of the page, or ""

	mu    sync.Mutex
	cache map[string]*neighbor // by name of the directory
}

// neighbor is a run of the directory, as far as run.json describes it.
type neighbor struct {
	modified time.Time // of run.json
	size     int64     // likewise
	info     *provdb.Info
}

// neighborsOf returns the runs outside its store that a page offers for comparisons, or nil.
func (o *Options) neighborsOf(own string) (*neighbors, error) {
	dir := o.Runs
	switch {
	case dir == NoRuns:
		return nil, nil
	case dir == "" && (!o.Beside || own == "" || !isLoopback(o.Listen)):
		return nil, nil
	case dir == "":
		full, err := filepath.Abs(own)
		if err != nil {
			return nil, nil //nolint:nilerr // no working directory
		}
		dir = filepath.Dir(full)
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("--runs: %w", err)
	}
	if info, err := os.Stat(full); err != nil {
		return nil, fmt.Errorf("--runs: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("--runs: %s is not a directory", dir)
	}
	return &neighbors{dir: full, own: own, cache: make(map[string]*neighbor)}, nil
}

// Dir returns the directory.
func (n *neighbors) Dir() string { return n.dir }

// List returns the runs: those of the same program first, then the newest.
func (n *neighbors) List() ([]api.Neighbor, error) {
	d, err := os.Open(n.dir)
	if err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(maxEntries)
	if err = errors.Join(err, d.Close()); err != nil && !errors.Is(err, io.EOF) { // io.EOF: it is empty
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var own *provdb.Info
	if n.own != "" {
		own, _ = runfiles.ReadInfo(n.own) // else none is of the same program
	}
	all := []api.Neighbor{}
	for _, e := range entries {
		if e.IsDir() { // not a link, which could lead elsewhere
			if r := n.read(e.Name()); r != nil {
				all = append(all, r.describe(n.dir, e.Name(), own))
			}
		}
	}
	slices.SortFunc(all, func(a, b api.Neighbor) int {
		if a.SameProgram != b.SameProgram {
			if a.SameProgram {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), maxNeighbors)], nil
}

// read reads run.json of a directory. It returns nil unless the directory has a run with its own store in
// a file.
func (n *neighbors) read(name string) *neighbor {
	path := filepath.Join(n.dir, name)
	described, err := os.Lstat(filepath.Join(path, runfiles.Info))
	if err != nil || !described.Mode().IsRegular() || n.isOwn(path) {
		return nil
	}
	if store, err := os.Lstat(filepath.Join(path, duckstore.FileName)); err != nil || !store.Mode().IsRegular() {
		return nil
	}
	r := n.cache[name]
	if r == nil || !r.modified.Equal(described.ModTime()) || r.size != described.Size() {
		info, err := runfiles.ReadInfo(path)
		if err != nil {
			return nil
		}
		info.Settings, info.Changes, info.Modes, info.Notes = nil, nil, nil, nil // only the rest is used
		r = &neighbor{described.ModTime(), described.Size(), info}
		n.cache[name] = r
	}
	if r.info.Store != "" { // on a server, to which a file must not make this process connect
		return nil
	}
	return r
}

func (n *neighbors) isOwn(path string) bool {
	if n.own == "" {
		return false
	}
	a, err := os.Stat(path)
	b, err2 := os.Stat(n.own)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

func (r *neighbor) describe(dir, name string, own *provdb.Info) api.Neighbor {
	path := filepath.Join(dir, name)
	d := api.Neighbor{
		Comparable: api.Comparable{Name: name, Where: path, State: string(r.info.State), Started: r.info.Started},
		Program:    programOf(r.info), Bytes: sizeOf(path), Version: r.modified.UnixNano(),
	}
	if own != nil {
		d.SameProgram = d.Program != "" && d.Program == programOf(own) || shareFunctions(r.info, own)
	}
	return d
}

// programOf returns the names of the programs of a run, or "".
func programOf(info *provdb.Info) string {
	names := info.Programs
	if len(names) == 0 {
		names = inspect.ProgramNames(info.Traces)
	}
	if len(names) > maxPrograms { // names of traces, not of programs
		return ""
	}
	return strings.TrimPrefix(strings.Join(names, ", "), "tau-metrics-")
}

// shareFunctions reports whether at least half of the functions with most lost time occur in both runs.
func shareFunctions(a, b *provdb.Info) bool {
	names, common := make(map[string]bool), 0
	for i := range a.Top {
		names[a.Top[i].Function] = true
	}
	for i := range b.Top {
		if names[b.Top[i].Function] {
			common++
		}
	}
	fewer := min(len(a.Top), len(b.Top))
	return fewer > 0 && 2*common >= fewer
}

// sizeOf returns the size of the files of a directory, without those below.
func sizeOf(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode()&fs.ModeType == 0 {
			bytes += info.Size()
		}
	}
	return bytes
}

// Read reads the comparable data of a run that List returned. The store is open only meanwhile.
func (n *neighbors) Read(ctx context.Context, r *api.Neighbor) (*comparison.Run, error) {
	return new(rundir.Places).Comparable(ctx, r.Where, "")
}
