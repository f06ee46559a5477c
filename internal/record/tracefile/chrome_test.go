package tracefile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
)

// chromeTrace is a decoded and valid trace in Chrome's format.
type chromeTrace struct {
	Unit   string           `json:"displayTimeUnit"`
	Events []map[string]any `json:"traceEvents"`
}

// chromeKeys are the required keys of events by phase. Only args is optional.
var chromeKeys = map[string][]string{
	"M": {"name", "ph", "pid", "tid"},
	"X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
	"i": {"name", "cat", "ph", "ts", "pid", "tid", "s"},
	"C": {"name", "ph", "ts", "pid", "tid"},
	"s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
	"f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
}

// chrome writes a record for Chrome and reads the trace.
func chrome(t testing.TB, r *provenance.Record) *chromeTrace {
	t.Helper()
	var w bytes.Buffer
	if err := tracefile.WriteChrome(&w, r); err != nil {
		t.Fatal(err)
	}
	return readChrome(t, w.Bytes())
}

// readChrome reads a trace and compares it with the format.
func readChrome(t testing.TB, data []byte) *chromeTrace {
	t.Helper()
	var c chromeTrace
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	if c.Unit != "ns" && c.Unit != "ms" {
		t.Fatalf("displayTimeUnit is %q", c.Unit)
	}
	flows := map[any][]map[string]any{}
	for _, e := range c.Events {
		checkChromeEvent(t, e)
		if ph := e["ph"]; ph == "s" || ph == "f" {
			flows[e["id"]] = append(flows[e["id"]], e)
		}
	}
	for id, ends := range flows {
		if len(ends) != 2 || ends[0]["ph"] == ends[1]["ph"] || ends[0]["name"] != ends[1]["name"] || ends[0]["cat"] != ends[1]["cat"] {
			t.Fatalf("the flow %v has the ends %v", id, ends)
		}
	}
	return &c
}

func checkChromeEvent(t testing.TB, e map[string]any) {
	t.Helper()
	phase, _ := e["ph"].(string)
	keys := chromeKeys[phase]
	if keys == nil {
		t.Fatalf("%v has no known phase", e)
	}
	for _, key := range keys {
		number, isNumber := e[key].(json.Number)
		text, isText := e[key].(string)
		switch key {
		case "ts", "dur", "pid", "tid":
			n, err := number.Int64()
			if !isNumber || err != nil || n < 0 || n == 0 && (key == "pid" || key == "tid") {
				t.Fatalf("%s of %v", key, e)
			}
		default:
			if !isText || text == "" && key != "name" {
				t.Fatalf("%s of %v", key, e)
			}
		}
	}
	args, hasArgs := e["args"].(map[string]any)
	for key := range e {
		if key != "args" && !slices.Contains(keys, key) {
			t.Fatalf("%s of %v", key, e)
		}
	}
	_, named := args["name"].(string)
	_, counted := args["value"].(json.Number)
	switch {
	case phase == "M" && (!named || e["name"] != "process_name" && e["name"] != "thread_name"):
		t.Fatalf("%v names nothing", e)
	case phase == "C" && (!counted || len(args) != 1):
		t.Fatalf("%v counts nothing", e)
	case phase == "i" && e["s"] != "t":
		t.Fatalf("%v has no scope", e)
	case phase == "f" && e["bp"] != "e":
		t.Fatalf("%v is bound to the next slice", e)
	case (phase == "s" || phase == "f") && hasArgs:
		t.Fatalf("%v has arguments", e)
	}
}

// byPhase returns the events of a phase.
func (c *chromeTrace) byPhase(phase string) (found []map[string]any) {
	for _, e := range c.Events {
		if e["ph"] == phase {
			found = append(found, e)
		}
	}
	return found
}

// named returns the names of the events of a phase.
func (c *chromeTrace) named(phase string) (names []string) {
	for _, e := range c.byPhase(phase) {
		names = append(names, e["name"].(string))
	}
	return names
}

// checkSame fails unless both formats show the same slices, points, arrows and counters.
// Open slices last until the last event in Chrome's format.
func checkSame(t testing.TB, s *shownTrace, c *chromeTrace) {
	t.Helper()
	var want, got []string
	for _, x := range s.slices {
		end := x.end
		if x.open {
			end = s.events[len(s.events)-1].time / 1000
		}
		want = append(want, fmt.Sprintf("%s from %d for %d on %d", x.Name, x.start, end-x.start, x.Track))
	}
	for _, x := range c.byPhase("X") {
		got = append(got, fmt.Sprintf("%s from %s for %s on %s", x["name"], x["ts"], x["dur"], x["tid"]))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("slices for Chrome\n     %q\nfor Perfetto\n     %q", got, want)
	}
	points, counts, flows := 0, 0, 0
	for _, e := range s.events {
		flows += len(e.Flows)
		switch e.Type {
		case "TYPE_INSTANT":
			points++
		case "TYPE_COUNTER":
			counts++
		}
	}
	if p, n, f := len(c.byPhase("i")), len(c.byPhase("C")), len(c.byPhase("s"))+len(c.byPhase("f")); p != points || n != counts || f != flows {
		t.Fatalf("Chrome has %d points, %d counts and %d ends of flows, Perfetto %d, %d and %d", p, n, f, points, counts, flows)
	}
}

func TestBothFormatsShowSameEvents(t *testing.T) {
	for _, name := range recorded {
		r := load(t, name)
		checkSame(t, readTrace(t, r), chrome(t, r))
	}
}

func TestChromeHasTracksCountersAndAnomaly(t *testing.T) {
	r := load(t, "gpu")
	c := chrome(t, r)
	var tracks []string
	for _, e := range c.byPhase("M") {
		tracks = append(tracks, fmt.Sprint(e["name"], " ", e["args"].(map[string]any)["name"]))
	}
	if want := []string{
		"process_name program 0 rank 0 (host vm)", "thread_name GPU device 0 context 2 stream 20 (thread 6)", "thread_name thread 0",
	}; !slices.Equal(tracks, want) {
		t.Errorf("got  %q\nwant %q", tracks, want)
	}
	f := func(phase, name, want string) {
		t.Helper()
		for _, e := range c.byPhase(phase) {
			if e["name"] == name {
				if got, _ := json.Marshal(e); string(got) != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				return
			}
		}
		t.Errorf("no event %s %s", phase, name)
	}
	f("C", "Correlation ID", `{"args":{"value":917},"name":"Correlation ID","ph":"C","pid":1,"tid":2,"ts":1794706448296724}`)
	f("C", "state of the node: Threads", `{"args":{"value":6},"name":"state of the node: Threads","ph":"C","pid":1,"tid":2,"ts":1794706448124731}`)
	f("i", "anomaly", `{"args":{"event_id":"0:3:4710","exclusive_us":10237,"io_step":3,"score":9.226412192788786,"severity":10237,"status":"confirmed"},`+
		`"cat":"anomaly","name":"anomaly","ph":"i","pid":1,"s":"t","tid":2,"ts":1794706448286487}`)
	f("X", "cudaLaunchKernel", `{"args":{"event_id":"0:3:1361","fid":13,"is_anomaly":false,"parent_event_id":"0:3:1360"},`+
		`"cat":"call","dur":30,"name":"cudaLaunchKernel","ph":"X","pid":1,"tid":3,"ts":1794706448286459}`)
	f("s", "launch", `{"cat":"launch","id":"0x1","name":"launch","ph":"s","pid":1,"tid":3,"ts":1794706448286459}`)
	f("f", "launch", `{"bp":"e","cat":"launch","id":"0x1","name":"launch","ph":"f","pid":1,"tid":2,"ts":1794706448286487}`)
}

func TestAnomalyHasKindAndWhy(t *testing.T) {
	r := window("a root 1 9")
	r.Kind, r.Why = provenance.Slow, "took 8 us"
	args := chrome(t, r).byPhase("X")[0]["args"].(map[string]any)
	if args["kind"] != "slow" || args["why"] != "took 8 us" {
		t.Errorf("got %v", args)
	}
	if got := readTrace(t, r).call("a").args(); got["kind"] != "slow" || got["why"] != "took 8 us" {
		t.Errorf("got %v", got)
	}
}

func TestInfiniteScoresAreText(t *testing.T) {
	r := window("a root 1 9")
	r.OutlierScore, r.OutlierSeverity = math.NaN(), math.Inf(1)
	args := chrome(t, r).byPhase("X")[0]["args"].(map[string]any)
	if args["score"] != "NaN" || args["severity"] != "+Inf" {
		t.Errorf("got %v", args)
	}
	if got := readTrace(t, r).call("a").args(); got["score"] != "NaN" || got["severity"] != "Infinity" {
		t.Errorf("got %v", got)
	}
}
