package tracefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
)

// window returns a record of calls such as "f g 2 5", which is f, called by g, from 2 to 5.
// The last is the record's own call. Names are also ids.
func window(calls string) *provenance.Record {
	r := &provenance.Record{}
	for text := range strings.SplitSeq(calls, "; ") {
		var e provenance.WindowEntry
		if _, err := fmt.Sscan(text, &e.Func, &e.ParentID, &e.Entry, &e.Exit); err != nil {
			panic(err)
		}
		e.EventID = e.Func
		r.EventWindow.Execs = append(r.EventWindow.Execs, e)
		r.EventID, r.Func, r.Entry, r.Exit = e.EventID, e.Func, e.Entry, e.Exit
	}
	return r
}

func TestCallsNestByParentAndTime(t *testing.T) {
	f := func(calls, want string) {
		t.Helper()
		if got := strings.Trim(fmt.Sprint(readTrace(t, window(calls)).slices), "[]"); got+"]" != want {
			t.Errorf("%s:\n got %s]\nwant %s", calls, got, want)
		}
	}
	f("a root 1 9; b a 2 5; c b 3 4; d a 5 9", "a[1,9] .b[2,5] ..c[3,4] .d[5,9]")
	f("a root 1 9; b root 9 12", "a[1,9] b[9,12]")
	// Parents decide if times are equal.
	f("a root 1 9; b a 1 9; c b 1 9", "a[1,9] .b[1,9] ..c[1,9]")
	f("a root 1 9; b a 3 3; c a 3 6; d c 6 6; e a 6 7", "a[1,9] .b[3,3] .c[3,6] ..d[6,6] .e[6,7]")
	// Times decide if the record does not have the parent.
	f("a root 1 9; b x 2 5; c y 5 6; d z 9 10", "a[1,9] .b[2,5] .c[5,6] d[9,10]")
	f("a root 1 9; b a 2 5; c a 12 15", "a[1,9] .b[2,5] c[12,15]")
	// The order of the record does not matter.
	f("d a 5 9; b a 2 5; a root 1 9", "a[1,9] .b[2,5] .d[5,9]")
}

func TestOpenCallEndsOnlyBeforeLaterCall(t *testing.T) {
	f := func(calls, want string) {
		t.Helper()
		if got := fmt.Sprint(readTrace(t, window(calls)).slices); got != "["+want+"]" {
			t.Errorf("%s:\n got %s\nwant [%s]", calls, got, want)
		}
	}
	f("a root 1 0; b a 2 0; c b 3 4", "a[1,] .b[2,] ..c[3,4]")
	f("a root 1 0; b a 2 0; c b 3 4; d a 6 8", "a[1,] .b[2,6] ..c[3,4] .d[6,8]")
	f("a root 1 0; b a 2 0; c b 3 0; d a 6 0", "a[1,] .b[2,6] ..c[3,6] .d[6,]")
	f("a root 1 0; b a 2 0; c root 6 7", "a[1,6] .b[2,6] c[6,7]")
	// b may have ended.
	f("a root 1 0; b a 2 0; c x 6 7", "a[1,] .b[2,] ..c[6,7]")
}

func TestOverlappingCallsAreCutAndMarked(t *testing.T) {
	f := func(calls, want string, cut string, exit any) {
		t.Helper()
		s := readTrace(t, window(calls))
		if got := fmt.Sprint(s.slices); got != "["+want+"]" || s.call(cut).args()["exit"] != exit {
			t.Errorf("%s:\n got %s, exit %v\nwant [%s], exit %v", calls, got, s.call(cut).args()["exit"], want, exit)
		}
	}
	f("a root 1 9; b a 2 12", "a[1,9] .b[2,9]", "b", "12")
	f("a root 1 9; b a 2 0", "a[1,9] .b[2,9]", "b", "unknown")
	f("a root 1 9; b a 2 6; c a 4 8", "a[1,9] .b[2,4] .c[4,8]", "b", "6")
	f("a root 5 2; b root 7 8", "a[5,5] b[7,8]", "a", "2")
	f("a root 1 9; b a 2 5", "a[1,9] .b[2,5]", "b", nil)
}

func TestRandomRecordsMakeValidTraces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	time := func() trace.Ticks { return trace.Ticks(rng.IntN(8)) }
	id := func() string { return string(rune('a' + rng.IntN(6))) }
	for range 150 {
		r := &provenance.Record{EventID: id(), Entry: time(), Exit: time()}
		for range rng.IntN(8) {
			r.EventWindow.Execs = append(r.EventWindow.Execs, provenance.WindowEntry{
				ParentID: id(), StackEntry: provenance.StackEntry{EventID: id(), Entry: time(), Exit: time()},
			})
			r.EventWindow.Comms = append(r.EventWindow.Comms, provenance.CommEntry{Type: "SEND", Exec: id(), Timestamp: time(), Target: 1})
			r.EventWindow.Comms = append(r.EventWindow.Comms, provenance.CommEntry{Type: "RECV", Exec: id(), Timestamp: time(), Source: 1})
			r.CallStack = append(r.CallStack, provenance.StackEntry{EventID: id(), Entry: time(), Exit: time()})
		}
		r.GPUParent = provenance.GPUParent{TID: trace.Thread(rng.IntN(2)), EventID: id(), CallStack: r.CallStack[:len(r.CallStack)/2]}
		checkSame(t, readTrace(t, r), chrome(t, r))
	}
}

func TestEachCallAppearsOnceInNanoseconds(t *testing.T) {
	for _, name := range recorded {
		r := load(t, name)
		s := readTrace(t, r)
		seen := map[string]bool{}
		check := func(id, fn string, fid int, entry, exit trace.Ticks) {
			t.Helper()
			c := s.call(id)
			if c.Name != fn || c.args()["fid"] != strconv.Itoa(fid) || c.time != uint64(entry)*1000 || exit != 0 && c.end != uint64(exit) {
				t.Errorf("%s: got %v of %v at %d ns, want %s of %d from %d to %d µs", name, c, c.args(), c.time, fn, fid, entry, exit)
			}
			seen[id] = true
		}
		for _, e := range r.CallStack {
			check(e.EventID, e.Func, e.FID, e.Entry, e.Exit)
		}
		for _, e := range r.EventWindow.Execs {
			check(e.EventID, e.Func, e.FID, e.Entry, e.Exit)
			if parent := e.ParentID; seen[parent] && s.call(e.EventID).depth <= s.call(parent).depth {
				t.Errorf("%s: %v does not lie in its parent %v", name, s.call(e.EventID), s.call(parent))
			}
		}
		if launch, ok := r.GPUParent.(provenance.GPUParent); ok {
			for _, e := range launch.CallStack {
				check(e.EventID, e.Func, e.FID, e.Entry, e.Exit)
			}
		}
		if got, want := len(s.slices)-len(r.EventWindow.Comms), len(seen); got != want {
			t.Errorf("%s: got %d calls, want %d", name, got, want)
		}
	}
}

func TestCallWithoutExitEndsWhereLaterCallBegins(t *testing.T) {
	s := readTrace(t, load(t, "open"))
	next := s.call("3:4:2") // a call of main, after an open one
	if c := s.call("3:3:31587"); c.open || c.end != next.start || c.args()["exit"] != "unknown" {
		t.Errorf("got %v, want its end at the beginning of %v", c, next)
	}
	if c := s.call("3:0:2"); !c.open {
		t.Errorf("got %v, want it open", c)
	}
}

func TestAnomalyIsMarked(t *testing.T) {
	r := load(t, "cpu")
	s := readTrace(t, r)
	c := s.call(r.EventID)
	marks := s.find("TYPE_INSTANT", "anomaly")
	if len(marks) != 1 || marks[0].time != c.time || marks[0].Track != c.Track || !slices.Equal(marks[0].Categories, []string{"anomaly"}) {
		t.Errorf("got the marks %+v, want one where %v begins", marks, c)
	}
	if !slices.Equal(c.Categories, []string{"call", "anomaly"}) {
		t.Errorf("the anomaly has the categories %q", c.Categories)
	}
	want := map[string]any{
		"event_id": "3:35:33826", "parent_event_id": "3:35:33823", "fid": "19", "is_anomaly": true, "exclusive_us": "12285",
		"score": r.OutlierScore, "severity": 12285.0, "io_step": "36", "status": "promoted",
	}
	if got := c.args(); !reflect.DeepEqual(got, want) {
		t.Errorf("the anomaly has\n     %v\nwant %v", got, want)
	}
	other := s.call("3:35:33823")
	if !slices.Equal(other.Categories, []string{"call"}) || other.args()["is_anomaly"] != false {
		t.Errorf("%v is of %q, %v", other, other.Categories, other.args())
	}
}

func TestNormalExecutionIsNotMarkedAsAnomaly(t *testing.T) {
	f := func(r *provenance.Record, want string) {
		t.Helper()
		s := readTrace(t, r)
		if len(s.find("TYPE_INSTANT", want)) != 1 || slices.Contains(s.call(r.EventID).Categories, "anomaly") != (want == "anomaly") {
			t.Errorf("%s is not marked %q", r.EventID, want)
		}
	}
	f(load(t, "open"), "withdrawn anomaly")
	r := window("a root 1 9")
	f(r, "normal execution")
	r.EventWindow.Execs[0].IsAnomaly = true
	f(r, "anomaly")
	f(&provenance.Record{EventID: "0:0:1", Status: provenance.Promoted}, "anomaly")
}

func TestMessageHasBothEndsAndLiesInCall(t *testing.T) {
	r := window("a root 1 9; send a 2 4; recv a 4 6")
	r.RID, r.Hostname = 3, "node1"
	r.EventWindow.Comms = []provenance.CommEntry{
		{Type: "RECV", Source: 7, Target: 3, Timestamp: 4, Exec: "recv", Bytes: new(uint64(8)), Tag: 5},
		{Type: "SEND", Source: 3, Target: 7, Timestamp: 4, Exec: "send", Bytes: new(uint64(16))},
		{Type: "SEND", Source: 3, Target: 3, Timestamp: 3, Exec: "send"},
		{Type: "RECV", Source: -1, Target: 3, Timestamp: 5, Exec: "elsewhere"},
		{Type: "RECV", Source: 7, Target: 3, Timestamp: 5, Exec: "recv"},
	}
	s := readTrace(t, r)
	f := func(name, from, to string) {
		t.Helper()
		here := s.find("TYPE_INSTANT", name)[0]
		first, second := s.arrow(here)
		if s.where(first) != from || s.where(second) != to || first.time != second.time {
			t.Errorf("%s: the arrow goes from %s to %s, want from %s to %s", name, s.where(first), s.where(second), from, to)
		}
	}
	const here = "program 0 rank 3 (host node1), thread 0"
	f("send to rank 7", here, "program 0 rank 7, messages with rank 3")
	f("receive from rank 7", "program 0 rank 7, messages with rank 3", here)
	f("send to rank 3", here, "program 0 rank 3 (host node1), messages with rank 3")
	f("receive from rank -1", "program 0 rank -1, messages with rank 3", here)
	checkSame(t, s, chrome(t, r))
	want := map[string]any{"bytes": "8", "tag": "5", "src": "7", "tar": "3", "execdata_key": "recv"}
	if got := s.find("TYPE_INSTANT", "receive from rank 7")[0].args(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	delete(want, "bytes") // is unknown
	want["tag"] = "0"
	if got := s.find("TYPE_INSTANT", "receive from rank 7")[1].args(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// At time 4, one call ends with its message and the next begins with another.
	var order []string
	for _, e := range s.events {
		if e.time == 4000 && e.Track == s.track("thread 0") {
			order = append(order, strings.TrimSpace(e.Type+" "+e.Name))
		}
	}
	if want := []string{
		"TYPE_INSTANT send to rank 7", "TYPE_SLICE_END", "TYPE_SLICE_BEGIN recv", "TYPE_INSTANT normal execution",
		"TYPE_INSTANT receive from rank 7",
	}; !slices.Equal(order, want) {
		t.Errorf("got  %q\nwant %q", order, want)
	}
}

func TestMessagePrecedesCallOfSameTime(t *testing.T) {
	r := window("a root 1 9; b a 4 5")
	r.EventWindow.Comms = []provenance.CommEntry{{Type: "SEND", Timestamp: 4, Exec: "a"}}
	s := readTrace(t, r)
	message, b := s.find("TYPE_INSTANT", "send to rank 0")[0], s.call("b")
	if slices.Index(s.events, message) > slices.Index(s.events, b.perfettoEvent) {
		t.Error("the message of a lies in b")
	}
}

func TestStackCompletesWindow(t *testing.T) {
	r := window("a m 1 0; b a 2 5")
	r.CallStack = []provenance.StackEntry{
		{EventID: "b", Func: "b", Entry: 2, Exit: 5, IsAnomaly: true},
		{EventID: "a", Func: "a", Entry: 1, Exit: 7},
		{EventID: "m", Func: "m", Entry: 1},
	}
	s := readTrace(t, r)
	if got, want := fmt.Sprint(s.slices), "[m[1,] .a[1,7] ..b[2,5]]"; got != want || s.call("b").args()["is_anomaly"] != true {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKernelHasArrowFromLaunch(t *testing.T) {
	r := load(t, "gpu")
	s := readTrace(t, r)
	from, to := s.arrow(s.call(r.EventID).perfettoEvent)
	if from.Name != "cudaLaunchKernel" || from.Track != s.track("thread 0") {
		t.Errorf("the arrow comes from %+v", from)
	}
	if to.Name != r.Func || to.Track != s.track("GPU device 0 context 2 stream 20 (thread 6)") {
		t.Errorf("the arrow goes to %+v", to)
	}
}

func TestKernelWithoutLaunchHasReason(t *testing.T) {
	r := load(t, "gpu")
	r.GPUParent = "no launch was recorded"
	r.GPULocation.Context, r.GPULocation.Device = math.MaxUint64, math.MaxUint64
	s := readTrace(t, r)
	c := s.call(r.EventID)
	if got := c.args()["gpu_parent"]; got != "no launch was recorded" || len(c.Flows) > 0 {
		t.Errorf("got %v, flows %v", got, c.Flows)
	}
	s.track("GPU stream 20 (thread 6)")
}

func TestCountersHaveValues(t *testing.T) {
	r := window("a root 1 9")
	r.CounterEvents = []provenance.CounterEntry{
		{Name: "bytes", Value: 7, Timestamp: 4},
		{Name: "other", Value: math.MaxUint64, Timestamp: 2},
		{Name: "bytes", Value: math.MaxInt64, Timestamp: 3},
	}
	r.NodeState = &provenance.NodeState{Timestamp: 8, Data: []provenance.StateEntry{{Field: "bytes", Value: 99}}}
	s := readTrace(t, r)
	var got []string
	for _, e := range s.events {
		if e.Type != "TYPE_COUNTER" {
			continue
		}
		d := s.tracks[e.Track]
		value := ""
		if e.Count != nil {
			value = fmt.Sprint(*e.Count)
		} else {
			value = fmt.Sprintf("%g", *e.CountFloat)
		}
		parent := s.tracks[d.Parent]
		if parent.Thread != nil {
			parent.Name = parent.Thread.Name
		}
		got = append(got, fmt.Sprintf("%s of %s = %s at %d ns", d.Name, parent.Name, value, e.time))
	}
	want := []string{
		"other of thread 0 = 1.8446744073709552e+19 at 2000 ns", "bytes of thread 0 = 9223372036854775807 at 3000 ns",
		"bytes of thread 0 = 7 at 4000 ns", "bytes of state of the node = 99 at 8000 ns",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWriterAcceptsUnusualNames(t *testing.T) {
	long := "std::map<" + strings.Repeat("std::pair<int, \"x\">, ", 600) + ">"
	f := func(name, want string) {
		t.Helper()
		r := window("a root 1 9")
		r.EventWindow.Execs[0].Func, r.Hostname = name, name
		r.CounterEvents = []provenance.CounterEntry{{Name: name, Timestamp: 2}}
		r.EventWindow.Comms = []provenance.CommEntry{{Type: "SEND", Exec: name, Timestamp: 2}}
		if got := readTrace(t, r).slices[0].Name; got != want {
			t.Errorf("%.40q: got %.40q, want %.40q", name, got, want)
		}
		if got := chrome(t, r).named("X")[0]; got != want {
			t.Errorf("%.40q: got %.40q, want %.40q", name, got, want)
		}
	}
	f("", "")
	f(`operator"" _s "</script>" \ `+"\n\u2028", `operator"" _s "</script>" \ `+"\n\u2028")
	f("größe 🚀", "größe 🚀")
	f("bad\xff\xfebytes\x00", `bad\xff\xfebytes\x00`)
	f(long, long)
}

func TestOutputIsDeterministic(t *testing.T) {
	for _, name := range recorded {
		r := load(t, name)
		perfetto, json, err := write(t, r)
		for _, again := range []*provenance.Record{r, load(t, name)} { // writing does not change a record
			p, j, errAgain := write(t, again)
			if err != nil || errAgain != nil || !bytes.Equal(p, perfetto) || !bytes.Equal(j, json) {
				t.Errorf("%s: %v, %v; got %d and %d bytes, before %d and %d", name, err, errAgain, len(p), len(j), len(perfetto), len(json))
			}
		}
	}
}

// write writes a record in both formats, which must fail for the same records.
func write(t testing.TB, r *provenance.Record) (perfetto, chrome []byte, err error) {
	t.Helper()
	var p, c bytes.Buffer
	err = tracefile.WritePerfetto(&p, r)
	if other := tracefile.WriteChrome(&c, r); fmt.Sprint(err) != fmt.Sprint(other) {
		t.Fatalf("for Perfetto: %v, for Chrome: %v", err, other)
	}
	if err != nil && p.Len()+c.Len() > 0 {
		t.Fatalf("%v, but %d and %d bytes were written", err, p.Len(), c.Len())
	}
	return p.Bytes(), c.Bytes(), err
}

func TestInvalidRecordsFail(t *testing.T) {
	f := func(change func(r *provenance.Record), want string) {
		t.Helper()
		r := window("a root 1 9")
		change(r)
		if _, _, err := write(t, r); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(func(r *provenance.Record) { r.Entry = -1 }, "record a: execution: time -1 is out of range")
	f(func(r *provenance.Record) { r.EventWindow.Execs[0].Exit = math.MaxInt64 / 1000 },
		"record a: call a: time 9223372036854775 is out of range")
	f(func(r *provenance.Record) { r.CallStack = []provenance.StackEntry{{EventID: "b", Entry: -5}} },
		"record a: call b: time -5 is out of range")
	f(func(r *provenance.Record) { r.EventWindow.Comms = []provenance.CommEntry{{Timestamp: -2}} },
		"record a: message: time -2 is out of range")
	f(func(r *provenance.Record) { r.EventWindow.Comms = []provenance.CommEntry{{Type: "BCAST"}} }, `record a: message of type "BCAST"`)
	f(func(r *provenance.Record) { r.CounterEvents = []provenance.CounterEntry{{Name: "n", Timestamp: -3}} },
		"record a: counter n: time -3 is out of range")
	f(func(r *provenance.Record) { r.NodeState = &provenance.NodeState{Timestamp: -4} },
		"record a: state of the node: time -4 is out of range")
	f(func(r *provenance.Record) { r.GPUParent = 5.5 }, "record a: gpu_parent is a float64")
}

// broken is a writer that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("the disk is full")

func TestWriteErrorsAreReturned(t *testing.T) {
	r := load(t, "cpu")
	for i, err := range []error{tracefile.WritePerfetto(broken{}, r), tracefile.WriteChrome(broken{}, r)} {
		if !errors.Is(err, errBroken) {
			t.Errorf("format %d: got %v, want %v", i, err, errBroken)
		}
	}
}
