// Package recordfile reads directories of JSON record files: those that
// chimbuko writes and those of the original Chimbuko, of the first version of
// the schema or the second. Records of all of them come out in the same form.
//
// Files are read one after the other and records one by one. What is held at a
// time is the records of one step, the names of the files of one rank, and the
// names of the events that the rank has had. A file that is damaged gives what
// can be read before the damage and one error; the others are read all the same.
//
// A time of 2^64-1, which the original writes where it knows none, and a time of
// a step that is not told become -1. Bytes of names that are no UTF-8 are
// written \xNN, as provenance.Text does.
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

// Step is all that was kept of one step of one rank. It belongs to who gets it,
// but records of the same function may share AlgoParams.
type Step struct {
	Program   trace.Program
	Rank      trace.Rank
	Step      int // in the name of the files; a record's own may be an earlier one
	Anomalies []*provenance.Record
	Typical   []*provenance.Record
	Metadata  []provenance.Metadata
}

// Error describes what is wrong with a file, and where.
type Error struct {
	Path   string
	Record int   // from 0; -1: not in a record
	Offset int64 // of the byte where the bad value or the bad record begins, or where the file ends
	Err    error
}

// Error names the file, the record and the byte.
func (e *Error) Error() string {
	if e.Record < 0 {
		return fmt.Sprintf("%s: byte %d: %v", e.Path, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s: record %d, byte %d: %v", e.Path, e.Record, e.Offset, e.Err)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Steps yields the steps in a directory, in order of program, rank and step.
// dir is the directory of a run, or one with files named
// PROGRAM/RANK/STEP.COLLECTION.json, or RANK/STEP.COLLECTION.json; the program
// of the latter is that of the records. For each file that cannot be read to its
// end, after the step itself, it yields nil and an *Error (or that of the file
// system), and continues if the caller does. When ctx ends it yields its error and
// ends. Notes take what was read otherwise than it stands; they may be nil.
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
				if err := ctx.Err(); err != nil { // the step may not be whole
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
	seen  map[string]struct{} // names of events
}

// newRankReader returns a reader of the directory. What the one before learned of
// a program that directories do not tell holds for all ranks.
func newRankReader(dir rankDir, before *rankReader, notes *Notes) *rankReader {
	d := &rankReader{rankDir: dir, seen: make(map[string]struct{})}
	d.notes = notes
	if before != nil && !dir.told {
		d.program, d.known = before.program, before.known
	}
	return d
}

// read reads the files of a step. The step is nil where there is nothing but
// errors.
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
		return v.wrong("event %q of this rank has a record already", r.EventID)
	}
	if r.RID != d.rank {
		return v.wrong("rid is %d, but the file is of rank %d", r.RID, d.rank)
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

// addMetadata adds a fact to its step. It may be of another rank: the original
// leaves the rank of facts alone where it changes that of events, and hands on
// the facts of all ranks that share a trace.
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

// settle holds the program of a record against that of the files.
func (d *rankReader) settle(v value, pid *trace.Program, hasPID bool) error {
	switch {
	case !hasPID:
	case !d.known:
		d.program, d.known = *pid, true
	case *pid == d.program:
	case d.told:
		d.notes.Add(noteProgram, 1)
	default:
		return v.wrong("pid is %d, but records before are of program %d", *pid, d.program)
	}
	*pid = d.program
	return nil
}

// moveProgram gives the parts of a record the program that the record has now.
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
	defer func() { _ = f.Close() }() // only read from
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

// counter counts what is read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}
