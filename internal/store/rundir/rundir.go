// Package rundir writes and finds the directory of a run: settings and totals in run.json,
// records in a database, or as JSON files in records/ and global/. The directory can be
// copied and read elsewhere.
package rundir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Dir is a run directory that is being written. It is an analyzer.RecordSink that writes
// JSON files.
type Dir struct {
	path string

	mu   sync.Mutex
	made map[string]bool
	size int64

	buffers sync.Pool // of *bytes.Buffer, for a record
	writers sync.Pool // of *bufio.Writer, for a file
}

// spoolDir holds temporary files of the run.
const spoolDir = "spool"

// infoFile holds settings, state and totals.
const infoFile = "run.json"

// runFiles are the files and directories of an earlier run.
var runFiles = []string{
	infoFile, "records", "global", spoolDir, duckstore.FileName, duckstore.FileName + ".wal", ownerFile, servicesFile,
	busDir, parametersDir, pendingStatsDir, tracesDir, logsDir,
}

// Create creates a run directory at path, which must not exist or be empty. With overwrite
// it replaces the run in the directory.
func Create(path string, overwrite bool) (*Dir, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(path, infoFile)); err != nil {
			return nil, fmt.Errorf("%s: the directory is not empty and has no run (choose another with --out)", path)
		}
		if !overwrite {
			return nil, fmt.Errorf("%s: the directory already has a run (choose another with --out, or replace it with --force)", path)
		}
		for _, name := range runFiles {
			if err := os.RemoveAll(filepath.Join(path, name)); err != nil {
				return nil, err
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(path, spoolDir), 0o755); err != nil {
		return nil, err
	}
	return newDir(path), nil
}

func newDir(path string) *Dir {
	d := &Dir{path: path, made: make(map[string]bool)}
	d.buffers.New = func() any { return new(bytes.Buffer) }
	d.writers.New = func() any { return bufio.NewWriterSize(nil, 1<<16) }
	return d
}

// Database returns the path of the database in the run directory.
func (d *Dir) Database() string { return filepath.Join(d.path, duckstore.FileName) }

const ownerFile = "owner.json"

// Owner returns the path of the file by which the process that writes the run at path
// announces itself to remotestore.
func Owner(path string) string { return filepath.Join(path, ownerFile) }

// Spool returns the directory of temporary files of the run.
func (d *Dir) Spool() string { return filepath.Join(d.path, spoolDir) }

// Size returns the bytes of records written.
func (d *Dir) Size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.size
}

// Metadata stores the metadata of a step.
func (d *Dir) Metadata(_ context.Context, key analyzer.StepKey, facts []provenance.Metadata) error {
	return d.writeFile(key, "metadata", func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(facts)
	})
}

// Records stores the anomalies and typical executions of a step.
func (d *Dir) Records(_ context.Context, key analyzer.StepKey, anomalies, typical []*provenance.Record) error {
	return errors.Join(d.writeRecords(key, "anomalies", anomalies), d.writeRecords(key, "normalexecs", typical))
}

// writeRecords writes the records of a step as an array.
func (d *Dir) writeRecords(key analyzer.StepKey, collection string, records []*provenance.Record) error {
	if len(records) == 0 {
		return nil
	}
	return d.writeFile(key, collection, func(w io.Writer) error {
		b := d.buffers.Get().(*bytes.Buffer)
		defer d.buffers.Put(b)
		for i, r := range records {
			b.Reset()
			b.WriteByte("[,"[min(i, 1)])
			if err := r.WriteJSON(b); err != nil {
				return fmt.Errorf("record %s: %w", r.EventID, err)
			}
			if _, err := w.Write(b.Bytes()); err != nil {
				return err
			}
		}
		_, err := io.WriteString(w, "]\n")
		return err
	})
}

// writeFile writes one collection of a step.
func (d *Dir) writeFile(key analyzer.StepKey, collection string, content func(io.Writer) error) error {
	dir := filepath.Join(d.path, "records", strconv.Itoa(int(key.Program)), strconv.Itoa(int(key.Rank)))
	if err := d.mkdir(dir); err != nil {
		return err
	}
	// A second file of the same step is an error.
	path := filepath.Join(dir, strconv.Itoa(key.Step)+"."+collection+".json")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // meant to be read by all
	if err != nil {
		return err
	}
	w := d.writers.Get().(*bufio.Writer)
	defer d.writers.Put(w)
	w.Reset(f)
	err = errors.Join(content(w), w.Flush())
	if info, statErr := f.Stat(); statErr == nil {
		d.mu.Lock()
		d.size += info.Size()
		d.mu.Unlock()
	}
	return errors.Join(err, f.Close())
}

func (d *Dir) mkdir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made[dir] {
		return nil
	}
	d.made[dir] = true
	return os.MkdirAll(dir, 0o755)
}

// ReadInfo reads run.json in the run directory at path.
func ReadInfo(path string) (*provdb.Info, error) {
	name := filepath.Join(path, infoFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	info := new(provdb.Info)
	if err := json.Unmarshal(b, info); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return info, nil
}

// HasFinished reports whether the run at path has finished, according to run.json.
func HasFinished(path string) bool {
	info, err := ReadInfo(path)
	return err == nil && info.State == provdb.Finished
}

// WriteInfo replaces run.json.
func (d *Dir) WriteInfo(info *provdb.Info) error {
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.path, infoFile), append(b, '\n'), 0o644)
}

// WriteGlobal writes the collections over all ranks.
func (d *Dir) WriteGlobal(c *provenance.Collections) error {
	all := map[string]any{
		"func_stats": c.FuncStats, "counter_stats": c.CounterStats, "ad_model": c.ADModels, "path_stats": c.PathStats,
		"issues": c.Issues, "links": c.Links,
	}
	dir := filepath.Join(d.path, "global")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, v := range all {
		content, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), append(content, '\n'), 0o644) //nolint:gosec // meant to be read by all
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Discard removes what Create and WriteInfo wrote, for a run that could not start.
func (d *Dir) Discard() error {
	err := errors.Join(d.RemoveSpool(), os.Remove(filepath.Join(d.path, infoFile)))
	_ = os.Remove(d.path) // unless it has other files
	return err
}

// RemoveSpool removes the temporary files of the run.
func (d *Dir) RemoveSpool() error { return os.RemoveAll(d.Spool()) }
