package summary

import (
	"encoding/binary"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// Delta is what ranks learned and found in some steps: what an analyzer adds to
// the models and to the picture of a run. Functions are identified by their ids.
type Delta struct {
	Models    []ModelDelta
	Functions []FunctionStats // without anomalies, which are those of Steps
	Ranks     []RankDelta
	Steps     []StepReport
	Counters  []Counter
	Paths     []PathDelta
}

// ModelDelta is what was learned of a function.
type ModelDelta struct {
	ID    int
	Model outlier.Model
}

// RankDelta is the number of anomalies of each step of a rank.
type RankDelta struct {
	trace.RankKey
	Anomalies stats.Sums
}

// PathDelta is calls of a program by call path, functions by their ids.
type PathDelta struct {
	Program trace.Program
	Depth   int // below which paths are folded
	List    []callpath.Entry
}

// Summarizes reports whether there is anything besides models.
func (d *Delta) Summarizes() bool {
	return len(d.Functions)+len(d.Ranks)+len(d.Steps)+len(d.Counters)+len(d.Paths) > 0
}

// EachFunction calls f with the id of each function that the delta mentions until
// it fails, and returns its error.
func (d *Delta) EachFunction(f func(id int) error) error {
	var err error
	visit := func(id int) {
		if err == nil {
			err = f(id)
		}
	}
	for i := range d.Models {
		visit(d.Models[i].ID)
	}
	for i := range d.Functions {
		visit(d.Functions[i].ID)
	}
	for i := range d.Steps {
		for j := range d.Steps[i].Functions {
			visit(d.Steps[i].Functions[j].ID)
		}
	}
	for i := range d.Paths {
		for _, e := range d.Paths[i].List {
			if e.Func != callpath.Other {
				visit(int(e.Func))
			}
		}
	}
	return err
}

// AppendBinary appends the encoding of the delta to b.
func (d *Delta) AppendBinary(b []byte) []byte {
	b = appendList(b, d.Models, (*ModelDelta).AppendBinary)
	b = appendList(b, d.Functions, (*FunctionStats).AppendBinary)
	b = appendList(b, d.Ranks, (*RankDelta).AppendBinary)
	b = appendList(b, d.Steps, (*StepReport).AppendBinary)
	b = appendList(b, d.Counters, (*Counter).AppendBinary)
	return appendList(b, d.Paths, (*PathDelta).AppendBinary)
}

// Decode replaces the delta by the one that AppendBinary wrote, in the memory that
// it has. It keeps nothing of b. No bytes are an empty delta. An error is an
// ErrEncoding of stats.
func (d *Delta) Decode(b []byte) error {
	c := &cursor{b: b, size: len(b), delta: true}
	if len(b) == 0 {
		*d = Delta{d.Models[:0], d.Functions[:0], d.Ranks[:0], d.Steps[:0], d.Counters[:0], d.Paths[:0]}
		return nil
	}
	d.Models = readList(c, d.Models, func(m *ModelDelta) {
		m.ID = c.id()
		c.model(&m.Model)
	})
	d.Functions = readList(c, d.Functions, c.function)
	d.Ranks = readList(c, d.Ranks, func(r *RankDelta) {
		r.RankKey = c.rank()
		c.sums(&r.Anomalies)
	})
	d.Steps = readList(c, d.Steps, func(s *StepReport) {
		s.RankKey, s.Step, s.First, s.Last, s.Scores = c.rank(), c.step(), c.micros(), c.micros(), c.runStats()
		s.Functions = readList(c, s.Functions, c.function)
	})
	d.Counters = readList(c, d.Counters, c.counter)
	d.Paths = readList(c, d.Paths, c.paths)
	c.end()
	return c.err
}

// AppendBinary appends the encoding of the model to b.
func (m *ModelDelta) AppendBinary(b []byte) []byte {
	return m.Model.AppendBinary(binary.AppendUvarint(b, uint64(m.ID)))
}

// AppendBinary appends the encoding of the steps to b.
func (r *RankDelta) AppendBinary(b []byte) []byte {
	return r.Anomalies.AppendBinary(appendRank(b, r.RankKey))
}

// AppendBinary appends the encoding of the report to b.
func (s *StepReport) AppendBinary(b []byte) []byte {
	b = binary.AppendVarint(appendRank(b, s.RankKey), int64(s.Step))
	b = binary.AppendVarint(b, int64(s.First))
	b = binary.AppendVarint(b, int64(s.Last))
	return appendList(appendRunStats(b, &s.Scores), s.Functions, (*FunctionStats).AppendBinary)
}

// AppendBinary appends the encoding of the calls to b.
func (p *PathDelta) AppendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(p.Program))
	b = binary.AppendUvarint(b, uint64(p.Depth))
	return appendText(b, string(callpath.AppendBinary(nil, p.List)))
}

// numbers are the fields of the totals.
func (t *Totals) numbers() [6]int64 {
	return [...]int64{int64(t.Steps), t.Events, t.Calls, t.Flagged, int64(t.Ranks), int64(t.Begin)}
}

// fields are the counts in the order of their encoding.
func (r *Review) fields() [7]*int64 {
	return [...]*int64{&r.Anomalies, &r.Confirmed, &r.Withdrawn, &r.Promoted, &r.Dropped, &r.NotJudged, &r.Typical}
}

// AppendBinary appends the encoding of the handover to b.
func (h *Handover) AppendBinary(b []byte) []byte {
	for _, n := range h.Totals.numbers() {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(tally.NumKinds))
	for kind := range tally.NumKinds {
		b = binary.AppendVarint(b, h.Tally.Count(kind))
	}
	b = appendList(b, h.Broken, func(s *string, b []byte) []byte { return appendText(b, *s) })
	return appendList(b, h.Ranks, func(r **RankOutcome, b []byte) []byte { return (*r).AppendBinary(b) })
}

// AppendBinary appends the encoding of the outcome to b.
func (r *RankOutcome) AppendBinary(b []byte) []byte {
	b = appendText(appendRank(b, r.RankKey), r.Host)
	for _, n := range r.Review.fields() {
		b = binary.AppendVarint(b, *n)
	}
	return appendList(b, r.Functions, (*FunctionStats).AppendBinary)
}

// ReadHandover decodes what AppendBinary wrote, and nothing else.
func ReadHandover(b []byte) (*Handover, error) {
	c := &cursor{b: b, size: len(b), delta: true}
	h := new(Handover)
	h.Totals = Totals{
		Steps: int(c.count()), Events: c.count(), Calls: c.count(), Flagged: c.count(), Ranks: int(c.count()), Begin: c.micros(),
	}
	kind := tally.Kind(0)
	c.list(func(*cursor) {
		if n := c.count(); kind < tally.NumKinds {
			h.Tally.Add(kind, n)
			kind++
		}
	})
	h.Broken = readList(c, nil, func(s *string) { *s = c.text() })
	h.Ranks = readList(c, nil, func(r **RankOutcome) {
		*r = &RankOutcome{RankKey: c.rank(), Host: c.text()}
		for _, n := range (*r).Review.fields() {
			*n = c.count()
		}
		(*r).Functions = readList(c, nil, c.function)
	})
	c.end()
	if c.err != nil {
		return nil, fmt.Errorf("what came of ranks: %w", c.err)
	}
	return h, nil
}
