package duckstore

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/trace"
)

type eventKey struct {
	program trace.Program
	id      string
}

type funcKey struct {
	program trace.Program
	fid     int
	name    string
}

type counterKey struct {
	program trace.Program
	name    string
}

type stepKey struct {
	program trace.Program
	rank    trace.Rank
	step    int
}

// clean returns the batch as the tables can hold it: its text is text, and of
// all that has the same key only the last is left. The batch stays as it is.
func clean(b *provdb.Batch) *provdb.Batch {
	c := &provdb.Batch{
		Anomalies: cleaned(b.Anomalies, cleanRecord), Typical: cleaned(b.Typical, cleanRecord),
		Metadata: cleaned(b.Metadata, cleanMetadata), Functions: cleaned(b.Functions, cleanFunction),
		Counters: cleaned(b.Counters, cleanCounter), Models: cleaned(b.Models, cleanModel),
	}
	events := make(map[eventKey]bool, len(b.Anomalies)+len(b.Typical))
	event := func(r **provenance.Record) eventKey { return eventKey{(*r).PID, (*r).EventID} }
	c.Anomalies = latest(c.Anomalies, events, event)
	c.Typical = latest(c.Typical, events, event)
	c.Metadata = latest(c.Metadata, map[stepKey]bool{}, func(m *provdb.StepMetadata) stepKey { return stepKey{m.Program, m.Rank, m.Step} })
	c.Functions = latest(c.Functions, map[funcKey]bool{}, func(f *provenance.FuncStats) funcKey { return funcKey{f.App, f.FID, f.Name} })
	c.Counters = latest(c.Counters, map[counterKey]bool{}, func(f *provenance.CounterStats) counterKey { return counterKey{f.App, f.Name} })
	c.Models = latest(c.Models, map[funcKey]bool{}, func(m *provenance.ADModel) funcKey { return funcKey{m.PID, m.FID, m.Name} })
	return c
}

// latest keeps the last item of each key that is not seen yet.
func latest[T any, K comparable](items []T, seen map[K]bool, key func(*T) K) []T {
	kept := make([]T, 0, len(items))
	for i := len(items) - 1; i >= 0; i-- {
		if k := key(&items[i]); !seen[k] {
			seen[k] = true
			kept = append(kept, items[i])
		}
	}
	slices.Reverse(kept)
	return kept
}

func cleaned[T any](items []T, f func(T) T) []T {
	c := make([]T, len(items))
	for i := range items {
		c[i] = f(items[i])
	}
	return c
}

func cleanMetadata(m provdb.StepMetadata) provdb.StepMetadata {
	m.Facts = cleaned(m.Facts, func(f provenance.Metadata) provenance.Metadata {
		f.Descr, f.Value = provenance.Text(f.Descr), provenance.Text(f.Value)
		return f
	})
	return m
}

func cleanFunction(f provenance.FuncStats) provenance.FuncStats {
	f.Name = provenance.Text(f.Name)
	return f
}

func cleanCounter(c provenance.CounterStats) provenance.CounterStats {
	c.Name = provenance.Text(c.Name)
	return c
}

func cleanModel(m provenance.ADModel) provenance.ADModel {
	m.Name, m.Model = provenance.Text(m.Name), jsonText(m.Model)
	return m
}

// jsonText is JSON whose bytes are all text.
func jsonText(text json.RawMessage) json.RawMessage {
	if utf8.Valid(text) {
		return text
	}
	return bytes.ToValidUTF8(text, []byte("\ufffd"))
}

// cleanRecord returns the record itself, or a copy of it if not all of its text
// is text, or lists are null that the schema has.
func cleanRecord(r *provenance.Record) *provenance.Record {
	fine := utf8.Valid(r.AlgoParams) && r.CallStack != nil && r.CounterEvents != nil && r.EventWindow.Comms != nil && r.EventWindow.Execs != nil
	if r.NodeState != nil {
		fine = fine && r.NodeState.Data != nil
	}
	texts(r, func(s *string) { fine = fine && provenance.Text(*s) == *s })
	if fine {
		return r
	}
	c := *r
	c.AlgoParams = jsonText(r.AlgoParams)
	c.CallStack, c.CounterEvents = copied(r.CallStack), copied(r.CounterEvents)
	c.EventWindow.Comms, c.EventWindow.Execs = copied(r.EventWindow.Comms), copied(r.EventWindow.Execs)
	if r.NodeState != nil {
		c.NodeState = &provenance.NodeState{Data: copied(r.NodeState.Data), Timestamp: r.NodeState.Timestamp}
	}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok {
		p.CallStack = copied(p.CallStack)
		c.GPUParent = p
	}
	texts(&c, func(s *string) { *s = provenance.Text(*s) })
	return &c
}

func copied[T any](list []T) []T { return append(make([]T, 0, len(list)), list...) }

// texts calls f with all texts of a record.
func texts(r *provenance.Record, f func(*string)) {
	f(&r.EventID)
	f(&r.Func)
	f(&r.Hostname)
	f((*string)(&r.Status))
	stackTexts(r.CallStack, f)
	for i := range r.CounterEvents {
		f(&r.CounterEvents[i].Name)
	}
	for i := range r.EventWindow.Comms {
		f(&r.EventWindow.Comms[i].Exec)
		f(&r.EventWindow.Comms[i].Type)
	}
	for i := range r.EventWindow.Execs {
		e := &r.EventWindow.Execs[i]
		f(&e.EventID)
		f(&e.Func)
		f(&e.ParentID)
	}
	if r.NodeState != nil {
		for i := range r.NodeState.Data {
			f(&r.NodeState.Data[i].Field)
		}
	}
	switch p := r.GPUParent.(type) {
	case string:
		if f(&p); p != r.GPUParent {
			r.GPUParent = p
		}
	case provenance.GPUParent:
		stackTexts(p.CallStack, f)
		id := p.EventID
		if f(&p.EventID); p.EventID != id {
			r.GPUParent = p
		}
	}
}

func stackTexts(stack []provenance.StackEntry, f func(*string)) {
	for i := range stack {
		f(&stack[i].EventID)
		f(&stack[i].Func)
	}
}
