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

// executionColumns are the columns of encoder.row.
var executionColumns = []string{
	"run", "pid", "rid", "fn", "path", "io_step", "ev_step", "anomalous", "is_gpu_event",
	"lost_time", "outlier_severity", "outlier_score", "entry", "exit", "runtime_exclusive", "status", "hostname", "runtime_total",
	"io_step_tstart", "io_step_tend", "ev_row", "tid", "version", "model", "sample", "ev_text", "detail", "doc", "kind",
	"children", "usual_children", "block", "slot", "why",
}

// encoder converts records to rows of the tables executions and blocks. Rows of executions share its memory.
type encoder struct {
	run         provdb.RunID
	free        []int32 // numbers for new blocks
	blocks      []*block
	values      []any
	detail, doc bytes.Buffer
}

// row returns the row of a record, valid until the next call, and adds the context of the record to a block. fns are the numbers of
// the functions of its stack, then of its window.
func (e *encoder) row(r *provenance.Record, anomalous bool, n catalog.Refs, fns []int32) ([]any, error) {
	o, ok := catalog.NewOrigin(r)
	evText := ""
	if !ok {
		evText = storedID(r)
	}
	block, slot := e.pack(r, &o, fns)
	detail, err := e.rest(r, block != nil)
	if err != nil {
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
		int32(e.run), int32(r.PID), int32(r.RID), n.Func, n.Path, r.IOStep, o.Step, anomalous, r.IsGPUEvent,
		int64(r.LostTime), r.OutlierSeverity, r.OutlierScore, int64(r.Entry), int64(r.Exit), int64(r.RuntimeExclusive),
		provdb.OrNull(string(r.Status)), r.Hostname, int64(r.RuntimeTotal),
		int64(r.IOStepStart), int64(r.IOStepEnd), o.Row, int64(r.TID), int32(r.Version), provdb.OrNull(n.Model), provdb.OrNull(n.Sample),
		evText, detail, doc, provdb.OrNull(string(r.Kind)),
		int64(r.Children), int64(r.UsualChildren), block, slot, provdb.OrNull(r.Why))
	return e.values, nil
}

// pack adds the context of a record to the last block, and returns its place, or nil if blocks cannot represent it.
func (e *encoder) pack(r *provenance.Record, o *catalog.Origin, fns []int32) (number, slot any) {
	var b *block
	if n := len(e.blocks); n > 0 {
		b = e.blocks[n-1]
	}
	if b == nil || b.slots() == blockSize {
		b, e.free = newBlock(e.free[0], b), e.free[1:]
		e.blocks = append(e.blocks, b)
	}
	if !b.add(r, o, fns) {
		return nil, nil
	}
	return b.number, int16(b.slots() - 1)
}

// rest returns the parts of a record's document that are in neither columns nor a block, or nil.
func (e *encoder) rest(r *provenance.Record, packed bool) (any, error) {
	var parts any
	gpu := gpuDetail{r.GPULocation, r.GPUParent}
	switch {
	case !packed:
		parts = &detail{r.CallStack, r.CounterEvents, r.EventWindow, gpu}
	case r.GPULocation != nil || r.GPUParent != nil:
		parts = &gpu
	default:
		return nil, nil
	}
	e.detail.Reset()
	enc := json.NewEncoder(&e.detail)
	enc.SetEscapeHTML(false)
	err := enc.Encode(parts)
	return []byte(provdb.CleanJSON(e.detail.Bytes())), err
}

// longestID is the approximate length in bytes of the longest text that an index can hold.
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
	gpuDetail
}

// gpuDetail is the part of detail that blocks do not have.
type gpuDetail struct {
	GPULocation *provenance.GPULocation `json:"gpu_location"`
	GPUParent   any                     `json:"gpu_parent"`
}
