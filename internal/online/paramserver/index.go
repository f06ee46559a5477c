package paramserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Index gives functions their numbers: one sequence from 0 for all programs, in
// the order in which they are asked for. A number is durable before it is given.
// Several goroutines may use it.
type Index struct {
	given atomic.Pointer[[]trace.FuncKey] // by number; durable

	mu   sync.Mutex
	file *os.File
	size int64
	ids  map[trace.FuncKey]uint32
	lost error // why no more numbers can be given
}

// OpenIndex opens the index in a file, which is made if it is not there. What a
// crash left unfinished at its end is cut off: nobody knows it.
func OpenIndex(path string) (*Index, error) {
	content, err := os.ReadFile(path)
	made := errors.Is(err, fs.ErrNotExist)
	if err != nil && !made {
		return nil, err
	}
	names, whole, err := readNames(content)
	if err != nil {
		return nil, fmt.Errorf("%s: byte %d: %w; begin a new run, or restore the file", path, whole, err)
	}
	x := &Index{ids: make(map[trace.FuncKey]uint32, len(names))}
	for i, name := range names {
		x.ids[name] = uint32(i)
	}
	x.given.Store(&names)
	if x.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil { //nolint:gosec // meant to be read by all
		return nil, err
	}
	err = x.cut(int64(whole))
	if err == nil && made {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, x.file.Close())
	}
	return x, nil
}

// cut has the file end, and go on, after size bytes.
func (x *Index) cut(size int64) error {
	x.size = size
	if err := x.file.Truncate(size); err != nil {
		return err
	}
	_, err := x.file.Seek(size, io.SeekStart)
	return err
}

// readNames reads the lines of an index, and returns where the last whole one, or
// the first that is damaged, ends or begins.
func readNames(content []byte) (names []trace.FuncKey, whole int, err error) {
	known := make(map[trace.FuncKey]bool)
	for line := range bytes.Lines(content) {
		if line[len(line)-1] != '\n' {
			break
		}
		name, err := readName(string(line))
		if err == nil && known[name] {
			err = errors.New("a function twice")
		}
		if err != nil {
			return nil, whole, err
		}
		known[name] = true
		names = append(names, name)
		whole += len(line)
	}
	return names, whole, nil
}

// appendName appends a line of the index.
func appendName(b []byte, name trace.FuncKey) []byte {
	b = strconv.AppendUint(b, uint64(name.Program), 10)
	b = strconv.AppendQuote(append(b, '\t'), name.Name)
	return append(b, '\n')
}

// readName reads what appendName wrote, and nothing else.
func readName(line string) (trace.FuncKey, error) {
	program, quoted, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
	n, err := strconv.ParseUint(program, 10, 32)
	if !ok || err != nil {
		return trace.FuncKey{}, errors.New("no program")
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return trace.FuncKey{}, errors.New("no name")
	}
	name := trace.FuncKey{Program: trace.Program(n), Name: text}
	if string(appendName(nil, name)) != line {
		return trace.FuncKey{}, errors.New("not as names are written")
	}
	return name, nil
}

// Numbers returns the numbers of functions, in their order.
func (x *Index) Numbers(names []trace.FuncKey) ([]uint32, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	given := x.all()
	more := given
	var lines []byte
	ids := make([]uint32, len(names))
	for i, name := range names {
		id, ok := x.ids[name]
		if !ok {
			id = uint32(len(more))
			more = append(more, name)
			x.ids[name] = id
			lines = appendName(lines, name)
		}
		ids[i] = id
	}
	if len(lines) == 0 {
		return ids, nil
	}
	if err := x.append(lines); err != nil {
		for _, name := range more[len(given):] { // not durable, so not given
			delete(x.ids, name)
		}
		return nil, fmt.Errorf("numbers of functions: %w", err)
	}
	x.given.Store(&more)
	return ids, nil
}

// append makes lines durable, or leaves the file as it was.
func (x *Index) append(lines []byte) error {
	if x.lost != nil {
		return x.lost
	}
	_, err := x.file.Write(lines)
	if err == nil {
		err = x.file.Sync()
	}
	if err != nil {
		if x.lost = x.cut(x.size); x.lost != nil { // what follows would be damaged
			return errors.Join(err, x.lost)
		}
		return err
	}
	x.size += int64(len(lines))
	return nil
}

// all returns the names by number. They do not change.
func (x *Index) all() []trace.FuncKey { return *x.given.Load() }

// Name returns the name of a function.
func (x *Index) Name(id uint32) (trace.FuncKey, bool) {
	names := x.all()
	if uint64(id) >= uint64(len(names)) {
		return trace.FuncKey{}, false
	}
	return names[id], true
}

// Len returns how many functions have numbers.
func (x *Index) Len() int { return len(x.all()) }

// Close closes the file.
func (x *Index) Close() error { return x.file.Close() }
