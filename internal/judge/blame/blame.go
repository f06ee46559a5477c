// Package blame finds out who made whom wait. Of all anomalies of a run it tells
// which are victims, as they only waited for someone who was late, and which
// execution made that rank late: the culprit. It follows messages and collective
// calls from rank to rank, and waits for a GPU, for threads and for other programs
// within and between them.
//
// It knows anomalies and nothing else: a rank that is late without any anomaly, by
// many calls that are each a little slow, cannot be told from one that is not. It
// is pure, and its result does not depend on the order of what it is given.
package blame

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Wait is what an execution waits for, if waiting is what its function is for.
type Wait uint8

// What executions wait for.
const (
	Nothing Wait = iota
	Ranks        // single other ranks
	Group        // all ranks of a group: of the whole program, as far as is known
	Device       // a GPU of the rank
	Threads      // other threads of the rank
	Program      // another program of the workflow
)

// Anomaly is what is needed of an anomaly.
type Anomaly struct {
	Event    string // its id
	Program  trace.Program
	Rank     trace.Rank
	Thread   trace.Thread
	Host     string
	Func     string
	Path     string // functions from the outermost to its own, as documents show it
	Kind     provenance.AnomalyKind
	Wait     Wait
	OnDevice bool // it ran on a GPU
	Calls    bool // it called others, in which its rank may have met with others
	Entry    trace.Micros
	Exit     trace.Micros
	Lost     trace.Micros // how much longer than is typical it took
	// InStep is when its rank last left a call before in which all ranks wait for
	// each other; 0: that is not known.
	InStep trace.Micros
	// Last is the last message that was received in it, or where there is none, the
	// last that was sent; nil: none was, or the trace does not tell.
	Last *Message
}

// Message is one that was received or sent.
type Message struct {
	Partner trace.Rank // who sent it, or to whom
	Sent    bool       // by the rank of the anomaly
	Tag     int32
	Time    trace.Micros
}

// Send is a message that a rank sent around one of its anomalies.
type Send struct {
	Program  trace.Program
	From, To trace.Rank
	Tag      int32
	Time     trace.Micros
	Until    trace.Micros // all that was sent from Time until then is known
}

// Run is what is known of a run. The zero value is empty.
type Run struct {
	Anomalies  []Anomaly
	Sends      []Send
	Begin, End trace.Micros // 0: with the first and the last of them

	paths map[string]string
	waits map[string]Wait
}

// Add adds a record of an anomaly, unless it was withdrawn, and keeps nothing of it.
func (r *Run) Add(rec *provenance.Record) {
	if rec.Status == provenance.Withdrawn {
		return
	}
	a := Anomaly{
		Event: rec.EventID, Program: rec.PID, Rank: rec.RID, Thread: rec.TID, Host: rec.Hostname, Func: rec.Func,
		Path: r.path(rec.CallStack), Kind: rec.Kind, Wait: r.WaitOf(rec.Func), OnDevice: rec.IsGPUEvent,
		Calls: rec.RuntimeExclusive != rec.RuntimeTotal,
		Entry: rec.Entry, Exit: rec.Exit, Lost: rec.LostTime,
	}
	r.End = max(r.End, rec.IOStepEnd)
	until := rec.Exit
	for i := range rec.EventWindow.Execs {
		e := &rec.EventWindow.Execs[i]
		until = max(until, e.Entry)
		if e.Exit > 0 && e.Exit <= a.Entry && r.WaitOf(e.Func) == Group {
			a.LeftStep(e.Exit)
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

// WaitOf is the same as the function of that name, but remembers.
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

// LeftStep notes that a call on its rank, in which all ranks wait for each other,
// ended at a time.
func (a *Anomaly) LeftStep(at trace.Micros) {
	if a.waitsForOthers() && at <= a.Entry {
		a.InStep = max(a.InStep, at)
	}
}

// Message notes a message of the call itself.
func (a *Anomaly) Message(m Message) {
	if o := a.Last; o != nil {
		if m.Sent != o.Sent && m.Sent || m.Sent == o.Sent && m.compare(o) <= 0 {
			return
		}
	}
	a.Last = &m
}

// compare orders messages by time; nothing is left to chance.
func (m *Message) compare(o *Message) int {
	return cmp.Or(cmp.Compare(m.Time, o.Time), cmp.Compare(m.Partner, o.Partner), cmp.Compare(m.Tag, o.Tag))
}

// path returns the call path of a stack; equal ones share their memory.
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
	if known, ok := r.paths[p]; ok {
		return known
	}
	r.paths[p] = p
	return p
}
