package wire

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// decode reads an answer to its end.
func decode(r io.Reader) (columns []provdb.Column, rows [][]any, err error) {
	d := NewDecoder(r)
	if columns, err = d.Header(); err != nil {
		return nil, nil, err
	}
	for {
		row, err := d.Row()
		if errors.Is(err, ErrEnd) {
			return columns, rows, nil
		}
		if err != nil {
			return columns, rows, err
		}
		rows = append(rows, append([]any{}, row...))
	}
}

func encode(frames ...Frame) ([]byte, error) {
	var b bytes.Buffer
	var err error
	enc := gob.NewEncoder(&b)
	for _, f := range frames {
		err = errors.Join(err, enc.Encode(f))
	}
	return b.Bytes(), err
}

// answer returns the frames of a complete answer.
func answer(columns []provdb.Column, rows [][]any) []Frame {
	all := []Frame{{Columns: columns}}
	for _, row := range rows {
		all = append(all, Frame{Row: row})
	}
	return append(all, Frame{End: true})
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	head, end := Frame{Columns: make([]provdb.Column, 1)}, Frame{End: true}
	f := func(want string, frames ...Frame) {
		t.Helper()
		text, err := encode(frames...)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, err := decode(bytes.NewReader(text))
		if err == nil {
			t.Errorf("%v: got %v, want an error", frames, rows)
			return
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
	f("unexpected EOF")
	f("unexpected EOF", head)
	f("unexpected EOF", head, Frame{Row: []any{"x"}})
	f("0 values for 1 columns", head, Frame{})
	f("2 values for 1 columns", head, Frame{Row: []any{true, false}}, end)
	f("no columns", end)
	f("no columns", Frame{Row: []any{true}}, end)
	f("sorry", Frame{Error: &Error{Text: "sorry", Kind: "unknown"}})
	if _, _, err := decode(strings.NewReader("{\"end\":true}\n")); err == nil {
		t.Error("decoded JSON")
	}
}

func FuzzAnswer(f *testing.F) {
	row := []any{nil, true, int64(-1), 0.1, "text", json.Number("18446744073709551616"), json.RawMessage(`{"a": 1.0}`), time.Unix(0, 0).UTC()}
	whole, err := encode(answer(make([]provdb.Column, len(row)), [][]any{row, row})...)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		columns, rows, err := decode(bytes.NewReader(text))
		if err != nil {
			_ = err.Error()
			return
		}
		again, err := encode(answer(columns, rows)...)
		if err != nil {
			return // of a type that plain rejects
		}
		columns2, rows2, err := decode(bytes.NewReader(again))
		if err != nil || fmt.Sprint(columns) != fmt.Sprint(columns2) || len(rows) != len(rows2) {
			t.Fatalf("%q: encoded again as %q: %v, %d rows, %v", text, again, columns2, len(rows2), err)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	row := []any{int64(123456789), 1234.5, "a name of a function(int, double)", true, nil, int64(42)}
	columns := make([]provdb.Column, len(row))
	b.ReportAllocs()
	const rows = 1000
	for b.Loop() {
		all := make([][]any, rows)
		for i := range all {
			all[i] = row
		}
		text, err := encode(answer(columns, all)...)
		if err != nil {
			b.Fatal(err)
		}
		if _, got, err := decode(bytes.NewReader(text)); err != nil || len(got) != rows {
			b.Fatal(len(got), err)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
