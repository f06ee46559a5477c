// Package damage damages recorded files by seed and reads them under limits: no panic,
// no hang, bounded memory.
package damage

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files are the contents of files by name.
type Files map[string][]byte

// ReadDir returns the files in a directory, without its subdirectories.
func ReadDir(dir string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := make(Files)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Write writes the files to a directory, which contains no others afterwards.
func (f Files) Write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, b := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}

// Size returns the number of bytes in all files.
func (f Files) Size() (n int) {
	for _, b := range f {
		n += len(b)
	}
	return n
}

// mutator changes files and describes each change.
type mutator struct {
	*rand.Rand
	files  Files
	others []Files
	log    []string
}

// Mutate returns a damaged copy of files and a description of the damage. The seed
// determines both. Files of others, if there are any, replace those of the same name.
func Mutate(seed uint64, files Files, others []Files) (damaged Files, description string) {
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, uint64(files.Size()))), files: maps.Clone(files), others: others}
	for range 1 + m.IntN(3)*m.IntN(2) { // usually one
		m.mutate()
	}
	return m.files, strings.Join(m.log, ", ")
}

// mutations are the kinds of damage. Each returns a changed copy of b, which is not empty,
// and its description.
var mutations = []func(m *mutator, b []byte) ([]byte, string){
	(*mutator).flipBits, (*mutator).overwrite, (*mutator).truncate, (*mutator).remove, (*mutator).insert,
	(*mutator).duplicate, (*mutator).swap, (*mutator).zero, (*mutator).replaceNumber, (*mutator).removeUnit,
}

// mutate damages one file.
func (m *mutator) mutate() {
	names := slices.Sorted(maps.Keys(m.files))
	if len(names) == 0 {
		return
	}
	name := names[m.IntN(len(names))]
	b := m.files[name]
	switch n := m.IntN(20); {
	case n == 0 && len(names) > 1:
		delete(m.files, name)
		m.log = append(m.log, "delete "+name)
		return
	case n <= 2 && len(m.others) > 0:
		i := m.IntN(len(m.others))
		if other, ok := m.others[i][name]; ok {
			m.files[name] = other
			m.log = append(m.log, fmt.Sprintf("replace %s by that of run %d", name, i))
			return
		}
	}
	if len(b) == 0 {
		return
	}
	changed, what := mutations[m.IntN(len(mutations))](m, b)
	m.files[name] = changed
	m.log = append(m.log, name+": "+what)
}

// span returns a range of b whose length has a random magnitude.
func (m *mutator) span(b []byte) (from, to int) {
	n := 1 + m.IntN(min(len(b), 1<<m.IntN(14)))
	from = m.IntN(len(b) - n + 1)
	return from, from + n
}

func (m *mutator) flipBits(b []byte) ([]byte, string) {
	b = slices.Clone(b)
	n := 1 + m.IntN(8)
	var at []int
	for range n {
		bit := m.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		at = append(at, bit)
	}
	return b, fmt.Sprintf("flip bits %v", at)
}

func (m *mutator) overwrite(b []byte) ([]byte, string) {
	b = slices.Clone(b)
	from, to := m.span(b)
	for i := from; i < to; i++ {
		b[i] = byte(m.Uint32())
	}
	return b, fmt.Sprintf("overwrite %d to %d", from, to)
}

func (m *mutator) truncate(b []byte) ([]byte, string) {
	n := m.IntN(len(b))
	return slices.Clone(b[:n]), fmt.Sprintf("truncate to %d of %d", n, len(b))
}

func (m *mutator) remove(b []byte) ([]byte, string) {
	from, to := m.span(b)
	return slices.Concat(b[:from], b[to:]), fmt.Sprintf("remove %d to %d", from, to)
}

// removeUnit removes a part that may be a record: its place and size are multiples of 8.
func (m *mutator) removeUnit(b []byte) ([]byte, string) {
	unit := 8 << m.IntN(5)
	if len(b) < unit {
		return m.remove(b)
	}
	from := unit * m.IntN(len(b)/unit)
	return slices.Concat(b[:from], b[from+unit:]), fmt.Sprintf("remove unit %d to %d", from, from+unit)
}

func (m *mutator) insert(b []byte) ([]byte, string) {
	noise := make([]byte, 1+m.IntN(1<<m.IntN(13)))
	for i := range noise {
		noise[i] = byte(m.Uint32())
	}
	at := m.IntN(len(b) + 1)
	return slices.Concat(b[:at], noise, b[at:]), fmt.Sprintf("insert %d bytes at %d", len(noise), at)
}

func (m *mutator) duplicate(b []byte) ([]byte, string) {
	from, to := m.span(b)
	return slices.Concat(b[:to], b[from:to], b[to:]), fmt.Sprintf("duplicate %d to %d", from, to)
}

func (m *mutator) swap(b []byte) ([]byte, string) {
	from, to := m.span(b)
	at := m.IntN(len(b) - (to - from) + 1)
	one, two := slices.Clone(b[from:to]), slices.Clone(b[at:at+to-from])
	b = slices.Clone(b)
	copy(b[from:], two)
	copy(b[at:], one)
	return b, fmt.Sprintf("swap %d bytes at %d and %d", to-from, from, at)
}

func (m *mutator) zero(b []byte) ([]byte, string) {
	b = slices.Clone(b)
	from, to := m.span(b)
	clear(b[from:to])
	return b, fmt.Sprintf("zero %d to %d", from, to)
}

// replaceNumber writes a number that is likely to exceed a limit, where a length may be.
func (m *mutator) replaceNumber(b []byte) ([]byte, string) {
	numbers := []uint64{
		0, 1, math.MaxInt8, math.MaxUint8, math.MaxInt16, math.MaxInt32, math.MaxUint32, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64,
	}
	v := numbers[m.IntN(len(numbers))]
	size := []int{1, 2, 4, 8}[m.IntN(4)]
	at := m.IntN(len(b))
	b = slices.Clone(b)
	copy(b[at:], binary.LittleEndian.AppendUint64(nil, v)[:size])
	return b, fmt.Sprintf("write the %d low bytes of %d at %d", size, v, at)
}
