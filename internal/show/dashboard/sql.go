package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// Limits of SQL queries.
const (
	maxQuery   = 1 << 20 // bytes of a body
	defaultSQL = 1000    // rows
	maxSQL     = 100_000
)

// sql answers one SELECT statement.
func (s *server) sql(p *params) (any, error) {
	body, limit, err := readQuery(p, defaultSQL, maxSQL)
	if err == nil && body.Format != "" {
		err = problem(http.StatusBadRequest, "format is not supported here", "sql/export writes csv and parquet")
	}
	if err != nil {
		return nil, err
	}
	return s.insight.SQL(p.r.Context(), p.path("run"), insight.SQLParams{SQL: body.SQL, Args: body.Args, Limit: limit})
}

// readQuery reads a query and its limit of rows.
func readQuery(p *params, usual, most int) (q api.SQLQuestion, limit int, err error) {
	if err := p.done(); err != nil {
		return q, 0, err
	}
	const example = `{"sql": "SELECT …", "args": […], "limit": 1000}`
	if err := readJSON(p.r, &q, maxQuery, example); err != nil {
		return q, 0, err
	}
	limit = usual
	if q.Limit != nil {
		limit = int(*q.Limit)
		if *q.Limit < 0 || *q.Limit > int64(most) {
			err = fmt.Errorf("limit %d is not a number from 0 to %d", *q.Limit, most)
		}
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
		return q, 0, problem(http.StatusBadRequest, "invalid query: "+err.Error(), "send "+example)
	}
	return q, limit, nil
}

// readJSON decodes the body of a request, which must be one JSON value without unknown fields.
func readJSON(r *http.Request, v any, most int64, example string) error {
	if !isJSON(r) { // a form of another site cannot have this type
		return problem(http.StatusUnsupportedMediaType, "the body is not JSON", "send "+example+" as application/json")
	}
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, most))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && !errors.Is(dec.Decode(new(any)), io.EOF) {
		err = errors.New("more than one value")
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit), "")
	}
	if err != nil {
		return problem(http.StatusBadRequest, "invalid body: "+err.Error(), "send "+example)
	}
	return nil
}

// argument returns a value that can be bound.
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
	return nil, errors.New("args must be null, booleans, numbers or strings")
}
