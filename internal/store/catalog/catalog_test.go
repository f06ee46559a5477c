package catalog_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func empty() *catalog.Catalog { return catalog.New() }

func TestFunctionNumbersStartAtOnePerProgram(t *testing.T) {
	c := empty()
	f := func(program trace.Program, fid int, name string, want int32) {
		t.Helper()
		if got := c.Func(program, fid, name); got != want {
			t.Errorf("function %d %q of program %d is %d, want %d", fid, name, program, got, want)
		}
	}
	f(0, 7, "a", 1)
	f(0, 8, "b", 2)
	f(0, 7, "a", 1)
	f(0, 7, "b", 3) // a number of the schema may stand for two functions
	f(0, 9, "a", 4) // and a name, too
	f(1, 7, "a", 1)
	f(0, 0, "", 5)
	want := []catalog.Function{{0, 1, 7, "a"}, {0, 2, 8, "b"}, {0, 3, 7, "b"}, {0, 4, 9, "a"}, {1, 1, 7, "a"}, {0, 5, 0, ""}}
	if got := c.TakeNew().Functions; !reflect.DeepEqual(got, want) {
		t.Errorf("got fresh entries %v, want %v", got, want)
	}
	if got := c.TakeNew(); got.Len() != 0 {
		t.Errorf("%d entries are fresh twice", got.Len())
	}
}

// stack returns a call stack of functions, innermost first.
func stack(names ...string) (s []provenance.StackEntry) {
	for _, name := range names {
		s = append(s, provenance.StackEntry{Func: name})
	}
	return s
}

func TestPathsStartWithOutermostCall(t *testing.T) {
	c := empty()
	f := func(program trace.Program, want int32, names ...string) {
		t.Helper()
		if got := c.Path(program, stack(names...)); got != want {
			t.Errorf("path %v of program %d is %d, want %d", names, program, got, want)
		}
	}
	f(0, 1, "work", "main")
	f(0, 2, "main", "work")
	f(0, 1, "work", "main")
	f(0, 3, "work")
	f(0, 4)
	f(0, 4)
	f(1, 1, "work", "main")
	fresh := c.TakeNew()
	if got, want := fmt.Sprint(fresh.Paths), "[{0 1 [1 2]} {0 2 [2 1]} {0 3 [2]} {0 4 []} {1 1 [1 2]}]"; got != want {
		t.Errorf("fresh are %s, want %s", got, want)
	}
	if fresh.Functions[0].Name != "main" {
		t.Errorf("the first function is %s, want the outermost", fresh.Functions[0].Name)
	}
}

func TestModelsHaveVersionsPerFunction(t *testing.T) {
	c := empty()
	f := func(program trace.Program, fn int32, params string, want int32) {
		t.Helper()
		if got := c.Model(program, fn, json.RawMessage(params)); got != want {
			t.Errorf("model %q of function %d of program %d is %d, want %d", params, fn, program, got, want)
		}
	}
	f(0, 1, `{"a": 1}`, 1)
	f(0, 1, `{"a": 2}`, 2)
	f(0, 1, `{"a": 1}`, 1)
	f(0, 1, "{\n\"a\":1 }", 1) // spaces do not matter
	f(0, 1, `{"a": "1 "}`, 3)  // but within text they do
	f(0, 1, `{"a": "1"}`, 4)
	f(0, 2, `{"a": 1}`, 1)
	f(1, 1, `{"a": 1}`, 1)
	f(0, 1, "", 0)
	f(0, 1, "null", 0)
	f(0, 3, "{broken", 1)
	f(0, 3, "{broken", 1)
	if got := len(c.TakeNew().Models); got != 7 {
		t.Errorf("%d models are fresh, want 7", got)
	}
}

func TestEqualNodeStatesAreShared(t *testing.T) {
	c := empty()
	state := func(at trace.Ticks, entries ...provenance.StateEntry) *provenance.NodeState {
		return &provenance.NodeState{Timestamp: at, Data: entries}
	}
	f := func(s *provenance.NodeState, want int32) {
		t.Helper()
		if got := c.Sample(0, s); got != want {
			t.Errorf("%+v is %d, want %d", s, got, want)
		}
	}
	f(nil, 0)
	f(state(5, provenance.StateEntry{Field: "a", Value: 1}), 1)
	f(state(5, provenance.StateEntry{Field: "a", Value: 1}), 1)
	f(state(6, provenance.StateEntry{Field: "a", Value: 1}), 2)
	f(state(5, provenance.StateEntry{Field: "a", Value: 2}), 3)
	f(state(5, provenance.StateEntry{Field: "b", Value: 1}), 4)
	f(state(5, provenance.StateEntry{Field: "a", Value: 1}, provenance.StateEntry{Field: "a", Value: 1}), 5)
	f(state(5), 6)
	if got := c.Sample(1, state(5)); got != 1 {
		t.Errorf("the first state of another program is %d", got)
	}
	if got := len(c.TakeNew().Samples); got != 7 {
		t.Errorf("%d states are fresh, want 7", got)
	}
}

// batch refers to functions in all places that can.
func batch() *provdb.Batch {
	r := &provenance.Record{
		FID: 1, Func: "own", AlgoParams: json.RawMessage("1"), CallStack: stack("own", "main"), NodeState: &provenance.NodeState{},
		EventWindow: provenance.EventWindow{Execs: []provenance.WindowEntry{{StackEntry: provenance.StackEntry{Func: "around"}}}},
		GPUParent:   provenance.GPUParent{CallStack: stack("launch")},
	}
	return &provdb.Batch{
		Anomalies: []*provenance.Record{r}, Typical: []*provenance.Record{{Func: "typical", GPUParent: "unknown"}},
		Functions: []provenance.FuncStats{{App: 1, Name: "profiled"}},
		Models:    []provenance.ADModel{{PID: 2, Name: "modeled", Model: json.RawMessage("2")}},
	}
}

func TestBatchIsNumberedOnce(t *testing.T) {
	c := empty()
	c.Add(batch())
	fresh := c.TakeNew()
	var names []string
	for _, f := range fresh.Functions {
		names = append(names, f.Name)
	}
	// own has two numbers in the schema
	if got, want := fmt.Sprint(names), "[own main own around launch typical profiled modeled]"; got != want {
		t.Errorf("functions are %s, want %s", got, want)
	}
	if len(fresh.Paths) != 2 || len(fresh.Models) != 2 || len(fresh.Samples) != 1 {
		t.Errorf("got %d paths, %d models, %d states; want 2, 2, 1", len(fresh.Paths), len(fresh.Models), len(fresh.Samples))
	}
	c.Add(batch())
	if again := c.TakeNew(); again.Len() != 0 {
		t.Errorf("the same batch again has %d new entries", again.Len())
	}
}

func TestCatalogContinuesNumbers(t *testing.T) {
	first := empty()
	first.Add(batch())
	entries := first.TakeNew()
	second := empty()
	second.Load(entries)
	second.Add(batch())
	if again := second.TakeNew(); again.Len() != 0 {
		t.Errorf("known entries are fresh: %+v", again)
	}
	if got, want := second.Func(0, 99, "new"), int32(7); got != want {
		t.Errorf("the next function is %d, want %d", got, want)
	}
	if got := second.Path(0, stack("new")); got != 3 {
		t.Errorf("the next path is %d, want 3", got)
	}
	if got := second.Model(2, 1, json.RawMessage("3")); got != 2 {
		t.Errorf("the next model is %d, want 2", got)
	}
	if got := second.Sample(0, &provenance.NodeState{Timestamp: 1}); got != 2 {
		t.Errorf("the next state is %d, want 2", got)
	}
}

func TestOldNodeStatesAreDropped(t *testing.T) {
	c := catalog.New()
	state := func(i int) *provenance.NodeState { return &provenance.NodeState{Timestamp: trace.Ticks(i)} }
	for i := 1; i <= 2*catalog.MaxSamples; i++ {
		if got := c.Sample(0, state(i)); got != int32(i) {
			t.Fatalf("state %d has number %d", i, got)
		}
		c.TakeNew()
	}
	recent := 2*catalog.MaxSamples - catalog.MaxSamples/4
	if got := c.Sample(0, state(recent)); got != int32(recent) {
		t.Errorf("a recent one has number %d, want %d", got, recent)
	}
	if got := c.Sample(0, state(1)); got != 2*catalog.MaxSamples+1 {
		t.Errorf("the first has number %d, want a new one, %d", got, 2*catalog.MaxSamples+1)
	}
}
