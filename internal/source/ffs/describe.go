package ffs

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Describe returns the description of a format as ADIOS2 writes it and ParseFormat
// reads it. The first structure is that of the records; the others are those to which
// it refers. It uses their names and sizes, and the name, type, size and offset of
// their fields, which are in order of offset.
func Describe(structures ...*Format) []byte {
	var body []byte
	for _, s := range structures {
		body = appendStructure(body, s)
	}
	total := uint32(repHeader + len(body))
	head := binary.BigEndian.AppendUint16(nil, uint16(total))
	head = append(head, 0, repVersion, byte(len(structures)-1), 0)
	head = binary.BigEndian.AppendUint16(head, uint16(total>>16))
	return append(head, body...)
}

// repVersion is the supported version of descriptions.
const repVersion = 2

func appendStructure(b []byte, s *Format) []byte {
	var entries, texts []byte
	base := structHeader + fieldEntry*len(s.Fields)
	text := func(t string) uint32 {
		at := base + len(texts)
		texts = append(append(texts, t...), 0)
		return uint32(at)
	}
	name := text(s.Name)
	for i := range s.Fields {
		fd := &s.Fields[i]
		entries = binary.LittleEndian.AppendUint32(entries, text(fd.Name))
		entries = binary.LittleEndian.AppendUint32(entries, text(fd.Type))
		entries = binary.LittleEndian.AppendUint32(entries, uint32(fd.Size))
		entries = binary.LittleEndian.AppendUint32(entries, uint32(fd.Offset))
	}
	texts = append(texts, make([]byte, -(base+len(texts))&3)...)
	options := uint32(base + len(texts)) // none: one empty entry ends their table
	const noOptions = 12
	total := options + noOptions

	b = binary.BigEndian.AppendUint16(b, uint16(total))
	b = append(b, repVersion, 0)
	b = binary.LittleEndian.AppendUint32(b, name)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Fields)))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Size))
	b = append(b, pointerSize, structHeader)
	b = binary.LittleEndian.AppendUint16(b, floatLittleEndian)
	b = binary.LittleEndian.AppendUint16(b, uint16(options))
	b = append(b, 0, pointerSize) // row-major, alignment
	b = binary.BigEndian.AppendUint16(b, uint16(total>>16))
	b = binary.LittleEndian.AppendUint16(b, uint16(options>>16))
	return slices.Concat(b, entries, texts, make([]byte, noOptions))
}

// floatLittleEndian is the FFS code of little-endian IEEE numbers.
const floatLittleEndian = 2

// DescriptionID returns the id of the format that rep describes: a hash by which both
// ends of a connection identify it. Padding may follow rep, which must be complete.
func DescriptionID(rep []byte) (id ID) {
	length := repLength(rep)
	primary, secondary := lookup3(rep[:length])
	id[0], id[1] = repVersion, byte(length>>18)
	binary.BigEndian.PutUint16(id[2:], uint16(length>>2))
	binary.BigEndian.PutUint32(id[4:], primary)
	binary.BigEndian.PutUint32(id[8:], secondary)
	return id
}

// lookup3 is Bob Jenkins' hash function of that name with two results, both
// seeded with 0.
func lookup3(key []byte) (primary, secondary uint32) {
	a := 0xdeadbeef + uint32(len(key))
	b, c := a, a
	add := func(k []byte) {
		a += binary.LittleEndian.Uint32(k)
		b += binary.LittleEndian.Uint32(k[4:])
		c += binary.LittleEndian.Uint32(k[8:])
	}
	for ; len(key) > 12; key = key[12:] {
		add(key)
		for _, shift := range [...]int{4, 6, 8, 16, 19, 4} {
			a, b, c = b, c+b, (a-c)^bits.RotateLeft32(c, shift)
		}
	}
	if len(key) == 0 {
		return c, b
	}
	var last [12]byte
	copy(last[:], key)
	add(last[:])
	for _, shift := range [...]int{14, 11, 25, 16, 4, 14, 24} {
		a, b, c = b, (c^b)-bits.RotateLeft32(b, shift), a
	}
	return b, a
}
