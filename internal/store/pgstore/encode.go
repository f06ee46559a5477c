package pgstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// executionColumns are those of encoder.row.
var executionColumns = []string{
	"run", "pid", "rid", "fn", "path", "io_step", "ev_step", "anomalous", "is_gpu_event",
	"lost_time", "outlier_severity", "outlier_score", "entry", "exit", "runtime_exclusive", "status", "hostname", "runtime_total",
	"io_step_tstart", "io_step_tend", "ev_row", "tid", "version", "model", "sample", "ev_text", "detail", "doc", "kind",
	"children", "usual_children",
}

// encoder converts records to rows of the table executions. Rows share its memory.
type encoder struct {
	run         provdb.RunID
	values      []any
	detail, doc bytes.Buffer
}

// row returns the row of a record, valid until the next call.
func (e *encoder) row(r *provenance.Record, anomalous bool, n catalog.Refs) ([]any, error) {
	step, row, ok := catalog.ParseID(r.EventID, r.RID)
	evText := ""
	if !ok {
		step, row, evText = -1, -1, storedID(r)
	}
	e.detail.Reset()
	enc := json.NewEncoder(&e.detail)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&detail{r.CallStack, r.CounterEvents, r.EventWindow, r.GPULocation, r.GPUParent, r.Why}); err != nil {
		return nil, err
	}
	var doc any
	if r.PID > math.MaxInt32 || int(int32(r.Version)) != r.Version || evText != "" && evText != r.EventID {
		e.doc.Reset()
		if err := r.WriteJSON(&e.doc); err != nil {
			return nil, err
		}
		doc = e.doc.Bytes()
	}
	e.values = append(e.values[:0],
		int32(e.run), int32(r.PID), int32(r.RID), n.Func, n.Path, r.IOStep, step, anomalous, r.IsGPUEvent,
		int64(r.LostTime), r.OutlierSeverity, r.OutlierScore, int64(r.Entry), int64(r.Exit), int64(r.RuntimeExclusive),
		catalog.OrNull(string(r.Status)), r.Hostname, int64(r.RuntimeTotal),
		int64(r.IOStepStart), int64(r.IOStepEnd), row, int64(r.TID), int32(r.Version), catalog.OrNull(n.Model), catalog.OrNull(n.Sample),
		evText, []byte(provdb.CleanJSON(e.detail.Bytes())), doc, catalog.OrNull(string(r.Kind)),
		int64(r.Children), int64(r.UsualChildren))
	return e.values, nil
}

// longestID is about the longest text, in bytes, that an index can hold.
const longestID = 1000

// storedID returns the event id of a record in tables. It truncates long ids and appends
// a hash.
func storedID(r *provenance.Record) string {
	if len(r.EventID) <= longestID {
		return r.EventID
	}
	sum := sha256.Sum256([]byte(r.EventID))
	return provenance.Text(r.EventID[:longestID/2]) + "…" + hex.EncodeToString(sum[:])
}

// detail is the part of a record's document that has no columns.
type detail struct {
	CallStack     []provenance.StackEntry   `json:"call_stack"`
	CounterEvents []provenance.CounterEntry `json:"counter_events"`
	EventWindow   provenance.EventWindow    `json:"event_window"`
	GPULocation   *provenance.GPULocation   `json:"gpu_location"`
	GPUParent     any                       `json:"gpu_parent"`
	Why           string                    `json:"why,omitempty"`
}
