package storetest

import (
	"encoding/json"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var documentTests = []test{
	{"all collections round-trip", func(f *fixture) {
		b := full(40, 1)
		f.write(b)
		f.wantBatch(f.run, b)
	}},
	{"unusual records round-trip", unusualRoundTrip},
	{"unusual records are replaced", func(f *fixture) {
		b := &provdb.Batch{}
		for _, o := range unusualRecords(asIs) {
			b.Anomalies = append(b.Anomalies, o.record)
		}
		f.write(b)
		before := f.counts(f.run)
		f.write(b)
		if after := f.counts(f.run); fmt.Sprint(after) != fmt.Sprint(before) {
			f.Errorf("writing twice: got %v rows, want %v", after, before)
		}
		b.Anomalies, b.Typical = nil, b.Anomalies
		f.write(b)
		f.wantDocs(f.run, "anomalies")
	}},
	{"invalid names become text", func(f *fixture) {
		f.write(named(asIs))
		f.wantBatch(f.run, named(provenance.Text))
	}},
	{"an empty batch is valid", func(f *fixture) {
		f.write(&provdb.Batch{})
		f.wantBatch(f.run, &provdb.Batch{})
	}},
	{"Write does not change the batch", func(f *fixture) {
		b, same := named(asIs), named(asIs)
		for _, batch := range []*provdb.Batch{b, same} {
			batch.Anomalies = append(batch.Anomalies, batch.Anomalies...)
		}
		f.write(b)
		if got, want := string(encode(f, b)), string(encode(f, same)); got != want {
			f.Errorf("the batch after Write is\n%s\nand was\n%s", shorten(got), shorten(want))
		}
	}},
}

func asIs(s string) string { return s }

func unusualRoundTrip(f *fixture) {
	stored, wanted := unusualRecords(asIs), unusualRecords(provenance.Text)
	b := &provdb.Batch{}
	for i, o := range stored {
		if i%5 == 4 {
			b.Typical = append(b.Typical, o.record)
		} else {
			b.Anomalies = append(b.Anomalies, o.record)
		}
	}
	f.write(b)
	got := make(map[string]any)
	for _, view := range []string{"anomalies", "normalexecs"} {
		for _, row := range f.query("SELECT doc FROM "+view+"_json WHERE run = $1", int64(f.run)) {
			doc := decode(f, row[0].(json.RawMessage))
			got[keyOf(view, doc)] = doc
		}
	}
	for _, o := range wanted {
		want := decode(f, encode(f, o.record))
		doc, ok := got[keyOf("anomalies", want)]
		if !ok {
			f.Errorf("%s: not found", o.what)
		} else if d := difference("", doc, want); d != "" {
			f.Errorf("%s: %s", o.what, d)
		}
	}
	if len(got) != len(stored) {
		f.Errorf("got %d documents, want %d", len(got), len(stored))
	}
}

// named returns a batch whose names are results of name, of which some arguments are invalid.
func named(name func(string) string) *provdb.Batch {
	bad, long := name("a\x00b\xffc 'quoted' \"too\" \\ 😀"), name("\xf0"+fmt.Sprintf("%010000d", 1))
	b := &provdb.Batch{
		Functions: []provenance.FuncStats{{FID: 1, Name: bad}, {FID: 1, Name: long}},
		Counters:  []provenance.CounterStats{{Name: bad}, {Name: long}},
		Models:    []provenance.ADModel{{FID: 1, Name: bad, Model: json.RawMessage("1")}, {FID: 2, Name: long, Model: json.RawMessage("2")}},
	}
	for _, o := range unusualRecords(name)[:3] {
		o.record.Func = bad
		b.Anomalies = append(b.Anomalies, o.record)
	}
	m := stepMetadata(3, 4, bad, long)
	for i := range m.Facts {
		m.Facts[i].Value = bad
	}
	b.Metadata = append(b.Metadata, m)
	return b
}
