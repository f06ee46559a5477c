package tracetest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Tables are rows of TAU's three arrays, as one writer puts them out: see
// docs/formats/tau.md for their columns.
type Tables struct {
	Funcs    [][6]uint64 // event_timestamps
	Comms    [][8]uint64 // comm_timestamps
	Counters [][6]uint64 // counter_values
}

// Step is a step to write. Its arrays have one block; each of More adds
// another, as the further ranks of a common file do. An array without rows is
// left out, as TAU leaves it out.
type Step struct {
	Tables
	More  []Tables
	Attrs [][2]string // name and value
}

// EventTypes are the attributes that give the event types TAU's own numbers.
var EventTypes = [][2]string{{"event_type 0", "ENTRY"}, {"event_type 1", "EXIT"}, {"event_type 2", "SEND"}, {"event_type 3", "RECV"}}

// WriteBP4 writes a closed BP4 dataset into dir, which it makes if need be,
// and returns its path.
func WriteBP4(tb testing.TB, dir string, steps []Step) string {
	tb.Helper()
	path := filepath.Join(dir, "written.bp")
	if err := os.MkdirAll(path, 0o755); err != nil {
		tb.Fatal(err)
	}
	w := bp4Writer{index: bp4Header("Index Table"), meta: bp4Header("Metadata"), data: bp4Header("Data")}
	for _, s := range steps {
		w.step(s)
	}
	for name, b := range map[string][]byte{"md.idx": w.index, "md.0": w.meta, "data.0": w.data} {
		if err := os.WriteFile(filepath.Join(path, name), b, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return path
}

// bp4Writer holds the files of a BP4 dataset; docs/formats/bp4.md tells what
// is in them.
type bp4Writer struct {
	index, meta, data []byte
	steps             uint32
}

func bp4Header(kind string) []byte {
	b := make([]byte, 64)
	copy(b, "ADIOS-BP v2.<.0 "+kind)
	copy(b[32:], "2<0\x00\x00\x04")
	return b
}

func (w *bp4Writer) step(s Step) {
	w.steps++
	blocks := append([]Tables{s.Tables}, s.More...)
	groups := w.groups(len(blocks))
	variables := section(slices.Concat(
		w.count("timer_event_count", blocks, func(t Tables) int { return len(t.Funcs) }),
		w.count("counter_event_count", blocks, func(t Tables) int { return len(t.Counters) }),
		w.count("comm_count", blocks, func(t Tables) int { return len(t.Comms) }),
		array(w, "event_timestamps", blocks, func(t Tables) [][]uint64 { return rowSlices(t.Funcs, func(r *[6]uint64) []uint64 { return r[:] }) }),
		array(w, "counter_values", blocks, func(t Tables) [][]uint64 { return rowSlices(t.Counters, func(r *[6]uint64) []uint64 { return r[:] }) }),
		array(w, "comm_timestamps", blocks, func(t Tables) [][]uint64 { return rowSlices(t.Comms, func(r *[8]uint64) []uint64 { return r[:] }) }),
	))
	var attributes []byte
	for _, a := range s.Attrs {
		attributes = append(attributes, w.attribute(a[0], a[1])...)
	}
	attributes = section(attributes)
	at := uint64(len(w.meta))
	w.meta = slices.Concat(w.meta, groups, variables, attributes)
	inVariables := at + uint64(len(groups))
	inAttributes := inVariables + uint64(len(variables))
	w.index = append(w.index, u64s(uint64(w.steps), 0, at, inVariables, inAttributes, uint64(len(w.meta)), 1_700_000_000, 0)...)
}

// groups is the index of process groups, one for each writer.
func (w *bp4Writer) groups(writers int) []byte {
	var list []byte
	for rank := range writers {
		g := str16(nil, "TAU trace data")
		g = append(g, 'n')
		g = binary.LittleEndian.AppendUint32(g, uint32(rank))
		g = str16(g, strconv.Itoa(int(w.steps)))
		g = binary.LittleEndian.AppendUint32(g, w.steps)
		g = append(g, u64s(uint64(len(w.data)))...)
		list = append(binary.LittleEndian.AppendUint16(list, uint16(len(g))), g...)
	}
	return slices.Concat(u64s(uint64(writers), uint64(len(list))), list)
}

// The types and the characteristics of BP4 that are used here.
const (
	typeUint64, typeString = 54, 9

	charValue, charDimensions, charPayload, charFile, charStep = 0, 4, 6, 7, 8
)

// count is a number of rows, one value for each block.
func (w *bp4Writer) count(name string, blocks []Tables, rows func(Tables) int) []byte {
	var sets []byte
	for _, t := range blocks {
		sets = append(sets, w.set([]byte{charDimensions, 0, 0, 0, charValue}, u64s(uint64(rows(t))))...)
	}
	return element(name, typeUint64, sets)
}

func rowSlices[R any](rows []R, columns func(*R) []uint64) (all [][]uint64) {
	for i := range rows {
		all = append(all, columns(&rows[i]))
	}
	return all
}

// array is a table, one block after the other, each with its start at zero.
func array(w *bp4Writer, name string, blocks []Tables, rows func(Tables) [][]uint64) []byte {
	var sets []byte
	for _, t := range blocks {
		all := rows(t)
		if len(all) == 0 {
			continue
		}
		n, columns := uint64(len(all)), uint64(len(all[0]))
		at := uint64(len(w.data))
		for _, r := range all {
			w.data = append(w.data, u64s(r...)...)
		}
		sets = append(sets, w.set([]byte{charDimensions, 2, 48, 0}, u64s(n, n, 0, columns, columns, 0), []byte{charPayload}, u64s(at))...)
	}
	if sets == nil {
		return nil
	}
	return element(name, typeUint64, sets)
}

func (w *bp4Writer) attribute(name, value string) []byte {
	return element(name, typeString, w.set([]byte{charDimensions, 1, 24, 0}, u64s(1, 0, 0), []byte{charValue}, str16(nil, value)))
}

// set is a set of characteristics: a block, or the value of an attribute.
func (w *bp4Writer) set(parts ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{charStep}, w.steps)
	b = append(b, charFile, 0, 0, 0, 0)
	b = append(b, slices.Concat(parts...)...)
	const some = 3 // how many characteristics; readers go by the length
	return append(binary.LittleEndian.AppendUint32([]byte{some}, uint32(len(b))), b...)
}

// element is a variable or an attribute.
func element(name string, typ byte, sets []byte) []byte {
	b := make([]byte, 6) // member id, name of the group
	b = str16(b, name)
	b = append(b, 'K', 0, typ)
	b = append(append(b, u64s(1)...), sets...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func section(elements []byte) []byte {
	return slices.Concat(make([]byte, 4), u64s(uint64(len(elements))), elements)
}

func str16(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func u64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
