package query

import (
	"context"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Metadata describes a query for the metadata of ranks.
type Metadata struct {
	Name          string // pattern with * and ?; all if empty
	Program       *trace.Program
	Rank          *trace.Rank
	Limit, Offset int64
}

// ThreadName is the metadata with the name of a thread or stream, which traces of PyTorch have.
const ThreadName = "Thread name"

// ThreadNames returns the names of the threads and streams of a rank, as far as the trace has them.
func (a *Queries) ThreadNames(ctx context.Context, of trace.RankKey) (map[trace.Thread]string, error) {
	rows, err := a.Metadata(ctx, Metadata{Name: ThreadName, Program: &of.Program, Rank: &of.Rank, Limit: maxThreadNames})
	if err != nil {
		return nil, err
	}
	type row struct {
		Thread trace.Thread `sql:"thread"`
		Value  string       `sql:"value"`
	}
	all := make(map[trace.Thread]string)
	err = provdb.Scan(rows, func(r *row) { all[r.Thread] = strings.TrimSpace(r.Value) })
	return all, err
}

// maxThreadNames bounds the names of threads that are read.
const maxThreadNames = 100_000

// Metadata returns the selected metadata, ordered by rank and step.
func (a *Queries) Metadata(ctx context.Context, q Metadata) (*provdb.Rows, error) {
	var name, rank any
	if q.Name != "" {
		name = executions.Like(q.Name)
	}
	if q.Rank != nil {
		rank = int32(*q.Rank)
	}
	return a.Query(ctx, text("metadata"), int32(a.Run.ID), executions.OptionalProgram(q.Program), rank, name, q.Limit, q.Offset)
}
