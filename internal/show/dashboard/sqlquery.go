package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/chimbuko/chimbuko/internal/show/insight"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Limits of questions in SQL.
const (
	maxQuestion = 1 << 20 // bytes of a body
	usualSQL    = 1000    // rows
	maxSQL      = 100_000
)

// sql answers one statement that only reads.
func (s *server) sql(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	body, limit, err := readQuestion(r, usualSQL, maxSQL)
	if err == nil && body.Format != "" {
		err = &problem{http.StatusBadRequest, "the answer to a question has no format", "sql/export writes csv and parquet"}
	}
	if err != nil {
		return nil, err
	}
	return s.insight.SQL(r.Context(), r.PathValue("run"), insight.SQLParams{SQL: body.SQL, Args: body.Args, Limit: limit})
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
		return q, 0, &problem{
			http.StatusBadRequest, "the question makes no sense: " + err.Error(),
			`send {"sql": "SELECT …", "args": […], "limit": 1000}`,
		}
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
