package chrome_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// read returns the events of a trace, one per line, then the counts and the error.
func read(in io.Reader, wanted ...string) string {
	var counts tally.Tally
	r := chrome.NewReader(in, wanted, &counts)
	var out strings.Builder
	for {
		e, err := r.Next()
		if err != nil {
			for k, n := range counts.All() {
				fmt.Fprintf(&out, "%d %s\n", n, k.Name())
			}
			for _, g := range r.Gaps() {
				fmt.Fprintf(&out, "%s at %d+%d\n", g.Kind.Name(), g.Offset, g.Length)
			}
			if !errors.Is(err, io.EOF) {
				fmt.Fprintf(&out, "%v\n", err)
			}
			return out.String()
		}
		fmt.Fprintln(&out, show(e, wanted))
	}
}

// show returns an event in one line.
func show(e *chrome.Event, wanted []string) string {
	var out strings.Builder
	if e.NewDocument {
		out.WriteString("new ")
	}
	fmt.Fprintf(&out, "%c %q", e.Phase, e.Name)
	if e.Category != nil {
		fmt.Fprintf(&out, " cat=%q", e.Category)
	}
	if e.ID != nil {
		fmt.Fprintf(&out, " id=%q", e.ID)
	}
	for i, id := range []chrome.ID{e.PID, e.TID} {
		if id.IsNumber {
			fmt.Fprintf(&out, " %s=%d", []string{"pid", "tid"}[i], id.Number)
		} else if id.Text != nil {
			fmt.Fprintf(&out, " %s=%q", []string{"pid", "tid"}[i], id.Text)
		}
	}
	if e.HasTime {
		fmt.Fprintf(&out, " ts=%d", e.Time)
	}
	if e.HasDuration {
		fmt.Fprintf(&out, " dur=%d", e.Duration)
	}
	for _, a := range e.Args {
		if a.String {
			fmt.Fprintf(&out, " %s=%q", wanted[a.Key], a.Value)
		} else {
			fmt.Fprintf(&out, " %s=%s", wanted[a.Key], a.Value)
		}
	}
	for _, c := range e.Counters {
		fmt.Fprintf(&out, " %q:%s", c.Name, c.Value)
	}
	return out.String()
}

// golden reads a trace in large and in small portions, and plain and compressed.
func golden(t *testing.T, in, want string, wanted ...string) {
	t.Helper()
	want = strings.TrimSpace(want)
	if got := strings.TrimSpace(read(strings.NewReader(in), wanted...)); got != want {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", in, got, want)
	}
	if got := strings.TrimSpace(read(iotest.OneByteReader(strings.NewReader(in)), wanted...)); got != want {
		t.Errorf("byte by byte: %s\ngot:\n%s\nwant:\n%s", in, got, want)
	}
	if strings.Contains("\n"+want, "\nbyte ") {
		return // the compressed offset differs
	}
	if got := strings.TrimSpace(read(bytes.NewReader(compress(t, in)), wanted...)); got != want {
		t.Errorf("compressed: %s\ngot:\n%s\nwant:\n%s", in, got, want)
	}
}

func compress(tb testing.TB, s string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, s); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestEventsOfBothForms(t *testing.T) {
	event := `{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 12, "tid": "Spans", "ts": 5.25, "dur": 1, "args": {"a": [1, {"b": 2}], "c": "d", "e": true, "f": 1e3}}`
	want := `new X "aten::add" cat="cpu_op" pid=12 tid="Spans" ts=5250 dur=1000 a=[1, {"b": 2}] c="d" e=true`
	golden(t, `{"schemaVersion": 1, "traceEvents": [`+event+`], "traceName": "x"}`, want, "a", "c", "e")
	golden(t, `[`+event+`]`, want, "e", "c", "a")
	golden(t, `[`+event, want, "e", "c", "a") // legal
	golden(t, `[`+event+",\n", want, "e", "c", "a")
	golden(t, `[`+event+`,{}]`, want, "e", "c", "a")
	golden(t, event, want, "e", "c", "a")
	golden(t, "\xef\xbb\xbf["+event+`,]`, want, "e", "c", "a")
	golden(t, `[,`+event+`,,]`, want, "e", "c", "a")
	golden(t, `{"traceEvents": [], "a": 1}`, ``)
	golden(t, `[]`, ``)
	golden(t, `{}`, ``)
}

func TestPhases(t *testing.T) {
	golden(t, `[
		{"ph":"s","id":7,"pid":1,"tid":2,"ts":3,"cat":"ac2g","name":"ac2g"},
		{"ph":"b","id2":{"local":"0x1f"},"name":"a","ts":1},
		{"ph":"e","id2":{"global":9},"name":"a","ts":2},
		{"args":{"b":2,"a":1.5,"text":"3","n":null,"list":[1]},"name":"memory","ts":4,"ph":"C"},
		{"ph":"M","name":"process_name","pid":1,"args":{"name":"python","labels":"CPU","sort_index":5}}
	]`, `
new s "ac2g" cat="ac2g" id="7" pid=1 tid=2 ts=3000
b "a" id="0x1f" ts=1000
e "a" id="9" ts=2000
C "memory" ts=4000 "b":2 "a":1.5
M "process_name" pid=1 name="python" sort_index=5`, "name", "sort_index")
}

func TestTexts(t *testing.T) {
	golden(t, `[{"ph":"i","name":"a\"b\\c\/d\n\u00e9\ud83d\ude00\ud83d\ude0x\q\u12"}]`, `new i "a\"b\\c/d\né😀�\\ude0x\\q\\u12"`)
	golden(t, `[{"\u0070h":"i","name":""}]`, `new i ""`)
	golden(t, "[{\"ph\":\"i\",\"name\":\"a\tb\nc\x01\"}]", `new i "a\tb\nc\x01"`)
	golden(t, "[{\"ph\":\"i\",\"name\":\"a\xffb\"}]", `
new i "a�b"
1 text-invalid
text-invalid at 1+23`)
	golden(t, `[{"ph":"i","name":"a","name":"b","args":{"x":1,"x":2,"y":3}}]`, `new i "b" x=2 y=3`, "y", "x")
}

func TestNumbers(t *testing.T) {
	f := func(us, want string) {
		t.Helper()
		if want != "" {
			want = " ts=" + want
		} else {
			want = fmt.Sprintf("\n1 time-unreadable\ntime-unreadable at 1+%d", len(us)+26)
		}
		golden(t, `[{"ph":"X","name":"","ts":`+us+`}]`, `new X ""`+want)
	}
	f("0", "0")
	f("-1.5", "-1500")
	f("1661203462584767", "1661203462584767000")
	f("1661203462584767.123", "1661203462584767123")
	f("9223372036854775.807", "9223372036854775807")
	f("9223372036854775.8074", "9223372036854775807")
	f("9223372036854775.8075", "")
	f("-9223372036854775.807", "-9223372036854775807")
	f("9223372036854776", "")
	f("0.0004", "0")
	f("0.0005", "1")
	f("-0.0005", "-1")
	f("2688330.4119110107", "2688330412")
	f("2688330.4114510107", "2688330411")
	f("1.9999999999999999999999", "2000")
	f("1.4999999999999999999999999e3", "1500000")
	f("1e3", "1000000")
	f("1.5E-2", "15")
	f("12345678901234567890e-10", "1234567890123")
	f("1e-9999999999", "0")
	f("1e9999999999", "")
	f("0e9999999999", "0")
	f("NaN", "")
	f("-Infinity", "")
	f("1.2.3", "")
	f("1e", "")
	f(`"12.5"`, "12500") // a string
	golden(t, `[{"ph":"X","name":"","ts":null}]`, `new X ""`)
	golden(t, `[{"ph":"X","name":"","pid":1.5,"tid":99999999999999999999}]`, `new X "" pid="1.5" tid="99999999999999999999"`)
	golden(t, `[{"ph":"X","name":"","pid":-9223372036854775807,"tid":"1"}]`, `new X "" pid=-9223372036854775807 tid="1"`)
}

func TestUnescapedQuotes(t *testing.T) {
	golden(t, `{"traceEvents": [
  {"ph": "X", "cat": "python_function", "name": "{"device": "cpu", "dtype": "float32"}(12): run", "pid": 1, "ts": 5, "args": {"a": "x "y" z", "b": ["p"q", "", "r"]}},
  {"ph": "X", "name": "b", "ts": 6}]}`, `
new X "{\"device\": \"cpu\", \"dtype\": \"float32\"}(12): run" cat="python_function" pid=1 ts=5000 a="x \"y\" z" b=["p"q", "", "r"]
X "b" ts=6000
1 event-repaired
event-repaired at 20+163`, "a", "b")
	golden(t, `[{"ph":"i","name":"C:\dir\","ts":1},{"ph":"i","name":"b","ts":2}]`, `
new i "C:\\dir\\" ts=1000
i "b" ts=2000
1 event-repaired
event-repaired at 1+34`)
}

func TestDamage(t *testing.T) {
	a, b, c := `{"ph":"X","name":"a","ts":1}`, `{"ph":"X","name":"b","ts":2}`, `{"ph":"X","name":"c","ts":3}`
	golden(t, `[`+a+`@@ {{ "@`+b+`]`, `
new X "a" ts=1000
X "b" ts=2000
1 part-unreadable
part-unreadable at 29+8`)
	golden(t, `[{"ph":"X","name":"lost`+b+`,`+c+`]`, `
new X "b" ts=2000
X "c" ts=3000
1 part-unreadable
part-unreadable at 1+22`)
	golden(t, `[`+a+`,{"ph":"X","args":{"name":"x"},@`+`,`+b+`,{"name":"no phase"},null,[1],`+c+`]`, `
new X "a" ts=1000
X "b" ts=2000
X "c" ts=3000
1 part-unreadable
3 element-unknown
part-unreadable at 30+32
element-unknown at 91+19
element-unknown at 111+4
element-unknown at 116+3`)
	// Cut.
	golden(t, `{"traceEvents":[`+a+`,`+b[:20], `
new X "a" ts=1000
1 part-unreadable
part-unreadable at 45+20
byte 65: unexpected EOF`)
	golden(t, `{"traceEvents":[`+a+`,`, `
new X "a" ts=1000
byte 45: unexpected EOF`)
	golden(t, `{"traceEvents":[`+a+`]`, `
new X "a" ts=1000
byte 45: unexpected EOF`)
	golden(t, `[`+a+b[:20], `
new X "a" ts=1000
1 part-unreadable
part-unreadable at 29+20
byte 49: unexpected EOF`)
	golden(t, ``, `byte 0: no JSON object or list`)
	golden(t, `hello`, "1 part-unreadable\npart-unreadable at 0+5\nbyte 5: no JSON object or list")
}

func TestSeveralDocuments(t *testing.T) {
	a, b, c := `{"ph":"X","name":"a","ts":1}`, `{"ph":"X","name":"b","ts":2}`, `{"ph":"X","name":"c","ts":3}`
	golden(t, `{"traceEvents":[`+a+`,`+b+`]}{"traceEvents":[`+c+`]}[`+a+`][`+b+`]`, `
new X "a" ts=1000
X "b" ts=2000
new X "c" ts=3000
new X "a" ts=1000
new X "b" ts=2000`)
	golden(t, `{"traceEvents":[`+a+`,{"schemaVersion":1,"traceEvents":[`+b+`]}`, `
new X "a" ts=1000
new X "b" ts=2000
1 document-cut
document-cut at 45+0`)
	golden(t, `{"traceEvents":[`+a+`,{"ph":"X","na{"schemaVersion":1,"traceEvents":[`+b+`]}`, `
new X "a" ts=1000
new X "b" ts=2000
1 part-unreadable
1 document-cut
part-unreadable at 45+13
document-cut at 58+0`)
	golden(t, `[`+a+`,{"ph":"X","na[`+b+`,`+c+`]`, `
new X "a" ts=1000
new X "b" ts=2000
X "c" ts=3000
1 part-unreadable
1 document-cut
part-unreadable at 30+14
document-cut at 44+0`)
}

func TestProperties(t *testing.T) {
	in := `{"before": [1, 2], "traceEvents": [{"ph":"X","name":"a"}], "distributedInfo": {"rank": 3}}
{"distributedInfo": {"rank": 4}, "bad": x y, "traceEvents": [{"ph":"X","name":"b"}, @@ ], "traceName": "t"}`
	r := chrome.NewReader(strings.NewReader(in), nil, nil)
	f := func(name, want string, get func(string) ([]byte, bool)) {
		t.Helper()
		if got, ok := get(name); string(got) != want || ok != (want != "") {
			t.Errorf("%s is %q, %t, want %q", name, got, ok, want)
		}
	}
	next := func(want string, documents int) {
		t.Helper()
		if e, err := r.Next(); err != nil || string(e.Name) != want || !e.NewDocument || r.Documents() != documents {
			t.Fatalf("got %v, %v in %d documents, want %s in %d", e, err, r.Documents(), want, documents)
		}
	}
	next("a", 1)
	f("before", "[1, 2]", r.Property)
	f("distributedInfo", "", r.Property)
	next("b", 2)
	f("distributedInfo", `{"rank": 3}`, r.PreviousProperty)
	f("distributedInfo", `{"rank": 4}`, r.Property)
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	f("before", "", r.Property)
	f("traceName", `"t"`, r.Property)
}
