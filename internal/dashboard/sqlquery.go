package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/chimbuko/chimbuko/internal/provdb"
)

// Limits of questions in SQL.
const (
	maxQuestion = 1 << 20 // bytes of a body
	usualSQL    = 1000    // rows
	maxSQL      = 100_000
)

// sqlQuestion is the body of a question in SQL.
type sqlQuestion struct {
	SQL   string `json:"sql"`
	Args  []any  `json:"args"`  // values of $1, $2 …: null, booleans, numbers and texts
	Limit *int64 `json:"limit"` // rows
}

// sqlAnswer is its answer. Cut says that there were more rows.
type sqlAnswer struct {
	Columns []sqlColumn         `json:"columns"`
	Rows    [][]json.RawMessage `json:"rows"`
	Cut     bool                `json:"cut"`
	Seconds float64             `json:"seconds"`
}

type sqlColumn struct {
	Name string      `json:"name"`
	Type provdb.Type `json:"type"`
}

// sql answers one statement that only reads. It may read all runs of the store.
func (s *server) sql(ctx context.Context, q *asked) (any, error) {
	if err := q.p.done(); err != nil {
		return nil, err
	}
	body, limit, err := readQuestion(q.r)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	rows, err := q.Query(ctx, body.SQL, body.Args...)
	if err != nil {
		return nil, badSQL(err)
	}
	defer func() { _ = rows.Close() }() // the rows told all there is
	answer := sqlAnswer{Rows: [][]json.RawMessage{}}
	for _, c := range rows.Columns {
		answer.Columns = append(answer.Columns, sqlColumn(c))
	}
	size := 0
	for row, err := range rows.All {
		if err != nil {
			return nil, badSQL(err)
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

func readQuestion(r *http.Request) (q sqlQuestion, limit int, err error) {
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
	limit = usualSQL
	if err == nil && q.Limit != nil {
		if *q.Limit < 0 || *q.Limit > maxSQL {
			err = fmt.Errorf("limit %d is no number from 0 to %d", *q.Limit, maxSQL)
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

// badSQL blames the client for errors of which nothing else is known.
func badSQL(err error) error {
	if p := asProblem(err); p.status != http.StatusInternalServerError {
		return p
	}
	return &problem{http.StatusBadRequest, err.Error(), "docs/sql.md lists tables and views, with examples"}
}
