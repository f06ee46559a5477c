package recordfile

import (
	"reflect"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

var (
	recordSchema   = schemaOf("", reflect.TypeFor[provenance.Record]())
	metadataSchema = schemaOf("metadata", reflect.TypeFor[provenance.Metadata]())
)

// record reads a record and returns which of its fields the file has.
func (d *decoder) record(v value) (*provenance.Record, uint64, error) {
	r := new(provenance.Record)
	seen, err := recordSchema.read(d, v, r)
	if err == nil && r.EventID == "" {
		err = v.wrong("event_id is empty")
	}
	return r, seen, err
}

// complete sets the fields that a record lacks. step is that of its file.
func (d *decoder) complete(r *provenance.Record, seen uint64, c collection, step int) {
	has := func(name string) bool { return recordSchema.has(seen, name) }
	if r.Version > provenance.SchemaVersion {
		d.notes.Add(noteVersion, 1)
	}
	r.Version = provenance.SchemaVersion
	if !has("hostname") {
		r.Hostname = "Unknown"
	}
	if !has("io_step") {
		r.IOStep = int32(step)
	}
	if !has("io_step_tstart") {
		r.IOStepStart = unknownTime
	}
	if !has("io_step_tend") {
		r.IOStepEnd = unknownTime
	}
	if !has("is_gpu_event") {
		r.IsGPUEvent = r.GPULocation != nil
	}
	if !has("outlier_severity") {
		r.OutlierSeverity = float64(r.RuntimeExclusive)
	}
	if !has("runtime_total") {
		r.RuntimeTotal = r.Exit - r.Entry
	}
	r.CallStack, r.CounterEvents = orEmpty(r.CallStack), orEmpty(r.CounterEvents)
	r.EventWindow.Comms, r.EventWindow.Execs = orEmpty(r.EventWindow.Comms), orEmpty(r.EventWindow.Execs)
	if r.NodeState != nil {
		r.NodeState.Data = orEmpty(r.NodeState.Data)
	}
	if len(r.CallStack) > 0 { // stacks of version 1 lack parts of the call
		if e := &r.CallStack[0]; e.EventID == "" && e.Entry == r.Entry && e.FID == r.FID {
			e.EventID, e.Exit, e.IsAnomaly = r.EventID, r.Exit, c == anomalies
		}
	}
	if c == anomalies && r.Status == "" && !has("lost_time") {
		m := provenance.ReadModel(r.AlgoParams)
		if typical, _, ok := m.Typical(); ok {
			const most = 1 << 62 // no time is longer
			r.LostTime = max(0, r.RuntimeExclusive-trace.Ticks(min(max(typical/m.Unit.Micros(1), 0), most)))
		} else {
			d.notes.Add(noteTypical, 1)
		}
	}
}

// orEmpty returns an empty list instead of nil, as provenance.NewRecord does.
func orEmpty[E any](all []E) []E {
	if all == nil {
		return []E{}
	}
	return all
}
