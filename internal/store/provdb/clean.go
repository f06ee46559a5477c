package provdb

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Clean returns a batch that every store can hold: texts are valid, no list is null, and only the
// last document with a key is kept; anomalies replace typical executions. It does not change b, but
// shares the records that need no change, which are nearly all.
func (b *Batch) Clean() *Batch {
	type event struct {
		program trace.Program
		id      string
	}
	type step struct {
		program trace.Program
		rank    trace.Rank
		step    int
	}
	type named struct {
		program trace.Program
		fid     int
		name    string
	}
	seen := make(map[event]bool, len(b.Anomalies)+len(b.Typical))
	ofRecord := func(r **provenance.Record) event { return event{(*r).PID, (*r).EventID} }
	var c cleaner
	anomalies := latest(b.Anomalies, seen, c.record, ofRecord)
	kept := slices.DeleteFunc(slices.Clone(anomalies), func(r *provenance.Record) bool { return r.Status == provenance.Dropped })
	removed := slices.DeleteFunc(anomalies, func(r *provenance.Record) bool { return r.Status != provenance.Dropped })
	return &Batch{
		Anomalies: kept,
		Typical:   latest(b.Typical, seen, c.record, ofRecord),
		Removed:   removed,
		Metadata: latest(b.Metadata, map[step]bool{}, cleanFacts, func(m *StepMetadata) step {
			return step{m.Program, m.Rank, m.Step}
		}),
		Functions: latest(b.Functions, map[named]bool{}, func(f *provenance.FuncStats) { cleanTexts(&f.Name) },
			func(f *provenance.FuncStats) named { return named{f.App, f.FID, f.Name} }),
		Counters: latest(b.Counters, map[named]bool{}, func(s *provenance.CounterStats) { cleanTexts(&s.Name) },
			func(s *provenance.CounterStats) named { return named{s.App, 0, s.Name} }),
		Models:    latest(b.Models, map[named]bool{}, cleanModel, func(m *provenance.ADModel) named { return named{m.PID, m.FID, m.Name} }),
		Paths:     cleanPaths(b.Paths),
		Findings:  latest(b.Findings, map[int]bool{}, cleanFinding, func(i *provenance.Finding) int { return i.Number }),
		Links:     latest(b.Links, map[event]bool{}, cleanLink, func(l *provenance.Link) event { return event{l.PID, l.EventID} }),
		Peers:     cleanPeers(b.Peers),
		Breakdown: cleanBreakdown(b.Breakdown),
	}
}

// latest returns clean copies of the items: the last of each key that was not seen before.
func latest[T any, K comparable](items []T, seen map[K]bool, clean func(*T), key func(*T) K) []T {
	kept := make([]T, 0, len(items))
	for _, item := range slices.Backward(items) {
		clean(&item)
		if k := key(&item); !seen[k] {
			seen[k] = true
			kept = append(kept, item)
		}
	}
	slices.Reverse(kept)
	return kept
}

func cleanTexts(all ...*string) {
	for _, s := range all {
		*s = provenance.Text(*s)
	}
}

func cleanFacts(m *StepMetadata) {
	m.Facts = copied(m.Facts)
	for i := range m.Facts {
		cleanTexts(&m.Facts[i].Descr, &m.Facts[i].Value)
	}
}

func cleanModel(m *provenance.ADModel) {
	cleanTexts(&m.Name)
	m.Model = CleanJSON(m.Model)
}

func cleanFinding(x *provenance.Finding) {
	cleanTexts(&x.Func, &x.Path, (*string)(&x.Kind), (*string)(&x.Form), (*string)(&x.Status), (*string)(&x.Severity), (*string)(&x.Role),
		(*string)(&x.Trend), &x.Summary, &x.Reason)
	x.Hosts, x.Examples = slices.Clone(x.Hosts), slices.Clone(x.Examples)
	for _, list := range [][]string{x.Hosts, x.Examples} {
		for k := range list {
			cleanTexts(&list[k])
		}
	}
}

func cleanLink(l *provenance.Link) { cleanTexts(&l.EventID, &l.Culprit, (*string)(&l.Role)) }

// cleaner caches the last model that needed no change, because many records share it.
type cleaner struct{ fit json.RawMessage }

// fits reports whether a model needs no change.
func (c *cleaner) fits(params json.RawMessage) bool {
	if len(params) > 0 && len(params) == len(c.fit) && &params[0] == &c.fit[0] {
		return true
	}
	if !fitJSON(params) {
		return false
	}
	c.fit = params
	return true
}

// record replaces a record that needs changes with a clean copy.
func (c *cleaner) record(p **provenance.Record) {
	r := *p
	fit := c.fits(r.AlgoParams) && r.CallStack != nil && r.CounterEvents != nil && r.EventWindow.Comms != nil && r.EventWindow.Execs != nil
	if r.NodeState != nil {
		fit = fit && r.NodeState.Data != nil
	}
	texts(r, func(s *string) { fit = fit && provenance.Text(*s) == *s })
	if fit {
		return
	}
	n := *r
	n.AlgoParams = CleanJSON(r.AlgoParams)
	n.CallStack, n.CounterEvents = copied(r.CallStack), copied(r.CounterEvents)
	n.EventWindow.Comms, n.EventWindow.Execs = copied(r.EventWindow.Comms), copied(r.EventWindow.Execs)
	if r.NodeState != nil {
		n.NodeState = &provenance.NodeState{Data: copied(r.NodeState.Data), Timestamp: r.NodeState.Timestamp}
	}
	if p, ok := r.GPUParent.(provenance.GPUParent); ok {
		p.CallStack = copied(p.CallStack)
		n.GPUParent = p
	}
	texts(&n, func(s *string) { cleanTexts(s) })
	*p = &n
}

func copied[T any](list []T) []T { return append(make([]T, 0, len(list)), list...) }

// texts calls f with all texts of a record.
func texts(r *provenance.Record, f func(*string)) {
	f(&r.EventID)
	f(&r.Func)
	f(&r.Hostname)
	f((*string)(&r.Kind))
	f((*string)(&r.Status))
	f(&r.Why)
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

// fitJSON reports whether JSON is valid UTF-8 and has no escapes that databases may reject: those
// of zero bytes and of surrogates.
func fitJSON(text json.RawMessage) bool {
	if !utf8.Valid(text) {
		return false
	}
	for {
		i := bytes.Index(text, []byte(`\u`))
		if i < 0 {
			return true
		}
		text = text[i+2:]
		if bytes.HasPrefix(text, []byte("0000")) || len(text) > 0 && (text[0] == 'd' || text[0] == 'D') {
			return false
		}
	}
}

// CleanJSON returns JSON that every store can hold. Invalid JSON is only converted to valid
// UTF-8.
func CleanJSON(text json.RawMessage) json.RawMessage {
	if fitJSON(text) {
		return text
	}
	text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	var v any
	d := json.NewDecoder(bytes.NewReader(text)) // joins or replaces surrogates
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(cleanValue(v)) != nil {
		return text
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return provenance.Text(v)
	case []any:
		for i := range v {
			v[i] = cleanValue(v[i])
		}
		return v
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, x := range v {
			c[provenance.Text(key)] = cleanValue(x)
		}
		return c
	}
	return v
}
