package chrome_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/chrome"
)

func leavesOf(text string) (string, bool) {
	var l chrome.Leaves
	var b strings.Builder
	ok := l.Parse([]byte(text), func(key, value []byte) { fmt.Fprintf(&b, "%s=%s ", key, value) })
	return strings.TrimSpace(b.String()), ok
}

func TestLeaves(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                "",
		` {"a": 1} ` + "\n": "a=1",
		`{"a":{"b":"x\/y","c":[1,{"d":2},[3]]},"e":null}`: "b=x/y c=1 d=2 c=3 e=null",
	} {
		if got, ok := leavesOf(text); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{``, `1`, `[1]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":[1`, `{"a":1}x`, `{"a":1}{"b":2}`, `{"a":"b`, "\x00"} {
		if got, ok := leavesOf(text); ok {
			t.Errorf("%s: got %q", text, got)
		}
	}
	deep := strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)
	if _, ok := leavesOf(deep); ok {
		t.Error("a deep object was accepted")
	}
}

func TestLeavesDoNotAllocate(t *testing.T) {
	var l chrome.Leaves
	text, n := []byte(`{"a":{"b":"x\/y","c":[1,{"d":2},[3]]},"e":null}`), 0
	visit := func(_, value []byte) { n += len(value) }
	l.Parse(text, visit)
	if got := testing.AllocsPerRun(100, func() { l.Parse(text, visit) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func FuzzLeaves(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":{"b":"x\/y","c":[1,{"d":2},[3]]},"e":null}`, `{"a":1`, `{"a":1}x`, `{"":"\u00`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, ok := leavesOf(text)
		if trimmed := strings.TrimSpace(text); json.Valid([]byte(text)) && strings.HasPrefix(trimmed, "{") && !ok && strings.Count(text, "{")+
			strings.Count(text, "[") < 200 {
			t.Errorf("%q was rejected", text)
		}
	})
}
