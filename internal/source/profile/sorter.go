package profile

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

// record is an event of the file, 32 bytes, to be sorted by time.
type record struct {
	start       int64 // nanoseconds
	duration    int64 // of a call, the value of a counter, or the size of a message
	correlation uint64
	fn          uint32 // function or counter
	lane        uint16
	kind        Kind
}

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	Complete Kind = iota // a call with its duration
	Begin                // the beginning of a call
	End                  // the end of a call
	AsyncBegin
	AsyncEnd
	Counter
	Send    // a message, at the time when it is sent
	Receive // a message, when it has arrived
)

// compare orders records by time. An enclosing call comes before the calls inside it that begin
// at the same time. All other records keep the order of the file.
func (r *record) compare(o *record) int {
	if c := cmp.Compare(r.start, o.start); c != 0 {
		return c
	}
	if r.kind == Complete && o.kind == Complete {
		return cmp.Compare(o.duration, r.duration)
	}
	return cmp.Compare(min(r.kind, Begin), min(o.kind, Begin))
}

const recordSize = 32

func (r *record) put(b []byte) {
	_ = b[recordSize-1]
	binary.LittleEndian.PutUint64(b, uint64(r.start))
	binary.LittleEndian.PutUint64(b[8:], uint64(r.duration))
	binary.LittleEndian.PutUint64(b[16:], r.correlation)
	binary.LittleEndian.PutUint32(b[24:], r.fn)
	binary.LittleEndian.PutUint16(b[28:], r.lane)
	b[30], b[31] = byte(r.kind), 0
}

func (r *record) get(b []byte) {
	_ = b[recordSize-1]
	r.start = int64(binary.LittleEndian.Uint64(b))
	r.duration = int64(binary.LittleEndian.Uint64(b[8:]))
	r.correlation = binary.LittleEndian.Uint64(b[16:])
	r.fn = binary.LittleEndian.Uint32(b[24:])
	r.lane = binary.LittleEndian.Uint16(b[28:])
	r.kind = Kind(b[30])
}

// sorter sorts any number of records in bounded memory: sorted runs of more records than fit
// go to a temporary file without a name, from which iterators merge them.
type sorter struct {
	dir   string // of the temporary file
	limit int    // records in memory
	last  []record
	runs  []int64 // numbers of records of the runs in the file
	file  *os.File
	out   *bufio.Writer
}

func (s *sorter) add(r record) error {
	if len(s.last) == s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.last = append(s.last, r)
	return nil
}

func (s *sorter) sort() {
	slices.SortStableFunc(s.last, func(a, b record) int { return a.compare(&b) })
}

// spill appends the records in memory to the file as a run.
func (s *sorter) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "chimbuko-sort-*")
		if err != nil {
			return fmt.Errorf("cannot sort events outside of memory: %w", err)
		}
		_ = os.Remove(f.Name()) // so that the space is freed however the process ends
		s.file, s.out = f, bufio.NewWriterSize(f, 1<<20)
	}
	s.sort()
	var b [recordSize]byte
	for i := range s.last {
		s.last[i].put(b[:])
		if _, err := s.out.Write(b[:]); err != nil {
			return fmt.Errorf("cannot sort events outside of memory: %w", err)
		}
	}
	s.runs = append(s.runs, int64(len(s.last)))
	s.last = s.last[:0]
	return nil
}

// finish ends adding. If there are runs in the file, all records are there.
func (s *sorter) finish() error {
	if s.file == nil {
		s.sort()
		s.last = slices.Clip(s.last)
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.last = nil
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("cannot sort events outside of memory: %w", err)
	}
	s.out = nil
	return nil
}

func (s *sorter) close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name any more
	}
}

// iterator yields sorted records.
type iterator struct {
	memory []record
	runs   []*run // a heap by their first records
}

// run is a sorted run in the file.
type run struct {
	in     *bufio.Reader
	number int // in order of the file
	left   int64
	record
}

// runBuffer is the number of bytes to read at once from each run.
const runBuffer = 1 << 16

// iterate returns an iterator over all records. Several may be in use.
func (s *sorter) iterate() (*iterator, error) {
	it := &iterator{memory: s.last}
	at := int64(0)
	for i, n := range s.runs {
		r := &run{in: bufio.NewReaderSize(io.NewSectionReader(s.file, at*recordSize, n*recordSize), runBuffer), number: i, left: n}
		at += n
		ok, err := r.advance()
		if err != nil {
			return nil, err
		}
		if ok {
			it.runs = append(it.runs, r)
		}
	}
	for i := len(it.runs)/2 - 1; i >= 0; i-- {
		it.sink(i)
	}
	return it, nil
}

// advance reads the next record of the run.
func (r *run) advance() (ok bool, err error) {
	if r.left == 0 {
		return false, nil
	}
	r.left--
	b, err := r.in.Peek(recordSize)
	if err != nil {
		return false, fmt.Errorf("cannot read sorted events: %w", err)
	}
	r.get(b)
	_, err = r.in.Discard(recordSize)
	return true, err
}

// next sets r to the next record, or returns false at the end.
func (it *iterator) next(r *record) (ok bool, err error) {
	if len(it.memory) > 0 {
		*r, it.memory = it.memory[0], it.memory[1:]
		return true, nil
	}
	if len(it.runs) == 0 {
		return false, nil
	}
	top := it.runs[0]
	*r = top.record
	more, err := top.advance()
	if err != nil {
		return false, err
	}
	if !more {
		n := len(it.runs) - 1
		it.runs[0] = it.runs[n]
		it.runs = it.runs[:n]
	}
	it.sink(0)
	return true, nil
}

// sink moves a run down the heap to its place.
func (it *iterator) sink(i int) {
	less := func(a, b *run) bool { return cmp.Or(a.compare(&b.record), cmp.Compare(a.number, b.number)) < 0 }
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(it.runs); c++ {
			if less(it.runs[c], it.runs[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		it.runs[i], it.runs[least] = it.runs[least], it.runs[i]
		i = least
	}
}
