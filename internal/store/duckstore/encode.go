package duckstore

import (
	"bytes"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// encoder converts records to columns of the table executions.
type encoder struct {
	cat *catalog.Catalog
	run provdb.RunID
	executionColumns

	r      *provenance.Record
	origin catalog.Origin
	exact  bool // the columns represent the record without loss
	text   bytes.Buffer
}

// executionColumns are the columns of the table executions.
type executionColumns struct {
	runs, pids, rids, steps                  values[int32]
	evRows                                   values[int64]
	evTexts                                  textValues
	anomalous                                values[bool]
	fns, paths, models                       values[int32]
	tids                                     values[int64]
	hostnames                                textValues
	entries, exits, exclusives, totals, lost values[int64]
	ioSteps                                  values[int32]
	ioStarts, ioEnds                         values[int64]
	scores, severities                       values[float64]
	statuses                                 textValues
	gpuEvents                                values[bool]
	versions                                 values[int32]
	stacks                                   callColumns
	windows                                  callColumns
	comms                                    messageColumns
	counters                                 counterColumns
	samples                                  values[int32]
	locations                                locationColumns
	parentTIDs                               values[int64]
	parents                                  callColumns
	parentErrors, docs, kinds, whys          textValues
	children, usualChildren                  values[int64]
}

// columns returns all columns in the order of the table.
func (c *executionColumns) columns() []column {
	return []column{
		&c.runs, &c.pids, &c.rids, &c.steps, &c.evRows, &c.evTexts, &c.anomalous, &c.fns, &c.paths, &c.models, &c.tids, &c.hostnames,
		&c.entries, &c.exits, &c.exclusives, &c.totals, &c.lost, &c.ioSteps, &c.ioStarts, &c.ioEnds, &c.scores, &c.severities, &c.statuses,
		&c.gpuEvents, &c.versions, c.stacks.column(false), c.windows.column(true), c.comms.column(), c.counters.column(), &c.samples,
		c.locations.column(), &c.parentTIDs, c.parents.column(false), &c.parentErrors, &c.docs, &c.kinds, &c.whys, &c.children,
		&c.usualChildren,
	}
}

// callColumns is a column of lists of calls. Only windows have parents.
type callColumns struct {
	lists     list
	fn, step  values[int32]
	row       values[int64]
	pStep     values[int32]
	pRow      values[int64]
	at, time  values[int64]
	anomalous values[bool]
}

func (c *callColumns) column(window bool) column {
	c.lists.fields = []column{&c.fn, &c.step, &c.row}
	if window {
		c.lists.fields = append(c.lists.fields, &c.pStep, &c.pRow)
	}
	c.lists.fields = append(c.lists.fields, &c.at, &c.time, &c.anomalous)
	return &c.lists
}

type messageColumns struct {
	lists    list
	received values[bool]
	partner  values[int32]
	bytes    values[uint64]
	tag      values[int32]
	at       values[int64]
	step     values[int32]
	row      values[int64]
}

func (c *messageColumns) column() column {
	c.lists.fields = []column{&c.received, &c.partner, &c.bytes, &c.tag, &c.at, &c.step, &c.row}
	return &c.lists
}

type counterColumns struct {
	lists list
	idx   values[int64]
	name  textValues
	value values[uint64]
	at    values[int64]
}

func (c *counterColumns) column() column {
	c.lists.fields = []column{&c.idx, &c.name, &c.value, &c.at}
	return &c.lists
}

type locationColumns struct {
	structure
	context, device, stream values[uint64]
	thread                  values[int64]
}

func (c *locationColumns) column() column {
	c.fields = []column{&c.context, &c.device, &c.stream, &c.thread}
	return &c.structure
}

// add adds a record to the columns.
func (e *encoder) add(r *provenance.Record, anomalous bool) error {
	e.r = r
	if e.origin, e.exact = catalog.NewOrigin(r); e.exact {
		e.evTexts.addNull()
	} else {
		e.evTexts.add(r.EventID)
	}
	e.exact = e.exact && r.Version == int(int32(r.Version))
	refs := e.cat.Refs(r)
	e.runs.add(int32(e.run))
	e.pids.add(int32(r.PID))
	e.rids.add(int32(r.RID))
	e.steps.add(e.origin.Step)
	e.evRows.add(e.origin.Row)
	e.anomalous.add(anomalous)
	e.fns.add(refs.Func)
	e.paths.add(refs.Path)
	e.models.addOrNull(refs.Model)
	e.samples.addOrNull(refs.Sample)
	e.tids.add(int64(r.TID))
	e.hostnames.add(r.Hostname)
	e.entries.add(int64(r.Entry))
	e.exits.add(int64(r.Exit))
	e.exclusives.add(int64(r.RuntimeExclusive))
	e.totals.add(int64(r.RuntimeTotal))
	e.lost.add(int64(r.LostTime))
	e.ioSteps.add(r.IOStep)
	e.ioStarts.add(int64(r.IOStepStart))
	e.ioEnds.add(int64(r.IOStepEnd))
	e.scores.add(r.OutlierScore)
	e.severities.add(r.OutlierSeverity)
	e.statuses.addOrNull(string(r.Status))
	e.gpuEvents.add(r.IsGPUEvent)
	e.versions.add(int32(r.Version))
	e.kinds.addOrNull(string(r.Kind))
	e.whys.addOrNull(r.Why)
	e.children.add(int64(r.Children))
	e.usualChildren.add(int64(r.UsualChildren))
	e.addFrames(&e.stacks, r.CallStack)
	e.addWindow()
	e.addMessages()
	e.addCounters()
	e.addGPU()
	if e.exact {
		e.docs.addNull()
		return nil
	}
	e.text.Reset()
	if err := r.WriteJSON(&e.text); err != nil {
		return err
	}
	e.docs.add(e.text.String())
	return nil
}

// place adds the step and the row of an ID, relative to those of the record.
func (e *encoder) place(steps *values[int32], rows *values[int64], id string) {
	step, row, ok := e.origin.Relative(id)
	e.exact = e.exact && ok
	if !ok {
		steps.addNull()
		rows.addNull()
		return
	}
	steps.add(int32(step))
	rows.add(row)
}

func (e *encoder) addFrames(c *callColumns, frames []provenance.StackEntry) {
	c.lists.add(len(frames))
	for i := range frames {
		e.addCall(c, &frames[i])
	}
}

// addCall adds the fields of a call. Times are relative to the entry of the record.
func (e *encoder) addCall(c *callColumns, f *provenance.StackEntry) {
	c.fn.add(e.cat.Func(e.r.PID, f.FID, f.Func))
	e.place(&c.step, &c.row, f.EventID)
	c.at.add(int64(f.Entry - e.r.Entry))
	if f.Exit != 0 {
		c.time.add(int64(f.Exit - f.Entry))
	} else {
		c.time.addNull()
	}
	c.anomalous.add(f.IsAnomaly)
}

func (e *encoder) addWindow() {
	c := &e.windows
	c.lists.add(len(e.r.EventWindow.Execs))
	for i := range e.r.EventWindow.Execs {
		f := &e.r.EventWindow.Execs[i]
		e.addCall(c, &f.StackEntry)
		if f.ParentID == "root" {
			c.pStep.addNull()
			c.pRow.addNull()
		} else {
			e.place(&c.pStep, &c.pRow, f.ParentID)
		}
	}
}

func (e *encoder) addMessages() {
	c := &e.comms
	c.lists.add(len(e.r.EventWindow.Comms))
	for i := range e.r.EventWindow.Comms {
		m := &e.r.EventWindow.Comms[i]
		received := m.Type == "RECV"
		own, partner := m.Source, m.Target
		if received {
			own, partner = partner, own
		}
		e.exact = e.exact && (received || m.Type == "SEND") && own == e.r.RID && m.PID == e.r.PID && m.RID == e.r.RID && m.TID == e.r.TID
		c.received.add(received)
		c.partner.add(int32(partner))
		if m.Bytes != nil {
			c.bytes.add(*m.Bytes)
		} else {
			c.bytes.addNull()
		}
		c.tag.add(m.Tag)
		c.at.add(int64(m.Timestamp - e.r.Entry))
		e.place(&c.step, &c.row, m.Exec)
	}
}

func (e *encoder) addCounters() {
	c := &e.counters
	c.lists.add(len(e.r.CounterEvents))
	for i := range e.r.CounterEvents {
		v := &e.r.CounterEvents[i]
		e.exact = e.exact && v.PID == e.r.PID && v.RID == e.r.RID && v.TID == e.r.TID
		c.idx.add(int64(v.Index))
		c.name.add(v.Name)
		c.value.add(v.Value)
		c.at.add(int64(v.Timestamp - e.r.Entry))
	}
}

// addGPU adds the place of the execution on a GPU and the call that launched it.
func (e *encoder) addGPU() {
	c := &e.locations
	if g := e.r.GPULocation; g != nil {
		c.context.add(g.Context)
		c.device.add(g.Device)
		c.stream.add(g.Stream)
		c.thread.add(int64(g.Thread))
	} else {
		c.nulls = append(c.nulls, len(c.thread.all))
		c.context.addNull()
		c.device.addNull()
		c.stream.addNull()
		c.thread.addNull()
	}
	if p, ok := e.r.GPUParent.(provenance.GPUParent); ok {
		e.parentTIDs.add(int64(p.TID))
		e.addFrames(&e.parents, p.CallStack)
		e.parentErrors.addNull()
		e.exact = e.exact && len(p.CallStack) > 0 && p.EventID == p.CallStack[0].EventID
		return
	}
	e.parentTIDs.addNull()
	e.parents.lists.addNull()
	if problem, ok := e.r.GPUParent.(string); ok {
		e.parentErrors.add(problem)
		return
	}
	e.parentErrors.addNull()
	e.exact = e.exact && e.r.GPUParent == nil
}
