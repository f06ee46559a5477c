package provdb_test

import (
	"encoding/json"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestLatestRecordOfEventWins(t *testing.T) {
	record := func(program trace.Program, id, host string) *provenance.Record {
		return &provenance.Record{PID: program, EventID: id, Hostname: host}
	}
	b := &provdb.Batch{
		Anomalies: []*provenance.Record{record(0, "a", "1"), record(0, "b", "2"), record(0, "a", "3"), record(1, "a", "4")},
		Typical:   []*provenance.Record{record(0, "b", "5"), record(0, "c", "6"), record(0, "c", "7")},
	}
	hosts := func(records []*provenance.Record) (s string) {
		for _, r := range records {
			s += r.Hostname
		}
		return s
	}
	c := b.Clean()
	if got, want := hosts(c.Anomalies)+" "+hosts(c.Typical), "234 7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(b.Anomalies) != 4 || len(b.Typical) != 3 {
		t.Error("Clean changed the batch")
	}
}

func TestCleanRecordIsNotCopied(t *testing.T) {
	r := &provenance.Record{
		EventID: "0:0:0", Func: "größe", AlgoParams: json.RawMessage(`{"a":"\u00e4"}`),
		CallStack: []provenance.StackEntry{}, CounterEvents: []provenance.CounterEntry{},
		EventWindow: provenance.EventWindow{Comms: []provenance.CommEntry{}, Execs: []provenance.WindowEntry{}},
	}
	if got := (&provdb.Batch{Anomalies: []*provenance.Record{r}}).Clean().Anomalies[0]; got != r {
		t.Error("the clean record was copied")
	}
}

func TestInvalidTextIsEscapedInCopy(t *testing.T) {
	r := &provenance.Record{
		Func: "a\xff", CallStack: []provenance.StackEntry{{Func: "b\x00"}}, GPUParent: "c\xfe",
		EventWindow: provenance.EventWindow{Execs: []provenance.WindowEntry{{StackEntry: provenance.StackEntry{Func: "d\xfd"}}}},
	}
	got := (&provdb.Batch{Typical: []*provenance.Record{r}}).Clean().Typical[0]
	for _, c := range [][2]string{
		{got.Func, `a\xff`},
		{got.CallStack[0].Func, `b\x00`},
		{got.GPUParent.(string), `c\xfe`},
		{got.EventWindow.Execs[0].Func, `d\xfd`},
		{r.Func, "a\xff"},
		{r.CallStack[0].Func, "b\x00"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
	if got.CounterEvents == nil || got.EventWindow.Comms == nil {
		t.Error("a list is null")
	}
}

func TestInvalidJSONIsRepaired(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(provdb.CleanJSON(json.RawMessage(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	f(`{"a":[1,2.50,"x"]}`, `{"a":[1,2.50,"x"]}`)
	f(`{"a\u0000":"\u0000b"}`, `{"a\\x00":"\\x00b"}`)
	f(`["\ud800", 18446744073709551615]`, "[\"\ufffd\",18446744073709551615]")
	f("[\"a\xff\"]", "[\"a\ufffd\"]")
	f(`"\uD83D\uDE00"`, `"😀"`)
	f(`"\\u0000"`, `"\\u0000"`)
	f(`{"broken\u0000`, `{"broken\u0000`)
	f("", "")
	f("no JSON", "no JSON")
}
