package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Limits of questions in SQL.
const (
	maxQuestion = 1 << 20 // bytes of a body
	usualSQL    = 1000    // rows
	maxSQL      = 100_000
)

// sql answers one statement that only reads. It may read all runs of the store.
func (s *server) sql(ctx context.Context, q *asked) (any, error) {
	if err := q.p.done(); err != nil {
		return nil, err
	}
	body, limit, err := readQuestion(q.r, usualSQL, maxSQL)
	if err == nil && body.Format != "" {
		err = &problem{http.StatusBadRequest, "the answer to a question has no format", "sql/export writes csv and parquet"}
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	rows, err := q.Query(ctx, body.SQL, body.Args...)
	if err != nil {
		return nil, badSQL(body.SQL, err)
	}
	defer func() { _ = rows.Close() }() // the rows told all there is
	answer := api.SQLAnswer{Columns: []api.SQLColumn{}, Rows: [][]json.RawMessage{}}
	for _, c := range rows.Columns {
		answer.Columns = append(answer.Columns, api.SQLColumn{Name: c.Name, Type: string(c.Type)})
	}
	size := 0
	for row, err := range rows.All {
		if err != nil {
			return nil, badSQL(body.SQL, err)
		}
		values := make([]json.RawMessage, len(row))
		for i, v := range row {
			if values[i], err = marshalValue(v); err != nil {
				return nil, fmt.Errorf("column %s: %w", rows.Columns[i].Name, err)
			}
			size += len(values[i])
		}
		if len(answer.Rows) == limit || size > maxAnswer {
			answer.Cut = true
			break
		}
		answer.Rows = append(answer.Rows, values)
	}
	answer.Seconds = time.Since(begin).Seconds()
	return answer, nil
}

// readQuestion reads a question, and how many rows are wanted.
func readQuestion(r *http.Request, usual, most int) (q api.SQLQuestion, limit int, err error) {
	// A form of another site cannot have this type, whatever its browser checks.
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return q, 0, &problem{http.StatusUnsupportedMediaType, "the question is no JSON", `send {"sql": "SELECT …"} as application/json`}
	}
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxQuestion))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	err = dec.Decode(&q)
	if err == nil && !errors.Is(dec.Decode(new(any)), io.EOF) {
		err = errors.New("something follows the question")
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return q, 0, &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("a question has at most %d bytes", tooLarge.Limit), ""}
	}
	limit = usual
	if err == nil && q.Limit != nil {
		if *q.Limit < 0 || *q.Limit > int64(most) {
			err = fmt.Errorf("limit %d is not a number from 0 to %d", *q.Limit, most)
		}
		limit = int(*q.Limit)
	}
	for i, v := range q.Args {
		if err == nil {
			q.Args[i], err = argument(v)
		}
	}
	if err == nil && q.SQL == "" {
		err = errors.New("sql is missing")
	}
	if err != nil {
		return q, 0, &problem{http.StatusBadRequest, "the question makes no sense: " + err.Error(), `send {"sql": "SELECT …", "args": […], "limit": 1000}`}
	}
	return q, limit, nil
}

// argument is a value that can be bound.
func argument(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	return nil, errors.New("args are null, true, false, numbers or texts")
}

// badSQL blames the client for errors of which nothing else is known, and says where in
// the statement they are, if the store does.
func badSQL(sql string, err error) error {
	p := asProblem(err)
	if p.status == http.StatusInternalServerError {
		p = &problem{http.StatusBadRequest, err.Error(), "docs/sql.md lists tables and views, with examples"}
	}
	line, column := pointedAt(sql, p.Message)
	return &detailed{problem: p, line: line, column: column}
}

// detailed is a problem of which more is known.
type detailed struct {
	*problem

	line, column int           // of a statement of SQL; 0: not known
	after        time.Duration // when to try again; 0: not known
}

// Unwrap is the problem itself.
func (d *detailed) Unwrap() error { return d.problem }

func (d *detailed) write(w http.ResponseWriter, r *http.Request) {
	if d.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(d.after.Seconds()))))
	}
	writeJSON(w, r, d.status, api.SQLProblem{Message: d.Message, Hint: d.Hint, Line: d.line, Column: d.column})
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
