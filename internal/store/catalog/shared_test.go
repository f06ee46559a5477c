package catalog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// shared returns a batch with an entry of each kind.
func shared(name, params string, value uint64) *provdb.Batch {
	return &provdb.Batch{
		Anomalies: []*provenance.Record{{
			EventID: "0:1:2", Func: name, AlgoParams: json.RawMessage(params), CallStack: stack(name, "main"),
			NodeState:   &provenance.NodeState{Data: []provenance.StateEntry{{Field: "f", Value: value}}},
			EventWindow: provenance.EventWindow{Execs: []provenance.WindowEntry{{StackEntry: provenance.StackEntry{Func: name + "'s neighbor"}}}},
		}},
		Models: []provenance.ADModel{{Name: name, Model: json.RawMessage(params)}},
	}
}

func TestHasNumbersAssignsNoNumbers(t *testing.T) {
	c := empty()
	f := func(b *provdb.Batch, want bool) {
		t.Helper()
		for range 2 {
			if got := c.HasNumbers(b); got != want {
				t.Errorf("%v: got %t, want %t", b.Anomalies[0], got, want)
			}
		}
		if n := c.TakeNew(); n.Len() != 0 {
			t.Errorf("%v: %d entries are fresh", b.Anomalies[0], n.Len())
		}
	}
	f(shared("work", "{}", 1), false)
	c.Add(shared("work", "{}", 1))
	first := c.TakeNew()
	if got, want := fmt.Sprint(first.Functions), "[{0 1 0 work} {0 2 0 main} {0 3 0 work's neighbor}]"; got != want {
		t.Errorf("functions are %s, want %s", got, want)
	}
	f(shared("work", "{}", 1), true)
	f(shared("rest", "{}", 1), false)
	f(shared("work", "[]", 1), false)
	f(shared("work", "{}", 2), false)
	c.Add(shared("work", "[]", 2))
	next := c.TakeNew()
	if got, want := fmt.Sprint(next.Models[0].N, next.Samples[0].N, len(next.Functions), len(next.Paths)), "2 2 0 0"; got != want {
		t.Errorf("after Knows the next numbers are %s, want %s", got, want)
	}
}

func TestUnchangedModelsKeepVersion(t *testing.T) {
	c := empty()
	params := json.RawMessage("[1]")
	first := c.Model(0, 1, params)
	copy(params, "[2]") // the caller may reuse its memory
	if second := c.Model(0, 1, params); second == first {
		t.Errorf("[1] and [2] are both model %d", first)
	}
}

// One catalog numbers entries, another loads them.
func TestLoadAddsNumbersOfOtherCatalogs(t *testing.T) {
	ours, theirs := empty(), empty()
	theirs.Add(shared("work", "{}", 1))
	theirs.Add(shared("rest", "[]", 2))
	other := shared("rest", "{}", 2)
	other.Anomalies[0].PID = 7
	theirs.Add(other)
	added := theirs.TakeNew()
	ours.Load(added)
	if !ours.HasNumbers(shared("rest", "[]", 2)) || ours.HasNumbers(shared("rest", "{}", 3)) {
		t.Error("the catalog does not know exactly the loaded entries")
	}
	f := func(what string, got, want []catalog.Mark) {
		t.Helper()
		order := func(a, b catalog.Mark) int {
			return int(int64(a.Program)-int64(b.Program))*1000 + int(a.Func-b.Func)
		}
		slices.SortFunc(got, order)
		if !slices.Equal(got, want) {
			t.Errorf("%s go up to %v, want %v", what, got, want)
		}
	}
	f("functions", ours.Marks(catalog.Functions), []catalog.Mark{{0, 0, 5}, {7, 0, 3}})
	f("paths", ours.Marks(catalog.Paths), []catalog.Mark{{0, 0, 2}, {7, 0, 1}})
	f("samples", ours.Marks(catalog.Samples), []catalog.Mark{{0, 0, 2}, {7, 0, 1}})
	f("models", ours.Marks(catalog.Models), []catalog.Mark{{0, 1, 1}, {0, 4, 2}, {7, 1, 1}})
	ours.Add(shared("third", "{}", 1))
	if got := ours.TakeNew().Functions[0].N; got != 6 {
		t.Errorf("the next function is %d, want 6", got)
	}
}

func TestIDsRoundTrip(t *testing.T) {
	f := func(id string, rank trace.Rank, step int32, row int64) {
		t.Helper()
		s, r, ok := catalog.ParseID(id, rank)
		if !ok || s != step || r != row {
			t.Errorf("%s of rank %d: got %d %d %t, want %d %d", id, rank, s, r, ok, step, row)
		}
		if back := (trace.EventID{Rank: rank, Step: int(s), Row: uint32(r)}).String(); back != id {
			t.Errorf("%s is written %s", id, back)
		}
	}
	f("3:4:5", 3, 4, 5)
	f("0:0:0", 0, 0, 0)
	f("-1:2147483647:4294967295", -1, 2147483647, 4294967295)
	for _, id := range []string{
		"", ":", "::", "3", "3:4", "3:4:", "3:4:5:", "3:4:5:6", ":3:4:5", "3::5", "03:4:5", "3:04:5", "+3:4:5", "3:-4:5", "3:4:-5", "-3:4:5",
		"3:2147483648:5", "3:4:4294967296", "3:99999999999999999999:5", " 3:4:5", "3:4:5 ", "3:4:x", "4:4:5",
	} {
		if s, r, ok := catalog.ParseID(id, 3); ok {
			t.Errorf("%q is read as %d %d", id, s, r)
		}
	}
}
