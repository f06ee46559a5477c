package kineto

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
	"github.com/chimbuko/chimbuko/internal/source/profile"
)

// documents distributes the events of the JSON documents at a path to Files. Usually there is one
// document. Several documents come from several ranks that wrote to the same path, one after another
// or in turns, or are parts of one trace.
type documents struct {
	path    string
	opt     profile.Options
	in      *chrome.Reader
	tally   tally.Tally
	gaps    []profile.Gap
	files   []*file
	current *file // of the document
	at      *file // of the last event of a host process, to which events of devices belong, too
	number  int   // of the document in the reader
	shift   int64 // from the times of the document to those of its file
	checked int   // events since the memory of all files was checked
}

// maxFiles limits the ranks in the documents of a path.
const maxFiles = 1 << 12

// Open reads and sorts the events at a path. It returns a File for each rank that has its own
// document there, at least one. It keeps the readable part of damaged content, and the steps end with
// the error.
func Open(path string, opt profile.Options) ([]*profile.File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read from
	d := &documents{path: path, opt: opt}
	d.in = chrome.NewReader(&countingReader{in, opt.Read}, argNames, &d.tally)
	if err = d.read(); err == nil {
		err = d.finish()
	}
	if err != nil {
		for _, f := range d.files {
			f.Close()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := in.Stat(); err == nil {
		d.files[0].Size, d.files[0].Modified = info.Size(), info.ModTime()
	}
	return d.profiles(), nil
}

func (d *documents) profiles() []*profile.File {
	all := make([]*profile.File, 0, len(d.files))
	for _, f := range d.files {
		all = append(all, f.File)
	}
	return all
}

// countingReader reports the number of bytes of each read.
type countingReader struct {
	io.Reader
	read func(int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.read != nil {
		c.read(int64(n))
	}
	return n, err
}

// read adds all events to their files. Damaged content is not an error.
func (d *documents) read() error {
	for {
		e, err := d.in.Next()
		if err != nil {
			if len(d.files) == 0 {
				d.add()
			}
			if !errors.Is(err, io.EOF) {
				d.current.Err = fmt.Errorf("%s: %w", d.path, err)
			}
			return nil
		}
		if err := d.fileOf(e).add(e); err != nil {
			return err
		}
		if err := d.limitMemory(); err != nil {
			return err
		}
	}
}

// limitMemory makes all files together keep about as many events in memory as a single file may.
func (d *documents) limitMemory() error {
	const interval = 1 << 12
	if d.checked++; d.checked < interval || len(d.files) == 1 {
		return nil
	}
	d.checked = 0
	return profile.LimitMemory(d.profiles())
}

// add adds a file, which becomes the current one.
func (d *documents) add() {
	d.current = newFile(d.path, d.opt)
	d.at = d.current
	d.files = append(d.files, d.current)
}

// fileOf returns the file of an event.
func (d *documents) fileOf(e *chrome.Event) *file {
	if e.NewDocument || d.current == nil {
		d.begin(e)
	}
	if d.shift != 0 && e.Time > -profile.MaxTime && e.Time < profile.MaxTime {
		e.Time += d.shift
	}
	if e.Phase == 'M' || !e.PID.IsNumber || categories[string(e.Category)].OnDevice() {
		return d.at // pids of devices are small numbers that all ranks use
	}
	if !d.at.hasProcess {
		d.at.process, d.at.hasProcess = e.PID.Number, true
	}
	if d.at.process != e.PID.Number && len(d.files) > 1 {
		if f := d.ofProcess(e); f != nil {
			d.at = f
		}
	}
	return d.at
}

// ofProcess returns the file whose document began with an event of the same process, or nil.
func (d *documents) ofProcess(e *chrome.Event) *file {
	for _, f := range d.files {
		if f.hasProcess && f.process == e.PID.Number && e.PID.IsNumber {
			return f
		}
	}
	return nil
}

// begin finds the file of a document by the data available at its first event.
func (d *documents) begin(e *chrome.Event) {
	if d.current != nil {
		d.current.decode(d.in.PreviousProperty)
	}
	d.number, d.shift = d.in.Documents(), 0
	if d.current == nil {
		d.add()
		return
	}
	var rank *trace.Rank
	if raw, ok := d.in.Property("distributedInfo"); ok {
		var info distributed
		_ = json.Unmarshal(raw, &info) // the rank may be readable even if other parts are not
		rank = info.Rank
	}
	var same *file
	switch {
	case rank != nil:
		if i := slices.IndexFunc(d.files, func(f *file) bool { r := f.Properties.Rank; return r != nil && *r == *rank }); i >= 0 {
			same = d.files[i]
			d.shift = d.baseOf(same) - same.Properties.Base
		}
	case d.in.IsList() || !d.current.kineto: // the rest of a document, or more of an ordinary trace
		if same = d.ofProcess(e); same == nil {
			same = d.current
		}
	}
	if same == nil && len(d.files) < maxFiles {
		d.add()
		return
	}
	if same == nil {
		same = d.current
	}
	d.current, d.at = same, same
	d.note(tally.DocumentJoined, e.Offset)
}

// baseOf returns the base of times of the current document, or that of the file if it is unknown or absurd.
func (d *documents) baseOf(f *file) int64 {
	base := f.Properties.Base
	if raw, ok := d.in.Property("baseTimeNanoseconds"); ok {
		var n int64
		if json.Unmarshal(raw, &n) == nil && n >= 0 && n < profile.MaxTime {
			base = n
		}
	}
	return base
}

func (d *documents) note(k tally.Kind, at int64) {
	d.tally.Add(k, 1)
	d.gaps = append(d.gaps, profile.Gap{Kind: k, Offset: at})
}

// finish binds data that is available only at the end.
func (d *documents) finish() error {
	if property := d.in.Property; d.number == d.in.Documents() || d.number == 0 {
		d.current.decode(property)
	} else {
		d.current.decode(d.in.PreviousProperty)
	}
	d.bindRanks()
	for _, f := range d.files {
		if err := f.finish(); err != nil {
			return err
		}
	}
	d.files[0].tally.Merge(&d.tally)
	for _, g := range d.in.Gaps() {
		d.files[0].Gaps = append(d.files[0].Gaps, profile.Gap(g))
	}
	d.files[0].Gaps = append(d.files[0].Gaps, d.gaps...)
	return nil
}

// bindRanks gives each of several files a rank of its own.
func (d *documents) bindRanks() {
	if f := d.files[0]; len(d.files) == 1 {
		if f.kineto {
			f.BindRank(true)
		} else {
			f.BindWorkers()
		}
		return
	}
	owners := make(map[trace.Rank]*file)
	var silent []*file
	d.files = slices.DeleteFunc(d.files, func(f *file) bool {
		f.kineto = true // each document is one rank
		f.BindRank(false)
		switch {
		case !f.RankKnown:
			silent = append(silent, f)
		case owners[f.Ranks[0]] != nil: // the rank comes after the events, too late to join them
			d.note(tally.RankRepeated, f.begins)
			f.Close()
			return true
		default:
			owners[f.Ranks[0]] = f
		}
		return false
	})
	next := trace.Rank(0)
	for _, f := range silent {
		for owners[next] != nil {
			next++
		}
		f.Ranks[0] = next
		owners[next] = f
		d.note(tally.RankAssumed, f.begins)
	}
}
