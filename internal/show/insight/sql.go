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

// SQLParams are a statement that only reads, its values, and how many rows are wanted.
type SQLParams struct {
	SQL   string
	Args  []any
	Limit int
}

// SQL answers one statement that only reads. It may read all runs of the store.
func (in *Insight) SQL(ctx context.Context, run string, of SQLParams) (*api.SQLAnswer, error) {
	return ask(ctx, in, run, func(ctx context.Context, q *asked) (*api.SQLAnswer, error) { return q.sql(ctx, of) })
}

func (q *asked) sql(ctx context.Context, of SQLParams) (*api.SQLAnswer, error) {
	begin := time.Now()
	rows, err := q.Query(ctx, of.SQL, of.Args...)
	if err != nil {
		return nil, badSQL(of.SQL, err)
	}
	defer func() { _ = rows.Close() }() // the rows told all there is
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
			if values[i], err = marshalValue(v); err != nil {
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

// Read calls f with the rows of a statement that only reads. It may take so many times as
// long as other questions.
func (in *Insight) Read(ctx context.Context, run string, of SQLParams, patience int,
	f func(ctx context.Context, rows *provdb.Rows) error,
) error {
	timeout := time.Duration(patience) * in.Timeout
	limited, done, err := in.slotFor(ctx, timeout)
	if err != nil {
		return err
	}
	defer done()
	a, err := in.asker(limited, run)
	if err != nil {
		return err
	}
	rows, err := a.Query(limited, of.SQL, of.Args...)
	if err != nil {
		return badSQL(of.SQL, err)
	}
	err = errors.Join(f(limited, rows), rows.Close())
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded)
	}
	if err != nil {
		return badSQL(of.SQL, err)
	}
	return nil
}

// SQLError is what is wrong with a statement.
type SQLError struct {
	*api.Problem
	Line, Column int // of the statement, from 1 on; 0: not known
}

// Unwrap returns the problem itself.
func (e *SQLError) Unwrap() error { return e.Problem }

// badSQL blames the statement for errors of which nothing else is known, and says where in
// it they are, if the store does.
func badSQL(sql string, err error) error {
	p := AsProblem(err)
	if p.Kind == api.Internal {
		p = &api.Problem{Kind: api.Invalid, Message: err.Error(), Hint: "docs/sql.md lists tables and views, with examples"}
	}
	line, column := pointedAt(sql, p.Message)
	return &SQLError{Problem: p, Line: line, Column: column}
}

// placePattern is how stores point to a place of a statement: a line of it, perhaps
// with dots where it was cut, and a caret below.
var placePattern = regexp.MustCompile(`(?m)^LINE (\d+): (.*)\n( *)\^`)

// pointedAt is the place of a statement that a message points to, from 1 on; 0 if it
// points to none.
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
