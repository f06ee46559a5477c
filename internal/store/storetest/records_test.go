package storetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestRecordsAreDeterministic(t *testing.T) {
	a, b := Records(1500, 3), Records(1500, 3)
	if !reflect.DeepEqual(a, b) {
		t.Error("two calls differ")
	}
	if reflect.DeepEqual(a[0], Records(1, 4)[0]) {
		t.Error("the seed does not matter")
	}
	for range Stream(10, 3) {
		break // must not panic
	}
}

func TestRecordsResembleRun(t *testing.T) {
	ids, functions, models, hosts := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	statuses := map[provenance.Status]int{}
	states, size, large := 0, 0, 0
	all := Records(5000, 1)
	for _, r := range all {
		ids[r.EventID], functions[r.Func], models[string(r.AlgoParams)], hosts[r.Hostname] = true, true, true, true
		statuses[r.Status]++
		if r.NodeState != nil {
			states++
		}
		if r.OutlierSeverity > 100_000 {
			large++
		}
		if len(r.CallStack) != 5 || len(r.EventWindow.Execs) != 21 || len(r.EventWindow.Comms) != 4 || len(r.CounterEvents) != 1 {
			t.Fatalf("%s has %d frames, %d calls, %d messages, %d counters", r.EventID, len(r.CallStack), len(r.EventWindow.Execs),
				len(r.EventWindow.Comms), len(r.CounterEvents))
		}
		inOrder := slices.IsSortedFunc(r.EventWindow.Execs, func(a, b provenance.WindowEntry) int { return int(a.Entry - b.Entry) })
		if r.EventID != r.CallStack[0].EventID || r.EventID != r.EventWindow.Execs[10].EventID || !inOrder {
			t.Fatalf("%s is not in the middle of its window", r.EventID)
		}
		var text bytes.Buffer
		if err := r.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		size += text.Len()
	}
	if len(ids) != len(all) || len(functions) != Functions-firstLeaf || len(models) != len(functions) || len(hosts) != Ranks/8 ||
		states != len(all)/4 {
		t.Errorf("%d ids, %d functions, %d models, %d hosts, %d states", len(ids), len(functions), len(models), len(hosts), states)
	}
	if len(statuses) != 3 || statuses[provenance.Confirmed] < len(all)/2 || large < len(all)/10 || large > len(all)/2 {
		t.Errorf("%v, %d of %d are large", statuses, large, len(all))
	}
	if model, record := len(all[0].AlgoParams), size/len(all); model < 1000 || model > 3000 || record < 5000 || record > 12_000 {
		t.Errorf("a model has %d bytes, a record %d", model, record)
	}
}

func TestDifferenceReportsDifferences(t *testing.T) {
	f := func(got, want, where string) {
		t.Helper()
		x := &fixture{T: t}
		d := difference("", decode(x, []byte(got)), decode(x, []byte(want)))
		if where == "" && d != "" || where != "" && !strings.HasPrefix(d, where) {
			t.Errorf("%s and %s: got %q, want %q", got, want, d, where)
		}
	}
	f(`{"a": [1, "x", null, true]}`, `{"a": [1.0, "x", null, true]}`, "")
	f(`1e2`, `100`, "")
	f(`0.1`, `0.10000000000000000555`, "")
	f(`18446744073709551615`, `18446744073709551615`, "")
	f(`18446744073709551615`, `18446744073709551616`, ": got")
	f(`9007199254740993`, `9007199254740992`, ": got")
	f(`{"a": {"b": [1, 2]}}`, `{"a": {"b": [1, 3]}}`, ".a.b[1]: got")
	f(`[1]`, `[1, 2]`, ": got")
	f(`{}`, `{"a": 1}`, ".a is missing")
	f(`{"a": null}`, `{}`, ".a is unexpected")
	f(`null`, `[]`, ": got")
	f(`"1"`, `1`, ": got")
}

func TestUnusualRecordsHaveUniqueIDs(t *testing.T) {
	seen := map[string]string{}
	for _, o := range unusualRecords(asIs) {
		if other := seen[o.record.EventID]; other != "" {
			t.Errorf("%q and %q have the same id", o.what, other)
		}
		seen[o.record.EventID] = o.what
		if _, err := json.Marshal(o.record); err != nil {
			t.Errorf("%s: %v", o.what, err)
		}
	}
}
