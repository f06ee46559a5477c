package insight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// SQLParams are a read-only statement, its arguments, and the maximum number of rows.
type SQLParams struct {
	SQL   string
	Args  []any
	Limit int
}

// SQL executes a read-only statement, which may read all runs of the store.
func (in *Insight) SQL(ctx context.Context, run string, of SQLParams) (*api.SQLAnswer, error) {
	return readSQL(ctx, in, run, in.Timeout, func(ctx context.Context, q *runQuery) (*api.SQLAnswer, error) { return q.sql(ctx, of) })
}

// readSQL calls f with a run and a context whose statements have the limits of those that users
// write. They need no slot, so that they do not delay other queries.
func readSQL[T any](ctx context.Context, in *Insight, run string, timeout time.Duration,
	f func(ctx context.Context, q *runQuery) (T, error),
) (none T, err error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := in.queriesOf(bounded, run)
	if err != nil {
		return none, err
	}
	v, err := f(provdb.WithLimits(bounded, provdb.Limits{Memory: in.SQLMemory}), &runQuery{Queries: a})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return none, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded)
	}
	return v, err
}

func (q *runQuery) sql(ctx context.Context, of SQLParams) (*api.SQLAnswer, error) {
	begin := time.Now()
	rows, err := q.Query(ctx, of.SQL, of.Args...)
	if err != nil {
		return nil, badSQL(of.SQL, err)
	}
	defer func() { _ = rows.Close() }() // errors are reported by rows
	answer := &api.SQLAnswer{Columns: []api.SQLColumn{}, Rows: [][]json.RawMessage{}}
	for _, c := range rows.Columns {
		answer.Columns = append(answer.Columns, api.SQLColumn{Name: c.Name, Type: string(c.Type)})
	}
	size := 0
	for row, err := range rows.All {
		if err != nil {
			return nil, badSQL(of.SQL, err)
		}
		values := make([]json.RawMessage, len(row))
		for i, v := range row {
			if values[i], err = provdb.MarshalValue(v); err != nil {
				return nil, fmt.Errorf("column %s: %w", rows.Columns[i].Name, err)
			}
			size += len(values[i])
		}
		if len(answer.Rows) == of.Limit || size > maxAnswer {
			answer.Cut = true
			break
		}
		answer.Rows = append(answer.Rows, values)
	}
	answer.Seconds = time.Since(begin).Seconds()
	return answer, nil
}

// Read calls f with the rows of a read-only statement. It may take patience times as long as
// other queries.
func (in *Insight) Read(ctx context.Context, run string, of SQLParams, patience int,
	f func(ctx context.Context, rows *provdb.Rows) error,
) error {
	_, err := readSQL(ctx, in, run, time.Duration(patience)*in.Timeout, func(ctx context.Context, q *runQuery) (none struct{}, err error) {
		rows, err := q.Query(ctx, of.SQL, of.Args...)
		if err == nil {
			err = errors.Join(f(ctx, rows), rows.Close())
		}
		if err != nil {
			err = badSQL(of.SQL, err)
		}
		return none, err
	})
	return err
}

// SQLError reports a problem with a statement.
type SQLError struct {
	*api.Problem
	Line, Column int // of the statement, starting at 1; 0: unknown
}

// Unwrap returns the problem itself.
func (e *SQLError) Unwrap() error { return e.Problem }

// badSQL returns an SQLError. Errors of unknown kind are blamed on the statement.
func badSQL(sql string, err error) error {
	if errors.Is(err, provdb.ErrBusy) {
		return err
	}
	p := AsProblem(err)
	if p.Status == api.Internal {
		p = &api.Problem{Status: api.Invalid, Message: err.Error(), Hint: "docs/sql.md lists tables and views, with examples"}
	}
	line, column := pointedAt(sql, p.Message)
	return &SQLError{Problem: p, Line: line, Column: column}
}

// placePattern matches the part of a statement in messages of stores: a line, perhaps
// shortened with dots, and a caret below.
var placePattern = regexp.MustCompile(`(?m)^LINE (\d+): (.*)\n( *)\^`)

// pointedAt returns the place of a statement that a message points to, or 0.
func pointedAt(sql, message string) (line, column int) {
	m := placePattern.FindStringSubmatch(message)
	if m == nil {
		return 0, 0
	}
	line, err := strconv.Atoi(m[1])
	lines := strings.Split(sql, "\n")
	if err != nil || line < 1 || line > len(lines) {
		return 0, 0
	}
	column = utf8.RuneCountInString(m[3]) - len("LINE "+m[1]+": ") + 1
	shown := m[2]
	if cut, ok := strings.CutPrefix(shown, "..."); ok && !strings.HasPrefix(lines[line-1], "...") {
		shown, column = strings.TrimSuffix(cut, "..."), column-len("...")
		before, _, found := strings.Cut(lines[line-1], shown)
		if !found {
			return line, 0
		}
		column += utf8.RuneCountInString(before)
	}
	if column < 1 || column > utf8.RuneCountInString(lines[line-1])+1 {
		column = 0
	}
	return line, column
}
