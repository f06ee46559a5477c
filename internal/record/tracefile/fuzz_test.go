package tracefile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// FuzzWrite writes records of any JSON. Both formats fail, or both are valid and show the
// same.
func FuzzWrite(f *testing.F) {
	for _, name := range recorded {
		text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		`{}`,
		`{"event_id": "1", "entry": 5, "exit": 3, "call_stack": [{"event_id": "1"}, {"event_id": "1"}, {"entry": 9}]}`,
		`{"gpu_parent": {"tid": 0, "event_id": "a", "call_stack": [{"event_id": "a", "entry": 7}]}, "event_id": "b"}`,
		`{"gpu_parent": {"tid": 1, "event_id": "b", "call_stack": [{"event_id": "b"}]}, "event_id": "b"}`,
		`{"gpu_parent": [1e99]}`,
		`{"event_window": {"exec_window": [{"event_id": "a", "parent_event_id": "a"}, {"event_id": "b", "parent_event_id": "a", "entry": 2, "exit": 9}]}}`,
		`{"event_window": {"exec_window": [{"event_id": "a", "entry": 3, "exit": 4}], "comm_window": [
			{"type": "SEND", "timestamp": 1, "execdata_key": "a"}, {"type": "RECV", "timestamp": 2, "src": 2}, {"type": "SEND", "timestamp": 1, "tar": 2}]}}`,
		`{"counter_events": [{"counter_name": "x"}, {"counter_name": "x", "ts": 9223372036854774}], "node_state": {"data": [{"field": "x"}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r provenance.Record
		if json.Unmarshal(text, &r) != nil {
			return
		}
		perfetto, chrome, err := write(t, &r)
		if err != nil {
			return
		}
		checkSame(t, readPerfetto(t, perfetto), readChrome(t, chrome))
	})
}
