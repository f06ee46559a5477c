package tracetest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// AsBP3 returns a BP3 file with the metadata of a BP4 dataset. BP3 has a path, here
// empty, in place of two bytes, and one section for all steps.
func AsBP3(tb testing.TB, dataset string) []byte {
	tb.Helper()
	idx, err := os.ReadFile(filepath.Join(dataset, "md.idx"))
	if err != nil {
		tb.Fatal(err)
	}
	md, err := os.ReadFile(filepath.Join(dataset, "md.0"))
	if err != nil {
		tb.Fatal(err)
	}
	u64 := binary.LittleEndian.Uint64
	var groups, variables, attributes []byte
	for rec := idx[64:]; len(rec) > 0; rec = rec[64:] {
		g, v, a, end := u64(rec[16:]), u64(rec[24:]), u64(rec[32:]), u64(rec[40:])
		groups = append(groups, md[g+16:v]...)
		for list := md[v+12 : a]; len(list) > 0; {
			n := 4 + binary.LittleEndian.Uint32(list)
			element := slices.Clone(list[:n])
			element[12+binary.LittleEndian.Uint16(element[10:])] = 0 // layout, the length of the path
			variables = append(variables, element...)
			list = list[n:]
		}
		attributes = append(attributes, md[a+12:end]...)
	}
	count := make([]byte, 4)
	b := slices.Concat(words(0, uint64(len(groups))), groups)
	atVariables := uint64(len(b))
	b = slices.Concat(b, count, words(uint64(len(variables))), variables)
	atAttributes := uint64(len(b))
	b = slices.Concat(b, count, words(uint64(len(attributes))), attributes)
	foot := make([]byte, 28, 56)
	copy(foot, "ADIOS-BP v2.<.0 Metadata")
	copy(foot[24:], "2<0")
	const base = 5000 // positions count from that of the groups
	return slices.Concat(b, foot, words(base, base+atVariables, base+atAttributes), []byte{0, 0, 3, 3})
}

func words(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
