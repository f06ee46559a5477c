package remotestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// decode reads an answer to its end.
func decode(r io.Reader) (columns []provdb.Column, rows [][]any, err error) {
	d := newDecoder(r)
	if columns, err = d.header(); err != nil {
		return nil, nil, err
	}
	for {
		row, err := d.row()
		if errors.Is(err, errEnd) {
			return columns, rows, nil
		}
		if err != nil {
			return columns, rows, err
		}
		rows = append(rows, append([]any{}, row...))
	}
}

func encode(columns []provdb.Column, rows [][]any) ([]byte, error) {
	var b bytes.Buffer
	e := newEncoder(&b)
	err := e.columns(columns)
	for _, row := range rows {
		err = errors.Join(err, e.row(row))
	}
	err = errors.Join(err, e.end(nil))
	return b.Bytes(), err
}

func TestAnAnswerReadsAsThePackageCommentSays(t *testing.T) {
	text := `{"columns":[{"name":"a","type":"int"},{"name":"b","type":"json"}]}` + "\n" +
		`[12,{"json":"[1]"}]` + "\n" + `[{"number":"99999999999999999999"},null]` + "\n" + `{"end":true}` + "\n"
	columns, rows, err := decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := encode(columns, rows)
	if err != nil || string(again) != text {
		t.Errorf("got %s (%v), want %s", again, err, text)
	}
}

func TestAnswersThatBreakTheProtocolAreErrors(t *testing.T) {
	const head = `{"columns":[{"name":"a","type":"int"}]}` + "\n"
	f := func(text string, want ...string) {
		t.Helper()
		_, rows, err := decode(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q: got %v, want an error", text, rows)
			return
		}
		wantText(t, err, want...)
	}
	f("", "line 1", "cut")
	f(head, "line 2", "cut")
	f(head+"[1]\n", "line 3", "cut")
	f(head+`{"end":true}`, "line 2", "cut")
	f(head+"\n", "line 2", "empty")
	f(head+"{}\n", "neither a row nor an end")
	f(head+"null\n", "neither a row nor an end")
	f(head+head, "neither a row nor an end")
	f(head+`{"end":true,"columns":[]}`+"\n", "neither a row nor an end")
	f(head+`{"end":true,"error":"x"}`+"\n", "an error and an answer")
	f(head+`{"end":true}`+"\n"+`{"end":true}`+"\n", "something follows the end")
	f(head+`{"end":true}{}`+"\n", "something follows the value")
	f(head+"[1][2]\n", "something follows the value")
	f(head+"[1\n", "line 2")
	f(head+"[]\n", "0 values for 1 columns")
	f(head+"[1,2]\n", "2 values for 1 columns")
	f(head+"[[1]]\n", "value 1", "no value is written as")
	f(head+"[9223372036854775808]\n", "value out of range")
	f(head+"[1e999]\n", "value out of range")
	f(head+`[{}]`+"\n", "no value is written as")
	f(head+`[{"json":"1","text64":""}]`+"\n", "no value is written as")
	f(head+`[{"color":"red"}]`+"\n", `no value is of the kind "color"`)
	f(head+`[{"json":1}]`+"\n", "not a text")
	f(head+`[{"float":"1.5"}]`+"\n", "finite")
	f(head+`[{"float":"x"}]`+"\n", "invalid syntax")
	f(head+`[{"text64":"?"}]`+"\n", "illegal base64")
	f(head+`[{"time":1}]`+"\n", "not a pair")
	f(head+`[{"time":[1]}]`+"\n", "not a pair")
	f(head+`[{"time":["1","2"]}]`+"\n", "not a pair of numbers")
	f(head+`[{"time":[1.5,0]}]`+"\n", "invalid syntax")
	f(head+`[{"time":[0,1000000000]}]`+"\n", "1000000000 nanoseconds")
	f("[1]\n", "line 1")
	f(`{"end":true}`+"\n", "the columns are missing")
	f(`{"error":"sorry","kind":"unheard-of"}`+"\n", "sorry")
}

func TestALongRowArrivesWhole(t *testing.T) {
	for _, n := range []int{64<<10 - 4, 64<<10 - 3, 64 << 10, 1 << 20} {
		text := strings.Repeat("x", n)
		answer, err := encode(make([]provdb.Column, 1), [][]any{{text}, {"next"}})
		if err != nil {
			t.Fatal(err)
		}
		_, rows, err := decode(bytes.NewReader(answer))
		if err != nil || len(rows) != 2 || rows[0][0] != text || rows[1][0] != "next" {
			t.Errorf("%d bytes: got %d rows and %v", n, len(rows), err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	whole, err := encode(make([]provdb.Column, len(manyValues())), [][]any{manyValues(), manyValues()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"error":"sorry","kind":"read_only"}` + "\n"))
	f.Add([]byte(`{"columns":[]}` + "\n[]\n" + `{"end":true}` + "\n"))
	f.Add([]byte(`{"columns":[{"name":"a","type":"time"}]}` + "\n" + `[{"time":[-9223372036854775808,5]}]` + "\n" + `{"end":true}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		columns, rows, err := decode(bytes.NewReader(text))
		if err != nil {
			_ = err.Error()
			return
		}
		again, err := encode(columns, rows)
		if err != nil {
			t.Fatalf("%q: cannot be written again: %v", text, err)
		}
		columns2, rows2, err := decode(bytes.NewReader(again))
		if err != nil || fmt.Sprint(columns) != fmt.Sprint(columns2) || len(rows) != len(rows2) {
			t.Fatalf("%q: written again as %q, which reads %v, %d rows, %v", text, again, columns2, len(rows2), err)
		}
		for i := range rows {
			for j, v := range rows[i] {
				if !same(v, rows2[i][j]) {
					t.Fatalf("%q: row %d, value %d: %#v became %#v", text, i, j, v, rows2[i][j])
				}
			}
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
		text, err := encode(columns, all)
		if err != nil {
			b.Fatal(err)
		}
		if _, got, err := decode(bytes.NewReader(text)); err != nil || len(got) != rows {
			b.Fatal(len(got), err)
		}
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
