package provenance

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// SchemaVersion is the version of the schema of records.
const SchemaVersion = 2

// Status is the result of the review of an anomaly at the end of a run.
type Status string

// The states of an anomaly.
const (
	Confirmed Status = "confirmed" // flagged during the run and at the end
	Withdrawn Status = "withdrawn" // flagged during the run, but not at the end
	Promoted  Status = "promoted"  // flagged only at the end

	Provisional Status = "provisional" // flagged, and the run continues
	// Dropped means flagged during the run, but at the end one of many calls of a slow mode, of which a sample is kept. Stores
	// remove the execution.
	Dropped Status = "dropped"
)

// Source resolves the numbers in the captures of one rank.
type Source interface {
	Program() trace.Program
	Rank() trace.Rank
	Host() string // "Unknown" if unknown
	// Func returns the global number of a function, the same for all ranks, and its name.
	Func(id trace.FuncID) (fid int, name string)
	Counter(id trace.CounterID) string
	// StateField returns the name of a field of the state of the node.
	StateField(id trace.CounterID) string
	GPU(thread trace.Thread) (trace.GPU, bool)
}

// Record is an execution in the schema of the provenance database. Its keys are sorted.
type Record struct {
	AlgoParams       json.RawMessage `json:"algo_params"`
	CallStack        []StackEntry    `json:"call_stack"`
	Children         uint32          `json:"children,omitzero"` // calls that it made directly
	CounterEvents    []CounterEntry  `json:"counter_events"`
	Entry            trace.Ticks     `json:"entry"`
	EventID          string          `json:"event_id"`
	EventWindow      EventWindow     `json:"event_window"`
	Exit             trace.Ticks     `json:"exit"`
	FID              int             `json:"fid"`
	Func             string          `json:"func"`
	GPULocation      *GPULocation    `json:"gpu_location"`
	GPUParent        any             `json:"gpu_parent"` // nil, a GPUParent, or the reason why it is missing
	Hostname         string          `json:"hostname"`
	IOStep           int32           `json:"io_step"`
	IOStepEnd        trace.Ticks     `json:"io_step_tend"`
	IOStepStart      trace.Ticks     `json:"io_step_tstart"`
	IsGPUEvent       bool            `json:"is_gpu_event"`
	Kind             AnomalyKind     `json:"kind,omitempty"`     // of an anomaly; empty in older records
	LostTime         trace.Ticks     `json:"lost_time,omitzero"` // time of an anomaly above the typical time
	NodeState        *NodeState      `json:"node_state"`
	OutlierScore     float64         `json:"outlier_score"`
	OutlierSeverity  float64         `json:"outlier_severity"`
	PID              trace.Program   `json:"pid"`
	RID              trace.Rank      `json:"rid"`
	RuntimeExclusive trace.Ticks     `json:"runtime_exclusive"`
	RuntimeTotal     trace.Ticks     `json:"runtime_total"`
	Status           Status          `json:"status,omitempty"`
	Unit             trace.Unit      `json:"tick_ns,omitzero"` // of all times; 0 is a microsecond
	TID              trace.Thread    `json:"tid"`
	UsualChildren    uint32          `json:"usual_children,omitzero"` // median, if it made too many calls
	Version          int             `json:"version"`
	Why              string          `json:"why,omitempty"` // explains an anomaly: a sentence without subject and period
}

// StackEntry is a call of a stack.
type StackEntry struct {
	Entry     trace.Ticks `json:"entry"`
	EventID   string      `json:"event_id"`
	Exit      trace.Ticks `json:"exit"`
	FID       int         `json:"fid"`
	Func      string      `json:"func"`
	IsAnomaly bool        `json:"is_anomaly"`
}

// CounterEntry is a value of a counter during the execution.
type CounterEntry struct {
	Index     trace.CounterID `json:"counter_idx"`
	Name      string          `json:"counter_name"`
	Value     uint64          `json:"counter_value"`
	PID       trace.Program   `json:"pid"`
	RID       trace.Rank      `json:"rid"`
	TID       trace.Thread    `json:"tid"`
	Timestamp trace.Ticks     `json:"ts"`
}

// EventWindow has the calls and messages around the execution on its thread.
type EventWindow struct {
	Comms []CommEntry   `json:"comm_window"`
	Execs []WindowEntry `json:"exec_window"`
}

// WindowEntry is a call of the window. Windows are sorted by entry.
type WindowEntry struct {
	StackEntry
	ParentID string `json:"parent_event_id"` // root: none
}

// CommEntry is a message of the window.
type CommEntry struct {
	Bytes     *uint64       `json:"bytes"` // nil if unknown
	Exec      string        `json:"execdata_key"`
	PID       trace.Program `json:"pid"`
	RID       trace.Rank    `json:"rid"`
	Source    trace.Rank    `json:"src"`
	Tag       int32         `json:"tag"`
	Target    trace.Rank    `json:"tar"`
	TID       trace.Thread  `json:"tid"`
	Timestamp trace.Ticks   `json:"timestamp"`
	Type      string        `json:"type"`
}

// GPULocation is the place of the execution on a GPU.
type GPULocation struct {
	Context uint64       `json:"context"`
	Device  uint64       `json:"device"`
	Stream  uint64       `json:"stream"`
	Thread  trace.Thread `json:"thread"`
}

// GPUParent is the call that launched a kernel.
type GPUParent struct {
	CallStack []StackEntry `json:"call_stack"`
	EventID   string       `json:"event_id"`
	TID       trace.Thread `json:"tid"`
}

// NodeState is the state of the node at the time of the execution.
type NodeState struct {
	Data      []StateEntry `json:"data"`
	Timestamp trace.Ticks  `json:"timestamp"`
}

// StateEntry is one value of a NodeState.
type StateEntry struct {
	Field string `json:"field"`
	Value uint64 `json:"value"`
}

// Metadata is an entry of a rank's metadata in the schema of the provenance database.
type Metadata struct {
	Descr string        `json:"descr"`
	PID   trace.Program `json:"pid"`
	RID   trace.Rank    `json:"rid"`
	TID   trace.Thread  `json:"tid"`
	Value string        `json:"value"`
}

// WriteJSON writes the record to w as json.Encoder would, but copies the model, which many
// records share, unchanged.
func (r *Record) WriteJSON(w *bytes.Buffer) error {
	params := r.AlgoParams
	if params == nil {
		params = json.RawMessage("null")
	}
	w.WriteString(`{"algo_params":`)
	w.Write(params)
	at := w.Len()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		*Record
		AlgoParams struct{} `json:"algo_params,omitzero"`
	}{Record: r})
	if err != nil {
		return err
	}
	w.Bytes()[at] = ',' // instead of the second opening brace
	return nil
}

// Path returns the call path, with the work of the call.
func (r *Record) Path() (h callpath.Hash) {
	for _, call := range slices.Backward(r.CallStack) {
		h = h.Then(call.Func)
	}
	return h.With(callpath.ClassOf(r.Children))
}

// Work returns the calls that the execution made.
func (r *Record) Work() outlier.Work {
	return outlier.Work{Calls: r.Children, Time: int64(r.RuntimeTotal - r.RuntimeExclusive)}
}

// noParent is the parent in records of kernels without a known launch.
const noParent = "Chimbuko error: no launch with the kernel's correlation id was recorded"

// NewRecord returns the record of a capture. params is the model that judged it, in the form
// of the schema.
func NewRecord(c *Capture, src Source, params json.RawMessage) *Record {
	call := c.Call()
	r := &Record{
		Version: SchemaVersion, AlgoParams: params,
		PID: src.Program(), RID: src.Rank(), TID: c.Thread, Hostname: Text(src.Host()),
		EventID: c.ID(src.Rank()).String(), Entry: call.Entry, Exit: call.Exit,
		RuntimeTotal: call.Exit - call.Entry, RuntimeExclusive: c.Exclusive, Children: c.Children,
		IOStep: c.IOStep, IOStepStart: c.StepStart, IOStepEnd: c.StepEnd,
		OutlierScore: c.Score, OutlierSeverity: float64(c.Exclusive),
		CallStack: stackEntries(c.Stack, src), CounterEvents: make([]CounterEntry, 0, len(c.Counters)),
		EventWindow: EventWindow{Comms: make([]CommEntry, 0, len(c.Comms)), Execs: make([]WindowEntry, 0, len(c.Window))},
	}
	r.FID, r.Func = function(src, call.Func)
	for i := range c.Counters {
		e := &c.Counters[i]
		r.CounterEvents = append(r.CounterEvents, CounterEntry{
			Index: e.Counter(), Name: Text(src.Counter(e.Counter())), Value: e.Value,
			PID: r.PID, RID: r.RID, TID: r.TID, Timestamp: e.Time,
		})
	}
	for i := range c.Window {
		f, parent := &c.Window[i], "root"
		if f.ParentStep >= 0 {
			parent = id(r.RID, f.ParentStep, f.ParentRow)
		}
		r.EventWindow.Execs = append(r.EventWindow.Execs, WindowEntry{stackEntry(f, src), parent})
	}
	for i := range c.Comms {
		r.EventWindow.Comms = append(r.EventWindow.Comms, commEntry(&c.Comms[i], r))
	}
	r.addGPU(c, src)
	if len(c.NodeState) > 0 {
		r.NodeState = &NodeState{Timestamp: c.NodeTime}
		for _, f := range c.NodeState {
			r.NodeState.Data = append(r.NodeState.Data, StateEntry{Text(src.StateField(f.Counter)), f.Value})
		}
	}
	return r
}

// NewDropped returns a record that removes that of an anomaly from the store.
func NewDropped(c *Capture, src Source) *Record {
	return &Record{
		PID: src.Program(), RID: src.Rank(), TID: c.Thread, EventID: c.ID(src.Rank()).String(), IOStep: c.IOStep,
		Entry: c.Call().Entry, Exit: c.Call().Exit, Status: Dropped,
	}
}

func (r *Record) addGPU(c *Capture, src Source) {
	gpu, ok := src.GPU(c.Thread)
	if !ok {
		return
	}
	r.IsGPUEvent = true
	r.GPULocation = &GPULocation{
		Context: part(gpu.Context, math.MaxUint64), Device: part(gpu.Device, math.MaxUint64), Stream: part(gpu.Stream, 0), Thread: c.Thread,
	}
	r.GPUParent = noParent
	if len(c.Partners) > 0 {
		l := &c.Partners[0]
		stack := stackEntries(l.Stack, src)
		r.GPUParent = GPUParent{CallStack: stack, EventID: stack[0].EventID, TID: l.Thread}
	}
}

// part parses a number of a location. It returns unknown for other text.
func part(text string, unknown uint64) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return unknown
	}
	return n
}

// function returns the number and name of a function in documents.
func function(src Source, id trace.FuncID) (fid int, name string) {
	fid, name = src.Func(id)
	return fid, Text(name)
}

func id(rank trace.Rank, step int32, row uint32) string {
	return trace.EventID{Rank: rank, Step: int(step), Row: row}.String()
}

func stackEntries(frames []Frame, src Source) []StackEntry {
	entries := make([]StackEntry, len(frames))
	for i := range frames {
		entries[i] = stackEntry(&frames[i], src)
	}
	return entries
}

func stackEntry(f *Frame, src Source) StackEntry {
	fid, name := function(src, f.Func)
	return StackEntry{f.Entry, id(src.Rank(), f.Step, f.Row), f.Exit, fid, name, f.Anomalous}
}

func commEntry(m *Comm, r *Record) CommEntry {
	e := CommEntry{
		Exec: id(r.RID, m.Step, m.Row), PID: r.PID, RID: r.RID, TID: r.TID,
		Tag: m.Tag, Timestamp: m.Time, Type: "SEND", Source: r.RID, Target: m.Partner(),
	}
	if size, ok := m.Size(); ok {
		e.Bytes = &size
	}
	if m.Kind == trace.Recv {
		e.Type, e.Source, e.Target = "RECV", m.Partner(), r.RID
	}
	return e
}

// UnmarshalJSON decodes a record; gpu_parent becomes nil, a GPUParent or a text.
func (r *Record) UnmarshalJSON(text []byte) error {
	type plain Record // without this method
	v := struct {
		*plain
		GPUParent gpuParent `json:"gpu_parent"`
	}{plain: (*plain)(r)}
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	r.GPUParent = v.GPUParent.value
	return nil
}

type gpuParent struct{ value any }

// UnmarshalJSON accepts all forms.
func (p *gpuParent) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return json.Unmarshal(text, &p.value)
	}
	var parent GPUParent
	err := json.Unmarshal(text, &parent)
	p.value = parent
	return err
}
