package insight

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

//go:embed sql/*.sql
var files embed.FS

// statement returns the text of a file in sql/.
func statement(name string) string {
	b, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // a file that is not embedded is a mistake in this package
	}
	return strings.TrimSpace(string(b))
}

// maxRows is how many rows a list has at most, and maxTops how many lists of what lost most
// are remembered.
const (
	MaxRows = 5000
	maxTops = 16
)

// TopParams are what a list of what lost most is of.
type TopParams struct {
	By, Order string
	Program   *trace.Program
	Limit     int
}

// Top lists what lost most to anomalies.
func (in *Insight) Top(ctx context.Context, run string, of TopParams) (*api.List, error) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*api.List, error) {
		program := int64(-1)
		if of.Program != nil {
			program = int64(*of.Program)
		}
		a, key := *q.Asker, fmt.Sprintf("%s %s %s %d", runKey(&q.Run), of.By, of.Order, program)
		rows, err := in.tops.Get(ctx, key, func(ctx context.Context) ([]json.RawMessage, bool, error) {
			ctx, cancel := context.WithTimeout(ctx, in.Timeout)
			defer cancel()
			// To add up all takes as long as to list all.
			rows, err := objects(a.Top(ctx, query.Top{By: of.By, Order: of.Order, Program: of.Program, Limit: MaxRows}))
			return rows, !a.Run.State.Open(), err
		})
		return &api.List{Rows: rows[:min(len(rows), of.Limit)]}, err
	})
}

// CountersParams choose counters.
type CountersParams struct {
	Name    string // pattern; empty: all
	Program *trace.Program
	Limit   int
}

// Counters lists what is known of counters.
func (in *Insight) Counters(ctx context.Context, run string, of CountersParams) (*api.List, error) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*api.List, error) {
		rows, err := objects(q.Counters(ctx, of.Name, of.Program, of.Limit))
		return &api.List{Rows: rows}, err
	})
}

// Metadata lists the facts that were told of ranks. They change slowly, so the cursor is the
// number of rows before.
func (in *Insight) Metadata(ctx context.Context, run string, m query.Metadata) (*api.List, error) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*api.List, error) {
		limit := int(m.Limit)
		m.Limit++
		rows, err := objects(q.Metadata(ctx, m))
		l := &api.List{Rows: rows}
		if len(rows) > limit {
			l.Rows = rows[:limit]
			l.Next = strconv.FormatInt(m.Offset+int64(limit), 10)
		}
		return l, err
	})
}

// choosing turns the error of a question that needs to be told the program into
// one of the client.
func choosing(err error) error {
	if err == nil || !strings.Contains(err.Error(), "--program") {
		return err
	}
	return Problemf(api.Invalid, "add ?program=N", "%s", strings.ReplaceAll(err.Error(), "--program", "the parameter program"))
}
