package replay

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
)

// table is one of TAU's arrays; docs/formats/tau.md describes them. Columns count from 0
// and have 8 bytes each.
type table struct {
	name    string
	columns int
	rank    int
	partner int // -1: none
	time    int
}

var tables = []table{
	{name: "event_timestamps", columns: 6, rank: 1, partner: -1, time: 5},
	{name: "comm_timestamps", columns: 8, rank: 1, partner: 5, time: 7},
	{name: "counter_values", columns: 6, rank: 1, partner: -1, time: 5},
}

// tableOf returns the table of a variable, or nil.
func tableOf(v *bp.Variable) *table {
	for i := range tables {
		t := &tables[i]
		if t.name != v.Name || v.Type != bp.Uint64 {
			continue
		}
		for j := range v.Blocks {
			if c := v.Blocks[j].Count; len(c) != 2 || c[1] != uint64(t.columns) {
				return nil
			}
		}
		return t
	}
	return nil
}

// implausible is the distance from other times beyond which a time counts as damaged, so
// that a replay does not wait for years.
const implausible = trace.Ticks(365 * 24 * 3600 * 1e6)

// clock computes the times at which the steps of a dataset were written. TAU writes a step after
// its last event, so that is the time of the step. A step without events has the time in BP4's
// metadata, or that of the previous step.
type clock struct {
	first   trace.Ticks // first event; 0: none yet
	last    trace.Ticks // last event, never decreasing
	ranks   map[trace.Rank]bool
	typical uint64 // an undamaged time; 0: none yet
}

// chunkSize is the size of a read of rows: a multiple of the row size of all tables.
const chunkSize = 192 * 1024

// addTimes adds the times of a step. buf has the length chunkSize.
func (c *clock) addTimes(s *bp.Step, buf []byte) error {
	least, most := uint64(math.MaxUint64), uint64(0)
	for i := range s.Variables {
		v := &s.Variables[i]
		t := tableOf(v)
		if t == nil {
			continue
		}
		err := eachChunk(s, v, buf, func(rows []byte) {
			c.notice(rows, t)
			for at := t.time * 8; at < len(rows); at += t.columns * 8 {
				x := binary.LittleEndian.Uint64(rows[at:])
				if x-c.typical+uint64(implausible) > 2*uint64(implausible) {
					continue
				}
				least, most = min(least, x), max(most, x)
			}
		})
		if err != nil {
			return err
		}
	}
	switch {
	case most > 0 && most <= math.MaxInt64:
		if c.first == 0 {
			c.first = trace.Ticks(least)
		}
		c.last = max(c.last, trace.Ticks(most))
	case s.Time > 0 && s.Time < math.MaxInt64/1_000_000:
		c.last = max(c.last, trace.Ticks(s.Time*1_000_000))
	}
	return nil
}

// notice adds the rank of the first row, which all rows of a block share, and sets the
// typical time: the median of three rows, so that one may be damaged.
func (c *clock) notice(rows []byte, t *table) {
	size := t.columns * 8
	n := len(rows) / size
	if n == 0 {
		return
	}
	if r := binary.LittleEndian.Uint64(rows[t.rank*8:]); c.ranks != nil && r <= math.MaxInt32 {
		c.ranks[trace.Rank(r)] = true
	}
	if c.typical == 0 {
		var x [3]uint64
		for i, row := range [...]int{0, n / 2, n - 1} {
			x[i] = binary.LittleEndian.Uint64(rows[row*size+t.time*8:])
		}
		slices.Sort(x[:])
		c.typical = x[1]
	}
}

// eachChunk reads all blocks of a table, several rows at a time.
func eachChunk(s *bp.Step, v *bp.Variable, buf []byte, do func(rows []byte)) error {
	for j := range v.Blocks {
		b := &v.Blocks[j]
		for off := int64(0); off < b.Size(); {
			rows := buf[:min(b.Size()-off, int64(len(buf)))]
			if err := s.ReadAt(v, b, rows, off); err != nil {
				return err
			}
			do(rows)
			off += int64(len(rows))
		}
	}
	return nil
}
