package dashboard

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
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

// list is an answer of rows. Next continues it, where there is more.
type list struct {
	Rows []json.RawMessage `json:"rows"`
	Next string            `json:"next,omitempty"`
}

// maxRows is how many rows a list has at most, and maxTops how many lists of what lost most
// are remembered.
const (
	maxRows = 5000
	maxTops = 16
)

// top is what lost most to anomalies, as chimbuko top lists it.
func (s *server) top(ctx context.Context, q *asked) (any, error) {
	t := query.Top{By: q.p.word("by", "function"), Order: q.p.word("order", "lost"), Program: q.p.program(), Limit: q.p.limit(10, maxRows)}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	limit := t.Limit
	t.Limit = maxRows // to add up all takes as long as to tell all
	program := int64(-1)
	if t.Program != nil {
		program = int64(*t.Program)
	}
	a, key := *q.Asker, fmt.Sprintf("%s %s %s %d", runKey(&q.Run), t.By, t.Order, program)
	rows, err := s.tops.get(ctx, key, func(ctx context.Context) ([]json.RawMessage, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		defer cancel()
		rows, err := objects(a.Top(ctx, t))
		return rows, !a.Run.State.Open(), err
	})
	return list{Rows: rows[:min(len(rows), limit)]}, err
}

// counters is what is known of counters, as chimbuko counters lists it.
func (s *server) counters(ctx context.Context, q *asked) (any, error) {
	name, program, limit := q.p.text("name"), q.p.program(), q.p.limit(1000, maxRows)
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Counters(ctx, name, program, limit))
	return list{Rows: rows}, err
}

// metadata are the facts that were told of ranks. They change slowly, so the cursor is
// the number of rows before.
func (s *server) metadata(ctx context.Context, q *asked) (any, error) {
	limit := q.p.limit(100, maxRows)
	m := query.Metadata{Name: q.p.text("name"), Program: q.p.program(), Limit: int64(limit) + 1, Offset: q.p.integer("cursor", 0, 0, math.MaxInt32)}
	if n := q.p.integer("rank", -1, 0, math.MaxInt32); n >= 0 {
		rank := trace.Rank(n)
		m.Rank = &rank
	}
	if err := q.p.done(); err != nil {
		return nil, err
	}
	rows, err := objects(q.Metadata(ctx, m))
	l := list{Rows: rows}
	if len(rows) > limit {
		l.Rows = rows[:limit]
		l.Next = strconv.FormatInt(m.Offset+int64(limit), 10)
	}
	return l, err
}

// choosing turns the error of a question that needs to be told the program into
// one of the client.
func choosing(err error) error {
	if err == nil || !strings.Contains(err.Error(), "--program") {
		return err
	}
	return &problem{http.StatusBadRequest, strings.ReplaceAll(err.Error(), "--program", "the parameter program"), "add ?program=N"}
}
