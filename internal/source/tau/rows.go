package tau

import (
	"encoding/binary"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// The following three functions are the hot path from bytes to events. Each loads the
// columns of a row, checks them all in one condition, and calls reject if that fails.

func (d *Decoder) decodeFuncs(rows []byte, first uint32, want rankCheck) {
	l := &d.funcs
	cur := l.resume(want.rank)
	n := len(l.events)
	events := l.events[:cap(l.events)] // room for all rows and all sides
	for ; len(rows) >= funcRowSize; rows = rows[funcRowSize:] {
		row := (*[funcRowSize]byte)(rows)
		typ := binary.LittleEndian.Uint64(row[colType:])
		thread := binary.LittleEndian.Uint64(row[colThread:])
		id := binary.LittleEndian.Uint64(row[funcID:])
		time := binary.LittleEndian.Uint64(row[funcTime:])
		kind := d.kinds[uint8(typ)]
		other := (binary.LittleEndian.Uint64(row[colRank:]) ^ want.want) & want.mask
		if (thread^cur.thread)|other|typ>>8|id>>32 != 0 || binary.LittleEndian.Uint64(row[colProgram:]) > maxProgram ||
			kind-trace.Enter > trace.Exit-trace.Enter || time-1 >= maxTime {
			if other != 0 || binary.LittleEndian.Uint64(row[colProgram:]) > maxProgram || thread >= maxThread || typ > math.MaxUint8 ||
				kind-trace.Enter > trace.Exit-trace.Enter || id > math.MaxUint32 || time-1 >= maxTime {
				d.reject(row[:], want, typ > math.MaxUint8 || kind != trace.Enter && kind != trace.Exit, id > math.MaxUint32)
				first++
				continue
			}
			l.events = events[:n] // the row is of another thread
			cur = l.begin(cur, want.rank, thread)
			n = len(l.events)
		}
		if trace.Ticks(time) < cur.last {
			cur.disorder++
		}
		cur.last = trace.Ticks(time)
		if cur.last >= cur.due {
			n = insert(events, n, &cur, cur.last, kind)
		}
		events[n] = trace.Event{Time: cur.last, Row: first, ID: uint32(id), Kind: kind}
		n++
		first++
	}
	l.events, l.cur = events[:n], cur
}

func (d *Decoder) decodeComms(rows []byte, first uint32, want rankCheck) {
	l := &d.comms
	cur := l.resume(want.rank)
	for ; len(rows) >= commRowSize; rows = rows[commRowSize:] {
		row := (*[commRowSize]byte)(rows)
		typ := binary.LittleEndian.Uint64(row[colType:])
		thread := binary.LittleEndian.Uint64(row[colThread:])
		tag := binary.LittleEndian.Uint64(row[commTag:])
		partner := binary.LittleEndian.Uint64(row[commPartner:])
		time := binary.LittleEndian.Uint64(row[commTime:])
		kind := d.kinds[uint8(typ)]
		if binary.LittleEndian.Uint64(row[colProgram:]) > maxProgram ||
			(binary.LittleEndian.Uint64(row[colRank:])^want.want)&want.mask != 0 ||
			thread >= maxThread || typ > math.MaxUint8 || kind-trace.Send > trace.Recv-trace.Send ||
			!isInt32(tag) || !isInt32(partner) || time-1 >= maxTime {
			d.reject(row[:], want, typ > math.MaxUint8 || kind != trace.Send && kind != trace.Recv, !isInt32(tag) || !isInt32(partner))
			first++
			continue
		}
		if thread != cur.thread {
			cur = l.begin(cur, want.rank, thread)
		}
		if trace.Ticks(time) < cur.last {
			cur.disorder++
		}
		cur.last = trace.Ticks(time)
		size := binary.LittleEndian.Uint64(row[commBytes:])
		if size > trace.MaxSize {
			size = trace.UnknownSize
			d.tally.Add(tally.SizeImplausible, 1)
		}
		l.events = append(l.events, trace.Event{
			Time: trace.Ticks(time), Value: size,
			Row: first, ID: uint32(partner), Tag: int32(tag), Kind: kind,
		})
		first++
	}
	l.cur = cur
}

func (d *Decoder) decodeCounters(rows []byte, first uint32, want rankCheck) {
	l := &d.counters
	cur := l.resume(want.rank)
	for ; len(rows) >= counterRowSize; rows = rows[counterRowSize:] {
		row := (*[counterRowSize]byte)(rows)
		thread := binary.LittleEndian.Uint64(row[colThread:])
		id := binary.LittleEndian.Uint64(row[counterID:])
		time := binary.LittleEndian.Uint64(row[counterTime:])
		if binary.LittleEndian.Uint64(row[colProgram:]) > maxProgram ||
			(binary.LittleEndian.Uint64(row[colRank:])^want.want)&want.mask != 0 ||
			thread >= maxThread || id > math.MaxUint32 || time-1 >= maxTime {
			d.reject(row[:], want, false, id > math.MaxUint32)
			first++
			continue
		}
		if thread != cur.thread {
			cur = l.begin(cur, want.rank, thread)
		}
		if trace.Ticks(time) < cur.last {
			cur.disorder++
		}
		cur.last = trace.Ticks(time)
		l.events = append(l.events, trace.Event{
			Time: trace.Ticks(time), Value: binary.LittleEndian.Uint64(row[counterValue:]),
			Row: first, ID: uint32(id), Kind: trace.Count,
		})
		first++
	}
	l.cur = cur
}

// isInt32 reports whether a column holds a C int. TAU widens negative ones, such as
// MPI_ANY_TAG, to 64 or to 32 bits.
func isInt32(v uint64) bool { return v <= math.MaxUint32 || int64(v) >= math.MinInt32 && int64(v) < 0 }

// reject counts an impossible row under the first of its errors.
func (d *Decoder) reject(row []byte, want rankCheck, badType, badID bool) {
	kind := tally.TimeImplausible
	switch {
	case binary.LittleEndian.Uint64(row[colProgram:]) > maxProgram:
		kind = tally.ProgramImplausible
	case (binary.LittleEndian.Uint64(row[colRank:])^want.want)&want.mask != 0:
		kind = tally.RankMismatch
	case binary.LittleEndian.Uint64(row[colThread:]) >= maxThread:
		kind = tally.ThreadImplausible
	case badType:
		kind = tally.TypeUnknown
	case badID:
		kind = tally.IDImplausible
	}
	d.tally.Add(kind, 1)
}
