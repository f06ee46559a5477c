package pgstore

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/catalog"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// blockSize is the number of executions in a block. Larger blocks are smaller per execution, but PostgreSQL unpacks all of a
// block for each document.
const blockSize = 32

// Flags of calls and messages in blocks, as in blocks.sql.
const (
	anomalousCall   = 1
	openCall        = 2
	withoutParent   = 4
	receivedMessage = 1
	unknownBytes    = 2
)

// field is a list of numbers in a block, split as in blocks.sql.
type field struct {
	name  string
	lo    []int16
	hi    []int32
	flags bool // it has no list hi, and lo is never null
}

// part is the lists of the calls, messages or values of a block.
type part struct {
	name   string
	ends   []int32 // of slots
	fields []field
}

// newPart returns an empty part with room for n elements.
func newPart(n int, name string, fields ...string) part {
	p := part{name: name, ends: make([]int32, 0, blockSize), fields: make([]field, len(fields))}
	for i, f := range fields {
		p.fields[i] = field{name: f, flags: f == "flags", lo: make([]int16, 0, n), hi: make([]int32, 0, n)}
	}
	return p
}

// add appends one number to each field, and reports whether all could be represented.
func (p *part) add(numbers ...int64) bool {
	fits := true
	for i, n := range numbers {
		f := &p.fields[i]
		lo := int16(n)
		hi := (n - int64(lo)) >> 16
		fits = fits && hi == int64(int32(hi)) && (hi == 0 || !f.flags)
		f.lo, f.hi = append(f.lo, lo), append(f.hi, int32(hi))
	}
	return fits
}

func (p *part) len() int { return len(p.fields[0].lo) }

func (p *part) truncate(n int) {
	for i := range p.fields {
		f := &p.fields[i]
		f.lo, f.hi = f.lo[:n], f.hi[:n]
	}
}

// block is the context of some executions.
type block struct {
	number                            int32
	frames, calls, messages, counters part
	names                             []string // of counters
	values                            []int64
}

// newBlock returns an empty block with the capacity of previous, which may be nil.
func newBlock(number int32, previous *block) *block {
	var n [4]int
	if previous != nil {
		for i, p := range previous.parts() {
			n[i] = p.len() + p.len()/8
		}
	}
	return &block{
		number:   number,
		frames:   newPart(n[0], "frame", "flags", "fn", "step", "row", "at", "time"),
		calls:    newPart(n[1], "call", "flags", "fn", "step", "row", "parent_step", "parent_row", "at", "time"),
		messages: newPart(n[2], "message", "flags", "partner", "bytes", "tag", "step", "row", "at"),
		counters: newPart(n[3], "counter", "idx", "at"),
	}
}

// slots returns the number of executions in the block.
func (b *block) slots() int { return len(b.frames.ends) }

func (b *block) parts() [4]*part { return [4]*part{&b.frames, &b.calls, &b.messages, &b.counters} }

// add adds the context of a record. fns are the numbers of the functions of its stack, then of its window. If a block cannot
// represent it exactly, add returns false and changes nothing.
func (b *block) add(r *provenance.Record, o *catalog.Origin, fns []int32) bool {
	var marks [4]int
	for i, p := range b.parts() {
		marks[i] = p.len()
	}
	if b.addCalls(r, o, fns) && b.addMessages(r, o) && b.addCounters(r) {
		for _, p := range b.parts() {
			p.ends = append(p.ends, int32(p.len()))
		}
		return true
	}
	for i, p := range b.parts() {
		p.truncate(marks[i])
	}
	b.names, b.values = b.names[:marks[3]], b.values[:marks[3]]
	return false
}

func (b *block) addCalls(r *provenance.Record, o *catalog.Origin, fns []int32) bool {
	for i := range r.CallStack {
		f := &r.CallStack[i]
		step, row, ok := o.Relative(f.EventID)
		flags, time := callFlags(f)
		if !ok || !b.frames.add(flags, int64(fns[i]), step, row, int64(f.Entry-r.Entry), time) {
			return false
		}
	}
	fns = fns[len(r.CallStack):]
	for i := range r.EventWindow.Execs {
		f := &r.EventWindow.Execs[i]
		step, row, ok := o.Relative(f.EventID)
		flags, time := callFlags(&f.StackEntry)
		var parentStep, parentRow int64
		if f.ParentID == "root" {
			flags |= withoutParent
		} else {
			var okParent bool
			parentStep, parentRow, okParent = o.Relative(f.ParentID)
			ok = ok && okParent
		}
		if !ok || !b.calls.add(flags, int64(fns[i]), step, row, parentStep, parentRow, int64(f.Entry-r.Entry), time) {
			return false
		}
	}
	return true
}

// callFlags returns the flags and the duration of a call.
func callFlags(f *provenance.StackEntry) (flags, time int64) {
	if f.IsAnomaly {
		flags = anomalousCall
	}
	if f.Exit == 0 {
		return flags | openCall, 0
	}
	return flags, int64(f.Exit - f.Entry)
}

func (b *block) addMessages(r *provenance.Record, o *catalog.Origin) bool {
	for i := range r.EventWindow.Comms {
		c := &r.EventWindow.Comms[i]
		own, partner, flags, size := c.Source, c.Target, int64(0), uint64(0)
		if c.Type == "RECV" {
			own, partner, flags = partner, own, receivedMessage
		}
		if c.Bytes == nil {
			flags |= unknownBytes
		} else {
			size = *c.Bytes
		}
		step, row, ok := o.Relative(c.Exec)
		ok = ok && (flags&receivedMessage != 0 || c.Type == "SEND") && size <= math.MaxInt64 && own == r.RID &&
			c.PID == r.PID && c.RID == r.RID && c.TID == r.TID
		if !ok || !b.messages.add(flags, int64(partner)-int64(r.RID), int64(size), int64(c.Tag), step, row,
			int64(c.Timestamp-r.Entry)) {
			return false
		}
	}
	return true
}

func (b *block) addCounters(r *provenance.Record) bool {
	for i := range r.CounterEvents {
		c := &r.CounterEvents[i]
		ok := c.Value <= math.MaxInt64 && c.PID == r.PID && c.RID == r.RID && c.TID == r.TID
		b.names, b.values = append(b.names, c.Name), append(b.values, int64(c.Value))
		if !b.counters.add(int64(c.Index), int64(c.Timestamp-r.Entry)) || !ok {
			return false
		}
	}
	return true
}

// blockColumns are the columns of block.append.
var blockColumns = func() []string {
	columns := []string{"run", "block"}
	for _, p := range newBlock(0, nil).parts() {
		columns = append(columns, p.name+"_end")
		for i := range p.fields {
			f := &p.fields[i]
			if columns = append(columns, p.name+"_"+f.name); !f.flags {
				columns = append(columns, p.name+"_"+f.name+"_hi")
			}
		}
	}
	return append(columns, "counter_name", "counter_value")
}()

// append appends the block as a row of COPY in binary format.
func (b *block) append(to []byte, run provdb.RunID) []byte {
	to = binary.BigEndian.AppendUint16(to, uint16(len(blockColumns)))
	for _, n := range []int32{int32(run), b.number} {
		to = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(to, 4), uint32(n))
	}
	for _, p := range b.parts() {
		to = appendList(to, pgtype.Int4OID, p.ends, never, appendInt4)
		for i := range p.fields {
			f := &p.fields[i]
			if f.flags {
				to = appendList(to, pgtype.Int2OID, f.lo, never, appendInt2)
				continue
			}
			to = appendList(to, pgtype.Int2OID, f.lo, isZero, appendInt2)
			to = appendList(to, pgtype.Int4OID, f.hi, isZero, appendInt4)
		}
	}
	to = appendList(to, pgtype.TextOID, b.names, never, func(to []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
	})
	return appendList(to, pgtype.Int8OID, b.values, never, func(to []byte, n int64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(to, 8), uint64(n))
	})
}

func appendInt2(to []byte, n int16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(to, 2), uint16(n))
}

func appendInt4(to []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(to, 4), uint32(n))
}

func isZero[N int16 | int32](list []N) bool {
	return !slices.ContainsFunc(list, func(n N) bool { return n != 0 })
}

func never[T any]([]T) bool { return false }

// appendList appends a list as a field of COPY in binary format, or null.
func appendList[T any](to []byte, oid uint32, list []T, isNull func([]T) bool, element func([]byte, T) []byte) []byte {
	if isNull(list) {
		return binary.BigEndian.AppendUint32(to, math.MaxUint32)
	}
	at := len(to)
	head := []uint32{0, 1, 0, oid, uint32(len(list)), 1} // size, dimensions, no nulls, type, length, first index
	if len(list) == 0 {
		head = []uint32{0, 0, 0, oid}
	}
	for _, n := range head {
		to = binary.BigEndian.AppendUint32(to, n)
	}
	for _, v := range list {
		to = element(to, v)
	}
	binary.BigEndian.PutUint32(to[at:], uint32(len(to)-at-4))
	return to
}

// copyBlocks stores blocks.
func copyBlocks(ctx context.Context, tx pgx.Tx, run provdb.RunID, blocks []*block) error {
	blocks = slices.DeleteFunc(blocks, func(b *block) bool { return b.slots() == 0 })
	if len(blocks) == 0 {
		return nil
	}
	rows := &blockReader{run: run, blocks: blocks, text: append([]byte("PGCOPY\n\377\r\n\000"), make([]byte, 8)...)}
	_, err := tx.Conn().PgConn().CopyFrom(ctx, rows, "COPY blocks ("+strings.Join(blockColumns, ", ")+") FROM STDIN (FORMAT binary)")
	return err
}

// blockReader reads blocks as COPY in binary format.
type blockReader struct {
	run    provdb.RunID
	blocks []*block // not in text yet
	ended  bool
	text   []byte
	at     int // of text
}

func (r *blockReader) Read(p []byte) (n int, err error) {
	for r.at == len(r.text) {
		r.text, r.at = r.text[:0], 0
		switch {
		case len(r.blocks) > 0:
			r.text, r.blocks = r.blocks[0].append(r.text, r.run), r.blocks[1:]
		case !r.ended:
			r.text, r.ended = append(r.text, 0xff, 0xff), true
		default:
			return 0, io.EOF
		}
	}
	n = copy(p, r.text[r.at:])
	r.at += n
	return n, nil
}
