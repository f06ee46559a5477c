package otf2

import (
	"fmt"
	"os"
)

// The types of local definitions.
const (
	mappingTable = 5
	clockOffset  = 6
)

// The kinds of numbers that a mapping table translates.
const (
	mapAttribute = 1
	mapRegion    = 3
	mapMetric    = 5
	mapComm      = 6
	mapParameter = 7
	mapContext   = 10
	numMaps      = 16
)

// mapping translates numbers, such as local ones to global ones. Numbers that it does not have stay as they are, unless it is
// closed: then they are undefined.
type mapping struct {
	near   []uint32 // of small numbers
	far    map[uint32]uint32
	closed bool
}

// firstFar is the least far number. Far numbers are in a map, because a record of a few bytes must not
// take much memory.
const firstFar = 1 << 16

func (m *mapping) of(id uint32) uint32 {
	if uint(id) < uint(len(m.near)) {
		return m.near[id]
	}
	if global, ok := m.far[id]; ok {
		return global
	}
	if m.closed {
		return undefined
	}
	return id
}

func (m *mapping) set(id, global uint32) {
	if id >= firstFar {
		if m.far == nil {
			m.far = make(map[uint32]uint32)
		}
		m.far[id] = global
		return
	}
	for n := uint32(len(m.near)); n <= id; n++ {
		m.near = append(m.near, n)
		if m.closed {
			m.near[n] = undefined
		}
	}
	m.near[id] = global
}

// offset is the lag of a clock at a time.
type offset struct {
	time  uint64
	ticks int64
}

// local are the definitions of a location.
type local struct {
	maps    [numMaps]mapping
	offsets []offset
}

// readLocal reads the definitions of a location. A location without such a file has none.
func readLocal(file string, chunk uint64) (*local, error) {
	l := new(local)
	c, err := openChunks(file, chunk)
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer c.close()
	for {
		t, ok := c.record()
		if !ok {
			return l, c.err
		}
		c.begin()
		switch t {
		case mappingTable:
			l.addMap(&c.cursor)
		case clockOffset:
			o := offset{time: c.u64(), ticks: int64(c.number())}
			if n := len(l.offsets); c.err == nil && (n == 0 || l.offsets[n-1].time < o.time) {
				l.offsets = append(l.offsets, o)
			}
		}
		c.finish()
	}
}

// addMap adds a mapping table: either all global numbers in order, or pairs of a local and a global number.
func (l *local) addMap(b *cursor) {
	kind := b.byte()
	n, sparse := b.number(), b.byte() != 0
	if n > uint64(b.end-b.pos) {
		b.fail(fmt.Errorf("a mapping of %d numbers in %d bytes", n, b.end-b.pos))
		return
	}
	if kind >= numMaps {
		return
	}
	m := &l.maps[kind]
	for i := range uint32(n) {
		id := i
		if sparse {
			id = b.id()
		}
		if global := b.id(); b.err == nil {
			m.set(id, global)
		}
	}
}

// correct returns a time of the location's clock on that of the archive: it interpolates the offsets around it
// linearly, and continues the first and the last line beyond them.
func (l *local) correct(time uint64) uint64 {
	switch len(l.offsets) {
	case 0:
		return time
	case 1:
		return time + uint64(l.offsets[0].ticks)
	}
	i := 1
	for i < len(l.offsets)-1 && l.offsets[i].time < time {
		i++
	}
	from, to := l.offsets[i-1], l.offsets[i]
	if from.ticks == to.ticks {
		return time + uint64(from.ticks)
	}
	slope := float64(to.ticks-from.ticks) / float64(to.time-from.time)
	return time + uint64(from.ticks) + uint64(int64(slope*float64(int64(time-from.time))))
}
