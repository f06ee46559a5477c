package recordfile

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

type (
	record       = provenance.Record
	stackEntry   = provenance.StackEntry
	counterEntry = provenance.CounterEntry
	windowEntry  = provenance.WindowEntry
	commEntry    = provenance.CommEntry
	stateEntry   = provenance.StateEntry
)

// The fields of the schema, of its second version and, where it says so, of its
// first.

var stackFields = newFields("call_stack",
	field[stackEntry]{name: "entry", set: integer(func(e *stackEntry) *trace.Micros { return &e.Entry })},
	field[stackEntry]{name: "entry_time", set: integer(func(e *stackEntry) *trace.Micros { return &e.Entry })}, // version 1
	field[stackEntry]{name: "event_id", set: text(func(e *stackEntry) *string { return &e.EventID })},
	field[stackEntry]{name: "exit", set: integer(func(e *stackEntry) *trace.Micros { return &e.Exit })},
	field[stackEntry]{name: "fid", set: integer(func(e *stackEntry) *int { return &e.FID })},
	field[stackEntry]{name: "func", set: name(func(e *stackEntry) *string { return &e.Func }), needed: true},
	field[stackEntry]{name: "is_anomaly", set: boolean(func(e *stackEntry) *bool { return &e.IsAnomaly })},
)

var counterFields = newFields("counter_events",
	field[counterEntry]{name: "counter_idx", set: integer(func(e *counterEntry) *trace.CounterID { return &e.Index })},
	field[counterEntry]{name: "counter_name", set: name(func(e *counterEntry) *string { return &e.Name }), needed: true},
	field[counterEntry]{name: "counter_value", set: integer(func(e *counterEntry) *uint64 { return &e.Value }), needed: true},
	field[counterEntry]{name: "pid", set: integer(func(e *counterEntry) *trace.Program { return &e.PID })},
	field[counterEntry]{name: "rid", set: integer(func(e *counterEntry) *trace.Rank { return &e.RID })},
	field[counterEntry]{name: "tid", set: integer(func(e *counterEntry) *trace.Thread { return &e.TID })},
	field[counterEntry]{name: "ts", set: instant(func(e *counterEntry) *trace.Micros { return &e.Timestamp })},
)

var execFields = newFields("event_window.exec_window",
	field[windowEntry]{name: "entry", set: integer(func(e *windowEntry) *trace.Micros { return &e.Entry })},
	field[windowEntry]{name: "event_id", set: text(func(e *windowEntry) *string { return &e.EventID })},
	field[windowEntry]{name: "exit", set: integer(func(e *windowEntry) *trace.Micros { return &e.Exit })},
	field[windowEntry]{name: "fid", set: integer(func(e *windowEntry) *int { return &e.FID })},
	field[windowEntry]{name: "func", set: name(func(e *windowEntry) *string { return &e.Func }), needed: true},
	field[windowEntry]{name: "is_anomaly", set: boolean(func(e *windowEntry) *bool { return &e.IsAnomaly })},
	field[windowEntry]{name: "parent_event_id", set: text(func(e *windowEntry) *string { return &e.ParentID })},
)

var commFields = newFields("event_window.comm_window",
	field[commEntry]{name: "bytes", set: integer(func(e *commEntry) *uint64 { return &e.Bytes })},
	field[commEntry]{name: "execdata_key", set: text(func(e *commEntry) *string { return &e.Exec })},
	field[commEntry]{name: "pid", set: integer(func(e *commEntry) *trace.Program { return &e.PID })},
	field[commEntry]{name: "rid", set: integer(func(e *commEntry) *trace.Rank { return &e.RID })},
	field[commEntry]{name: "src", set: wrapped(func(e *commEntry) *trace.Rank { return &e.Source })},
	field[commEntry]{name: "tag", set: wrapped(func(e *commEntry) *int32 { return &e.Tag })},
	field[commEntry]{name: "tar", set: wrapped(func(e *commEntry) *trace.Rank { return &e.Target })},
	field[commEntry]{name: "tid", set: integer(func(e *commEntry) *trace.Thread { return &e.TID })},
	field[commEntry]{name: "timestamp", set: instant(func(e *commEntry) *trace.Micros { return &e.Timestamp })},
	field[commEntry]{name: "type", set: name(func(e *commEntry) *string { return &e.Type })},
)

var eventWindowFields = newFields("event_window",
	field[provenance.EventWindow]{name: "comm_window", set: list(commFields,
		func(w *provenance.EventWindow) *[]commEntry { return &w.Comms })},
	field[provenance.EventWindow]{name: "exec_window", set: list(execFields,
		func(w *provenance.EventWindow) *[]windowEntry { return &w.Execs })},
)

var locationFields = newFields("gpu_location",
	field[provenance.GPULocation]{name: "context", set: integer(func(l *provenance.GPULocation) *uint64 { return &l.Context })},
	field[provenance.GPULocation]{name: "device", set: integer(func(l *provenance.GPULocation) *uint64 { return &l.Device })},
	field[provenance.GPULocation]{name: "stream", set: integer(func(l *provenance.GPULocation) *uint64 { return &l.Stream })},
	field[provenance.GPULocation]{name: "thread", set: integer(func(l *provenance.GPULocation) *trace.Thread { return &l.Thread })},
)

var parentFields = newFields("gpu_parent",
	field[provenance.GPUParent]{name: "call_stack", set: list(stackFields,
		func(p *provenance.GPUParent) *[]stackEntry { return &p.CallStack })},
	field[provenance.GPUParent]{name: "event_id", set: text(func(p *provenance.GPUParent) *string { return &p.EventID })},
	field[provenance.GPUParent]{name: "tid", set: integer(func(p *provenance.GPUParent) *trace.Thread { return &p.TID })},
)

var stateFields = newFields("node_state.data",
	field[stateEntry]{name: "field", set: name(func(e *stateEntry) *string { return &e.Field }), needed: true},
	field[stateEntry]{name: "value", set: integer(func(e *stateEntry) *uint64 { return &e.Value })},
)

var nodeStateFields = newFields("node_state",
	field[provenance.NodeState]{name: "data", set: list(stateFields, func(s *provenance.NodeState) *[]stateEntry { return &s.Data })},
	field[provenance.NodeState]{name: "timestamp", set: instant(func(s *provenance.NodeState) *trace.Micros { return &s.Timestamp })},
)

var recordFields = newFields("",
	field[record]{name: "algo_params", set: setModel},
	field[record]{name: "call_stack", set: list(stackFields, func(r *record) *[]stackEntry { return &r.CallStack })},
	field[record]{name: "counter_events", set: list(counterFields, func(r *record) *[]counterEntry { return &r.CounterEvents })},
	field[record]{name: "entry", set: integer(func(r *record) *trace.Micros { return &r.Entry }), needed: true},
	field[record]{name: "event_id", set: text(func(r *record) *string { return &r.EventID }), needed: true},
	field[record]{name: "event_window", set: object(eventWindowFields, func(r *record, w provenance.EventWindow) { r.EventWindow = w })},
	field[record]{name: "exit", set: integer(func(r *record) *trace.Micros { return &r.Exit }), needed: true},
	field[record]{name: "fid", set: integer(func(r *record) *int { return &r.FID }), needed: true},
	field[record]{name: "func", set: name(func(r *record) *string { return &r.Func }), needed: true},
	field[record]{name: "func_stats", set: setStats}, // version 1
	field[record]{name: "gpu_location", set: object(locationFields, func(r *record, l provenance.GPULocation) { r.GPULocation = &l })},
	field[record]{name: "gpu_parent", set: setParent},
	field[record]{name: "hostname", set: name(func(r *record) *string { return &r.Hostname })},
	field[record]{name: "io_step", set: integer(func(r *record) *int32 { return &r.IOStep })},
	field[record]{name: "io_step_tend", set: instant(func(r *record) *trace.Micros { return &r.IOStepEnd })},
	field[record]{name: "io_step_tstart", set: instant(func(r *record) *trace.Micros { return &r.IOStepStart })},
	field[record]{name: "is_gpu_event", set: boolean(func(r *record) *bool { return &r.IsGPUEvent })},
	field[record]{name: "kind", set: name(func(r *record) *string { return (*string)(&r.Kind) })},
	field[record]{name: "lost_time", set: integer(func(r *record) *trace.Micros { return &r.LostTime })},
	field[record]{name: "node_state", set: object(nodeStateFields, func(r *record, s provenance.NodeState) { r.NodeState = &s })},
	field[record]{name: "outlier_score", set: float(func(r *record) *float64 { return &r.OutlierScore })},
	field[record]{name: "outlier_severity", set: float(func(r *record) *float64 { return &r.OutlierSeverity })},
	field[record]{name: "pid", set: integer(func(r *record) *trace.Program { return &r.PID })},
	field[record]{name: "rid", set: integer(func(r *record) *trace.Rank { return &r.RID }), needed: true},
	field[record]{name: "runtime_exclusive", set: integer(func(r *record) *trace.Micros { return &r.RuntimeExclusive }), needed: true},
	field[record]{name: "runtime_total", set: integer(func(r *record) *trace.Micros { return &r.RuntimeTotal })},
	field[record]{name: "status", set: setStatus},
	field[record]{name: "tid", set: integer(func(r *record) *trace.Thread { return &r.TID }), needed: true},
	field[record]{name: "version", set: integer(func(r *record) *int { return &r.Version })},
	field[record]{name: "why", set: text(func(r *record) *string { return &r.Why })},
)

var metadataFields = newFields("metadata",
	field[provenance.Metadata]{name: "descr", set: name(func(m *provenance.Metadata) *string { return &m.Descr }), needed: true},
	field[provenance.Metadata]{name: "pid", set: integer(func(m *provenance.Metadata) *trace.Program { return &m.PID })},
	field[provenance.Metadata]{name: "rid", set: integer(func(m *provenance.Metadata) *trace.Rank { return &m.RID }), needed: true},
	field[provenance.Metadata]{name: "tid", set: integer(func(m *provenance.Metadata) *trace.Thread { return &m.TID })},
	field[provenance.Metadata]{name: "value", set: text(func(m *provenance.Metadata) *string { return &m.Value }), needed: true},
)

func setModel(d *decoder, r *record, v value) (err error) {
	r.AlgoParams, err = d.model(v)
	return err
}

// setStats sets the model of version 1, which is the statistics of the function.
func setStats(d *decoder, r *record, v value) error {
	if r.AlgoParams != nil {
		return nil
	}
	return setModel(d, r, v)
}

func setStatus(d *decoder, r *record, v value) error {
	s, err := d.name(v)
	if err != nil {
		return err
	}
	switch r.Status = provenance.Status(s); r.Status {
	case "", provenance.Confirmed, provenance.Withdrawn, provenance.Promoted:
		return nil
	}
	return v.wrong("%s is not confirmed, withdrawn or promoted", v.excerpt())
}

// setParent sets the launch of a kernel, or the text that says why it is not
// known, to what provenance.NewRecord would.
func setParent(d *decoder, r *record, v value) error {
	if v.isString() {
		s, err := d.name(v)
		r.GPUParent = s
		return err
	}
	var p provenance.GPUParent
	if _, err := parentFields.read(d, v, &p); err != nil {
		return err
	}
	p.CallStack = orEmpty(p.CallStack)
	if len(p.CallStack) > 0 && p.CallStack[0].EventID == "" { // version 1
		p.CallStack[0].EventID = p.EventID
	}
	r.GPUParent = p
	return nil
}

// record reads a record as it stands.
func (d *decoder) record(v value) (*record, uint64, error) {
	r := new(record)
	seen, err := recordFields.read(d, v, r)
	if err == nil && r.EventID == "" {
		err = v.wrong("event_id is empty")
	}
	return r, seen, err
}

// complete gives a record what it does not tell. step is that of its file.
func (d *decoder) complete(r *record, seen uint64, c collection, step int) {
	has := func(name string) bool { return recordFields.has(seen, name) }
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
	if len(r.CallStack) > 0 { // the stack of version 1 tells less of the call than the record
		if e := &r.CallStack[0]; e.EventID == "" && e.Entry == r.Entry && e.FID == r.FID {
			e.EventID, e.Exit, e.IsAnomaly = r.EventID, r.Exit, c == anomalies
		}
	}
	if c == anomalies && r.Status == "" && !has("lost_time") {
		lost, ok := lostTime(r.RuntimeExclusive, r.AlgoParams)
		if !ok {
			d.notes.Add(noteTypical, 1)
		}
		r.LostTime = lost
	}
}

// orEmpty returns a list that is empty instead of nil, as in the records that
// chimbuko makes.
func orEmpty[E any](all []E) []E {
	if all == nil {
		return []E{}
	}
	return all
}
