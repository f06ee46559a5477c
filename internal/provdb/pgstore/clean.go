package pgstore

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provenance"
)

// clean returns a batch whose text PostgreSQL can hold. It shares with its
// argument all that was fit already, which is nearly always everything.
func clean(b *provdb.Batch) *provdb.Batch {
	c := *b
	c.Anomalies, c.Typical = cleanAll(b.Anomalies), cleanAll(b.Typical)
	c.Metadata = slices.Clone(b.Metadata)
	for i := range c.Metadata {
		c.Metadata[i].Facts = slices.Clone(c.Metadata[i].Facts)
		for k := range c.Metadata[i].Facts {
			f := &c.Metadata[i].Facts[k]
			f.Descr, f.Value = provenance.Text(f.Descr), provenance.Text(f.Value)
		}
	}
	c.Functions = slices.Clone(b.Functions)
	for i := range c.Functions {
		c.Functions[i].Name = provenance.Text(c.Functions[i].Name)
	}
	c.Counters = slices.Clone(b.Counters)
	for i := range c.Counters {
		c.Counters[i].Name = provenance.Text(c.Counters[i].Name)
	}
	c.Models = slices.Clone(b.Models)
	for i := range c.Models {
		c.Models[i].Name, c.Models[i].Model = provenance.Text(c.Models[i].Name), cleanJSON(c.Models[i].Model)
	}
	return &c
}

func cleanAll(records []*provenance.Record) []*provenance.Record {
	copied := false
	for i, r := range records {
		if isClean(r) {
			continue
		}
		if !copied {
			records, copied = slices.Clone(records), true
		}
		records[i] = cleaned(r)
	}
	return records
}

func isClean(r *provenance.Record) bool {
	fit := isCleanJSON(r.AlgoParams)
	texts(r, func(s *string) { fit = fit && provenance.Text(*s) == *s })
	return fit
}

// cleaned returns a copy of a record with clean text.
func cleaned(r *provenance.Record) *provenance.Record {
	c := *r
	c.AlgoParams = cleanJSON(r.AlgoParams)
	c.CallStack, c.CounterEvents = slices.Clone(r.CallStack), slices.Clone(r.CounterEvents)
	c.EventWindow = provenance.EventWindow{Comms: slices.Clone(r.EventWindow.Comms), Execs: slices.Clone(r.EventWindow.Execs)}
	if r.NodeState != nil {
		c.NodeState = &provenance.NodeState{Timestamp: r.NodeState.Timestamp, Data: slices.Clone(r.NodeState.Data)}
	}
	switch p := r.GPUParent.(type) {
	case string:
		c.GPUParent = provenance.Text(p)
	case provenance.GPUParent:
		p.EventID, p.CallStack = provenance.Text(p.EventID), slices.Clone(p.CallStack)
		c.GPUParent = p
	}
	texts(&c, func(s *string) { *s = provenance.Text(*s) })
	return &c
}

// texts visits all text of a record. What is no variable, it only shows.
func texts(r *provenance.Record, visit func(s *string)) {
	visit(&r.EventID)
	visit(&r.Func)
	visit(&r.Hostname)
	visit((*string)(&r.Status))
	stack := func(frames []provenance.StackEntry) {
		for i := range frames {
			visit(&frames[i].EventID)
			visit(&frames[i].Func)
		}
	}
	stack(r.CallStack)
	for i := range r.CounterEvents {
		visit(&r.CounterEvents[i].Name)
	}
	for i := range r.EventWindow.Execs {
		e := &r.EventWindow.Execs[i]
		visit(&e.EventID)
		visit(&e.Func)
		visit(&e.ParentID)
	}
	for i := range r.EventWindow.Comms {
		visit(&r.EventWindow.Comms[i].Exec)
		visit(&r.EventWindow.Comms[i].Type)
	}
	if r.NodeState != nil {
		for i := range r.NodeState.Data {
			visit(&r.NodeState.Data[i].Field)
		}
	}
	switch p := r.GPUParent.(type) {
	case string:
		visit(&p)
	case provenance.GPUParent:
		visit(&p.EventID)
		stack(p.CallStack)
	}
}

// isCleanJSON tells whether a text of JSON surely has no escapes that JSONB
// refuses: those of zero bytes and of halves of characters.
func isCleanJSON(text json.RawMessage) bool {
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

// cleanJSON returns JSON that JSONB holds. What is no JSON is left as it is.
func cleanJSON(text json.RawMessage) json.RawMessage {
	if isCleanJSON(text) {
		return text
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text)) // makes characters of halves
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
