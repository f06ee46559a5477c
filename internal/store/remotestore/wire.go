package remotestore

import (
	"database/sql/driver"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func init() {
	for _, v := range []any{json.Number(""), json.RawMessage{}, time.Time{}} {
		gob.Register(v)
	}
}

// request is the body of a POST.
type request struct {
	Ping bool // only check whether the owner responds
	SQL  string
	Args []any
}

// frame is a piece of an answer: the columns, then one frame for each row, then the
// end or an error. The end is explicit, so that a cut answer is not taken for a short
// one. An error may come in place of the columns.
type frame struct {
	Columns []provdb.Column
	Row     []any
	End     bool
	Error   *ownerError
}

// ownerError is an error of the owner: its text, and the kind that callers test for.
type ownerError struct {
	Text string
	Kind string // a key of kinds, or ""
}

// kinds are the names of the errors that callers test for.
var kinds = map[string]error{
	"read_only": provdb.ErrReadOnly, "not_found": provdb.ErrNotFound, "closed": provdb.ErrClosed, "in_use": provdb.ErrInUse,
	"newer": provdb.ErrNewer, "foreign": provdb.ErrForeign, "run_exists": provdb.ErrRunExists,
}

func newOwnerError(err error) *ownerError {
	e := &ownerError{Text: err.Error()}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			e.Kind = name
		}
	}
	return e
}

func (e *ownerError) Error() string { return e.Text }
func (e *ownerError) Unwrap() error { return kinds[e.Kind] }

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

// decoder reads an answer: header once, then row until its first error.
type decoder struct {
	gob     *gob.Decoder
	columns int
	frame   frame
}

func newDecoder(r io.Reader) *decoder { return &decoder{gob: gob.NewDecoder(r)} }

// header returns the columns, or the error that the owner sent in their place.
func (d *decoder) header() ([]provdb.Column, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	if d.frame.End || len(d.frame.Row) > 0 {
		return nil, errors.New("malformed answer: no columns")
	}
	d.columns = len(d.frame.Columns)
	return d.frame.Columns, nil
}

// errEnd follows the last row of a complete answer. Unlike io.EOF, no connection
// returns it.
var errEnd = errors.New("end of the answer")

// row returns the next row, valid until the next call, or errEnd. No call may follow an error.
func (d *decoder) row() ([]any, error) {
	err := d.next()
	switch {
	case err != nil:
		return nil, err
	case d.frame.End:
		return nil, errEnd
	case len(d.frame.Row) != d.columns:
		return nil, fmt.Errorf("malformed answer: %d values for %d columns", len(d.frame.Row), d.columns)
	}
	return d.frame.Row, nil
}

func (d *decoder) next() error {
	d.frame = frame{Row: d.frame.Row[:0]}
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
