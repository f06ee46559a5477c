package comparison_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/comparison"
)

// histogram is a model with counts of calls between edges.
func histogram(edges, counts []float64) json.RawMessage {
	text, err := json.Marshal(map[string]any{"histogram": map[string]any{"Histogram Bin Counts": counts, "Histogram Bin Edges": edges}})
	if err != nil {
		panic(err)
	}
	return text
}

// someRun has a function with anomalies on two hosts, another without, and facts.
func someRun() *comparison.Run {
	r := &comparison.Run{
		Name: "run", State: "finished", Started: time.Unix(1_700_000_000, 0).UTC(), Version: "v1", Ranks: 4,
		Hosts:    []comparison.Host{{Host: "node00", Ranks: 2}, {Host: "node01", Ranks: 2}},
		Settings: map[string]string{"algorithm": "modal", "out": "run"},
		Functions: []comparison.Function{
			{Name: "main", Calls: 4, Exclusive: 1e6},
			{Name: "solve", Calls: 100, Exclusive: 2e6, Model: histogram([]float64{10, 20, 30}, []float64{60, 40})},
			{Name: "kernel", OnGPU: true, Calls: 10, Exclusive: 1e6},
		},
	}
	p := &r.Paths[r.Path(0, []string{"main", "solve"})]
	p.Calls, p.Exclusive, p.Anomalies, p.Lost = 100, 2_000_000, 5, 40_000
	p.Hosts = []comparison.HostLost{{Host: "node01", Lost: 30_000}, {Host: "node00", Lost: 10_000}}
	r.Fact(0, "CPU Type", "fast", 4, 1, 4)
	r.Fact(0, "Local Time", "noon", 3, 2, 4)
	r.Fact(0, "Local Time", "later", 1, 2, 4)
	return r
}

func TestARunIsTheSameAsItself(t *testing.T) {
	d := comparison.Diff(someRun(), someRun(), nil)
	if len(d.Changes) != 1 || len(d.Functions) != 3 || d.Count(comparison.Same) != 1 || *d.Functions[2].Distance != 0 ||
		*d.Functions[2].Moved != 0 {
		t.Errorf("%+v", d)
	}
	for _, f := range d.Facts {
		if f.Kind != comparison.Same {
			t.Errorf("%+v", f)
		}
	}
	if want := "A and B lost about the same to anomalies, 40.0 ms and 40.0 ms, 1.00 % and 1.00 % of all time."; d.Verdict.Sentence != want ||
		d.Verdict.Level != comparison.LevelGood {
		t.Errorf("%+v, want %q", d.Verdict, want)
	}
}

func TestTheVerdictNamesWhatChangedMost(t *testing.T) {
	f := func(change func(a, b *comparison.Run), level, want string) {
		t.Helper()
		a, b := someRun(), someRun()
		change(a, b)
		if got := comparison.Diff(a, b, nil).Verdict; got.Sentence != want || got.Level != level {
			t.Errorf("\n got %s: %s\nwant %s: %s", got.Level, got.Sentence, level, want)
		}
	}
	const bad, watch, good, unknown = comparison.LevelBad, comparison.LevelWatch, comparison.LevelGood, comparison.LevelUnknown
	more := func(_, b *comparison.Run) { b.Paths[1].Lost, b.Paths[1].Hosts[0].Lost = 140_000, 130_000 }
	f(more, bad, "B lost 100 ms more than A to anomalies (3.50 % of all time instead of 1.00 %): solve lost 100 ms more, mostly on node01.")
	f(func(a, b *comparison.Run) { more(b, a) }, good, "B lost 100 ms less than A to anomalies (1.00 % of all time instead of 3.50 %): "+
		"solve lost 100 ms less, mostly on node01.")
	f(func(a, b *comparison.Run) {
		a.Paths[1].Anomalies, a.Paths[1].Lost = 0, 0
		b.Paths[1].Hosts = b.Paths[1].Hosts[:1]
		b.Paths[1].Hosts[0].Lost = 40_000
	}, bad, "B lost 40.0 ms more than A to anomalies (1.00 % of all time instead of 0 %): solve is new with 40.0 ms, on node01. Of the "+
		"call paths with anomalies 1 is new.")
	f(func(_, b *comparison.Run) {
		b.Paths[1].Anomalies, b.Paths[1].Lost = 0, 0
		b.Functions[1].Exclusive = 2.1e6
	}, watch, "All calls of B together took 100 ms longer than those of A (2.50 %), most of it in solve: 21.0 ms a call instead of 20.0 ms. "+
		"B lost 40.0 ms less than A to anomalies (0 % of all time instead of 1.00 %): solve is gone with 40.0 ms, mostly on node01. Of the "+
		"call paths with anomalies 1 is gone.")
	f(func(a, b *comparison.Run) {
		for _, r := range []*comparison.Run{a, b} {
			r.Paths[1].Anomalies, r.Paths[1].Lost = 0, 0
		}
		b.Functions[1].Exclusive = 3e6
	}, bad, "All calls of B together took 1.00 s longer than those of A (25.0 %), most of it in solve: 30.0 ms a call instead of 20.0 "+
		"ms. Neither A nor B lost anything to anomalies.")
	f(func(_, b *comparison.Run) {
		for i := range b.Functions {
			b.Functions[i].Calls *= 2
			b.Functions[i].Exclusive *= 2
		}
		b.Paths[1].Lost *= 2
	}, good, "All calls of B together took 4.00 s longer than those of A (100 %); there were 228 of them instead of 114. "+
		"B lost 40.0 ms more than A to anomalies (1.00 % of all time instead of 1.00 %): solve lost 40.0 ms more.")
	f(func(_, b *comparison.Run) { b.Functions = nil }, unknown, "A and B lost about the same to anomalies, 40.0 ms and 40.0 ms.")
	f(func(_, b *comparison.Run) { *b = comparison.Run{} }, unknown, "Nothing is known of B, so there is nothing to compare.")
	f(func(a, b *comparison.Run) { *a, *b = comparison.Run{}, comparison.Run{} }, unknown,
		"Nothing is known of A and B, so there is nothing to compare.")
}

func TestHostileNamesDoNotBreakTheVerdict(t *testing.T) {
	a, b := someRun(), someRun()
	name := "evil\n\x1b[31m" + strings.Repeat("x", 500) + " [{a.c} {1,2}]"
	b.Functions = append(b.Functions, comparison.Function{Name: name, Calls: 1, Exclusive: 5e6})
	p := &b.Paths[b.Path(0, []string{name})]
	p.Anomalies, p.Lost, p.Hosts = 1, 1_000_000, []comparison.HostLost{{Host: "no\nde", Lost: 1_000_000}}
	text := comparison.Diff(a, b, nil).Verdict.Sentence
	if strings.ContainsAny(text, "\n\x1b") || len(text) > 600 {
		t.Errorf("%q", text)
	}
}

func TestOneProgramCanBeComparedAlone(t *testing.T) {
	a, b := someRun(), someRun()
	b.Functions = append(b.Functions, comparison.Function{Program: 1, Name: "viz", Calls: 1, Exclusive: 5})
	b.Fact(1, "CPU Type", "slow", 1, 1, 1)
	d := comparison.Diff(a, b, new(trace.Program(1)))
	if len(d.Changes) != 0 || len(d.Functions) != 1 || d.Functions[0].Kind != comparison.New || d.Exclusive != [2]float64{0, 5} {
		t.Errorf("%+v", d)
	}
	told := 0
	for _, f := range d.Facts {
		if f.Section == "metadata" {
			told++
		}
	}
	if told != 1 || !b.Program(1) || a.Program(1) {
		t.Errorf("%d facts of the program", told)
	}
}

func TestFactsTellWhatDiffersAndWhatAlwaysDoes(t *testing.T) {
	a, b := someRun(), someRun()
	b.Hosts = []comparison.Host{{Host: "node00", Ranks: 1}, {Host: "node02", Ranks: 3}}
	b.Settings = map[string]string{"algorithm": "hbos", "out": "elsewhere"}
	b.Started = b.Started.Add(time.Hour)
	b.Facts = nil
	b.Fact(0, "CPU Type", "fast", 3, 2, 4)
	b.Fact(0, "CPU Type", "slow", 1, 2, 4)
	b.Fact(0, "Local Time", "evening", 4, 1, 4)
	b.Fact(0, "OMP_NUM_THREADS", "8", 4, 1, 4)
	for i := range 4 {
		a.Fact(0, "core", fmt.Sprint("a", i), 1, 4, 4)
	}
	for i := range 4 {
		b.Fact(0, "core", fmt.Sprint("b", i), 1, 4, 4)
	}
	got := make(map[string]comparison.FactChange)
	last := 0
	for _, f := range comparison.Diff(a, b, nil).Facts {
		got[f.Section+" "+f.Name] = f
		weight := map[bool]int{f.Expected: 1}[true]
		if f.Kind == comparison.Same {
			weight = 2
		}
		if weight < last {
			t.Errorf("%+v comes after what tells less", f)
		}
		last = weight
	}
	f := func(name, kind, x, y string, expected bool) {
		t.Helper()
		if g := got[name]; g.Kind != kind || g.Values != [2]string{x, y} || g.Expected != expected {
			t.Errorf("%s: %+v", name, g)
		}
	}
	f("run ranks", "same", "4", "4", false)
	f("hosts node00", "differs", "2 ranks", "1 rank", false)
	f("hosts node01", "gone", "2 ranks", "", false)
	f("hosts node02", "new", "", "3 ranks", false)
	f("settings algorithm", "differs", "modal", "hbos", false)
	f("settings out", "differs", "run", "elsewhere", true)
	f("run started", "differs", "2023-11-14T22:13:20Z", "2023-11-14T23:13:20Z", true)
	f("metadata CPU Type", "differs", "fast", "fast (3 ranks), slow (1 rank)", false)
	f("metadata Local Time", "differs", "noon (3 ranks), later (1 rank)", "evening", true)
	f("metadata OMP_NUM_THREADS", "new", "", "8", false)
	f("metadata core", "differs", "a0 (1 rank), a1 (1 rank), a2 (1 rank), a3 (1 rank)", "b0 (1 rank), b1 (1 rank), b2 (1 rank), b3 (1 rank)",
		true)
}

func TestDistancesAreThoseOfTheDefinition(t *testing.T) {
	f := func(a, b json.RawMessage, distance, at, moved float64) {
		t.Helper()
		h := comparison.Overlay([2]json.RawMessage{a, b}, 40)
		if h == nil || math.Abs(h.Distance-distance) > 1e-12 || h.At != at || math.Abs(h.Moved-moved) > 1e-9 {
			t.Fatalf("got %+v, want %v at %v, moved %v", h, distance, at, moved)
		}
		for i, s := range h.Shares {
			sum := 0.0
			for _, v := range s {
				sum += v
			}
			if math.Abs(sum-1) > 1e-9 || len(s) != 40 || len(h.Edges) != 41 {
				t.Errorf("the shares of %d are %v in all", i, sum)
			}
		}
	}
	one := histogram([]float64{10, 20}, []float64{5})
	f(one, one, 0, 0, 0)
	f(one, histogram([]float64{110, 120}, []float64{9}), 1, 20, 100) // all of it moved by 100
	// the mean moved by 5, and nothing crosses
	f(one, histogram([]float64{10, 30}, []float64{1}), 0.5, 20, 5)
	f(histogram([]float64{0, 10, 20}, []float64{1, 1}), one, 0.5, 10, 5)                               // from 0 on, which has no logarithm
	f(histogram([]float64{5, 15}, []float64{1}), histogram([]float64{9, 11}, []float64{1}), 0.4, 9, 2) // it becomes narrower: the shares cross
	if h := comparison.Overlay([2]json.RawMessage{one, nil}, 4); h != nil {
		t.Errorf("of nothing: %+v", h)
	}
	if h := comparison.Overlay([2]json.RawMessage{one, histogram([]float64{-1.7e308, 1.7e308}, []float64{1})}, 4); h != nil &&
		math.IsInf(h.Moved, 0) {
		t.Errorf("of times that cannot be: %+v", h)
	}
}

func TestABaselineIsReadAsItWasWritten(t *testing.T) {
	r := someRun()
	var b, again bytes.Buffer
	if err := errors.Join(r.Encode(&b), r.Encode(&again)); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) ||
		!comparison.IsBaseline(b.Bytes()) {
		t.Fatalf("%v; the bytes differ", err)
	}
	read, err := comparison.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if x, y := comparison.Diff(r, someRun(), nil), comparison.Diff(read, someRun(), nil); !reflect.DeepEqual(x, y) {
		t.Errorf("\n got %+v\nwant %+v", y, x)
	}
	if at := read.Path(0, []string{"main", "solve"}); at != 1 || len(read.Paths) != 2 {
		t.Errorf("the path is at %d of %d", at, len(read.Paths))
	}
}

// packed is a text as a baseline has it.
func packed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // into memory
	_ = z.Close()
	return b.Bytes()
}

func TestDamagedBaselinesAreRefusedWithAReason(t *testing.T) {
	f := func(content []byte, want string) {
		t.Helper()
		if r, err := comparison.Decode(bytes.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, %v; want %q", content, r, err, want)
		}
	}
	const head = `{"format":"chimbuko baseline","version":1,"run":`
	f(nil, "no baseline")
	f([]byte("duck"), "no baseline")
	f(packed("nonsense"), "no baseline")
	f(packed("{}"), "no baseline")
	f(packed(head + `{}}`)[:30], "no baseline")
	f(packed(`{"format":"chimbuko baseline","version":7}`), "version 7 of its format")
	f(packed(head+`null}`), "it holds no run")
	f(packed(head+`{"paths":[{"parent":0,"function":"f"}]}}`), "call path 0 continues 0")
	f(packed(head+`{"paths":[{"parent":-1,"function":"f"},{"parent":0,"program":1,"function":"f"}]}}`), "call path 1 continues 0")
	f(packed(head+`{"paths":[{"parent":-1,"function":"f","lost_us":-1}]}}`), "numbers that cannot be")
	f(packed(head+`{"functions":[{"name":"f","calls":-1}]}}`), "-1 calls")
	f(packed(head+`{"functions":[{"name":"f"},{"name":"f"}]}}`), "repeated")
	f(packed(head+`{"functions":7}}`), "damaged")
}

func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := someRun().Encode(&b); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte(`{"format":"chimbuko baseline","version":1,"run":{"paths":[{"parent":-1}]}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := comparison.Decode(bytes.NewReader(packed(string(content))))
		if err != nil {
			return
		}
		for _, d := range []*comparison.Difference{
			comparison.Diff(r, someRun(), nil), comparison.Diff(someRun(), r, nil),
			comparison.Diff(r, r, nil),
		} {
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(d.Changes, func(c comparison.Change) bool { return !slices.Contains(comparison.Kinds, c.Kind) }) {
				t.Errorf("%+v", d.Changes)
			}
		}
		var again bytes.Buffer
		if err := r.Encode(&again); err != nil {
			t.Fatal(err)
		}
		if _, err := comparison.Decode(&again); err != nil {
			t.Errorf("what was read is not read again: %v", err)
		}
	})
}
