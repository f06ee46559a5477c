package tau

import (
	"encoding/binary"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bpwriter"
)

// Encoder writes steps to datasets as TAU does, one dataset per rank. One Encoder can
// serve any number of ranks with the same names.
type Encoder struct {
	Names *trace.Names
	Ranks int // of the program
}

// typeNames are the names of event types by their numbers in TAU, which are those of Kinds relative
// to Enter.
var typeNames = [...]string{"ENTRY", "EXIT", "SEND", "RECV"}

// Encode writes a step of a rank to out: the tables in the order of the events' rows,
// the metadata, and in step 0 all names.
func (e *Encoder) Encode(out *bpwriter.Step, s *trace.Step, rank trace.Rank) {
	if s.Index == 0 {
		e.putNames(out)
	}
	for i := range s.Metadata {
		m := &s.Metadata[i]
		out.Attribute(fmt.Sprintf("%s%d:%d:%s", attrMetadata, m.Rank, m.Thread, m.Key), m.Value)
	}
	out.Int32("program_count", 1)
	out.Int32("comm_rank_count", int32(e.Ranks))
	threads := trace.Thread(0)
	for i := range s.Batches {
		threads = max(threads, s.Batches[i].Thread+1)
	}
	out.Int32("thread_count", int32(threads))
	out.Int32("event_type_count", int32(len(typeNames)))
	funcs, counters := e.Names.Counts()
	out.Int32("timer_count", int32(funcs))
	out.Uint64(funcTable.count, uint64(s.Funcs))
	out.Int32("counter_count", int32(counters))
	out.Uint64(counterTable.count, uint64(s.Counters))
	out.Uint64(commTable.count, uint64(s.Comms))
	putTable(out, &commTable, s.Comms, s, rank, commColumns)
	putTable(out, &counterTable, s.Counters, s, rank, counterColumns)
	putTable(out, &funcTable, s.Funcs, s, rank, funcColumns)
}

func (e *Encoder) putNames(out *bpwriter.Step) {
	out.Attribute(attrProgram+" 0", e.Names.Program())
	for i, name := range typeNames {
		out.Attribute(fmt.Sprintf("%s %d", attrEventType, i), name)
	}
	for id, name := range e.Names.Funcs() {
		out.Attribute(fmt.Sprintf("%s %d", attrTimer, id), name)
	}
	for id, name := range e.Names.Counters() {
		out.Attribute(fmt.Sprintf("%s %d", attrCounter, id), name)
	}
}

// putTable adds a table of the events for which columns reports true, with the columns
// that follow program, rank and thread. Like TAU, it omits a table without rows.
func putTable(out *bpwriter.Step, t *table, rows int, s *trace.Step, rank trace.Rank, columns func(*trace.Event) ([5]uint64, bool)) {
	if rows == 0 {
		return
	}
	size := []uint64{uint64(rows), uint64(len(t.columns))}
	to := out.Array(t.variable, bpwriter.Uint64, bpwriter.Dims{Shape: size, Start: []uint64{0, 0}, Count: size})
	if to == nil {
		return // the writer reports the error
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		for j := range b.Events {
			own, ok := columns(&b.Events[j])
			if !ok {
				continue
			}
			row := to[int(b.Events[j].Row)*t.rowSize():][:t.rowSize()]
			binary.LittleEndian.PutUint64(row[colProgram:], 0)
			binary.LittleEndian.PutUint64(row[colRank:], uint64(rank))
			binary.LittleEndian.PutUint64(row[colThread:], uint64(b.Thread))
			for k, at := 0, colThread+8; at < len(row); k, at = k+1, at+8 {
				binary.LittleEndian.PutUint64(row[at:], own[k])
			}
		}
	}
}

func funcColumns(e *trace.Event) ([5]uint64, bool) {
	return [5]uint64{uint64(e.Kind - trace.Enter), uint64(e.ID), uint64(e.Time)}, e.Kind == trace.Enter || e.Kind == trace.Exit
}

func commColumns(e *trace.Event) ([5]uint64, bool) {
	return [5]uint64{uint64(e.Kind - trace.Enter), uint64(e.Tag), uint64(e.ID), e.Value, uint64(e.Time)},
		e.Kind == trace.Send || e.Kind == trace.Recv
}

func counterColumns(e *trace.Event) ([5]uint64, bool) {
	return [5]uint64{uint64(e.ID), e.Value, uint64(e.Time)}, e.Kind == trace.Count
}
