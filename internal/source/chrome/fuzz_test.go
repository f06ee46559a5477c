package chrome_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

// portions returns n bytes at a time.
type portions struct {
	r io.Reader
	n int
}

func (p portions) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// FuzzReader reads anything. The result does not depend on the portions.
func FuzzReader(f *testing.F) {
	for _, name := range []string{"nccl", "straggler"} {
		b := unzip(f, filepath.Join("testdata", name+".json.gz"))
		f.Add(b[:2000], uint8(7))
		f.Add(append(b[:3000:3000], b[len(b)-500:]...), uint8(1))
	}
	for _, s := range []string{
		`[{"ph":"X","name":"a"},{"ph":"X","na[{"ph":"X","name":"b","ts":1e3}]`,
		`{"schemaVersion":1,"traceEvents":[{"ph":"C","args":{"a":1},"name":"{"device": "cpu"}(1)"}]}{"traceEvents":[`,
		"\xef\xbb\xbf[{\"ph\":\"\xff\\ud83d\\\"},]}", `{"a":[{"ph":"i","name":"x"}],"distributedInfo":{"rank":`,
	} {
		f.Add([]byte(s), uint8(3))
		f.Add(compress(f, s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		if len(b) > 1<<16 {
			return
		}
		whole, err := events(bytes.NewReader(b), -1)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := events(portions{bytes.NewReader(b), int(n) + 1}, -1)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) != len(parts) {
			t.Fatalf("%d events, but %d in portions of %d", len(whole), len(parts), int(n)+1)
		}
		for i := range whole {
			if whole[i] != parts[i] {
				t.Fatalf("event %d: %v, but %v in portions of %d", i, whole[i], parts[i], int(n)+1)
			}
		}
	})
}

// FuzzEvent compares an event with what encoding/json decodes.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"ph":"X","name":"a\u00e9\ud83d\ude00\n","cat":"","ts":1.5,"dur":2e3,"pid":1,"tid":"x","args":{"name":"b","step":[1,{"a":null}]}}`,
		`{"ph":"X","name":"a","name":"b","ts":-1,"args":{"step":1,"step":2},"args":{"mb_id":true}}`,
		`{"ph":"\u0058","id":"0x1","s":{"a":[[],{}]}}`, "{\"ph\":\"i\",\"name\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil {
			return
		}
		var ph string
		if json.Unmarshal(want["ph"], &ph) != nil || ph == "" {
			return
		}
		for key := range want {
			if key == "traceEvents" || !isASCII(key) {
				return // a document, or a key that encoding/json may change
			}
		}
		r := chrome.NewReader(io.MultiReader(strings.NewReader("["), bytes.NewReader(b), strings.NewReader("]")), wanted, nil)
		e, err := r.Next()
		if err != nil {
			if r.Documents() == 1 && len(r.Gaps()) == 0 {
				t.Fatalf("%s: %v", b, err)
			}
			return // nested too deeply, or with the keys of a document
		}
		if e.Phase != ph[0] {
			t.Errorf("phase %q, want %q", e.Phase, ph)
		}
		var name string
		if json.Unmarshal(want["name"], &name) == nil && want["name"][0] == '"' && string(e.Name) != name {
			t.Errorf("name %q, want %q", e.Name, name)
		}
		var number json.Number
		if raw := want["ts"]; len(raw) > 0 && raw[0] != '"' && json.Unmarshal(raw, &number) == nil && number != "" && len(number) < 30 {
			checkTime(t, string(number), e.Time, e.HasTime)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the event: %v", err)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// checkTime compares nanoseconds with exact arithmetic.
func checkTime(t *testing.T, us string, got int64, ok bool) {
	t.Helper()
	if _, e, found := strings.Cut(strings.ToLower(us), "e"); found && len(strings.TrimLeft(e, "+-0")) > 3 {
		return // too long for exact arithmetic
	}
	x, _ := new(big.Rat).SetString(us)
	x.Mul(x, big.NewRat(1000, 1))
	half := big.NewRat(1, 2)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	x.Add(x, half)
	want := new(big.Int).Quo(x.Num(), x.Denom())
	fits := want.CmpAbs(big.NewInt(math.MaxInt64)) <= 0
	if ok != fits || ok && want.Int64() != got {
		t.Errorf("%s µs is %d ns, %t, want %v, %t", us, got, ok, want, fits)
	}
}

// FuzzTime compares times with exact arithmetic.
func FuzzTime(f *testing.F) {
	for _, s := range []string{"0", "1.5", "-12.0005", "1661203462584767.123", "9223372036854775.8074999", "1e15", "12345678901234567890123e-20", "5E-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || strings.ContainsAny(s, "\"{[ntf") || len(s) > 100 {
			return
		}
		s = strings.TrimSpace(s)
		e, err := chrome.NewReader(strings.NewReader(`[{"ph":"X","ts":`+s+`}]`), nil, nil).Next()
		if err != nil {
			t.Fatal(err)
		}
		checkTime(t, s, e.Time, e.HasTime)
	})
}
