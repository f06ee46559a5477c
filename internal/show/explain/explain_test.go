package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/explain"
)

var update = flag.Bool("update", false, "update the golden files")

// inputs are the records in testdata. Those named after what they show are from
// the recorded traces, original is from the first Chimbuko; windows are trimmed.
var inputs = []struct {
	name    string
	options explain.Options
}{
	{"cpu", explain.Options{Begin: 1794703326906443, Collection: "anomalies", Run: "heat2d"}},
	{"gpu", explain.Options{Begin: 1794706447623039, Collection: "anomalies", Run: "gpu"}},
	{"why", explain.Options{Begin: 1794706447623039, Collection: "anomalies", Run: "gpu"}},
	{"counters", explain.Options{Collection: "anomalies"}},
	{"sstd", explain.Options{Begin: 1794703326906443, Collection: "anomalies", Width: 80}},
	{"original", explain.Options{Collection: "anomalies"}},
	{"odd", explain.Options{Begin: 1794703328000000, Run: "a\trun"}},
	{"empty", explain.Options{Collection: "normalexecs"}},
}

func read(t testing.TB, name string) *provenance.Record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	r := new(provenance.Record)
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t testing.TB, r *provenance.Record, o explain.Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := explain.Write(&out, r, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite(t *testing.T) {
	for _, in := range inputs {
		t.Run(in.name, func(t *testing.T) {
			got := write(t, read(t, in.name), in.options)
			path := filepath.Join("testdata", in.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// check fails if the text has forbidden characters or too long lines.
func check(t *testing.T, text string, width int) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && utf8.RuneCountInString(line) > width {
			t.Errorf("line %d is wider than %d: %q", i+1, width, line)
		}
		if strings.TrimRight(line, " ") != line && i > 0 {
			t.Errorf("line %d ends in spaces: %q", i+1, line)
		}
		for _, r := range line {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Errorf("line %d holds the control character %q: %q", i+1, r, line)
			}
		}
	}
}

func TestLinesFitWidth(t *testing.T) {
	for _, in := range inputs {
		for _, width := range []int{60, 80, 100, 133, 200} {
			o := in.options
			o.Width = width
			check(t, write(t, read(t, in.name), o), width)
		}
	}
}

func TestWhyIsEscaped(t *testing.T) {
	r := read(t, "why")
	r.Why, r.Kind = "took\x1b[31m 5 ms\n\x00 \xff", "gp\x1bu"
	text := write(t, r, explain.Options{})
	check(t, text, explain.DefaultWidth)
	if !strings.Contains(text, `It took\x1b[31m 5 ms\n\x00 \xff.`) || !strings.Contains(text, `kind gp\x1bu`) {
		t.Errorf("got\n%s", text)
	}
}

func TestWidthIsClamped(t *testing.T) {
	f := func(width, as int) {
		t.Helper()
		r := read(t, "cpu")
		if got, want := write(t, r, explain.Options{Width: width}), write(t, r, explain.Options{Width: as}); got != want {
			t.Errorf("width %d: got\n%s\nwant that of %d\n%s", width, got, as, want)
		}
	}
	f(0, explain.DefaultWidth)
	f(-5, 60)
	f(1, 60)
	f(1<<40, 500)
}

func TestLongNameIsCompleteOnce(t *testing.T) {
	r := read(t, "cpu")
	name := "solve<" + strings.Repeat("std::vector<double>, ", 500) + "int>()"
	r.Func, r.CallStack[0].Func, r.EventWindow.Execs[3].Func = name, name, name
	text := write(t, r, explain.Options{})
	if first, rest, _ := strings.Cut(text, "\n"); first != name || strings.Contains(rest, name) {
		t.Errorf("got\n%s", text)
	}
	if n := strings.Count(text, "solve<std"); n != 3 {
		t.Errorf("the name begins %d times, want 3:\n%s", n, text)
	}
	check(t, text, explain.DefaultWidth)
}

func TestLongStackIsCut(t *testing.T) {
	r := read(t, "cpu")
	last := r.CallStack[len(r.CallStack)-1]
	for range 300 {
		r.CallStack = append(r.CallStack, last)
	}
	text := write(t, r, explain.Options{})
	if !strings.Contains(text, "\n  … 254 more …\n") || strings.Count(text, "└─") != 49 {
		t.Errorf("got\n%s", text)
	}
	check(t, text, explain.DefaultWidth)
}

func TestRecordIsEscaped(t *testing.T) {
	r := read(t, "counters")
	bad := "a\x1b[31m\xff\u202e\u009b\tb"
	const want = `a\x1b[31m\xff\u202e\u009b\tb`
	r.Func, r.Hostname, r.EventID, r.Status = bad, bad, bad, provenance.Status(bad)
	r.CallStack[0].Func, r.EventWindow.Execs[0].Func = bad, bad
	r.CounterEvents[0].Name, r.NodeState.Data[0].Field = bad, bad
	r.GPUParent = bad
	text := write(t, r, explain.Options{Run: bad, Collection: bad})
	check(t, text, explain.DefaultWidth)
	if n := strings.Count(text, want); n != 10 {
		t.Errorf("%s is there %d times, want 10:\n%s", want, n, text)
	}
}

func TestStatusText(t *testing.T) {
	f := func(status provenance.Status, collection, want string) {
		t.Helper()
		r := read(t, "cpu")
		r.Status = status
		if got := write(t, r, explain.Options{Collection: collection}); !strings.Contains(got, want) {
			t.Errorf("%q of %q: want %q in\n%s", status, collection, want, got)
		}
	}
	f(provenance.Confirmed, "anomalies", "It is a confirmed anomaly: flagged during the run and by the final model")
	f(provenance.Withdrawn, "anomalies", "It is a withdrawn anomaly: flagged during the run, but not by the final model")
	f(provenance.Promoted, "", "It is an anomaly found at the end: flagged only by the final model")
	f("", "anomalies", "It is an anomaly that the review")
	f("", "normalexecs", "It is a typical execution, stored")
}

func TestTypicalText(t *testing.T) {
	f := func(own, total trace.Ticks, params, want string) {
		t.Helper()
		r := read(t, "empty")
		r.Exit, r.RuntimeExclusive, r.RuntimeTotal = total, own, total
		r.AlgoParams = json.RawMessage(params)
		if got := strings.Join(strings.Fields(write(t, r, explain.Options{})), " "); !strings.Contains(got, want) {
			t.Errorf("%d of %d us with %s: want %q in\n%s", own, total, params, want, got)
		}
	}
	of300 := `{"histogram":{"Histogram Bin Counts":[15322],"Histogram Bin Edges":[300,301]}}`
	f(12300, 12300, of300, "It took 12.3 ms, all own time: 41 times the typical 300 us (median of 15,322 calls).")
	f(900, 999600, of300, "Its own time was 900 us, 3.0 times the typical 300 us (median of 15,322 calls); with the calls "+
		"inside it, it took 1.00 s.")
	f(310, 310, of300, "It took 310 us, all own time: close to the typical 300 us")
	f(3, 3, of300, "It took 3 us, all own time: 1.00 % of the typical 300 us")
	f(7, 7, `{"histogram":{"Histogram Bin Counts":[1],"Histogram Bin Edges":[0,1]}}`,
		"It took 7 us, all own time: compared with the typical 0 us (median of 1 call).")
	f(400, 500, `{"count":10,"mean":2.5,"stddev":0.25}`,
		"Its own time was 400 us, 160 times the typical 2.50 us ± 250 ns (mean and deviation of 10 calls); with the calls inside it, "+
			"it took 500 us")
	f(400, 500, `null`, "Its own time was 400 us; with the calls inside it, it took 500 us. The typical time is unknown: no model is stored.")
	f(400, 400, `{"trees":4}`, "all own time. The typical time is unknown: the stored model cannot be read.")
}

func TestLaunchSurvivesJSON(t *testing.T) {
	r := read(t, "gpu")
	want := write(t, r, explain.Options{})
	if !strings.Contains(want, "It was launched on thread 0, 28 us before its entry, by event 0:3:1361:") {
		t.Errorf("got\n%s", want)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	decoded := new(provenance.Record)
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	if got := write(t, decoded, explain.Options{}); got != want {
		t.Errorf("decoded from JSON: got\n%s\nwant\n%s", got, want)
	}
}

func TestThreadsAreNamed(t *testing.T) {
	r := read(t, "gpu")
	parent, ok := r.GPUParent.(provenance.GPUParent)
	if !ok {
		t.Fatal("the record has no launch")
	}
	show := func(threads map[trace.Thread]string) string {
		var b strings.Builder
		if err := explain.Write(&b, r, explain.Options{Threads: threads, Width: 200}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := show(map[trace.Thread]string{r.TID: "side stream", parent.TID: "thread 916 (python)\x1b"})
	for _, want := range []string{
		fmt.Sprintf("(thread %d \"side stream\" of the trace)", r.TID), fmt.Sprintf("launched on thread %d \"thread 916 (python)", parent.TID),
	} {
		if !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	got = show(map[trace.Thread]string{r.TID: fmt.Sprint("stream ", r.GPULocation.Stream)})
	if !strings.Contains(got, fmt.Sprintf("(thread %d of the trace)", r.TID)) {
		t.Errorf("the name of the stream is repeated in\n%s", got)
	}
}

func TestModelOfRareCallIsOfItsCaller(t *testing.T) {
	r := read(t, "why")
	r.Kind = provenance.RarelyCalled
	for _, want := range []string{"of main", "step"} {
		r.CallStack = []provenance.StackEntry{{Func: "f"}, {Func: "main"}}
		if want == "step" {
			r.CallStack = r.CallStack[:1]
		}
		var b strings.Builder
		err := explain.WriteModel(&b, r, 100)
		if err != nil || !strings.Contains(b.String(), "Time in the function in ") || !strings.Contains(b.String(), want) {
			t.Errorf("%v; no %q in\n%s", err, want, b.String())
		}
	}
}

func TestUnreadableLaunch(t *testing.T) {
	f := func(parent any, want string) {
		t.Helper()
		r := read(t, "gpu")
		r.GPUParent = parent
		if got := write(t, r, explain.Options{}); !strings.Contains(got, want) {
			t.Errorf("%v: want %q in\n%s", parent, want, got)
		}
	}
	f(nil, "The call that launched it is unknown: the record has no data about it.")
	f("lost.", "The call that launched it is unknown: lost.\n")
	f(17.5, "unreadable data")
	f(map[string]any{"tid": "x"}, "unreadable data")
	f(func() {}, "unreadable data")
	f((*provenance.GPUParent)(nil), "unreadable data")
	f(provenance.GPUParent{TID: 2, EventID: "0:1:2"}, "It was launched by event 0:1:2 on thread 2, without a stored call stack.")
}

func TestExecutionHasHistogramRow(t *testing.T) {
	f := func(own trace.Ticks, params, want string) {
		t.Helper()
		r := read(t, "empty")
		r.RuntimeExclusive = own
		r.AlgoParams = json.RawMessage(params)
		text := write(t, r, explain.Options{})
		row := ""
		for line := range strings.Lines(text) {
			if before, _, ok := strings.Cut(line, "◄"); ok {
				row += strings.Join(strings.FieldsFunc(before, func(r rune) bool { return r == ' ' || r > 0x2580 }), " ")
			}
		}
		if row != want {
			t.Errorf("%d us in %s: got %q, want %q in\n%s", own, params, row, want, text)
		}
	}
	h := `{"histogram":{"Histogram Bin Counts":[5,0,7],"Histogram Bin Edges":[4,5,100,200]}}`
	f(4, h, "4 us 5 us 5")
	f(50, h, "5 us 100 us 0")
	f(150, h, "100 us 200 us 7")
	f(200, h, "100 us 200 us 7")
	f(5000, h, "5.00 ms 5.00 ms 0")
	f(1, h, "1 us 1 us 0")
	f(-8, h, "0 us 0 us 0")
	f(3595, `{"histogram":{"Bin Counts":[2,1],"First edge":601,"Bin width":1496.99999999,"Max":3595,"Min":601}}`, "2.10 ms 3.59 ms 1")
}

func TestHistogramRowsAreBounded(t *testing.T) {
	f := func(edge func(i float64) float64, bins int) {
		t.Helper()
		var h struct {
			Histogram struct {
				Counts []int     `json:"Histogram Bin Counts"`
				Edges  []float64 `json:"Histogram Bin Edges"`
			} `json:"histogram"`
		}
		for i := range bins {
			h.Histogram.Counts = append(h.Histogram.Counts, 1+i%7)
			h.Histogram.Edges = append(h.Histogram.Edges, edge(float64(i)))
		}
		h.Histogram.Edges = append(h.Histogram.Edges, edge(float64(bins)))
		params, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		r := read(t, "empty")
		r.AlgoParams = params
		_, table, _ := strings.Cut(write(t, r, explain.Options{}), "CALLS\n")
		table, _, _ = strings.Cut(table, "\n\n")
		if n := strings.Count(table, "\n") + 1; n > 20 || n < 3 {
			t.Errorf("%d rows:\n%s", n, table)
		}
	}
	f(func(i float64) float64 { return i }, 100)
	f(func(i float64) float64 { return 1e6 + i }, 1000)
	f(func(i float64) float64 { return 1e6 + i/1e6 }, 1000)
	f(func(i float64) float64 { return i * i * i * i * i }, 900)
	f(func(i float64) float64 { return i - 500 }, 1000)
}

type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	if err := explain.Write(fullDisk{}, read(t, "cpu"), explain.Options{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func FuzzWrite(f *testing.F) {
	for _, in := range inputs {
		text, err := os.ReadFile(filepath.Join("testdata", in.name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, in.options.Width, int64(in.options.Begin))
	}
	f.Fuzz(func(t *testing.T, text []byte, width int, begin int64) {
		r := new(provenance.Record)
		if json.Unmarshal(text, r) != nil {
			t.Skip()
		}
		o := explain.Options{Width: width, Begin: trace.Ticks(begin), Run: string(text)}
		if width == 0 {
			width = explain.DefaultWidth
		}
		out := write(t, r, o)
		check(t, out, min(max(width, 60), 500))
		if again := write(t, r, o); again != out {
			t.Errorf("not the same twice:\n%s\n%s", out, again)
		}
	})
}
