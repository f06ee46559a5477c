package recordfile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// one reads the only record of an array, of rank 3 and step 7.
func one(t *testing.T, array string) (*provenance.Record, map[string]int64) {
	t.Helper()
	a := read(t, store(t, array, t.TempDir(), "0", "3", "7.anomalies.json"))
	if r := a.records(); len(r) == 1 && len(a.errs) == 0 {
		return r[0], a.noted()
	}
	t.Fatalf("%s:\n%d records, errors %v", array, len(a.records()), a.errs)
	return nil, nil
}

// with reads a record with more fields.
func with(t *testing.T, more string) (*provenance.Record, map[string]int64) {
	t.Helper()
	return one(t, "["+minimal(3, "3:6:1", ","+more)+"]")
}

func TestRecordsOfFirstSchemaAreCompleted(t *testing.T) {
	got, notes := one(t, `[{
		"__id": 12,
		"call_stack": [
			{"entry_time": 100, "fid": 4, "func": "inner"},
			{"entry_time": 50, "fid": 2, "func": "outer"}],
		"counter_events": [
			{"counter_idx": 1, "counter_name": "bytes", "counter_value": 18446744073709551615, "pid": 0, "rid": 3, "tid": 9, "ts": 101}],
		"entry": 100, "exit": 190, "event_id": "3:6:81", "fid": 4, "func": "inner",
		"func_stats": {"accumulate": 0.0, "count": 10.0, "kurtosis": 0.5, "maximum": 90, "mean": 20.75,
			"minimum": 8, "skewness": 1, "stddev": 2},
		"is_gpu_event": true,
		"gpu_location": {"context": 1, "device": 2, "stream": 5, "thread": 9},
		"gpu_parent": {"event_id": "3:6:70", "tid": 1, "call_stack": [
			{"entry_time": 60, "fid": 5, "func": "launch"}, {"entry_time": 40, "fid": 2, "func": "outer"}]},
		"pid": 0, "rid": 3, "tid": 9, "runtime_exclusive": 80, "runtime_total": 90
	}]`)
	want := &provenance.Record{
		AlgoParams: json.RawMessage(`{"accumulate":0.0,"count":10.0,"kurtosis":0.5,"maximum":90,"mean":20.75,"minimum":8,"skewness":1,"stddev":2}`),
		CallStack: []provenance.StackEntry{
			{Entry: 100, EventID: "3:6:81", Exit: 190, FID: 4, Func: "inner", IsAnomaly: true}, // from the record
			{Entry: 50, FID: 2, Func: "outer"},
		},
		CounterEvents: []provenance.CounterEntry{{Index: 1, Name: "bytes", Value: math.MaxUint64, RID: 3, TID: 9, Timestamp: 101}},
		Entry:         100, EventID: "3:6:81", EventWindow: provenance.EventWindow{
			Comms: []provenance.CommEntry{},
			Execs: []provenance.WindowEntry{},
		},
		Exit: 190, FID: 4, Func: "inner",
		GPULocation: &provenance.GPULocation{Context: 1, Device: 2, Stream: 5, Thread: 9},
		GPUParent: provenance.GPUParent{EventID: "3:6:70", TID: 1, CallStack: []provenance.StackEntry{
			{Entry: 60, EventID: "3:6:70", FID: 5, Func: "launch"}, {Entry: 40, FID: 2, Func: "outer"},
		}},
		Hostname: "Unknown", IOStep: 7, IOStepEnd: -1, IOStepStart: -1, IsGPUEvent: true, LostTime: 60,
		OutlierSeverity: 80, RID: 3, RuntimeExclusive: 80, RuntimeTotal: 90, TID: 9, Version: 2,
	}
	if !reflect.DeepEqual(got, want) || len(notes) > 0 {
		t.Errorf("notes %v\n got %+v\nwant %+v", notes, got, want)
	}
}

func TestMetadataOfFirstSchemaHasProgramOfDirectory(t *testing.T) {
	dir := store(t, `[{"__id": 0, "descr": "Hostname", "rid": 3, "tid": 0, "value": "n1"}]`, t.TempDir(), "4", "3", "7.metadata.json")
	steps := clean(t, dir)
	want := []provenance.Metadata{{Descr: "Hostname", PID: 4, RID: 3, Value: "n1"}}
	if len(steps) != 1 || !slices.Equal(steps[0].Metadata, want) {
		t.Errorf("got %+v, want %+v", steps, want)
	}
}

func TestMetadataOfOtherRankIsNoted(t *testing.T) {
	dir := store(t, `[{"descr": "a", "rid": 5, "tid": 0, "value": "b"}]`, t.TempDir(), "0", "3", "7.metadata.json")
	a := read(t, dir)
	if len(a.steps) != 1 || a.steps[0].Rank != 3 || a.steps[0].Metadata[0].RID != 5 || len(a.noted()) != 1 || len(a.errs) > 0 {
		t.Errorf("got %+v, notes %v, errors %v", a.steps, a.noted(), a.errs)
	}
}

func TestMissingPartsHaveDefaults(t *testing.T) {
	got, notes := one(t, "["+minimal(3, "3:6:1", `,"call_stack":null,"gpu_parent":null,"hostname":null,"node_state":{"timestamp":5}`)+"]")
	want := &provenance.Record{
		CallStack: []provenance.StackEntry{}, CounterEvents: []provenance.CounterEntry{},
		Entry: 10, EventID: "3:6:1", EventWindow: provenance.EventWindow{Comms: []provenance.CommEntry{}, Execs: []provenance.WindowEntry{}},
		Exit: 30, FID: 1, Func: "f", Hostname: "Unknown", IOStep: 7, IOStepEnd: -1, IOStepStart: -1,
		NodeState:       &provenance.NodeState{Data: []provenance.StateEntry{}, Timestamp: 5},
		OutlierSeverity: 20, RID: 3, RuntimeExclusive: 20, RuntimeTotal: 20, Version: 2,
	}
	if !reflect.DeepEqual(got, want) || len(notes) != 1 { // no model
		t.Errorf("notes %v\n got %+v\nwant %+v", notes, got, want)
	}
}

func TestParentIsCallTextOrNull(t *testing.T) {
	f := func(parent string, want any) {
		t.Helper()
		if r, _ := with(t, `"gpu_parent":`+parent); !reflect.DeepEqual(r.GPUParent, want) {
			t.Errorf("%s: got %#v, want %#v", parent, r.GPUParent, want)
		}
	}
	f(`null`, nil)
	f(`"Chimbuko error: Host parent event could not be reached"`, "Chimbuko error: Host parent event could not be reached")
	f(`{"event_id":"3:1:1","tid":2}`, provenance.GPUParent{CallStack: []provenance.StackEntry{}, EventID: "3:1:1", TID: 2})
}

func TestUnknownTimesOfOriginalAreMinusOne(t *testing.T) {
	const unknown = "18446744073709551615"
	r, notes := with(t, `"status":"confirmed","io_step_tstart":`+unknown+`,"io_step_tend":`+unknown+
		`,"node_state":{"data":[],"timestamp":`+unknown+`},"gpu_location":{"device":`+unknown+`}`)
	if r.IOStepStart != -1 || r.IOStepEnd != -1 || r.NodeState.Timestamp != -1 || r.GPULocation.Device != math.MaxUint64 {
		t.Errorf("got %d to %d, state %d, device %d", r.IOStepStart, r.IOStepEnd, r.NodeState.Timestamp, r.GPULocation.Device)
	}
	for sentence, n := range notes {
		if n != 3 || !strings.Contains(sentence, "2^64-1") || len(notes) != 1 {
			t.Errorf("notes %v", notes)
		}
	}
}

func TestKindAndWhyAreReadUnchanged(t *testing.T) {
	r, _ := with(t, `"status":"promoted","kind":"comm-wait","why":"took 5 ms, usually 1 \u00b5s"`)
	if r.Kind != provenance.CommWait || r.Why != "took 5 ms, usually 1 µs" {
		t.Errorf("got %q, %q", r.Kind, r.Why)
	}
	if r, _ := with(t, `"kind":"new","why":""`); r.Kind != "new" || r.Why != "" {
		t.Errorf("a kind of a later program: got %q, %q", r.Kind, r.Why)
	}
	if r, _ := with(t, `"kind":null`); r.Kind != "" || r.Why != "" { // as in older records
		t.Errorf("without: got %q, %q", r.Kind, r.Why)
	}
}

func TestImpossibleSizesAreUnknown(t *testing.T) {
	f := func(number string, want *uint64, counted int64) {
		t.Helper()
		r, notes := with(t, fmt.Sprintf(`"event_window":{"comm_window":[{"bytes":%s}]}`, number))
		if got := r.EventWindow.Comms[0].Bytes; !reflect.DeepEqual(got, want) || notes[noteOfSize] != counted {
			t.Errorf("%s: got %v, notes %v", number, got, notes)
		}
	}
	f("0", new(uint64(0)), 0)
	f("281474976710656", new(uint64(1<<48)), 0)
	f("281474976710657", nil, 1)
	f("18446744073384558749", nil, 1)
	f("-5", nil, 1)
	f("null", nil, 0)
}

const noteOfSize = "impossible sizes of messages, more than 2^48 bytes; read as unknown"

func TestUnsignedRanksAndTagsAreRead(t *testing.T) {
	f := func(number string, want int32) {
		t.Helper()
		r, _ := with(t, fmt.Sprintf(`"event_window":{"comm_window":[{"src":%[1]s,"tar":%[1]s,"tag":%[1]s}]}`, number))
		if m := r.EventWindow.Comms[0]; m.Tag != want || m.Source != trace.Rank(want) || m.Target != trace.Rank(want) {
			t.Errorf("%s: got %+v, want %d", number, m, want)
		}
	}
	f("0", 0)
	f("-1", -1)
	f("2147483647", math.MaxInt32)
	f("2147483648", math.MinInt32)
	f("4294967295", -1)
	f("18446744073709551615", -1)
	f("18446744071562067968", math.MinInt32)
}

func TestIntegersMayHaveZeroFraction(t *testing.T) {
	good := func(number string, want trace.Ticks) {
		t.Helper()
		if r, _ := with(t, `"lost_time":`+number); r.LostTime != want {
			t.Errorf("%s: got %d, want %d", number, r.LostTime, want)
		}
	}
	good("-0", 0)
	good("1.0", 1)
	good("-12.000", -12)
	good("1.5e3", 1500)
	good("9007199254740993.0", 9007199254740993) // not a float64
	good("9223372036854775807", math.MaxInt64)
	good("-9223372036854775808", math.MinInt64)
	bad := func(field, number string) {
		t.Helper()
		a := read(t, store(t, "["+minimal(3, "3:6:1", fmt.Sprintf(`,"%s":%s`, field, number))+"]", t.TempDir(), "0", "3", "7.anomalies.json"))
		if len(a.errs) != 1 || len(a.steps) != 0 || !strings.Contains(a.errs[0].Error(), field+": ") {
			t.Errorf("%s is %s: %d steps, errors %v", field, number, len(a.steps), a.errs)
		}
	}
	bad("lost_time", "1.5")
	bad("lost_time", "1e-1")
	bad("lost_time", "1e17") // float64 is not exact
	bad("lost_time", "1e400")
	bad("lost_time", "9223372036854775808")
	bad("lost_time", "-9223372036854775809")
	bad("lost_time", "18446744073709551615")
	bad("lost_time", "99999999999999999999")
	bad("lost_time", `"1"`)
	bad("lost_time", "true")
	bad("tid", "-1")
	bad("tid", "4294967296")
	bad("io_step", "2147483648")
	bad("io_step", "-2147483649")
	bad("outlier_score", "1e400")
	bad("outlier_score", "[]")
	bad("is_gpu_event", "1")
	bad("func", "1")
	bad("status", `"maybe"`)
	bad("gpu_parent", "[]")
	bad("gpu_location", `""`)
	bad("call_stack", "{}")
	bad("call_stack", "[1]")
}

func TestLostTimeIsTimeAboveTypical(t *testing.T) {
	f := func(params string, want trace.Ticks, hasTypical bool) {
		t.Helper()
		r, notes := with(t, `"algo_params":`+params)
		if r.LostTime != want || len(notes) == 0 != hasTypical {
			t.Errorf("%s: got %d, notes %v, want %d", params, r.LostTime, notes, want)
		}
	}
	// The time is 20.
	f(`{"count":3,"mean":4.9}`, 16, true)
	f(`{"count":3.0,"mean":-4}`, 20, true)
	f(`{"count":3,"mean":1e300}`, 0, true)
	f(`{"count":0,"mean":4}`, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1,3,1],"Histogram Bin Edges":[2,4,10,12]}}`, 13, true)
	f(`{"histogram":{"Histogram Bin Counts":[1,3,1],"Histogram Bin Edges":[2,4,5,12]}}`, 16, true) // the bin has only 4
	f(`{"histogram":{"Histogram Bin Counts":[0,2],"Histogram Bin Edges":[2,4,8]}}`, 14, true)
	f(`{"histogram":{"Bin Counts":[1,3,1],"First edge":0.5,"Bin width":4,"Min":1,"Max":12.5}}`, 14, true)
	f(`{"histogram":{"Bin Counts":[4],"First edge":6.9,"Bin width":0.1,"Min":7,"Max":7}}`, 13, true)
	f(`{"histogram":{"Bin Counts":[],"First edge":0,"Bin width":0}}`, 0, false)
	f(`{"histogram":{"Histogram Bin Counts":[1,3,1],"Histogram Bin Edges":[2,4]}}`, 0, false)
	f(`{"histogram":{"Bin Counts":[-1,3]}}`, 0, false)
	f(`{"histogram":[]}`, 0, false)
	f(`{"histogram":{"Bin Counts":"many"}}`, 0, false)
	f(`{"other":1}`, 0, false)
	f(`"model"`, 0, false)
	f(`null`, 0, false)
	// lost_time of the record takes precedence; a record with a status always has it.
	if r, _ := with(t, `"algo_params":{"count":3,"mean":4},"lost_time":2`); r.LostTime != 2 {
		t.Errorf("got %d, want 2", r.LostTime)
	}
	if r, _ := with(t, `"algo_params":{"count":3,"mean":4},"status":"withdrawn"`); r.LostTime != 0 || r.Status != provenance.Withdrawn {
		t.Errorf("%s: got %d, want 0", r.Status, r.LostTime)
	}
	a := read(t, store(t, "["+minimal(3, "3:6:1", `,"algo_params":{"count":3,"mean":4}`)+"]", t.TempDir(), "0", "3", "7.normalexecs.json"))
	if r := a.steps[0].Typical[0]; r.LostTime != 0 || len(a.noted()) > 0 {
		t.Errorf("a typical execution lost %d, notes %v", r.LostTime, a.noted())
	}
}

func TestModelsAreReadUnchanged(t *testing.T) {
	f := func(params, want string) {
		t.Helper()
		if r, _ := with(t, params); string(r.AlgoParams) != want {
			t.Errorf("%s: got %s, want %s", params, r.AlgoParams, want)
		}
	}
	f(`"algo_params": {"histogram": {"First edge": 1.50, "Bin width": 2, "Bin Counts": [ 1,
		2 ]}, "more <&>": "a b"}`, `{"histogram":{"First edge":1.50,"Bin width":2,"Bin Counts":[1,2]},"more <&>":"a b"}`)
	f("\"algo_params\": {\"a\xff\":\"\xc3\"}", `{"a\\xff":"\\xc3"}`)
	f(`"algo_params": null`, "")
	f(`"algo_params": {"count":1}, "func_stats": {"count":2}`, `{"count":1}`)
	f(`"func_stats": {"count":2}, "algo_params": {"count":1}`, `{"count":1}`)
}

func TestDifferentNamesStayDifferent(t *testing.T) {
	long := strings.Repeat("std::vector<int>, ", 600) // 10 kB
	names := []struct{ json, want string }{
		{`f`, "f"},
		{`void f<T>() [{\"a.cpp\"} {1,2}] \\ \/ é 😀`, `void f<T>() [{"a.cpp"} {1,2}] \ / é 😀`},
		{`\u0066\n\t\r\b\f\u00e9\ud83d\ude00`, "f\n\t\r\b\fé😀"},
		{long + "a", long + "a"},
		{long + "b", long + "b"},
		{"\xff", `\xff`},
		{"\xfe", `\xfe`},
		{"\xc3", `\xc3`},
		{"a\xe2\x82b", `a\xe2\x82b`},
		{`\udc80`, `\x80`}, // as Python writes the byte
		{`\ud800`, `\ud800`},
		{`\ud801\ud801x`, `\ud801\ud801x`},
		{`\udbff\u0041`, `\udbffA`},
		{`a\u0000b`, `a\x00b`},
		{"\ufffd", "\ufffd"},
		{``, ""},
	}
	var array []string
	for i, n := range names {
		r := minimal(3, fmt.Sprintf("3:6:%d", i), `,"status":"confirmed","hostname":"NAME","call_stack":[{"func":"NAME"}]`)
		r = strings.ReplaceAll(strings.Replace(r, `"f"`, `"NAME"`, 1), "NAME", n.json)
		array = append(array, r)
	}
	file := "[" + strings.Join(array, ",\n") + "]"
	for range 2 {
		a := read(t, store(t, file, t.TempDir(), "0", "3", "7.anomalies.json"))
		records := a.records()
		if len(records) != len(names) || len(a.errs)+len(a.noted()) > 0 {
			t.Fatalf("%d records, want %d; errors %v, notes %v", len(records), len(names), a.errs, a.noted())
		}
		for i, r := range records {
			if want := names[i].want; r.Func != want || r.Hostname != want || r.CallStack[0].Func != want {
				t.Errorf("%.50q: got %.50q, %.50q and %.50q, want %.50q", names[i].json, r.Func, r.Hostname, r.CallStack[0].Func, want)
			}
		}
		file = string(written(t, records)) // read it again
	}
}

func TestUnknownFieldsAreNoted(t *testing.T) {
	more := `"status":"","lost_time":1,"new":[{"a":"}"}],"new":1,"call_stack":[{"func":"g","line":1},{"func":"h","line":2}],` +
		`"event_window":{"__id":1,"exec_window":[{"func":"g","q\"":0}]},"version":3,"Tid":1,"pid":0,"pid":0`
	_, notes := with(t, more)
	want := map[string]int64{
		`unknown fields "new"; not read`:                          2,
		`unknown fields "Tid"; not read`:                          1,
		`unknown fields "call_stack.line"; not read`:              2,
		`unknown fields "event_window.exec_window.q\""; not read`: 1,
		"duplicate fields; the last was read":                     1,
		"records of a later schema; read as version 2":            1,
	}
	if !maps.Equal(notes, want) {
		t.Errorf("got %v\nwant %v", notes, want)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"%d%s":0`, i, strings.Repeat("x", 1000)))
	}
	_, notes = with(t, strings.Join(many, ","))
	size, n := 0, int64(0)
	for sentence, count := range notes {
		size, n = size+len(sentence), n+count
	}
	if size > 20_000 || n != 1001 { // with the note on the lost time
		t.Errorf("%d notes take %d bytes", n, size)
	}
}

func TestProgramOfDirectoryTakesPrecedence(t *testing.T) {
	dir := store(t, "["+minimal(3, "3:6:1", `,"status":"confirmed","pid":0,"counter_events":[{"counter_name":"c","counter_value":1,"pid":0}],`+
		`"event_window":{"comm_window":[{"pid":0},{"pid":5}]}`)+"]", t.TempDir(), "2", "3", "7.anomalies.json")
	a := read(t, dir)
	r := a.records()[0]
	got := []trace.Program{a.steps[0].Program, r.PID, r.CounterEvents[0].PID, r.EventWindow.Comms[0].PID, r.EventWindow.Comms[1].PID}
	if want := []trace.Program{2, 2, 2, 2, 5}; !slices.Equal(got, want) || len(a.noted()) != 1 || len(a.errs) > 0 {
		t.Errorf("got programs %v, want %v; notes %v, errors %v", got, want, a.noted(), a.errs)
	}
}

func TestProgramOfRankDirectoriesIsThatOfRecords(t *testing.T) {
	f := func(name, pid string, want trace.Program) {
		t.Helper()
		dir := t.TempDir()
		for _, rank := range []int{0, 1} {
			store(t, "["+minimal(rank, strconv.Itoa(rank)+":6:1", pid)+"]", dir, name, strconv.Itoa(rank), "7.normalexecs.json")
			store(t, fmt.Sprintf(`[{"descr":"a","value":"b","rid":%d}]`, rank), dir, name, strconv.Itoa(rank), "8.metadata.json")
		}
		steps := clean(t, dir+"/"+name)
		if len(steps) != 4 {
			t.Fatalf("%d steps, want 4", len(steps))
		}
		for _, s := range steps {
			if s.Program != want || len(s.Typical) > 0 && s.Typical[0].PID != want || len(s.Metadata) > 0 && s.Metadata[0].PID != want {
				t.Errorf("%s%s: got %+v, want program %d", name, pid, s, want)
			}
		}
	}
	f("out", "", 0)
	f("out", `,"pid":4`, 4)
	f("4", `,"pid":4`, 4)
	f("3", `,"pid":4`, 4)
	f("3", "", 3)

	dir := store(t, "["+minimal(0, "0:6:1", `,"pid":1`)+","+minimal(0, "0:6:2", `,"pid":2`)+"]", t.TempDir(), "0", "7.normalexecs.json")
	if a := read(t, dir); len(a.steps) != 1 || len(a.errs) != 1 {
		t.Errorf("two programs: %d steps, errors %v", len(a.steps), a.errs)
	}
}
