package remotestore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxLine bounds the bytes of a row that a client reads.
const maxLine = 256 << 20

// kinds are the names of errors that callers tell apart.
var kinds = []struct {
	name string
	err  error
}{
	{"read_only", provdb.ErrReadOnly},
	{"not_found", provdb.ErrNotFound},
	{"closed", provdb.ErrClosed},
	{"in_use", provdb.ErrInUse},
	{"newer", provdb.ErrNewer},
	{"foreign", provdb.ErrForeign},
	{"run_exists", provdb.ErrRunExists},
}

// ownerError is an error that the owner met: its words, and what callers branch
// on.
type ownerError struct {
	text string
	kind error // nil for none
}

func (e *ownerError) Error() string { return e.text }
func (e *ownerError) Unwrap() error { return e.kind }

// question is the body of a request.
type question struct {
	SQL  *string `json:"sql,omitempty"` // nil only asks whether the owner is there
	Args []any   `json:"args,omitempty"`
}

type column struct {
	Name string      `json:"name"`
	Type provdb.Type `json:"type"`
}

// notice is a line of an answer that is not a row: one of its fields is set.
type notice struct {
	Columns *[]column `json:"columns,omitempty"`
	End     bool      `json:"end,omitempty"`
	Error   *string   `json:"error,omitempty"`
	Kind    string    `json:"kind,omitempty"` // of the error
}

// encoder writes the lines of an answer. Its errors are those of the writer, or
// of values that cannot be sent.
type encoder struct {
	json *json.Encoder
	wire []any
}

func newEncoder(w io.Writer) *encoder {
	e := &encoder{json: json.NewEncoder(w), wire: []any{}} // nil would be written as null
	e.json.SetEscapeHTML(false)
	return e
}

func (e *encoder) columns(all []provdb.Column) error {
	list := make([]column, len(all))
	for i, c := range all {
		list[i] = column(c)
	}
	return e.json.Encode(notice{Columns: &list})
}

func (e *encoder) row(values []any) error {
	e.wire = e.wire[:0]
	for i, v := range values {
		w, err := toWire(v)
		if err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
		e.wire = append(e.wire, w)
	}
	return e.json.Encode(e.wire)
}

// end writes the last line; nil is the end of a whole answer.
func (e *encoder) end(err error) error {
	if err == nil {
		return e.json.Encode(notice{End: true})
	}
	text := err.Error()
	n := notice{Error: &text}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			n.Kind = k.name
			break
		}
	}
	return e.json.Encode(n)
}

// malformedError tells where an answer does not follow the protocol.
type malformedError struct {
	line int // counted from 1
	err  error
}

func (e *malformedError) Error() string {
	return fmt.Sprintf("line %d of the owner's answer: %v", e.line, e.err)
}

func (e *malformedError) Unwrap() error { return e.err }

// decoder reads an answer: header once, then row until its first error.
type decoder struct {
	in    *bufio.Reader
	long  []byte // a line that is larger than the buffer of in
	lines int
	width int
	err   error // of the end
	wire  []any
}

func newDecoder(r io.Reader) *decoder { return &decoder{in: bufio.NewReaderSize(r, 64<<10)} }

// header returns the columns, or the error that the owner sent in their place.
func (d *decoder) header() ([]provdb.Column, error) {
	line, err := d.line()
	if err != nil {
		return nil, err
	}
	n, err := d.notice(line)
	if err != nil {
		return nil, err
	}
	if n.Columns == nil {
		return nil, d.malformed(errors.New("the columns are missing"))
	}
	all := make([]provdb.Column, len(*n.Columns))
	for i, c := range *n.Columns {
		all[i] = provdb.Column(c)
	}
	d.width = len(all)
	return all, nil
}

// errEnd follows the last row of a whole answer. Unlike io.EOF, no connection
// gives it.
var errEnd = errors.New("end of the answer")

// row returns the next row, valid until the next call, or errEnd. An error stays.
func (d *decoder) row() ([]any, error) {
	if d.err != nil {
		return nil, d.err
	}
	row, err := d.next()
	d.err = err
	return row, err
}

func (d *decoder) next() ([]any, error) {
	line, err := d.line()
	if err != nil {
		return nil, err
	}
	if len(line) == 0 || line[0] != '[' {
		n, err := d.notice(line)
		switch {
		case err != nil:
			return nil, err
		case !n.End || n.Columns != nil:
			return nil, d.malformed(errors.New("neither a row nor an end"))
		}
		return nil, d.nothingMore()
	}
	d.wire = d.wire[:0]
	if err := parse(line, &d.wire); err != nil {
		return nil, d.malformed(err)
	}
	if len(d.wire) != d.width {
		return nil, d.malformed(fmt.Errorf("%d values for %d columns", len(d.wire), d.width))
	}
	for i, v := range d.wire {
		if d.wire[i], err = fromWire(v); err != nil {
			return nil, d.malformed(fmt.Errorf("value %d: %w", i+1, err))
		}
	}
	return d.wire, nil
}

// notice reads a line that is no row. The error that it holds is returned as one.
func (d *decoder) notice(line []byte) (n notice, err error) {
	if err := parse(line, &n); err != nil {
		return n, d.malformed(err)
	}
	if n.Error == nil {
		return n, nil
	}
	if n.End || n.Columns != nil {
		return n, d.malformed(errors.New("an error and an answer in one"))
	}
	e := &ownerError{text: *n.Error}
	for _, k := range kinds {
		if k.name == n.Kind {
			e.kind = k.err
		}
	}
	return n, e
}

// nothingMore returns errEnd when the stream ends. How it ends does not matter:
// the answer was whole.
func (d *decoder) nothingMore() error {
	if _, err := d.in.Peek(1); err == nil {
		return d.malformed(errors.New("something follows the end"))
	}
	return errEnd
}

// line returns the next line, valid until the next call. That there is none means
// that the answer was cut.
func (d *decoder) line() ([]byte, error) {
	d.lines++
	d.long = d.long[:0]
	for {
		part, err := d.in.ReadSlice('\n')
		switch {
		case err == nil && len(d.long) == 0:
			return part[:len(part)-1], nil
		case err == nil:
			d.long = append(d.long, part[:len(part)-1]...)
			return d.long, nil
		case errors.Is(err, io.EOF):
			return nil, d.malformed(fmt.Errorf("the answer was cut: %w", io.ErrUnexpectedEOF))
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, d.malformed(fmt.Errorf("the answer was cut: %w", err))
		}
		if d.long = append(d.long, part...); len(d.long) > maxLine {
			return nil, d.malformed(fmt.Errorf("a row of more than %d MB", maxLine>>20))
		}
	}
}

func (d *decoder) malformed(err error) error { return &malformedError{line: d.lines, err: err} }

// parse reads one value of JSON, with numbers left as text.
func parse(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(into); errors.Is(err, io.EOF) {
		return errors.New("empty")
	} else if err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}
