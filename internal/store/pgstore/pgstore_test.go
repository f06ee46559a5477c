package pgstore

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
)

// documents writes records and compares what comes back.
func documents(t *testing.T, records ...*provenance.Record) {
	t.Helper()
	s := newStore(t)
	id := newRun(t, s, "run")
	write(t, s, id, &provdb.Batch{Anomalies: records})
	for _, r := range records {
		rows := query(t, s, "SELECT doc FROM anomalies_json WHERE run = $1 AND doc->>'event_id' = $2", int32(id), provenance.Text(r.EventID))
		if len(rows) != 1 {
			t.Errorf("event %q: got %d documents, want 1", r.EventID, len(rows))
			continue
		}
		var want bytes.Buffer
		if err := r.WriteJSON(&want); err != nil {
			t.Fatal(err)
		}
		if got := rows[0][0].(json.RawMessage); !sameJSON(t, got, want.Bytes()) {
			t.Errorf("event %q:\n got %s\nwant %s", r.EventID, got, want.Bytes())
		}
	}
}

func TestDocumentsRoundTrip(t *testing.T) {
	documents(t, storetest.Records(50, 1)...)
}
