// Package provdb is the contract of the provenance database: writing, queries,
// and the errors that callers distinguish. It has no implementation; each one passes
// the tests of internal/store/storetest.
//
// A store holds any number of runs. All that belongs to a run is named by the
// run, the program and an id that the trace gives, so storing a thing twice is
// the same as storing it once.
package provdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Errors that callers distinguish with errors.Is. Those that a store returns name
// the file or server and what to do.
var (
	ErrRunExists = errors.New("a run of that name already exists")
	ErrNotFound  = errors.New("not found")
	ErrForeign   = errors.New("not a provenance database of chimbuko")
	ErrNewer     = errors.New("written by a newer version of chimbuko")
	ErrInUse     = errors.New("in use by another process")
	ErrReadOnly  = errors.New("only questions are allowed")
	ErrClosed    = errors.New("the store is closed")
	ErrBroken    = errors.New("store failed; reopen it")
)

// RunID numbers the runs of a store.
type RunID int32

// NotFound returns the error for a run that does not exist.
func (id RunID) NotFound() error { return fmt.Errorf("run %d: %w", id, ErrNotFound) }

// State is the state of a run.
type State = api.State

// The states of a run in a store and in run.json.
const (
	Running    = api.Running
	Finished   = api.Finished
	Failed     = api.Failed
	Incomplete = api.Incomplete
)

// Run is what a store knows of a run as a whole.
type Run struct {
	ID       RunID
	Name     string
	State    State
	Started  time.Time
	Finished time.Time       // zero until it is
	Info     json.RawMessage // settings and totals, as in run.json; nil for none
}

// Values returns the columns state, started, finished and info.
func (r *Run) Values() []any {
	var finished, info any
	if !r.Finished.IsZero() {
		finished = r.Finished.UTC()
	}
	if r.Info != nil {
		info = string(CleanJSON(r.Info))
	}
	return []any{string(r.State), r.Started.UTC(), finished, info}
}

// Batch is what is stored at once: all of it, or nothing.
type Batch struct {
	Anomalies []*provenance.Record
	Typical   []*provenance.Record // the collection normalexecs
	Metadata  []StepMetadata
	Functions []provenance.FuncStats
	Counters  []provenance.CounterStats
	Models    []provenance.ADModel
	// All calls of the run by call path.
	Paths []provenance.PathStats
	// What is wrong with the run as a whole, and the link of each of its anomalies.
	Issues []provenance.Issue
	Links  []provenance.Link
}

// StepMetadata are all the facts that appeared on a rank in a step.
type StepMetadata struct {
	Program trace.Program
	Rank    trace.Rank
	Step    int
	Facts   []provenance.Metadata
}

// Len is the number of documents in the batch.
func (b *Batch) Len() int {
	n := len(b.Anomalies) + len(b.Typical) + len(b.Functions) + len(b.Counters) + len(b.Models) + len(b.Paths) + len(b.Issues) + len(b.Links)
	for i := range b.Metadata {
		n += len(b.Metadata[i].Facts)
	}
	return n
}

// HasFindings reports whether the batch has issues or links.
func (b *Batch) HasFindings() bool { return len(b.Issues)+len(b.Links) > 0 }

// VoidsFindings reports whether the batch replaces or invalidates stored issues and links.
func (b *Batch) VoidsFindings() bool { return len(b.Anomalies)+len(b.Typical) > 0 || b.HasFindings() }

// Writer stores. Several goroutines may call it.
type Writer interface {
	// CreateRun makes a run; the ID of the argument is ignored. A second run of
	// that name is ErrRunExists.
	CreateRun(ctx context.Context, run Run) (RunID, error)
	// UpdateRun replaces state, times and info of a run. When it is Finished,
	// anomalies that are still provisional are withdrawn: no review confirmed them.
	UpdateRun(ctx context.Context, run Run) error
	// DeleteRun removes a run and all that belongs to it.
	DeleteRun(ctx context.Context, id RunID) error
	// Write stores a batch and returns nil when it is durable. What is there
	// already is replaced: a record with the program and event id of another
	// (of either collection), the metadata of a step, what is known of a function,
	// counter or model. Call paths replace all that the run has. So do issues and
	// links, and records remove these: what was found out does not hold any more. A
	// batch that is not valid is refused as a whole. It keeps nothing of the batch.
	Write(ctx context.Context, id RunID, batch *Batch) error
}

// Reader answers.
type Reader interface {
	// Query runs one statement of SQL that only reads, with $1, $2 … bound to
	// args. Statements can reach neither files nor the network; the context
	// bounds their time. The tables and views are those of docs/sql.md in every
	// store.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
}

// Store is a provenance database.
type Store interface {
	Reader
	Writer
	// Close waits for writes that are under way. Nothing may be called after it.
	Close() error
}

// Type is what a column of an answer holds; its values are nil or of one Go type.
type Type string

// The types of columns.
const (
	Bool  Type = "bool"   // bool
	Int   Type = "int"    // int64; json.Number where that is too small
	Float Type = "float"  // float64
	Text  Type = "string" // string
	JSON  Type = "json"   // json.RawMessage; also lists and structures
	Time  Type = "time"   // time.Time
)

// Column of an answer.
type Column struct {
	Name string
	Type Type
}

// Rows are an answer that is read once. The connection is free again when All
// has ended, by its end or by a break; an answer that is not read must be closed.
type Rows struct {
	Columns []Column
	// All yields the rows, then at most one error. A row is valid until the next.
	All iter.Seq2[[]any, error]
	// Close gives up an answer that is not read to its end. It may be called twice.
	Close func() error
}

// Collect reads all rows.
func (r *Rows) Collect() ([][]any, error) {
	var all [][]any
	for row, err := range r.All {
		if err != nil {
			return nil, err
		}
		all = append(all, append([]any(nil), row...))
	}
	return all, nil
}

// Schema is the version of the tables that this program reads and writes. Earlier
// versions were never released.
const Schema = 5

// CheckSchema returns an error if this program cannot read tables of a version.
func CheckSchema(store string, version int) error {
	switch {
	case version > Schema:
		return fmt.Errorf("%s: schema %d, this program supports up to %d: %w (use a newer chimbuko)", store, version, Schema, ErrNewer)
	case version < Schema:
		return fmt.Errorf("%s: schema %d was written by an unreleased version (analyze the traces again)", store, version)
	}
	return nil
}
