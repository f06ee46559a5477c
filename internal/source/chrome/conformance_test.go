package chrome_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/chrome"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// wanted are arguments of all recorded files.
var wanted = []string{
	"External id", "correlation", "stream", "device", "grid", "block", "Collective name", "In msg nelems", "name", "labels", "sort_index",
	"Input Dims", "Input type", "step", "mb_id",
}

// recorded returns the paths of the traces in testdata.
func recorded(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json.gz"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no traces in testdata: %v", err)
	}
	return paths
}

// unzip returns the content of a file.
func unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// reference is an event as encoding/json decodes it.
type reference struct {
	Ph, Name, Cat string
	ID            any
	Pid, Tid      any
	Ts, Dur       json.Number
	Args          map[string]json.RawMessage
}

// decode returns the events of a trace as encoding/json decodes them.
func decode(tb testing.TB, b []byte) (events []reference) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		if err := d.Decode(&events); err != nil {
			tb.Fatal(err)
		}
		return events
	}
	var top struct{ TraceEvents []reference }
	if err := d.Decode(&top); err != nil {
		tb.Fatal(err)
	}
	return top.TraceEvents
}

// rounded returns microseconds in nanoseconds, rounded half away from zero.
func rounded(tb testing.TB, n json.Number) int64 {
	tb.Helper()
	if n == "" {
		return 0
	}
	x, ok := new(big.Rat).SetString(string(n))
	if !ok {
		tb.Fatalf("%q is not a number", n)
	}
	x.Mul(x, big.NewRat(1000, 1))
	half := big.NewRat(1, 2)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	x.Add(x, half)
	return new(big.Int).Quo(x.Num(), x.Denom()).Int64() // toward zero
}

func text(tb testing.TB, v any) (s string, isNumber bool) {
	tb.Helper()
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, false
	case json.Number:
		return string(v), true
	}
	tb.Fatalf("unexpected %T", v)
	return "", false
}

// TestEqualsEncodingJSON compares every event of the recorded files with encoding/json.
func TestEqualsEncodingJSON(t *testing.T) {
	paths := recorded(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { compare(t, unzip(t, path)) })
	}
	for _, name := range []string{
		"hta-nccl", "hta-ns-resolution", "hta-diff-control", "hta-no-rank", "hta-no-gpu", "mi300-resnet", "straggler-AR", "straggler-ST",
		"transformer4-stalls", "resnet4-always",
	} {
		t.Run(name, func(t *testing.T) {
			tracetest.SkipShort(t, "large trace")
			compare(t, unzip(t, large(t, name)))
		})
	}
}

func compare(t *testing.T, b []byte) {
	t.Helper()
	want := decode(t, b)
	var counts tally.Tally
	r := chrome.NewReader(bytes.NewReader(b), wanted, &counts)
	phases := map[string]int{}
	for i := 0; ; i++ {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			if i != len(want) {
				t.Errorf("%d events, want %d", i, len(want))
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(want) {
			t.Fatalf("more than %d events", len(want))
		}
		w := &want[i]
		phases[w.Ph]++
		if string(e.Phase) != w.Ph || string(e.Name) != w.Name || string(e.Category) != w.Cat ||
			e.Time != rounded(t, w.Ts) || e.HasTime != (w.Ts != "") || e.Duration != rounded(t, w.Dur) || e.HasDuration != (w.Dur != "") {
			t.Fatalf("event %d: got %+v, want %+v", i, e, w)
		}
		for _, p := range []struct {
			got  chrome.ID
			want any
		}{{e.PID, w.Pid}, {e.TID, w.Tid}, {chrome.ID{Text: e.ID}, w.ID}} {
			s, isNumber := text(t, p.want)
			if string(p.got.Text) != s || p.got.IsNumber && !isNumber {
				t.Fatalf("event %d: got %q, want %q", i, p.got.Text, s)
			}
		}
		compareArgs(t, i, e, w)
		if b[e.Offset] != '{' {
			t.Fatalf("event %d is not at %d", i, e.Offset)
		}
	}
	for k, n := range counts.All() {
		t.Errorf("%d %s", n, k.Sentence())
	}
	t.Log(phases)
}

func compareArgs(t *testing.T, i int, e *chrome.Event, w *reference) {
	t.Helper()
	n := 0
	for _, name := range wanted {
		if _, ok := w.Args[name]; ok {
			n++
		}
	}
	if len(e.Args) != n {
		t.Fatalf("event %d: %d arguments, want %d", i, len(e.Args), n)
	}
	for _, a := range e.Args {
		raw := w.Args[wanted[a.Key]]
		want := string(raw)
		if a.String {
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
		}
		if string(a.Value) != want {
			t.Fatalf("event %d: %s is %q, want %q", i, wanted[a.Key], a.Value, want)
		}
	}
}
