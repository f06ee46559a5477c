package recordfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// decoder converts JSON to records.
type decoder struct {
	notes *Notes

	raw     json.RawMessage // the current record
	scratch bytes.Buffer

	// Values that records share, by their JSON.
	names  map[string]string
	models map[string]json.RawMessage
	shared int // bytes
}

// maxShared limits the bytes of shared names and models.
const maxShared = 1 << 20

// share makes room for n bytes of shared values.
func (d *decoder) share(n int) {
	d.shared += n
	if d.names == nil || d.shared > maxShared {
		d.names, d.models, d.shared = make(map[string]string), make(map[string]json.RawMessage), n
	}
}

// array reads an array and calls add with each element. It returns an *Error without a path,
// or the error of ctx.
func (d *decoder) array(ctx context.Context, r io.Reader, add func(value) error) error {
	file := &counter{Reader: r}
	dec := json.NewDecoder(file)
	switch begin, err := dec.Token(); {
	case errors.Is(err, io.EOF):
		return &Error{Record: -1, Offset: file.n, Err: errors.New("the file is empty")}
	case err != nil:
		return &Error{Record: -1, Err: fmt.Errorf("not an array of records: %w", err)}
	case begin != json.Delim('['):
		return &Error{Record: -1, Err: errors.New("not an array of records: it does not begin with [")}
	}
	for i := 0; dec.More(); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := dec.Decode(&d.raw); err != nil {
			return damage(i, err, dec, file)
		}
		v := value{d.raw, dec.InputOffset() - int64(len(d.raw))}
		if err := add(v); err != nil {
			e := &Error{Record: i, Offset: v.at, Err: err}
			if f, ok := errors.AsType[*fault](err); ok {
				e.Offset = f.at
			}
			return e
		}
	}
	if _, err := dec.Token(); err != nil {
		return damage(-1, err, dec, file)
	}
	end := dec.InputOffset()
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &Error{Record: -1, Offset: end, Err: errors.New("data after the array of records")}
	}
	return nil
}

// damage returns the error of malformed JSON.
func damage(record int, err error, dec *json.Decoder, file *counter) error {
	e := &Error{Record: record, Offset: dec.InputOffset(), Err: err}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		e.Offset, e.Err = file.n, errors.New("the file ends within the array of records")
	}
	return e
}

// text reads a string as provenance.Text returns it.
func (d *decoder) text(v value) (string, error) {
	if !v.isString() {
		return "", v.wrong("%s is not a string", v.excerpt())
	}
	return provenance.Text(unquote(v.text[1 : len(v.text)-1])), nil
}

// name reads a string that many records share.
func (d *decoder) name(v value) (string, error) {
	if s, ok := d.names[string(v.text)]; ok {
		return s, nil
	}
	s, err := d.text(v)
	if err == nil {
		d.share(2 * len(v.text))
		d.names[string(v.text)] = s
	}
	return s, err
}

// model returns the parameters of a model without spaces and with invalid UTF-8 escaped.
func (d *decoder) model(v value) (json.RawMessage, error) {
	d.scratch.Reset()
	if err := json.Compact(&d.scratch, v.text); err != nil {
		return nil, v.wrong("%v", err)
	}
	if m, ok := d.models[string(d.scratch.Bytes())]; ok {
		return m, nil
	}
	m := escapeBytes(d.scratch.Bytes())
	d.share(2 * len(m))
	d.models[d.scratch.String()] = m
	return m, nil
}

// escapeBytes returns a copy of JSON with invalid UTF-8, which occurs only in strings,
// escaped.
func escapeBytes(text []byte) []byte {
	if utf8.Valid(text) {
		return bytes.Clone(text)
	}
	b := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			b = fmt.Appendf(b, `\\x%02x`, text[0])
		} else {
			b = append(b, text[:n]...)
		}
		text = text[n:]
	}
	return b
}
