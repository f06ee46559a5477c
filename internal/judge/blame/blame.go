// Package blame finds the causes of waits. Among the anomalies of a run it identifies victims, which only waited for a
// late rank, and culprits, the executions that made the rank late. It follows messages and collective calls from rank to
// rank, and waits for GPUs, threads and other programs.
//
// Culprits are anomalies, or calls that become anomalies because others waited for them: blame cannot detect a rank that
// is late because of many slightly slow calls. Its functions are pure, and their results do not depend on the order of the
// input.
package blame

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Wait is what a function waits for.
type Wait uint8

// The kinds of waits.
const (
	Nothing Wait = iota
	Ranks        // single other ranks
	Group        // all ranks of a group, which may be the entire program
	Device       // a GPU of the rank
	Threads      // other threads of the rank
	Program      // another program of the workflow
)

// Anomaly has the fields of an anomaly that Find and Conclude need.
type Anomaly struct {
	Event    string                 `sql:"event_id"` // its id
	Program  trace.Program          `sql:"pid"`
	Rank     trace.Rank             `sql:"rid"`
	Thread   trace.Thread           `sql:"tid"`
	Host     string                 `sql:"hostname"`
	Func     string                 `sql:"func"`
	Path     string                 // call path from the outermost function, separated by " > "
	Kind     provenance.AnomalyKind `sql:"kind"`
	Wait     Wait
	OnDevice bool        `sql:"is_gpu_event"` // it ran on a GPU
	Calls    bool        `sql:"calls"`        // it called other functions, in which its rank may have waited
	Entry    trace.Ticks `sql:"entry"`
	Exit     trace.Ticks `sql:"exit"`
	// Exclusive is the time without that of nested calls.
	Exclusive trace.Ticks       `sql:"runtime_exclusive"`
	Lost      trace.Ticks       `sql:"lost_time"` // time beyond the typical one
	Status    provenance.Status `sql:"status"`
	// Recorded is true if the trace was written during the call: it ended in a later step of the trace than it began.
	// StepTime is the time of that step; 0 if unknown.
	Recorded bool        `sql:"recorded"`
	StepTime trace.Ticks `sql:"step_time"`
	// Children is the number of calls that it made, and UsualChildren the usual number, if it made too many.
	Children      int64 `sql:"children"`
	UsualChildren int64 `sql:"usual_children"`
	// Candidate is true if its own time is not unusual, and Share is then the share of the
	// calls like it that take as long. Only Promote accepts candidates.
	Candidate bool
	Share     float64
	// Usual is true if its own time is not rare: it is an anomaly only because of the waits of which it is a part.
	Usual bool `sql:"usual"`
	// InStep is when its rank last left a collective call before or during it, and Left the function of that call;
	// 0 and empty if unknown.
	InStep trace.Ticks
	Left   string
	// Last is the last message that was received during it, or else the last that was sent; nil if the trace has none.
	Last *Message
}

// Message is a message that an anomaly sent or received.
type Message struct {
	Partner trace.Rank // sender or receiver
	Sent    bool       // by the anomaly
	Tag     int32
	Time    trace.Ticks
}

// Send is a message that a rank sent around one of its anomalies.
type Send struct {
	Program  trace.Program
	From, To trace.Rank
	Tag      int32
	Time     trace.Ticks
	Until    trace.Ticks // the record has every message from Time until then
}

// Run is the input of Find and Conclude. The zero value is empty.
type Run struct {
	Anomalies  []Anomaly
	Withdrawn  []Anomaly // not in Anomalies; Find ignores them
	Sends      []Send
	Begin, End trace.Ticks // 0 means the times of the first and the last anomaly
	Unit       trace.Unit
	Ranks      map[trace.Program]int // number of ranks of a program; 0 if unknown

	paths map[string]string
	waits map[string]Wait
}

// CountRanks sets Ranks to the number of ranks of each program.
func (r *Run) CountRanks(all iter.Seq[trace.RankKey]) {
	r.Ranks = make(map[trace.Program]int)
	for k := range all {
		r.Ranks[k.Program]++
	}
}

// Extend extends the run to the end of a record, whether of an anomaly or not.
func (r *Run) Extend(rec *provenance.Record) { r.End = max(r.End, rec.IOStepEnd, rec.Exit) }

// Add adds a record of an anomaly. It does not retain rec.
func (r *Run) Add(rec *provenance.Record) {
	r.Extend(rec)
	a := Anomaly{
		Event: rec.EventID, Program: rec.PID, Rank: rec.RID, Thread: rec.TID, Host: rec.Hostname, Func: rec.Func,
		Path: r.path(rec.CallStack), Kind: rec.Kind, Wait: r.WaitOf(rec.Func), OnDevice: rec.IsGPUEvent,
		Calls: rec.RuntimeExclusive != rec.RuntimeTotal,
		Entry: rec.Entry, Exit: rec.Exit, Exclusive: rec.RuntimeExclusive, Lost: rec.LostTime, Status: rec.Status,
		Recorded: beganBefore(rec.EventID, rec.IOStep), StepTime: rec.IOStepEnd - rec.IOStepStart,
		Children: int64(rec.Children), UsualChildren: int64(rec.UsualChildren), Usual: rec.OnlyExplainsWaits(),
	}
	if rec.Status == provenance.Withdrawn {
		r.Withdrawn = append(r.Withdrawn, a)
		return
	}
	until := rec.Exit
	for i := range rec.EventWindow.Execs {
		e := &rec.EventWindow.Execs[i]
		until = max(until, e.Entry)
		if e.Exit > 0 && e.EventID != a.Event && r.WaitOf(e.Func) == Group {
			a.LeftStep(e.Func, e.Exit)
		}
	}
	for i := range rec.EventWindow.Comms {
		m := &rec.EventWindow.Comms[i]
		sent := m.Type == "SEND"
		if sent {
			r.Sends = append(r.Sends, Send{rec.PID, m.Source, m.Target, m.Tag, m.Timestamp, until})
		}
		if m.Exec == rec.EventID {
			n := Message{Partner: m.Source, Sent: sent, Tag: m.Tag, Time: m.Timestamp}
			if sent {
				n.Partner = m.Target
			}
			a.Message(n)
		}
	}
	r.Anomalies = append(r.Anomalies, a)
}

// beganBefore reports whether an execution with an id of the form rank:step:row began before a step of the trace.
func beganBefore(event string, step int32) bool {
	_, rest, _ := strings.Cut(event, ":")
	began, _, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseUint(began, 10, 31)
	return err == nil && int32(n) < step
}

// WaitOf caches the results of the function WaitOf.
func (r *Run) WaitOf(name string) Wait {
	w, ok := r.waits[name]
	if !ok {
		if r.waits == nil {
			r.waits = make(map[string]Wait)
		}
		w = WaitOf(name)
		r.waits[name] = w
	}
	return w
}

// LeftStep records that the rank left a collective call at a time.
func (a *Anomaly) LeftStep(name string, at trace.Ticks) {
	if at < a.Exit && at > a.InStep {
		a.InStep, a.Left = at, name
	}
}

// Message records a message that the anomaly sent or received.
func (a *Anomaly) Message(m Message) {
	if o := a.Last; o != nil {
		if m.Sent != o.Sent && m.Sent || m.Sent == o.Sent && m.compare(o) <= 0 {
			return
		}
	}
	a.Last = &m
}

// compare orders messages by time, partner and tag.
func (m *Message) compare(o *Message) int {
	return cmp.Or(cmp.Compare(m.Time, o.Time), cmp.Compare(m.Partner, o.Partner), cmp.Compare(m.Tag, o.Tag))
}

// path returns the call path of a stack. Equal paths share memory.
func (r *Run) path(stack []provenance.StackEntry) string {
	var b strings.Builder
	for i, e := range slices.Backward(stack) {
		b.WriteString(e.Func)
		if i > 0 {
			b.WriteString(" > ")
		}
	}
	if r.paths == nil {
		r.paths = make(map[string]string)
	}
	p := b.String()
	if shared, ok := r.paths[p]; ok {
		return shared
	}
	r.paths[p] = p
	return p
}
