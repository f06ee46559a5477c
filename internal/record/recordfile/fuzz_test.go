package recordfile

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// decodeStep reads a file of anomalies of rank 1 and step 3.
func decodeStep(ctx context.Context, content []byte) (*Step, *Notes, error) {
	notes := new(Notes)
	d := newRankReader(rankDir{rank: 1}, nil, notes)
	s := &Step{Rank: 1, Step: 3}
	err := d.array(ctx, bytes.NewReader(content), func(v value) error { return d.addRecord(anomalies, s, v) })
	s.Program = d.program
	return s, notes, err
}

// FuzzDecode reads any bytes as a file. Records can be written, and reading them again
// returns the same records without notes.
func FuzzDecode(f *testing.F) {
	paths, err := filepath.Glob("testdata/original/*/*/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatal("no files to begin with", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	const begin = `[{"event_id":"1:3:1","func":"f","fid":1,"entry":10,"exit":30,"rid":1,"tid":0,"runtime_exclusive":20,`
	f.Add([]byte(begin + `"gpu_parent":"why","gpu_location":{"device":1},"func_stats":{"count":1,"mean":3}}]`))
	f.Add([]byte(begin + `"gpu_parent":{"event_id":"1:2:3","tid":1,"call_stack":[{"entry_time":1,"func":"g"}]},"node_state":{}}]`))
	f.Add([]byte(begin + "\"hostname\":\"\xff\\ud800\\u0000\",\"algo_params\":[\"\xff\"],\"io_step_tend\":18446744073709551615}]"))
	f.Add([]byte(begin + `"algo_params":{"histogram":{"Histogram Bin Counts":[1],"Histogram Bin Edges":[1,9]}}},{"rid":1.0}]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, notes, _ := decodeStep(t.Context(), content)
		if got, most := memory(s), 64*len(content)+1024; got > most {
			t.Fatalf("%d bytes became %d in memory, want no more than %d", len(content), got, most)
		}
		for range notes.All() {
		}
		if len(s.Anomalies) == 0 {
			return
		}
		var w bytes.Buffer
		for i, r := range s.Anomalies {
			use(t, r)
			w.WriteByte("[,"[min(i, 1)])
			if err := r.WriteJSON(&w); err != nil {
				t.Fatalf("%v\n%+v", err, r)
			}
		}
		w.WriteByte(']')
		again, notes, err := decodeStep(t.Context(), w.Bytes())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v\nwritten %s\n got %+v\nwant %+v", err, w.Bytes(), again, s)
		}
		for sentence, n := range notes.All() {
			if sentence != noteTypical {
				t.Errorf("%d %s in %s", n, sentence, w.Bytes())
			}
		}
	})
}

// memory returns the allocated bytes of the records of a step.
func memory(s *Step) int {
	n := room(s.Anomalies)
	for _, r := range s.Anomalies {
		n += int(unsafe.Sizeof(*r)) + len(r.AlgoParams) + len(r.Func) + len(r.EventID) + len(r.Hostname)
		n += room(r.CallStack) + room(r.CounterEvents) + room(r.EventWindow.Comms) + room(r.EventWindow.Execs)
		if r.NodeState != nil {
			n += room(r.NodeState.Data)
		}
		if p, ok := r.GPUParent.(provenance.GPUParent); ok {
			n += room(p.CallStack)
		}
	}
	return n
}

func room[T any](s []T) int {
	var v T
	return cap(s) * int(unsafe.Sizeof(v))
}

// use checks a record.
func use(t *testing.T, r *provenance.Record) {
	switch r.GPUParent.(type) {
	case nil, string, provenance.GPUParent:
	default:
		t.Errorf("the parent is a %T", r.GPUParent)
	}
	if r.CallStack == nil || r.CounterEvents == nil || r.EventWindow.Comms == nil || r.EventWindow.Execs == nil {
		t.Errorf("a list is nil: %+v", r)
	}
	if !utf8.ValidString(r.Func) || !utf8.ValidString(r.EventID) || !utf8.Valid(r.AlgoParams) || r.RID != 1 || r.Version != 2 {
		t.Errorf("bad record %+v", r)
	}
}

// FuzzGlobal reads any bytes as files of collections over all ranks.
func FuzzGlobal(f *testing.F) {
	f.Add([]byte(`[{"fid":1,"fname":"f","anomaly_metrics":{"anomaly_count":{"count":1}},"runtime_profile":null}]`))
	f.Add([]byte(`[{"counter":"c","stats":{"count":1,"mean":2}}]`))
	f.Add([]byte(`[{"fid":1,"func_name":"f","model":{"a":1}}]`))
	funcStats := schemaOf("func_stats", reflect.TypeFor[provenance.FuncStats]())
	counterStats := schemaOf("counter_stats", reflect.TypeFor[provenance.CounterStats]())
	adModel := schemaOf("ad_model", reflect.TypeFor[provenance.ADModel]())
	f.Fuzz(func(t *testing.T, content []byte) {
		d := new(decoder)
		_ = d.array(t.Context(), bytes.NewReader(content), func(v value) error {
			_, _ = funcStats.read(d, v, new(provenance.FuncStats))
			_, _ = counterStats.read(d, v, new(provenance.CounterStats))
			_, _ = adModel.read(d, v, new(provenance.ADModel))
			return nil
		})
	})
}
