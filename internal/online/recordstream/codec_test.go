package recordstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

func encode(records ...*provenance.Record) []byte {
	c := &coder{number: make(map[string]uint64)}
	for _, r := range records {
		c.append(r)
	}
	return c.B
}

// records returns records that have all parts and forms.
func records() []*provenance.Record {
	all := storetest.Records(40, 7)
	size := uint64(1) << 63
	all[0].GPULocation = &provenance.GPULocation{Context: ^uint64(0), Device: 1, Stream: 2, Thread: 3}
	all[0].GPUParent = provenance.GPUParent{CallStack: all[1].CallStack, EventID: "0:1:2", TID: 4}
	all[0].IsGPUEvent = true
	all[0].EventWindow.Comms = append(all[0].EventWindow.Comms, provenance.CommEntry{Bytes: &size, Tag: -7, Type: "RECV"})
	all[0].NodeState = &provenance.NodeState{Timestamp: 5, Data: []provenance.StateEntry{{Field: "load", Value: 9}}}
	all[1].GPUParent = "no launch"
	all[2].AlgoParams, all[2].CallStack, all[2].CounterEvents = nil, nil, []provenance.CounterEntry{}
	return append(all, new(provenance.Record))
}

func TestDecodedRecordsEqualTheOriginals(t *testing.T) {
	all := records()
	got, err := ReadRecords(encode(all...))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(all) {
		t.Fatalf("got %d records, want %d", len(got), len(all))
	}
	for i := range all {
		if !reflect.DeepEqual(got[i], all[i]) {
			t.Errorf("record %d:\n got %+v\nwant %+v", i, got[i], all[i])
		}
	}
}

// Records of a later version may have fields that the encoding does not know.
func TestEncodingHasAllFieldsOfRecords(t *testing.T) {
	want := map[reflect.Type]int{
		reflect.TypeFor[provenance.Record](): 32, reflect.TypeFor[provenance.StackEntry](): 6, reflect.TypeFor[provenance.WindowEntry](): 2,
		reflect.TypeFor[provenance.CounterEntry](): 7, reflect.TypeFor[provenance.CommEntry](): 10, reflect.TypeFor[provenance.EventWindow](): 2,
		reflect.TypeFor[provenance.GPULocation](): 4, reflect.TypeFor[provenance.GPUParent](): 3, reflect.TypeFor[provenance.NodeState](): 2,
		reflect.TypeFor[provenance.StateEntry](): 2,
	}
	for typ, fields := range want {
		if typ.NumField() != fields {
			t.Errorf("%v has %d fields, the encoding has %d: adapt coder, and protocol.Version", typ, typ.NumField(), fields)
		}
	}
}

func TestMalformedRecordsAreRefused(t *testing.T) {
	some := records()[:3]
	all := encode(some...)
	whole := make(map[int]bool) // lengths without a partial record
	c := &coder{number: make(map[string]uint64)}
	for _, r := range some {
		whole[len(c.B)] = true
		c.append(r)
	}
	for n := range all {
		if _, err := ReadRecords(all[:n]); (err == nil) != whole[n] || err != nil && !errors.Is(err, errEncoding) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(all), err)
		}
	}
	for name, r := range map[string]*provenance.Record{
		"a model that is not JSON": {AlgoParams: json.RawMessage(`{"a":`)},
		"a text of many bytes":     {Func: strings.Repeat("f", maxExpanded/2), Hostname: strings.Repeat("f", maxExpanded/2), Why: "f"},
	} {
		if _, err := ReadRecords(encode(r)); !errors.Is(err, errEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadRecords(f *testing.F) {
	f.Add(encode(records()[:3]...))
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := ReadRecords(b)
		if err != nil {
			return
		}
		again, err := ReadRecords(encode(all...))
		if err != nil || len(again) != len(all) {
			t.Errorf("%d records became %d: %v", len(all), len(again), err)
		}
	})
}

// BenchmarkReadRecords decodes the messages of a run with many anomalies. x-json is the time of
// decoding the same records as JSON, relative to that of our encoding.
func BenchmarkReadRecords(b *testing.B) {
	list := storetest.Records(2000, 3)
	messages, err := (&item{anomalies: list}).messages("run")
	if err != nil {
		b.Fatal(err)
	}
	var documents [][]byte
	size := 0
	for _, r := range list {
		var text bytes.Buffer
		if err := r.WriteJSON(&text); err != nil {
			b.Fatal(err)
		}
		documents = append(documents, text.Bytes())
	}
	for i := range messages {
		size += len(messages[i].GetAnomalies())
	}
	start := time.Now()
	var decoded []*provenance.Record
	if err := readAll(documents, &decoded); err != nil {
		b.Fatal(err)
	}
	asJSON := time.Since(start)
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			if _, err := ReadRecords(messages[i].GetAnomalies()); err != nil {
				b.Fatal(err)
			}
		}
	}
	each := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(len(list))/each.Seconds(), "records/s")
	b.ReportMetric(float64(asJSON)/float64(each), "x-json")
	b.ReportMetric(float64(size)/float64(len(list)), "B/record")
}
