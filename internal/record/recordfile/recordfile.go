// Package recordfile writes and reads directories of JSON record files. It also reads those
// of the original Chimbuko, in the first or second version of the schema. All become
// records of the same form.
//
// It reads files one by one and holds the records of one step, the names of one rank's
// files and the ids of the rank's events. A damaged file yields the records before the
// damage and one error, and reading continues with the next file.
//
// A time of 2^64-1, which the original writes for an unknown time, and a missing time of a
// step become -1. Invalid UTF-8 in names becomes \xNN, as in provenance.Text.
package recordfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Step has the records of one step of one rank. It belongs to the caller, but records of the
// same function may share AlgoParams.
type Step struct {
	Program   trace.Program
	Rank      trace.Rank
	Step      int // in the names of files; records may have an earlier one
	Anomalies []*provenance.Record
	Typical   []*provenance.Record
	Metadata  []provenance.Metadata
}

// Error describes damage of a file.
type Error struct {
	Path   string
	Record int   // from 0; -1: not in a record
	Offset int64 // byte where the bad value or record begins, or where the file ends
	Err    error
}

// Error names the file, the record and the byte.
func (e *Error) Error() string {
	if e.Record < 0 {
		return fmt.Sprintf("%s: byte %d: %v", e.Path, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s: record %d, byte %d: %v", e.Path, e.Record, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Steps yields the steps in a directory, sorted by program, rank and step. dir is the
// directory of a run, or one with files PROGRAM/RANK/STEP.COLLECTION.json or
// RANK/STEP.COLLECTION.json; records have the program of the latter. For each file that it
// cannot read completely, it yields nil and an *Error or an error of the file system after
// the step, and continues if the caller does. When ctx ends, it yields the error of ctx and
// returns. Notes count deviations from the schema; they may be nil.
func Steps(ctx context.Context, dir string, notes *Notes) iter.Seq2[*Step, error] {
	return func(yield func(*Step, error) bool) {
		var d *rankReader
		for rank, err := range rankDirs(dir, notes) {
			if err == nil {
				d = newRankReader(rank, d, notes)
				err = d.list()
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			for _, files := range d.steps {
				step, errs := d.read(ctx, files)
				if err := ctx.Err(); err != nil { // the step may be incomplete
					yield(nil, err)
					return
				}
				if step != nil && !yield(step, nil) {
					return
				}
				for _, err := range errs {
					if !yield(nil, err) {
						return
					}
				}
			}
		}
	}
}

// rankReader reads the files of a rank.
type rankReader struct {
	rankDir
	decoder
	steps []stepFiles
	seen  map[string]struct{} // event ids
}

// newRankReader returns a reader of a directory. If directories do not name the program,
// it uses the program that the previous reader found in records.
func newRankReader(dir rankDir, before *rankReader, notes *Notes) *rankReader {
	d := &rankReader{rankDir: dir, seen: make(map[string]struct{})}
	d.notes = notes
	if before != nil && !dir.fromPath {
		d.program, d.hasProgram = before.program, before.hasProgram
	}
	return d
}

// read reads the files of a step. The step is nil if there are only errors.
func (d *rankReader) read(ctx context.Context, files stepFiles) (*Step, []error) {
	s := &Step{Rank: d.rank, Step: files.step}
	var errs []error
	for c, path := range files.paths {
		if path == "" {
			continue
		}
		add := func(v value) error { return d.addRecord(collection(c), s, v) }
		if collection(c) == metadata {
			add = func(v value) error { return d.addMetadata(s, v) }
		}
		if err := d.readFile(ctx, path, add); err != nil {
			errs = append(errs, err)
		}
	}
	s.Program = d.program
	if len(errs) > 0 && len(s.Anomalies)+len(s.Typical)+len(s.Metadata) == 0 {
		return nil, errs
	}
	return s, errs
}

// addRecord adds a record to its step.
func (d *rankReader) addRecord(c collection, s *Step, v value) error {
	r, seen, err := d.record(v)
	if err != nil {
		return err
	}
	if _, twice := d.seen[r.EventID]; twice {
		return v.wrong("duplicate record of event %q", r.EventID)
	}
	if r.RID != d.rank {
		return v.wrong("rid is %d, want %d as in the path", r.RID, d.rank)
	}
	from := r.PID
	if err := d.settle(v, &r.PID, recordSchema.has(seen, "pid")); err != nil {
		return err
	}
	if r.PID != from {
		moveProgram(r, from)
	}
	d.seen[r.EventID] = struct{}{}
	d.complete(r, seen, c, s.Step)
	if c == anomalies {
		s.Anomalies = append(s.Anomalies, r)
	} else {
		s.Typical = append(s.Typical, r)
	}
	return nil
}

// addMetadata adds metadata to its step. It may be of another rank: the original changes the
// ranks of events but not of metadata, and passes on the metadata of all ranks that share a
// trace.
func (d *rankReader) addMetadata(s *Step, v value) error {
	var m provenance.Metadata
	seen, err := metadataSchema.read(&d.decoder, v, &m)
	if err != nil {
		return err
	}
	if err := d.settle(v, &m.PID, metadataSchema.has(seen, "pid")); err != nil {
		return err
	}
	if m.RID != d.rank {
		d.notes.Add(noteRank, 1)
	}
	s.Metadata = append(s.Metadata, m)
	return nil
}

// settle replaces the program of a record by that of the files.
func (d *rankReader) settle(v value, pid *trace.Program, hasPID bool) error {
	switch {
	case !hasPID:
	case !d.hasProgram:
		d.program, d.hasProgram = *pid, true
	case *pid == d.program:
	case d.fromPath:
		d.notes.Add(noteProgram, 1)
	default:
		return v.wrong("pid is %d, want %d as in earlier records", *pid, d.program)
	}
	*pid = d.program
	return nil
}

// moveProgram replaces the program of the parts of a record by that of the record.
func moveProgram(r *provenance.Record, from trace.Program) {
	for i := range r.CounterEvents {
		if e := &r.CounterEvents[i]; e.PID == from {
			e.PID = r.PID
		}
	}
	for i := range r.EventWindow.Comms {
		if e := &r.EventWindow.Comms[i]; e.PID == from {
			e.PID = r.PID
		}
	}
}

// readFile calls add with each record of a file.
func (d *decoder) readFile(ctx context.Context, path string, add func(value) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	err = d.array(ctx, f, add)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Path = path
		return e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// counter counts the bytes read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}
