package provenance_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callstack"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func enter(fn uint32, time trace.Ticks) trace.Event {
	return trace.Event{Kind: trace.Enter, ID: fn, Time: time}
}

func exit(fn uint32, time trace.Ticks) trace.Event {
	return trace.Event{Kind: trace.Exit, ID: fn, Time: time}
}

func count(counter uint32, value uint64, time trace.Ticks) trace.Event {
	return trace.Event{Kind: trace.Count, ID: counter, Value: value, Time: time}
}

func message(kind trace.Kind, partner int32, tag int32, size uint64, time trace.Ticks) trace.Event {
	return trace.Event{Kind: kind, ID: uint32(partner), Tag: tag, Value: size, Time: time}
}

// correlation is the number of the counter that joins launches and kernels.
const correlation = 99

// build returns the threads, from 0, with these events in step 3. The row of an event is its
// index in the thread's list plus 100 times the thread.
func build(events ...[]trace.Event) []*callstack.Thread {
	cfg := callstack.Default(trace.Microsecond)
	cfg.Role = func(id trace.CounterID) callstack.CounterRole {
		if id == correlation {
			return callstack.Correlation
		}
		return callstack.OfCall
	}
	b := callstack.NewBuilder(cfg, nil)
	b.Begin(3)
	for thread, list := range events {
		for i := range list {
			list[i].Row = uint32(100*thread + i)
		}
		b.Add(trace.Thread(thread), list)
	}
	return b.Threads()
}

// rows returns the rows of frames.
func rows(frames []provenance.Frame) (r []uint32) {
	for i := range frames {
		r = append(r, frames[i].Row)
	}
	return r
}

func TestStackRunsFromCallToOutermost(t *testing.T) {
	th := build([]trace.Event{enter(1, 10), enter(2, 20), enter(3, 30), exit(3, 35), enter(4, 40), exit(4, 47), exit(2, 50)})[0]
	th.Calls[1].Label, th.Calls[3].Label = callstack.Anomalous, callstack.Normal
	f := func(call int32, exclusive trace.Ticks, want ...provenance.Frame) {
		t.Helper()
		var c provenance.Capture
		c.Take(th, call, 0)
		if !slices.Equal(c.Stack, want) || c.Exclusive != exclusive || c.Thread != 0 || *c.Call() != want[0] {
			t.Errorf("call %d: got exclusive time %d, stack %+v\nwant %d, %+v", call, c.Exclusive, c.Stack, exclusive, want)
		}
		if got, want := c.ID(7), (trace.EventID{Rank: 7, Step: 3, Row: want[0].Row}); got != want {
			t.Errorf("call %d is %v, want %v", call, got, want)
		}
	}
	outer := provenance.Frame{Func: 1, Step: 3, Row: 0, Entry: 10, Exit: 0, ParentStep: -1}
	middle := provenance.Frame{Func: 2, Step: 3, Row: 1, Entry: 20, Exit: 50, ParentStep: 3, ParentRow: 0, Anomalous: true}
	f(2, 5, provenance.Frame{Func: 3, Step: 3, Row: 2, Entry: 30, Exit: 35, ParentStep: 3, ParentRow: 1}, middle, outer)
	f(3, 7, provenance.Frame{Func: 4, Step: 3, Row: 4, Entry: 40, Exit: 47, ParentStep: 3, ParentRow: 1}, middle, outer)
	f(1, 18, middle, outer)
}

func TestWindowIsSymmetric(t *testing.T) {
	f := func(th *callstack.Thread, call int32, window int, want ...uint32) {
		t.Helper()
		var c provenance.Capture
		c.Take(th, call, window)
		if got := rows(c.Window); !slices.Equal(got, want) {
			t.Errorf("±%d around call %d: got rows %d, want %d", window, call, got, want)
		}
	}
	var events []trace.Event
	for i := range trace.Ticks(7) {
		events = append(events, enter(1, 10*i+1), exit(1, 10*i+2))
	}
	seven := build(events)[0]
	f(seven, 3, 3, 0, 2, 4, 6, 8, 10, 12)
	f(seven, 3, 2, 2, 4, 6, 8, 10)
	f(seven, 3, 1, 4, 6, 8)
	f(seven, 3, 0, 6)
	// It ends with the list of calls.
	f(seven, 0, 2, 0, 2, 4)
	f(seven, 1, 2, 0, 2, 4, 6)
	f(seven, 6, 2, 8, 10, 12)
	f(seven, 3, 1000, 0, 2, 4, 6, 8, 10, 12)
	// It is sorted by entry: parents precede their children.
	nested := build([]trace.Event{enter(1, 1), enter(2, 2), exit(2, 3), enter(3, 4), enter(4, 5), exit(4, 6), exit(3, 7), exit(1, 8)})[0]
	f(nested, 2, 1, 1, 3, 4) // 2, 3 and 4
	f(nested, 0, 2, 0, 1, 3)
	f(nested, 3, 9, 0, 1, 3, 4)
	// It has no calls of other threads.
	two := build([]trace.Event{enter(1, 1), exit(1, 2)}, []trace.Event{enter(1, 1), exit(1, 2), enter(1, 3), exit(1, 4)})
	f(two[1], 0, 5, 100, 102)
}

func TestWindowHasCallsOfTrace(t *testing.T) {
	th := build([]trace.Event{enter(1, 1), enter(2, 2), exit(2, 3), enter(3, 4), exit(3, 5)})[0]
	th.Calls[2].Label = callstack.Anomalous
	var c provenance.Capture
	c.Take(th, 1, 5)
	want := []provenance.Frame{
		{Func: 1, Step: 3, Row: 0, Entry: 1, Exit: 0, ParentStep: -1},
		{Func: 2, Step: 3, Row: 1, Entry: 2, Exit: 3, ParentStep: 3},
		{Func: 3, Step: 3, Row: 3, Entry: 4, Exit: 5, ParentStep: 3, Anomalous: true},
	}
	if !slices.Equal(c.Window, want) {
		t.Errorf("got %+v\nwant %+v", c.Window, want)
	}
}

func TestCaptureHasMessagesOfWindowAndCountersOfCall(t *testing.T) {
	th := build([]trace.Event{
		enter(1, 10), message(trace.Send, 1, 0, 8, 11), count(7, 70, 12),
		enter(2, 20), message(trace.Send, 2, 0, 8, 20), count(7, 71, 21), exit(2, 25),
		enter(3, 30), message(trace.Recv, 3, 5, 9, 31), count(7, 72, 31), count(8, 73, 32), message(trace.Send, 4, 0, 8, 33), exit(3, 35),
		enter(4, 40), message(trace.Recv, 5, 0, 8, 40), count(7, 74, 40), exit(4, 40),
		message(trace.Send, 6, 0, 8, 45), exit(1, 50),
		enter(5, 60), message(trace.Send, 7, 0, 8, 60), exit(5, 61),
	})[0]
	f := func(call int32, window int, counters, comms string) {
		t.Helper()
		var c provenance.Capture
		c.Take(th, call, window)
		var values, partners []string
		for _, e := range c.Counters {
			values = append(values, fmt.Sprintf("%d=%d@%d", e.Counter(), e.Value, e.Time))
		}
		for _, m := range c.Comms {
			partners = append(partners, fmt.Sprintf("%v %d@%d of %d:%d", m.Kind, m.Partner(), m.Time, m.Step, m.Row))
		}
		if got := strings.Join(values, ", "); got != counters {
			t.Errorf("±%d around call %d: got counters %s, want %s", window, call, got, counters)
		}
		if got := strings.Join(partners, ", "); got != comms {
			t.Errorf("±%d around call %d: got messages %s\nwant %s", window, call, got, comms)
		}
	}
	f(2, 0, "7=72@31, 8=73@32", "recv 3@31 of 3:7, send 4@33 of 3:7")
	f(2, 1, "7=72@31, 8=73@32", "send 2@20 of 3:3, recv 3@31 of 3:7, send 4@33 of 3:7, recv 5@40 of 3:13")
	// By call, then by time.
	f(1, 1, "7=71@21", "send 1@11 of 3:0, send 6@45 of 3:0, send 2@20 of 3:3, recv 3@31 of 3:7, send 4@33 of 3:7")
	f(0, 0, "7=70@12", "send 1@11 of 3:0, send 6@45 of 3:0")
	f(4, 0, "", "send 7@60 of 3:19")
}

func TestCaptureHasStacksOfPartners(t *testing.T) {
	threads := build(
		[]trace.Event{
			enter(1, 10), enter(2, 20), count(correlation, 5, 21), exit(2, 25), enter(3, 30), count(correlation, 6, 31), exit(3, 35), exit(1, 50),
		},
		[]trace.Event{
			enter(4, 60), count(correlation, 5, 60), exit(4, 61), enter(5, 70), exit(5, 71),
			enter(6, 80), count(correlation, 5, 80), count(correlation, 6, 80), exit(6, 81),
		},
		[]trace.Event{enter(7, 90), count(correlation, 5, 90), exit(7, 91)},
	)
	f := func(thread, call int, want ...string) {
		t.Helper()
		var c provenance.Capture
		c.Take(threads[thread], int32(call), 3)
		var got []string
		for _, p := range c.Partners {
			got = append(got, fmt.Sprint("thread ", p.Thread, " rows ", rows(p.Stack)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("call %d of thread %d: got %q, want %q", call, thread, got, want)
		}
		if got, want := c.Call().Row, threads[thread].Calls[call].Row; got != want {
			t.Errorf("call %d of thread %d: got row %d, want %d", call, thread, got, want)
		}
	}
	f(1, 0, "thread 0 rows [1 0]")
	f(1, 1)
	// The call on thread 2 was the second with id 5, after that of thread 1.
	f(1, 2, "thread 0 rows [4 0]", "thread 2 rows [200]")
	f(2, 0, "thread 1 rows [105]")
	// A launch has its kernels, its callers have none.
	f(0, 1, "thread 1 rows [100]")
	f(0, 2, "thread 1 rows [105]")
	f(0, 0)
}

func TestTakeReplacesFormerCapture(t *testing.T) {
	threads := build(
		[]trace.Event{enter(1, 1), count(correlation, 5, 1), message(trace.Send, 1, 1, 1, 1), exit(1, 2), enter(1, 3), exit(1, 4)},
		[]trace.Event{enter(2, 1), count(correlation, 5, 1), count(7, 7, 2), exit(2, 3)},
	)
	var c provenance.Capture
	c.Take(threads[1], 0, 5)
	first := c.AppendBinary(nil)
	c.Take(threads[0], 1, 0)
	var fresh provenance.Capture
	fresh.Take(threads[0], 1, 0)
	if got, want := c.AppendBinary(nil), fresh.AppendBinary(nil); !bytes.Equal(got, want) || bytes.Equal(got, first) {
		t.Errorf("got %+v\nwant %+v", c, fresh)
	}
	c.Take(threads[1], 0, 5)
	if got := c.AppendBinary(nil); !bytes.Equal(got, first) {
		t.Errorf("taken again: %+v", c)
	}
}

// randomCapture returns a random capture.
func randomCapture(rng *rand.Rand) *provenance.Capture {
	micros := func() trace.Ticks {
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return trace.Ticks(rng.Uint64())
		}
		return 1794703327313916 + trace.Ticks(rng.IntN(1_000_000))
	}
	word := func() uint32 {
		if rng.IntN(4) == 0 {
			return rng.Uint32()
		}
		return rng.Uint32N(300)
	}
	frames := func(least int) (fs []provenance.Frame) {
		for range least + rng.IntN(6) {
			fs = append(fs, provenance.Frame{
				Func: trace.FuncID(word()), Step: int32(word()), Row: word(), Entry: micros(), Exit: micros(),
				ParentStep: int32(rng.IntN(3) - 1), ParentRow: word(), Anomalous: rng.IntN(2) == 0,
			})
		}
		return fs
	}
	event := func() trace.Event {
		return trace.Event{
			Time: micros(), Value: rng.Uint64() >> rng.UintN(64), Row: word(), ID: word(), Tag: int32(word()),
			Kind: trace.Kind(rng.UintN(256)),
		}
	}
	c := &provenance.Capture{
		Kind: provenance.Kind(rng.UintN(4)), Thread: trace.Thread(word()), IOStep: int32(word()), StepStart: micros(), StepEnd: micros(),
		Exclusive: micros(), Score: rng.NormFloat64(), Stack: frames(1), Window: frames(0), NodeTime: micros(),
	}
	for range rng.IntN(4) {
		c.Counters = append(c.Counters, event())
		c.Comms = append(c.Comms, provenance.Comm{Event: event(), Step: int32(word()), Row: word()})
	}
	for range rng.IntN(3) {
		c.Partners = append(c.Partners, provenance.Partner{Thread: trace.Thread(word()), Stack: frames(1)})
		c.NodeState = append(c.NodeState, provenance.Field{Counter: trace.CounterID(word()), Value: rng.Uint64()})
	}
	return c
}

// encode returns the encoding of a capture without its length.
func encode(tb testing.TB, c *provenance.Capture) []byte {
	tb.Helper()
	b := c.AppendBinary([]byte("before"))
	if string(b[:6]) != "before" || binary.LittleEndian.Uint32(b[6:]) != uint32(len(b)-10) {
		tb.Fatalf("the encoding begins with %x and has %d bytes", b[:10], len(b))
	}
	return b[10:]
}

func TestCaptureRoundTrip(t *testing.T) {
	rng, same := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(3, 4))
	var reused provenance.Capture
	for range 300 {
		c, want := randomCapture(rng), randomCapture(same)
		b := encode(t, c)
		var got provenance.Capture
		if err := got.ReadCapture(b); err != nil || !reflect.DeepEqual(&got, want) || !reflect.DeepEqual(c, want) {
			t.Fatalf("%v\n got %+v\nwant %+v\nand writing left %+v", err, &got, want, c)
		}
		if err := reused.ReadCapture(b); err != nil || !bytes.Equal(encode(t, &reused), b) {
			t.Fatalf("over another: %v\n got %+v\nwant %+v", err, reused, want)
		}
	}
	for _, score := range []float64{math.Inf(1), -1, math.Copysign(0, -1), math.SmallestNonzeroFloat64} {
		c := randomCapture(rng)
		c.Score = score
		var got provenance.Capture
		if err := got.ReadCapture(encode(t, c)); err != nil || math.Float64bits(got.Score) != math.Float64bits(score) {
			t.Errorf("score %v reads back as %v, %v", score, got.Score, err)
		}
	}
}

func TestDamagedCapturesAreRejected(t *testing.T) {
	f := func(what string, b []byte) {
		t.Helper()
		var c provenance.Capture
		if err := c.ReadCapture(b); !errors.Is(err, provenance.ErrEncoding) {
			t.Errorf("%s: got %v, want %v", what, err, provenance.ErrEncoding)
		}
		if got := memory(&c); got > mostMemory(b) {
			t.Errorf("%s: %d bytes became %d in memory, want no more than %d", what, len(b), got, mostMemory(b))
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	encoded := encode(t, randomCapture(rng))
	for n := range encoded {
		f(fmt.Sprintf("%d of %d bytes", n, len(encoded)), encoded[:n])
	}
	f("one byte too many", append(slices.Clone(encoded), 0))
	c := randomCapture(rng)
	c.Stack = nil
	f("a capture of no call", encode(t, c))
	c = randomCapture(rng)
	c.Partners = []provenance.Partner{{Stack: c.Stack}, {Thread: 1}}
	f("a partner of no call", encode(t, c))
	// Impossible lengths: 7 fields precede the first list.
	for _, n := range []uint64{1 << 20, 1 << 40, 1 << 62, 1 << 63, math.MaxUint64} {
		f(fmt.Sprintf("a list of %d", n), binary.AppendUvarint(make([]byte, 7), n))
		f(fmt.Sprintf("a list of %d", n), append(binary.AppendUvarint(make([]byte, 7), n), encoded...))
	}
	f("a list that breaks off", append(binary.AppendUvarint(make([]byte, 7), 1000), bytes.Repeat([]byte{0x80}, 1000)...))
	f("a number of more than 64 bits", bytes.Repeat([]byte{0xff}, 100))
}

// source names things by their numbers.
type source struct {
	host string
	gpus map[trace.Thread]trace.GPU
}

func (s source) Program() trace.Program                { return 2 }
func (s source) Rank() trace.Rank                      { return 7 }
func (s source) Host() string                          { return s.host }
func (s source) Func(id trace.FuncID) (int, string)    { return 100 + int(id), fmt.Sprintf("f<%d>()", id) }
func (s source) Counter(id trace.CounterID) string     { return fmt.Sprint("counter ", id) }
func (s source) StateField(id trace.CounterID) string  { return fmt.Sprint("state ", id) }
func (s source) GPU(id trace.Thread) (trace.GPU, bool) { g, ok := s.gpus[id]; return g, ok }

// text returns the JSON of a record, which WriteJSON and json.Marshal must write equally.
func text(tb testing.TB, r *provenance.Record) string {
	tb.Helper()
	var w bytes.Buffer
	if err := r.WriteJSON(&w); err != nil {
		tb.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		tb.Fatal(err)
	}
	if !reflect.DeepEqual(value(tb, w.Bytes()), value(tb, b)) {
		tb.Fatalf("written: %s\nmarshalled: %s", &w, b)
	}
	return w.String()
}

// value decodes JSON and keeps the text of numbers.
func value(tb testing.TB, b []byte) (v any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || d.More() {
		tb.Fatalf("%v: %s", err, b)
	}
	return v
}

// full returns a capture with all parts, on thread 4.
func full() *provenance.Capture {
	call := provenance.Frame{Func: 1, Step: 3, Row: 12, Entry: 100, Exit: 150, ParentStep: 0, ParentRow: 5, Anomalous: true}
	outer := provenance.Frame{Func: 2, Step: 0, Row: 5, Entry: 90, ParentStep: -1}
	return &provenance.Capture{
		Thread: 4, IOStep: 6, StepStart: 80, StepEnd: 160, Exclusive: 30, Score: 12.5,
		Stack:    []provenance.Frame{call, outer},
		Counters: []trace.Event{{Kind: trace.Count, ID: 9, Value: math.MaxUint64, Time: 101}},
		Window:   []provenance.Frame{outer, call},
		Comms: []provenance.Comm{
			{Event: message(trace.Send, 3, 5, 800, 102), Step: 3, Row: 12},
			{Event: message(trace.Recv, -1, -2, 900, 103), Step: 0, Row: 5},
		},
		NodeTime: 99, NodeState: []provenance.Field{{Counter: 1, Value: 11}, {Counter: 2, Value: 22}},
		Partners: []provenance.Partner{
			{Thread: 1, Stack: []provenance.Frame{{Func: 8, Step: 1, Row: 3, Entry: 10, Exit: 20, ParentStep: -1}}},
			{Thread: 2, Stack: []provenance.Frame{call}},
		},
	}
}

func TestRecordHasAllOfCapture(t *testing.T) {
	const want = `{
		"algo_params": {"model": 1},
		"call_stack": [
			{"entry": 100, "event_id": "7:3:12", "exit": 150, "fid": 101, "func": "f<1>()", "is_anomaly": true},
			{"entry": 90, "event_id": "7:0:5", "exit": 0, "fid": 102, "func": "f<2>()", "is_anomaly": false}],
		"counter_events": [{"counter_idx": 9, "counter_name": "counter 9", "counter_value": 18446744073709551615, "pid": 2, "rid": 7, "tid": 4, "ts": 101}],
		"entry": 100,
		"event_id": "7:3:12",
		"event_window": {
			"comm_window": [
				{"bytes": 800, "execdata_key": "7:3:12", "pid": 2, "rid": 7, "src": 7, "tag": 5, "tar": 3, "tid": 4, "timestamp": 102, "type": "SEND"},
				{"bytes": 900, "execdata_key": "7:0:5", "pid": 2, "rid": 7, "src": -1, "tag": -2, "tar": 7, "tid": 4, "timestamp": 103, "type": "RECV"}],
			"exec_window": [
				{"entry": 90, "event_id": "7:0:5", "exit": 0, "fid": 102, "func": "f<2>()", "is_anomaly": false, "parent_event_id": "root"},
				{"entry": 100, "event_id": "7:3:12", "exit": 150, "fid": 101, "func": "f<1>()", "is_anomaly": true, "parent_event_id": "7:0:5"}]},
		"exit": 150,
		"fid": 101,
		"func": "f<1>()",
		"gpu_location": null,
		"gpu_parent": null,
		"hostname": "Unknown",
		"io_step": 6,
		"io_step_tend": 160,
		"io_step_tstart": 80,
		"is_gpu_event": false,
		"node_state": {"data": [{"field": "state 1", "value": 11}, {"field": "state 2", "value": 22}], "timestamp": 99},
		"outlier_score": 12.5,
		"outlier_severity": 30,
		"pid": 2,
		"rid": 7,
		"runtime_exclusive": 30,
		"runtime_total": 50,
		"tid": 4,
		"version": 2
	}`
	r := provenance.NewRecord(full(), source{host: "Unknown"}, json.RawMessage(`{"model":1}`))
	if got := text(t, r); !reflect.DeepEqual(value(t, []byte(got)), value(t, []byte(want))) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRecordOfBareCallHasAllKeys(t *testing.T) {
	c := &provenance.Capture{Score: -1, Stack: []provenance.Frame{{Func: 1, Entry: 5, Exit: 9, ParentStep: -1}}}
	const want = `{"algo_params":null,"call_stack":[{"entry":5,"event_id":"7:0:0","exit":9,"fid":101,"func":"f<1>()","is_anomaly":false}],` +
		`"counter_events":[],"entry":5,"event_id":"7:0:0","event_window":{"comm_window":[],"exec_window":[]},"exit":9,"fid":101,"func":"f<1>()",` +
		`"gpu_location":null,"gpu_parent":null,"hostname":"nid1","io_step":0,"io_step_tend":0,"io_step_tstart":0,"is_gpu_event":false,"node_state":null,` +
		`"outlier_score":-1,"outlier_severity":0,"pid":2,"rid":7,"runtime_exclusive":0,"runtime_total":4,"tid":0,"version":2}` + "\n"
	if got := text(t, provenance.NewRecord(c, source{host: "nid1"}, nil)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestOnlyReviewedRecordHasStatus(t *testing.T) {
	r := provenance.NewRecord(full(), source{}, nil)
	before := keys(t, text(t, r))
	r.Status = provenance.Withdrawn
	after := keys(t, text(t, r))
	if _, ok := before["status"]; ok || after["status"] != "string" || len(after) != len(before)+1 {
		t.Errorf("got keys %v, and with a status %v", before, after)
	}
}

func TestKernelRecordHasLocationAndLaunch(t *testing.T) {
	f := func(gpu trace.GPU, partners int, location, parent string) {
		t.Helper()
		c := full()
		c.Partners = c.Partners[:partners]
		r := provenance.NewRecord(c, source{gpus: map[trace.Thread]trace.GPU{4: gpu}}, nil)
		var got struct {
			Is       bool            `json:"is_gpu_event"`
			Location json.RawMessage `json:"gpu_location"`
			Parent   json.RawMessage `json:"gpu_parent"`
		}
		if err := json.Unmarshal([]byte(text(t, r)), &got); err != nil {
			t.Fatal(err)
		}
		if !got.Is || string(got.Location) != location || !regexp.MustCompile(`^`+parent+`$`).Match(got.Parent) {
			t.Errorf("%+v with %d partners: got %t %s %s, want true %s %s", gpu, partners, got.Is, got.Location, got.Parent, location, parent)
		}
	}
	const location = `{"context":1,"device":2,"stream":3,"thread":4}`
	// The launch, or the first if a kernel has several.
	launch := regexp.QuoteMeta(`{"call_stack":[{"entry":10,"event_id":"7:1:3","exit":20,"fid":108,"func":"f<8>()","is_anomaly":false}],"event_id":"7:1:3","tid":1}`)
	f(trace.GPU{Device: "2", Context: "1", Stream: "3"}, 1, location, launch)
	f(trace.GPU{Device: "2", Context: "1", Stream: "3"}, 2, location, launch)
	f(trace.GPU{Device: "2", Context: "1", Stream: "3"}, 0, location, `"Chimbuko error: .+"`)
	// Unknown locations.
	f(trace.GPU{}, 1, `{"context":18446744073709551615,"device":18446744073709551615,"stream":0,"thread":4}`, launch)
	f(trace.GPU{Device: "0", Stream: "-1"}, 1, `{"context":18446744073709551615,"device":0,"stream":0,"thread":4}`, launch)
}

// TestRecordRecognizesKernels uses a capture that was taken before the thread was known to
// be a GPU's.
func TestRecordRecognizesKernels(t *testing.T) {
	threads := build(
		[]trace.Event{enter(1, 10), enter(2, 20), count(correlation, 5, 21), exit(2, 25), exit(1, 30)},
		[]trace.Event{enter(3, 40), count(correlation, 5, 40), exit(3, 45), enter(4, 50), exit(4, 55)},
	)
	f := func(thread, call int, gpus map[trace.Thread]trace.GPU, isGPU bool, parent any) {
		t.Helper()
		var taken, c provenance.Capture
		taken.Take(threads[thread], int32(call), 3)
		if err := c.ReadCapture(encode(t, &taken)); err != nil {
			t.Fatal(err)
		}
		r := provenance.NewRecord(&c, source{gpus: gpus}, nil)
		if r.IsGPUEvent != isGPU || (r.GPULocation != nil) != isGPU || isGPU && r.GPULocation.Thread != trace.Thread(thread) {
			t.Errorf("call %d of thread %d with %v: got %t at %+v, want %t", call, thread, gpus, r.IsGPUEvent, r.GPULocation, isGPU)
		}
		got := r.GPUParent
		if p, ok := got.(provenance.GPUParent); ok {
			got = fmt.Sprint(p.EventID, " of thread ", p.TID, ":")
			for _, e := range p.CallStack {
				got = fmt.Sprint(got, " ", e.Func)
			}
		} else if s, ok := got.(string); ok {
			got, _, _ = strings.Cut(s, ":")
		}
		if got != parent {
			t.Errorf("call %d of thread %d with %v: got parent %v, want %v", call, thread, gpus, got, parent)
		}
	}
	gpu := map[trace.Thread]trace.GPU{1: {Device: "0"}}
	f(1, 0, gpu, true, "7:3:1 of thread 0: f<2>() f<1>()")
	f(1, 1, gpu, true, "Chimbuko error")
	// The partners of a launch are not its parents.
	f(0, 1, gpu, false, nil)
	f(0, 0, gpu, false, nil)
	// A thread that is never declared as a GPU's has no parents either.
	f(1, 0, nil, false, nil)
	f(1, 0, map[trace.Thread]trace.GPU{2: {}}, false, nil)
}

func TestInfiniteScoreIsAnError(t *testing.T) {
	c := full()
	c.Score = math.NaN()
	if err := provenance.NewRecord(c, source{}, nil).WriteJSON(new(bytes.Buffer)); err == nil {
		t.Error("a record with the score NaN was written")
	}
}

// keys returns the types of all values of JSON by key, such as call_stack[].fid.
func keys(tb testing.TB, text string) map[string]string {
	tb.Helper()
	all := make(map[string]string)
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			all[at] = "object"
			for key, v := range v {
				walk(strings.TrimPrefix(at+"."+key, "."), v)
			}
		case []any:
			all[at] = "array"
			for _, v := range v {
				walk(at+"[]", v)
			}
		case string:
			all[at] = "string"
		case bool:
			all[at] = "bool"
		case json.Number:
			all[at] = "number"
		default:
			all[at] = "null"
		}
	}
	walk("", value(tb, []byte(text)))
	return all
}

// TestRecordHasKeysOfOriginal compares with records of the original, except the content of
// the model, which depends on the algorithm, and the status.
func TestRecordHasKeysOfOriginal(t *testing.T) {
	want := make(map[string]string)
	for _, sample := range []string{"sample-anomaly-hbos.json", "sample-anomaly-sstd.json", "sample-normalexec-hbos.json"} {
		b, err := os.ReadFile(tracetest.Shared(t, "traces", "expected", sample))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(want, keys(t, string(b)))
	}
	r := provenance.NewRecord(full(), source{}, json.RawMessage(`{"histogram":{}}`))
	r.Status = provenance.Confirmed
	got := keys(t, text(t, r))
	if got["status"] != "string" {
		t.Errorf("the status is %s, want a string", got["status"])
	}
	delete(got, "status")
	for _, all := range []map[string]string{got, want} {
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "algo_params.") })
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestRecordHasKeysOfSchema compares all keys with those in bold print in the description of
// the schema.
func TestRecordHasKeysOfSchema(t *testing.T) {
	b, err := os.ReadFile(tracetest.Shared(t, "seeds", "004_684ad3e3747d39d6.txt"))
	if err != nil {
		t.Fatal(err)
	}
	schema := between(t, string(b), "*start of schema*", "Metadata schema ^^^")
	schema = strings.ReplaceAll(schema, between(t, schema, "For the SSTD (original) algorithm", "The schema for the **gpu_location**"), "")
	want := make(map[string]bool)
	for _, m := range regexp.MustCompile(`\*\*"?([a-z_]+)"?\*\*:`).FindAllStringSubmatch(schema, -1) {
		want[m[1]] = true
	}
	delete(want, "__id") // the database adds it
	got := make(map[string]bool)
	for _, gpus := range []map[trace.Thread]trace.GPU{nil, {4: {}}} {
		for key := range keys(t, text(t, provenance.NewRecord(full(), source{gpus: gpus}, nil))) {
			if name := key[strings.LastIndex(key, ".")+1:]; name != "" {
				got[strings.TrimSuffix(name, "[]")] = true
			}
		}
	}
	if !maps.Equal(got, want) || len(want) < 40 {
		t.Errorf("got %v\nwant %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// between returns the text from one mark up to another.
func between(tb testing.TB, text, from, to string) string {
	tb.Helper()
	_, after, ok := strings.Cut(text, from)
	inside, _, ok2 := strings.Cut(after, to)
	if !ok || !ok2 {
		tb.Fatalf("no text between %q and %q", from, to)
	}
	return from + inside
}

func TestMetadataHasKeysOfOriginal(t *testing.T) {
	b, err := os.ReadFile(tracetest.Shared(t, "traces", "expected", "sample-metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := json.Marshal([]provenance.Metadata{{Descr: "Hostname", Value: "vm"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := keys(t, string(ours)), keys(t, string(b)); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestRecordKeysAreSorted(t *testing.T) {
	r := provenance.NewRecord(full(), source{gpus: map[trace.Thread]trace.GPU{4: {}}}, nil)
	r.Status = provenance.Promoted
	written := text(t, r)
	sorted, err := json.Marshal(value(t, []byte(written))) // maps are written in order
	if err != nil {
		t.Fatal(err)
	}
	order := func(s string) []string { return regexp.MustCompile(`"[a-z_]+":`).FindAllString(s, -1) }
	if got, want := order(written), order(string(sorted)); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
