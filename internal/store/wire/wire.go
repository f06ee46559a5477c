// Package wire encodes queries and their answers for processes that answer the queries of
// others: a Request and a stream of Frames, in gob.
package wire

import (
	"context"
	"database/sql/driver"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func init() {
	for _, v := range []any{json.Number(""), json.RawMessage{}, time.Time{}} {
		gob.Register(v)
	}
}

// Request is a query.
type Request struct {
	Ping   bool // only check whether the other process responds
	SQL    string
	Args   []any
	Limits *provdb.Limits // of a statement that a user wrote; else nil
}

// NewRequest returns a query with the limits of ctx. Arguments are numbers, strings,
// booleans, times and nil.
func NewRequest(ctx context.Context, sql string, args []any) (Request, error) {
	q := Request{SQL: sql}
	if l, ok := provdb.LimitsOf(ctx); ok {
		q.Limits = &l
	}
	for i, v := range args {
		p, err := plainArg(v)
		if err != nil {
			return q, fmt.Errorf("argument %d: %w", i+1, err)
		}
		q.Args = append(q.Args, p)
	}
	return q, nil
}

// ReadRequest decodes and checks a query.
func ReadRequest(r io.Reader) (q Request, err error) {
	if err := gob.NewDecoder(r).Decode(&q); err != nil {
		return q, err
	}
	for i, v := range q.Args {
		if q.Args[i], err = plain(v); err != nil {
			return q, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return q, nil
}

// Frame is a piece of an answer: the columns, then one frame for each row, then the end or an
// error. The end is explicit to distinguish a cut answer from a short one. An error may come in
// place of the columns.
type Frame struct {
	Columns []provdb.Column
	Row     []any
	End     bool
	Error   *Error
}

// Last returns the last frame of an answer, for err or nil.
func Last(err error) Frame {
	if err == nil {
		return Frame{End: true}
	}
	e := &Error{Text: err.Error()}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			e.Kind = name
		}
	}
	return Frame{Error: e}
}

// Error is an error of the process that answers: its text, and the kind that callers test for.
type Error struct {
	Text string
	Kind string // a key of kinds, or ""
}

// kinds are the names of the errors that callers test for.
var kinds = map[string]error{
	"read_only": provdb.ErrReadOnly, "not_found": provdb.ErrNotFound, "closed": provdb.ErrClosed, "in_use": provdb.ErrInUse,
	"newer": fileformat.ErrNewer, "foreign": provdb.ErrForeign, "run_exists": provdb.ErrRunExists,
	"busy": provdb.ErrBusy, "limit": provdb.ErrLimit,
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the error of provdb that the other process had.
func (e *Error) Unwrap() error { return kinds[e.Kind] }

// Answer runs a query and sends its answer, except the last frame. If now is set, send must not
// buffer the frame.
func Answer(ctx context.Context, r provdb.Reader, q Request, send func(f Frame, now bool) error) error {
	rows, err := r.Query(ctx, q.SQL, q.Args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()                              // All yields the error
	if err := send(Frame{Columns: rows.Columns}, true); err != nil { // the client waits for them
		return err
	}
	var values []any
	for row, err := range rows.All {
		if err == nil {
			values, err = plainRow(row, values)
		}
		if err == nil {
			err = send(Frame{Row: values}, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plain returns a value that gob restores exactly, or an error if the contract of
// provdb does not allow its type.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, json.Number, json.RawMessage:
		return v, nil
	case time.Time:
		return v.UTC(), nil
	}
	return nil, fmt.Errorf("cannot send a value of type %T", v)
}

// plainArg is plain for arguments. As in package database/sql, they may be of any
// numeric or string type.
func plainArg(v any) (any, error) {
	p, err := plain(v)
	if err == nil {
		return p, nil
	}
	converted, convErr := driver.DefaultParameterConverter.ConvertValue(v)
	if convErr != nil {
		return nil, err
	}
	return plain(converted)
}

// plainRow replaces the values of a row by plain ones.
func plainRow(row, into []any) ([]any, error) {
	into = into[:0]
	for i, v := range row {
		p, err := plain(v)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i+1, err)
		}
		into = append(into, p)
	}
	return into, nil
}

// Decoder reads an answer: Header once, then Row until its first error.
type Decoder struct {
	gob     *gob.Decoder
	columns int
	frame   Frame
}

// NewDecoder returns a decoder of the answer in r.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{gob: gob.NewDecoder(r)} }

// Header returns the columns, or the error that was sent in their place.
func (d *Decoder) Header() ([]provdb.Column, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	if d.frame.End || len(d.frame.Row) > 0 {
		return nil, errors.New("malformed answer: no columns")
	}
	d.columns = len(d.frame.Columns)
	return d.frame.Columns, nil
}

// ErrEnd follows the last row of a complete answer. Unlike io.EOF, no connection
// returns it.
var ErrEnd = errors.New("end of the answer")

// Row returns the next row, valid until the next call, or ErrEnd. No call may follow an error.
func (d *Decoder) Row() ([]any, error) {
	err := d.next()
	switch {
	case err != nil:
		return nil, err
	case d.frame.End:
		return nil, ErrEnd
	case len(d.frame.Row) != d.columns:
		return nil, fmt.Errorf("malformed answer: %d values for %d columns", len(d.frame.Row), d.columns)
	}
	return d.frame.Row, nil
}

func (d *Decoder) next() error {
	d.frame = Frame{Row: d.frame.Row[:0]}
	err := d.gob.Decode(&d.frame)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("incomplete answer: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("incomplete answer: %w", err)
	case d.frame.Error != nil:
		return d.frame.Error
	}
	return nil
}
