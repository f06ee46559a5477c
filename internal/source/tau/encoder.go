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
	Names *Names
	Ranks int // of the program
}

// typeNames are the names of event types by the number that TAU gives them, which is
// that of the Kind after Enter.
var typeNames = [...]string{"ENTRY", "EXIT", "SEND", "RECV"}

// Encode writes a step of a rank to out: the tables in the order of the events' rows,
// the metadata, and in step 0 all names.
func (e *Encoder) Encode(out *bpwriter.Step, s *Step, rank trace.Rank) {
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
	out.Int32("timer_count", int32(len(e.Names.funcs)))
	out.Uint64(funcTable.count, uint64(s.Funcs))
	out.Int32("counter_count", int32(len(e.Names.counters)))
	out.Uint64(counterTable.count, uint64(s.Counters))
	out.Uint64(commTable.count, uint64(s.Comms))
	comms := tableBytes(out, &commTable, s.Comms)
	fillRows(comms, s, rank, putComm)
	counters := tableBytes(out, &counterTable, s.Counters)
	fillRows(counters, s, rank, putCounter)
	funcs := tableBytes(out, &funcTable, s.Funcs)
	fillRows(funcs, s, rank, putFunc)
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

// tableBytes adds a table and returns its bytes. Like TAU, it omits a table without
// rows.
func tableBytes(out *bpwriter.Step, t *table, rows int) []byte {
	if rows == 0 {
		return nil
	}
	size := []uint64{uint64(rows), uint64(len(t.columns))}
	return out.Array(t.variable, bpwriter.Uint64, bpwriter.Dims{Shape: size, Start: []uint64{0, 0}, Count: size})
}

// fillRows calls put for all events; put returns the row of an event that belongs to
// the table, or nil.
func fillRows(to []byte, s *Step, rank trace.Rank, put func(to []byte, e *trace.Event) []byte) {
	if to == nil {
		return
	}
	for i := range s.Batches {
		b := &s.Batches[i]
		for j := range b.Events {
			if row := put(to, &b.Events[j]); row != nil {
				binary.LittleEndian.PutUint64(row[colProgram:], 0)
				binary.LittleEndian.PutUint64(row[colRank:], uint64(rank))
				binary.LittleEndian.PutUint64(row[colThread:], uint64(b.Thread))
			}
		}
	}
}

func putFunc(to []byte, e *trace.Event) []byte {
	if e.Kind != trace.Enter && e.Kind != trace.Exit {
		return nil
	}
	row := to[int(e.Row)*funcRowSize:]
	binary.LittleEndian.PutUint64(row[colType:], uint64(e.Kind-trace.Enter))
	binary.LittleEndian.PutUint64(row[funcID:], uint64(e.ID))
	binary.LittleEndian.PutUint64(row[funcTime:], uint64(e.Time))
	return row
}

func putComm(to []byte, e *trace.Event) []byte {
	if e.Kind != trace.Send && e.Kind != trace.Recv {
		return nil
	}
	row := to[int(e.Row)*commRowSize:]
	binary.LittleEndian.PutUint64(row[colType:], uint64(e.Kind-trace.Enter))
	binary.LittleEndian.PutUint64(row[commTag:], uint64(e.Tag))
	binary.LittleEndian.PutUint64(row[commPartner:], uint64(e.ID))
	binary.LittleEndian.PutUint64(row[commBytes:], e.Value)
	binary.LittleEndian.PutUint64(row[commTime:], uint64(e.Time))
	return row
}

func putCounter(to []byte, e *trace.Event) []byte {
	if e.Kind != trace.Count {
		return nil
	}
	row := to[int(e.Row)*counterRowSize:]
	binary.LittleEndian.PutUint64(row[counterID:], uint64(e.ID))
	binary.LittleEndian.PutUint64(row[counterValue:], e.Value)
	binary.LittleEndian.PutUint64(row[counterTime:], uint64(e.Time))
	return row
}
