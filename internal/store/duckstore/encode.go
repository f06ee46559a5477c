package duckstore

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"strings"
	"sync"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// encoder converts records to rows of the table executions. Rows share its memory.
type encoder struct {
	cat *catalog.Catalog
	run provdb.RunID

	r      *provenance.Record
	step   int32 // of the record's id
	row    int64
	prefix string // of the record's id, without the row
	exact  bool   // the columns represent the record completely

	args                                   []driver.Value
	stack, window, comms, counters, parent list
	location                               map[string]any
	text                                   bytes.Buffer
}

// list is the value of a nested column. It reuses its maps.
type list struct {
	all  []any
	used int
}

func (l *list) reset() { l.used = 0 }

func (l *list) next() map[string]any {
	if l.used == len(l.all) {
		l.all = append(l.all, make(map[string]any))
	}
	l.used++
	return l.all[l.used-1].(map[string]any)
}

func (l *list) value() []any { return l.all[:l.used:l.used] }

// record returns the row of a record, valid until the next call.
func (e *encoder) record(r *provenance.Record, anomalous bool) ([]driver.Value, error) {
	e.r, e.exact, e.prefix = r, true, ""
	var evText driver.Value
	var ok bool
	if e.step, e.row, ok = e.parseID(r.EventID); !ok {
		evText, e.step, e.row, e.exact = r.EventID, -1, -1, false
	} else {
		e.prefix = r.EventID[:strings.LastIndexByte(r.EventID, ':')+1]
	}
	e.exact = e.exact && r.Version == int(int32(r.Version))
	refs := e.cat.Refs(r)
	e.frames(&e.stack, r.CallStack)
	e.execs()
	e.messages()
	e.readings()
	location := e.gpuLocation()
	parentTID, parentStack, parentError := e.gpuParent()
	var doc driver.Value
	if !e.exact {
		e.text.Reset()
		if err := r.WriteJSON(&e.text); err != nil {
			return nil, err
		}
		doc = json.RawMessage(e.text.Bytes())
	}
	e.args = append(e.args[:0],
		int32(e.run), int32(r.PID), int32(r.RID), e.step, e.row, evText, anomalous, refs.Func, refs.Path,
		catalog.OrNull(refs.Model), int64(r.TID), r.Hostname, int64(r.Entry), int64(r.Exit),
		int64(r.RuntimeExclusive), int64(r.RuntimeTotal), int64(r.LostTime), r.IOStep, int64(r.IOStepStart), int64(r.IOStepEnd),
		r.OutlierScore, r.OutlierSeverity, catalog.OrNull(string(r.Status)), r.IsGPUEvent, int32(r.Version),
		e.stack.value(), e.window.value(), e.comms.value(), e.counters.value(), catalog.OrNull(refs.Sample), location,
		parentTID, parentStack, parentError, doc, catalog.OrNull(string(r.Kind)), catalog.OrNull(r.Why),
		int64(r.Children), int64(r.UsualChildren))
	return e.args, nil
}

// parseID parses an id of the record's rank. Most differ from the record's own id only in
// the row.
func (e *encoder) parseID(id string) (step int32, row int64, ok bool) {
	digits, same := strings.CutPrefix(id, e.prefix)
	if !same || e.prefix == "" || digits == "" || len(digits) > 9 || digits[0] == '0' && digits != "0" {
		return catalog.ParseID(id, e.r.RID)
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return catalog.ParseID(id, e.r.RID)
		}
		row = 10*row + int64(digits[i]-'0')
	}
	return e.step, row, true
}

// place sets step and row of an id, relative to those of the record.
func (e *encoder) place(m map[string]any, step, row, id string) {
	s, r, ok := e.parseID(id)
	e.exact = e.exact && ok
	if !ok {
		m[step], m[row] = nil, nil
		return
	}
	m[step], m[row] = boxed(int64(s)-int64(e.step)), boxed(r-e.row)
}

func (e *encoder) frames(l *list, frames []provenance.StackEntry) {
	l.reset()
	for i := range frames {
		e.frame(l.next(), &frames[i])
	}
}

// frame sets the fields of a call. Times are relative to the entry of the record.
func (e *encoder) frame(m map[string]any, f *provenance.StackEntry) {
	m["fn"] = boxed(int64(e.cat.Func(e.r.PID, f.FID, f.Func)))
	e.place(m, "step", "row", f.EventID)
	m["at"], m["duration"] = boxed(int64(f.Entry-e.r.Entry)), nil
	if f.Exit != 0 {
		m["duration"] = boxed(int64(f.Exit - f.Entry))
	}
	m["anomalous"] = f.IsAnomaly
}

func (e *encoder) execs() {
	e.window.reset()
	for i := range e.r.EventWindow.Execs {
		f, m := &e.r.EventWindow.Execs[i], e.window.next()
		e.frame(m, &f.StackEntry)
		if f.ParentID == "root" {
			m["parent_step"], m["parent_row"] = nil, nil
		} else {
			e.place(m, "parent_step", "parent_row", f.ParentID)
		}
	}
}

func (e *encoder) messages() {
	e.comms.reset()
	for i := range e.r.EventWindow.Comms {
		c, m := &e.r.EventWindow.Comms[i], e.comms.next()
		received := c.Type == "RECV"
		own, partner := c.Source, c.Target
		if received {
			own, partner = partner, own
		}
		e.exact = e.exact && (received || c.Type == "SEND") && own == e.r.RID && c.PID == e.r.PID && c.RID == e.r.RID && c.TID == e.r.TID
		m["received"], m["partner"], m["bytes"], m["tag"] = received, boxed(int64(partner)), nil, boxed(int64(c.Tag))
		if c.Bytes != nil {
			m["bytes"] = *c.Bytes
		}
		m["at"] = int64(c.Timestamp - e.r.Entry)
		e.place(m, "step", "row", c.Exec)
	}
}

func (e *encoder) readings() {
	e.counters.reset()
	for i := range e.r.CounterEvents {
		c, m := &e.r.CounterEvents[i], e.counters.next()
		e.exact = e.exact && c.PID == e.r.PID && c.RID == e.r.RID && c.TID == e.r.TID
		m["idx"], m["name"], m["value"] = int64(c.Index), c.Name, c.Value
		m["at"] = int64(c.Timestamp - e.r.Entry)
	}
}

func (e *encoder) gpuLocation() driver.Value {
	g := e.r.GPULocation
	if g == nil {
		return nil
	}
	if e.location == nil {
		e.location = make(map[string]any)
	}
	e.location["context"], e.location["device"], e.location["stream"], e.location["thread"] = g.Context, g.Device, g.Stream, int64(g.Thread)
	return e.location
}

func (e *encoder) gpuParent() (tid, stack, problem driver.Value) {
	switch p := e.r.GPUParent.(type) {
	case nil:
		return nil, nil, nil
	case string:
		return nil, nil, p
	case provenance.GPUParent:
		e.frames(&e.parent, p.CallStack)
		e.exact = e.exact && len(p.CallStack) > 0 && p.EventID == p.CallStack[0].EventID
		return int64(p.TID), e.parent.value(), nil
	}
	e.exact = false
	return nil, nil, nil
}

// boxes are small numbers as values of any, which need no allocation.
var boxes = sync.OnceValue(func() *[1 << 14]any {
	all := new([1 << 14]any)
	for i := range all {
		all[i] = int64(i - lowestBox)
	}
	return all
})

const lowestBox = 1 << 11

// boxed returns n as a value of any.
func boxed(n int64) any {
	if all := boxes(); n >= -lowestBox && n < int64(len(all))-lowestBox {
		return all[n+lowestBox]
	}
	return n
}
