package bpwriter

import (
	"encoding/binary"
	"strconv"
)

// beginSet begins a set of characteristics and returns its position.
func (s *Step) beginSet(el *element) int {
	from := len(el.sets)
	b := append(el.sets, 6, 0, 0, 0, 0) // as many characteristics as each kind has; length later
	b = append(b, charStep)
	b = binary.LittleEndian.AppendUint32(b, s.number)
	el.sets = append(b, charFile, 0, 0, 0, 0) // data.0
	el.n++
	return from
}

// endSet ends the set that began at from. at and payload are the positions of the block's
// head and of its content in the data.
func (s *Step) endSet(el *element, from, at, payload int) {
	b := append(el.sets, charOffset)
	b = binary.LittleEndian.AppendUint64(b, s.base+uint64(at))
	b = append(b, charPayload)
	el.sets = binary.LittleEndian.AppendUint64(b, s.base+uint64(payload))
	binary.LittleEndian.PutUint32(el.sets[from+1:], uint32(len(el.sets)-from-5))
}

func (s *Step) appendDims(b []byte, d Dims) []byte {
	b = append(b, charDimensions, byte(len(d.Count)))
	b = binary.LittleEndian.AppendUint16(b, uint16(24*len(d.Count)))
	for i := range d.Count {
		for _, v := range d.at(i) {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

// describe creates the metadata of the step for position at of md.0.
func (s *Step) describe(at int64) {
	s.meta = s.meta[:0]
	if at == 0 {
		s.meta = append(s.meta, header("Metadata")...)
	}
	s.groupsAt = uint64(at) + uint64(len(s.meta))
	s.describeGroups()
	s.variablesAt = uint64(at) + uint64(len(s.meta))
	s.describeAll(&s.variables, 'K')
	s.attributesAt = uint64(at) + uint64(len(s.meta))
	s.describeAll(&s.attributes, 0)
}

// describeGroups lists the groups with writer, step and position.
func (s *Step) describeGroups() {
	from := len(s.meta)
	b := binary.LittleEndian.AppendUint64(s.meta, uint64(len(s.groups)))
	b = append(b, make([]byte, 8)...) // length later
	for rank := range s.groups {
		at := len(b)
		b = append(b, 0, 0) // length later
		b = appendText(b, tauIO)
		b = append(b, 'n')
		b = binary.LittleEndian.AppendUint32(b, uint32(rank))
		b = appendText(b, strconv.Itoa(int(s.number)))
		b = binary.LittleEndian.AppendUint32(b, s.number)
		b = binary.LittleEndian.AppendUint64(b, s.base+uint64(s.groups[rank].at))
		binary.LittleEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	}
	binary.LittleEndian.PutUint64(b[from+8:], uint64(len(b)-from-16))
	s.meta = b
}

func (s *Step) describeAll(all *elements, layout byte) {
	from := len(s.meta)
	b := binary.LittleEndian.AppendUint32(s.meta, uint32(len(all.list)))
	b = append(b, make([]byte, 8)...) // length later
	for id := range all.list {
		el := &all.list[id]
		at := len(b)
		b = append(b, 0, 0, 0, 0) // length later
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		b = append(b, 0, 0) // no group
		b = appendText(b, el.name)
		b = append(b, layout, 0, byte(el.code))
		b = binary.LittleEndian.AppendUint64(b, el.n)
		b = append(b, el.sets...)
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	binary.LittleEndian.PutUint64(b[from+4:], uint64(len(b)-from-12))
	s.meta = b
}
