package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// collection is a collection of the schema and the fields that identify its documents.
type collection struct {
	name string
	key  []string
}

var collections = []collection{
	{"anomalies", []string{"pid", "event_id"}},
	{"normalexecs", []string{"pid", "event_id"}},
	{"metadata", []string{"pid", "rid", "tid", "descr", "value"}},
	{"func_stats", []string{"app", "fid", "fname"}},
	{"counter_stats", []string{"app", "counter"}},
	{"ad_model", []string{"pid", "fid", "func_name"}},
}

// wantDocs fails unless a collection of a run has exactly these documents.
func (f *fixture) wantDocs(run provdb.RunID, collection string, want ...any) {
	f.Helper()
	left := make(map[string][]any)
	for _, row := range f.query("SELECT doc FROM "+collection+"_json WHERE run = $1", int64(run)) {
		doc := decode(f, row[0].(json.RawMessage))
		key := keyOf(collection, doc)
		left[key] = append(left[key], doc)
	}
	wrong := 0
	for _, w := range want {
		doc := decode(f, encode(f, w))
		key := keyOf(collection, doc)
		same := left[key]
		if len(same) == 0 {
			f.Errorf("%s: %s is missing", collection, key)
			wrong++
		} else {
			if d := difference("", same[0], doc); d != "" {
				f.Errorf("%s: %s: %s", collection, key, d)
				wrong++
			}
			left[key] = same[1:]
		}
		if wrong > 5 {
			f.Fatal("too many errors")
		}
	}
	for key, docs := range left {
		if len(docs) > 0 {
			f.Errorf("%s: %s has %d unexpected documents", collection, key, len(docs))
		}
	}
}

func keyOf(name string, doc any) string {
	object, _ := doc.(map[string]any)
	at := slices.IndexFunc(collections, func(c collection) bool { return c.name == name })
	var key strings.Builder
	for _, field := range collections[at].key {
		fmt.Fprintf(&key, "%s=%v ", field, object[field])
	}
	return shorten(strings.TrimSpace(key.String()))
}

func shorten(s string) string {
	if len(s) > 300 {
		return fmt.Sprintf("%s … (%d bytes)", s[:300], len(s))
	}
	return s
}

func encode(f *fixture, doc any) []byte {
	f.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// decode decodes JSON and keeps the text of numbers.
func decode(f *fixture, text []byte) (doc any) {
	f.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		f.Fatalf("%v in %s", err, shorten(string(text)))
	}
	return doc
}

// difference describes the first difference of two decoded documents, "" if they are equal.
func difference(at string, got, want any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if _, ok := g[key]; !ok {
				return fmt.Sprintf("%s.%s is missing, want %s", at, key, shorten(fmt.Sprint(w[key])))
			}
			if d := difference(at+"."+key, g[key], w[key]); d != "" {
				return d
			}
		}
		for key := range g {
			if _, ok := w[key]; !ok {
				return fmt.Sprintf("%s.%s is unexpected: %s", at, key, shorten(fmt.Sprint(g[key])))
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			break
		}
		for i := range w {
			if d := difference(fmt.Sprintf("%s[%d]", at, i), g[i], w[i]); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(string(g), string(w)) {
			return ""
		}
	default:
		if got == want {
			return ""
		}
	}
	return fmt.Sprintf("%s: got %s, want %s", at, shorten(fmt.Sprintf("%#v", got)), shorten(fmt.Sprintf("%#v", want)))
}

// sameNumber reports whether two texts are the same number, or the same float64 if one of
// them is not an integer.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	if okX && okY && x.Cmp(y) == 0 {
		return true
	}
	if !strings.ContainsAny(a+b, ".eE") {
		return false
	}
	p, errP := strconv.ParseFloat(a, 64)
	q, errQ := strconv.ParseFloat(b, 64)
	return errP == nil && errQ == nil && p == q
}
