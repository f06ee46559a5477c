// Package provdb defines the interface of the provenance database: writing, queries, and the errors
// that callers distinguish. Implementations must pass the tests of internal/store/storetest.
//
// A store holds any number of runs. The run, the program and an id from the trace identify each
// document, so storing a document twice is the same as storing it once.
package provdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Errors that callers distinguish with errors.Is. Stores wrap them with the file or server and a
// hint.
var (
	ErrRunExists = errors.New("a run of that name already exists")
	ErrNotFound  = errors.New("not found")
	ErrForeign   = errors.New("not a provenance database of chimbuko")
	ErrInUse     = errors.New("in use by another process")
	ErrReadOnly  = errors.New("only read-only queries are allowed")
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

// Run is the metadata of a run in a store.
type Run struct {
	ID       RunID           `sql:"run"`
	Name     string          `sql:"name"`
	State    State           `sql:"state"`
	Started  time.Time       `sql:"started"`
	Finished time.Time       `sql:"finished"` // zero until the run ends
	Info     json.RawMessage `sql:"info"`     // settings and totals, as in run.json; may be nil
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

// OrNull returns v, or nil for the zero value.
func OrNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// Batch is a set of documents that are stored atomically.
type Batch struct {
	Anomalies []*provenance.Record
	Typical   []*provenance.Record // the collection normalexecs
	// Removed are the anomalies that were dropped, which Clean takes out of Anomalies. Stores remove them.
	Removed   []*provenance.Record
	Metadata  []StepMetadata
	Functions []provenance.FuncStats
	Counters  []provenance.CounterStats
	Models    []provenance.ADModel
	// Paths has all calls of the run by call path.
	Paths []provenance.PathStats
	// Findings of the run, and the link of each of its anomalies.
	Findings []provenance.Finding
	Links    []provenance.Link
	// Peers compares the ranks of the run.
	Peers *provenance.Peers
	// Breakdown divides the time of GPUs.
	Breakdown *provenance.Breakdown
}

// StepMetadata is the metadata of a rank in a step.
type StepMetadata struct {
	Program trace.Program
	Rank    trace.Rank
	Step    int
	Facts   []provenance.Metadata
}

// Len returns the number of documents in the batch.
func (b *Batch) Len() int {
	n := len(b.Anomalies) + len(b.Typical) + len(b.Removed) + len(b.Functions) + len(b.Counters) + len(b.Models) + len(b.Paths) +
		len(b.Findings) + len(b.Links)
	for i := range b.Metadata {
		n += len(b.Metadata[i].Facts)
	}
	if b.Peers != nil {
		n += len(b.Peers.Loads) + len(b.Peers.Efficiency) + len(b.Peers.Slow)
	}
	return n + b.Breakdown.Len()
}

// HasPeers reports whether the batch has a comparison of peers that is not empty.
func (b *Batch) HasPeers() bool { return (&Batch{Peers: b.Peers}).Len() > 0 }

// HasFindings reports whether the batch has findings or links.
func (b *Batch) HasFindings() bool { return len(b.Findings)+len(b.Links) > 0 }

// Replaced returns the lists of executions that replace or remove stored ones.
func (b *Batch) Replaced() [][]*provenance.Record {
	return [][]*provenance.Record{b.Anomalies, b.Typical, b.Removed}
}

// VoidsFindings reports whether the batch replaces or invalidates stored findings and links.
func (b *Batch) VoidsFindings() bool {
	return len(b.Anomalies)+len(b.Typical)+len(b.Removed) > 0 || b.HasFindings()
}

// Writer writes to a store. It is safe for concurrent use.
type Writer interface {
	// CreateRun creates a run and returns its ID; run.ID is ignored. It returns ErrRunExists if the
	// name is in use.
	CreateRun(ctx context.Context, run Run) (RunID, error)
	// UpdateRun replaces state, times and info of a run. If the state is Finished, it withdraws
	// provisional anomalies, which no review confirmed.
	UpdateRun(ctx context.Context, run Run) error
	// DeleteRun removes a run and its documents.
	DeleteRun(ctx context.Context, id RunID) error
	// Write stores a batch and returns nil when it is durable. It replaces records with the same
	// program and event id (of either collection), the metadata of the same step, and the
	// statistics of the same function, counter or model. Call paths, findings and links, the
	// comparison of peers, and the breakdown, replace all those of the run; records remove its findings and links,
	// which are no longer valid. Write rejects an invalid batch as a whole and does not retain the
	// batch.
	Write(ctx context.Context, id RunID, batch *Batch) error
}

// Reader queries a store.
type Reader interface {
	// Query runs one read-only SQL statement with $1, $2 … bound to args. Statements cannot access
	// files or the network; the context bounds their time. Every store has the tables and views of
	// docs/sql.md.
	Query(ctx context.Context, sql string, args ...any) (*Rows, error)
}

// Store is a provenance database.
type Store interface {
	Reader
	Writer
	// Close waits for writes in progress. The store must not be used afterward.
	Close() error
}

// Type is the type of a column; its values are nil or of one Go type.
type Type string

// The types of columns.
const (
	Bool  Type = "bool"   // bool
	Int   Type = "int"    // int64, or json.Number if that is too small
	Float Type = "float"  // float64
	Text  Type = "string" // string
	JSON  Type = "json"   // json.RawMessage, also for lists and structs
	Time  Type = "time"   // time.Time
)

// Column describes a column of Rows.
type Column struct {
	Name string
	Type Type
}

// Rows is the result of a query and can be read once. All releases the connection when it ends or
// the loop breaks; rows that are not read must be closed.
type Rows struct {
	Columns []Column
	// All yields the rows, then at most one error. A row is valid until the next.
	All iter.Seq2[[]any, error]
	// Close discards rows that were not read to the end. It may be called twice.
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

// Schema is the format of the tables and views of DuckDB files. Earlier ones were never released. Servers have pgstore.Schema.
var Schema = fileformat.Format{Number: 12, Oldest: 12, Renew: "analyze the traces again"}
