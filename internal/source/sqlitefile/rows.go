package sqlitefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
)

// Rows are the rows of a table. Values are valid until the next call of Next or Find.
type Rows struct {
	t       *Table
	wanted  []int // columns, -1 if the table does not have them
	slots   []int // index in wanted by column, -1 if it is not wanted; up to the last wanted column
	stack   []page
	depth   int
	visited uint32 // pages of this scan
	started bool

	id      int64
	payload []byte
	scratch []byte // payload on several pages
	types   []uint64
	values  [][]byte
}

// page is a page of the path from the root to a row.
type page struct {
	number uint32
	data   []byte
	header int // where its header begins
	cells  int
	next   int // cell to read next; cells for the right-most child
	leaf   bool
}

const (
	interiorPage = 5
	leafPage     = 13
)

// Limits of trees and rows.
const (
	maxDepth   = 32
	maxPayload = 1 << 20 // columns after it are NULL
)

// Rows returns the rows of the table in order of their ids, with different columns. Those that the table does not have are NULL.
func (t *Table) Rows(columns ...string) *Rows {
	r := &Rows{t: t, types: make([]uint64, len(columns)), values: make([][]byte, len(columns)), id: math.MinInt64}
	for i, c := range columns {
		n := t.Column(c)
		r.wanted = append(r.wanted, n)
		for len(r.slots) <= n {
			r.slots = append(r.slots, -1)
		}
		if n >= 0 {
			r.slots[n] = i
		}
	}
	return r
}

// Next advances to the next row, or returns false at the end. Pages that cannot be read are skipped and noted in the database.
func (r *Rows) Next() bool {
	if !r.started {
		r.started = true
		r.visited, r.depth = 0, 0
		r.push(r.t.root)
	}
	for r.depth > 0 {
		p := &r.stack[r.depth-1]
		if p.leaf {
			for p.next < p.cells {
				p.next++
				before := r.id
				if err := r.row(p, p.next-1); err != nil {
					r.id = before
					r.t.db.notePage(p.number, "row %d of %s: %w", p.next, r.t.Name, err)
					break // the rest of the page is likely damaged, too
				}
				if r.id <= before && before != math.MinInt64 {
					r.id = before
					r.t.db.notePage(p.number, "rows of %s are not in order", r.t.Name)
					break
				}
				return true
			}
			r.depth--
			continue
		}
		if p.next > p.cells {
			r.depth--
			continue
		}
		p.next++
		if child, ok := p.child(p.next - 1); ok {
			r.push(child)
		} else {
			r.t.db.notePage(p.number, "page of %s without a valid child", r.t.Name)
		}
	}
	return false
}

// push reads a page and makes it the last of the path. It notes damage.
func (r *Rows) push(number uint32) {
	db := r.t.db
	note := func(format string, args ...any) {
		if number == 0 || number > db.pages {
			number = r.t.root // a page that does not exist has no place
		}
		db.notePage(number, format, args...)
	}
	if r.visited++; r.visited > db.pages {
		note("pages of %s form a cycle", r.t.Name)
		r.depth = 0
		return
	}
	if r.depth == maxDepth {
		note("pages of %s are nested too deeply", r.t.Name)
		return
	}
	if r.depth == len(r.stack) {
		r.stack = append(r.stack, page{data: make([]byte, db.pageSize)})
	}
	p := &r.stack[r.depth]
	if err := p.read(db, number); err != nil {
		p.number = 0
		note("page of %s: %w", r.t.Name, err)
		return
	}
	r.depth++
}

// read reads a page of a table.
func (p *page) read(db *DB, number uint32) error {
	if number == 0 || number > db.pages {
		return fmt.Errorf("there is no page %d", number)
	}
	p.number = number
	n, err := db.file.ReadAt(p.data, int64(number-1)*int64(db.pageSize))
	if db.read != nil {
		db.read(int64(n))
	}
	if n < len(p.data) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	p.header, p.next = 0, 0
	if number == 1 {
		p.header = headerSize
	}
	h := p.data[p.header:]
	p.cells = int(binary.BigEndian.Uint16(h[3:]))
	first := 8
	switch h[0] {
	case leafPage:
		p.leaf = true
	case interiorPage:
		p.leaf, first = false, 12
	default:
		return fmt.Errorf("its type is %d", h[0])
	}
	if p.header+first+2*p.cells > db.usable {
		return fmt.Errorf("it has too many cells, %d", p.cells)
	}
	p.header += first // now that of the cells
	return nil
}

// cell returns where a cell begins, or a place after the page.
func (p *page) cell(i int) int { return int(binary.BigEndian.Uint16(p.data[p.header+2*i:])) }

// child returns the page of a child. That after the cells is the right-most.
func (p *page) child(i int) (uint32, bool) {
	if i == p.cells {
		return binary.BigEndian.Uint32(p.data[p.header-4:]), true
	}
	at := p.cell(i)
	if at+4 > len(p.data) {
		return 0, false
	}
	return binary.BigEndian.Uint32(p.data[at:]), true
}

// key returns the row id of a cell.
func (p *page) key(i int) (int64, bool) {
	at := p.cell(i)
	if p.leaf {
		_, n := varint(p.data[min(at, len(p.data)):])
		at += n
	} else {
		at += 4
	}
	key, n := varint(p.data[min(at, len(p.data)):])
	return int64(key), n > 0
}

// Find moves to the row with an id, or returns false if it does not exist. It is fast for ids near the last one.
func (r *Rows) Find(id int64) bool {
	r.started, r.visited = true, 0
	number := r.t.root
	for r.depth = 0; r.depth < maxDepth; {
		if r.depth == len(r.stack) || r.stack[r.depth].number != number {
			before := r.depth
			if r.push(number); r.depth == before {
				return false
			}
		} else {
			r.depth++
		}
		p := &r.stack[r.depth-1]
		ok := true
		i := sort.Search(p.cells, func(i int) bool {
			key, valid := p.key(i)
			ok = ok && valid
			return key >= id
		})
		if !p.leaf && ok {
			number, ok = p.child(i)
		}
		if !ok {
			r.t.db.notePage(p.number, "page of %s without valid keys", r.t.Name)
			return false
		}
		if !p.leaf {
			continue
		}
		if i == p.cells {
			return false
		}
		if key, _ := p.key(i); key != id {
			return false
		}
		if err := r.row(p, i); err != nil {
			r.t.db.notePage(p.number, "row %d of %s: %w", id, r.t.Name, err)
			return false
		}
		return true
	}
	return false
}

var errRow = errors.New("its description does not fit into the page")

// row reads a row of a leaf page.
func (r *Rows) row(p *page, i int) error {
	at := p.cell(i)
	if at < p.header || at >= r.t.db.usable {
		return errRow
	}
	b := p.data[at:r.t.db.usable]
	size, n := varint(b)
	key, k := varint(b[n:])
	if n == 0 || k == 0 || size > uint64(r.t.db.pages)*uint64(r.t.db.pageSize) {
		return errRow
	}
	r.id = int64(key)
	b = b[n+k:]
	if local := r.localSize(int(size)); local == int(size) {
		if len(b) < local {
			return errRow
		}
		r.payload = b[:local]
	} else if err := r.overflow(b, local, int(size)); err != nil {
		return err
	}
	return r.decode()
}

// localSize returns the number of bytes of a payload that are on the leaf page.
func (r *Rows) localSize(size int) int {
	usable := r.t.db.usable
	most := usable - 35
	if size <= most {
		return size
	}
	least := (usable-12)*32/255 - 23
	if n := least + (size-least)%(usable-4); n <= most {
		return n
	}
	return least
}

// overflow collects a payload that continues on other pages.
func (r *Rows) overflow(b []byte, local, size int) error {
	if len(b) < local+4 {
		return errRow
	}
	db := r.t.db
	r.scratch = append(r.scratch[:0], b[:local]...)
	next := binary.BigEndian.Uint32(b[local:])
	for wanted := min(size, maxPayload); len(r.scratch) < wanted; {
		if next == 0 || next > db.pages {
			return fmt.Errorf("it continues on page %d, which does not exist", next)
		}
		n := min(wanted-len(r.scratch), db.usable-4)
		at := len(r.scratch)
		for range n + 4 {
			r.scratch = append(r.scratch, 0)
		}
		got, err := db.file.ReadAt(r.scratch[at:], int64(next-1)*int64(db.pageSize))
		if db.read != nil {
			db.read(int64(got))
		}
		if got < n+4 {
			return err
		}
		next = binary.BigEndian.Uint32(r.scratch[at:])
		copy(r.scratch[at:], r.scratch[at+4:])
		r.scratch = r.scratch[:at+n]
	}
	r.payload = r.scratch
	return nil
}

// decode finds the wanted values of the payload.
func (r *Rows) decode() error {
	b := r.payload
	header, n := varint(b)
	if n == 0 || header < uint64(n) || header > uint64(len(b)) {
		return errRow
	}
	types, body := b[n:header], b[header:]
	for i := range r.types {
		r.types[i], r.values[i] = 0, nil
	}
	for _, slot := range r.slots {
		if len(types) == 0 {
			break // the table had fewer columns when the row was written
		}
		kind, n := varint(types)
		if n == 0 {
			return errRow
		}
		types = types[n:]
		size := sizeOf(kind)
		if size > uint64(len(body)) {
			if len(b) == maxPayload {
				return nil // the rest is NULL
			}
			return errRow
		}
		if slot >= 0 {
			r.types[slot], r.values[slot] = kind, body[:size]
		}
		body = body[size:]
	}
	return nil
}

// sizeOf returns the number of bytes of a value.
func sizeOf(kind uint64) uint64 {
	switch {
	case kind >= 12:
		return (kind - 12) / 2
	case kind <= 4:
		return kind
	case kind == 5:
		return 6
	case kind <= 7:
		return 8
	}
	return 0
}

// ID returns the id of the row.
func (r *Rows) ID() int64 { return r.id }

// Int returns the value of a wanted column, or false if it is NULL or not a number.
func (r *Rows) Int(i int) (int64, bool) {
	v := r.values[i]
	switch kind := r.types[i]; kind {
	case 0:
		if r.wanted[i] >= 0 && r.wanted[i] == r.t.rowID {
			return r.id, true
		}
		return 0, false
	case 7:
		f := math.Float64frombits(binary.BigEndian.Uint64(v))
		return int64(f), f > math.MinInt64 && f < math.MaxInt64
	case 8, 9:
		return int64(kind - 8), true
	case 1, 2, 3, 4, 5, 6:
		n := int64(int8(v[0]))
		for _, b := range v[1:] {
			n = n<<8 | int64(b)
		}
		return n, true
	}
	return 0, false
}

// Text returns the text or the bytes of a wanted column, or nil if it is something else.
func (r *Rows) Text(i int) []byte {
	if r.types[i] < 12 {
		return nil
	}
	return r.values[i]
}

// varint reads a number and returns how many bytes it has, 0 if it is cut.
func varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	for n < len(b) && n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		n++
		if b[n-1] < 0x80 {
			return v, n
		}
	}
	if n < len(b) {
		return v<<8 | uint64(b[n]), n + 1
	}
	return 0, 0
}
