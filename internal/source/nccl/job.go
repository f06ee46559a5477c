package nccl

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// headSize is the number of bytes that identify a log and its ranks.
const headSize = 1 << 20

// File is the log of a process.
type File struct {
	Path  string
	Host  string
	PID   int64
	Timed bool         // it has the times of operations
	Ranks []trace.Rank // of the GPUs of the process, set by Job.Add; usually one

	comms map[string]*members
}

// members are the ranks of a communicator in a file.
type members struct {
	size  int64
	ranks []int64 // in order
}

// IsLog reports whether a file is a log, by its content.
func IsLog(path string) bool {
	f, err := readHead(path, 1<<16)
	return err == nil && f != nil
}

// ReadHead reads the beginning of a log. It returns nil if the file is not one, or has no record yet.
func ReadHead(path string) (*File, error) { return readHead(path, headSize) }

func readHead(path string, size int64) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read from
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil {
		return nil, err
	}
	if first := bytes.TrimLeft(text, " \t\r\n"); !bytes.HasPrefix(first, []byte("{")) && !bytes.Contains(text, []byte(`{"header"`)) {
		return nil, nil //nolint:nilnil // as documented
	}
	f := &File{Path: path, comms: make(map[string]*members)}
	p := newParser()
	for len(text) > 0 {
		one, rest, _ := bytes.Cut(text, []byte{'\n'})
		if text = rest; p.parse(one) == operation {
			f.add(&p.line)
		}
	}
	if len(f.comms) == 0 {
		return nil, nil //nolint:nilnil // as documented
	}
	return f, nil
}

func (f *File) add(l *line) {
	c := f.comms[string(l.id)]
	if c == nil {
		if len(f.comms) == 0 {
			f.Host, f.PID = string(l.host), l.pid
			_, f.Timed = l.start()
		}
		if len(f.comms) == maxComms {
			return
		}
		c = &members{size: l.size}
		f.comms[string(l.id)] = c
	}
	if i, found := slices.BinarySearch(c.ranks, l.rank); !found {
		c.ranks = slices.Insert(c.ranks, i, l.rank)
	}
}

// Job numbers the ranks of the processes of a job. The zero value has none.
type Job struct {
	files []*File
	world string // the communicator whose ranks are those of the job, or ""
	taken map[trace.Rank]bool
}

// Add sets the ranks of files. Logs have only ranks within communicators. The ranks of the job are those of the
// largest communicator to which all processes of the first call belong. Without one, processes are numbered in order
// of host and process id. Files of later calls that are not in that communicator get the next numbers.
func (j *Job) Add(files []*File) {
	if len(files) == 0 {
		return
	}
	if len(j.files) == 0 {
		j.taken = make(map[trace.Rank]bool)
		j.world = world(files)
	}
	files = slices.SortedFunc(slices.Values(files), func(a, b *File) int {
		return cmp.Or(compareHosts(a.Host, b.Host), cmp.Compare(a.PID, b.PID), strings.Compare(a.Path, b.Path))
	})
	var others []*File
	for _, f := range files {
		if c := f.comms[j.world]; c != nil && !slices.ContainsFunc(c.ranks, func(r int64) bool { return j.taken[trace.Rank(r)] }) {
			for _, r := range c.ranks {
				f.Ranks = append(f.Ranks, trace.Rank(r))
				j.taken[trace.Rank(r)] = true
			}
			continue
		}
		others = append(others, f)
	}
	next := trace.Rank(0)
	for _, f := range others {
		for range f.locals() {
			for j.taken[next] {
				next++
			}
			f.Ranks = append(f.Ranks, next)
			j.taken[next] = true
		}
	}
	j.files = append(j.files, files...)
}

// Named reports whether the ranks are those of a communicator, rather than assumed.
func (j *Job) Named() bool { return j.world != "" }

// Timed reports whether all logs have the times of operations.
func (j *Job) Timed() bool {
	return !slices.ContainsFunc(j.files, func(f *File) bool { return !f.Timed })
}

// locals returns the number of GPUs of the process.
func (f *File) locals() int {
	n := 1
	for _, c := range f.comms {
		n = max(n, len(c.ranks))
	}
	return n
}

// world returns the largest communicator that has ranks of all files, each in one file, or "".
func world(files []*File) (id string) {
	size := int64(0)
	for name, c := range files[0].comms {
		if c.size < size || c.size == size && id != "" && name > id {
			continue
		}
		owned, all := make(map[int64]bool), true
		for _, f := range files {
			of := f.comms[name]
			if of == nil || len(of.ranks) != f.locals() || slices.ContainsFunc(of.ranks, func(r int64) bool { return owned[r] }) {
				all = false
				break
			}
			for _, r := range of.ranks {
				owned[r] = true
			}
		}
		if all {
			id, size = name, c.size
		}
	}
	return id
}

// compareHosts compares names by the numbers in them, so that node9 precedes node10.
func compareHosts(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x != "" && y != "" {
			m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

var errTruncated = errors.New("the file became shorter while it was read")
