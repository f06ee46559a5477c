package profile

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// ID is a process or thread: a number, or a text.
type ID struct {
	Text     []byte // also of a number
	Number   int64  // if IsNumber
	IsNumber bool
}

// lane is a thread of the file: a thread of the host or a stream of a GPU.
type lane struct {
	process, thread string
	main            bool // the first thread of its process
	device          bool
	async           bool // for events that overlap
	name            string
	first           int64 // start of the first event
	events          int64
	time            int64 // in calls of known duration

	rank   int          // index in File.ranks
	stage  int          // index in File.stages
	number trace.Thread // within the rank
}

type laneKey struct {
	process, thread int64
	async           int
}

// lanes finds the lane of an event by its pid and tid.
type lanes struct {
	all     []lane
	index   map[laneKey]uint16
	texts   map[string]int64  // negative numbers for pids and tids that are texts
	process map[string]string // names of processes by pid
	last    laneKey           // of the last event
	lastAt  uint16
}

func newLanes() lanes {
	return lanes{index: make(map[laneKey]uint16), texts: make(map[string]int64), process: make(map[string]string)}
}

// maxLanes is the number of lanes of a file.
const maxLanes = 1 << 15

func (l *lanes) id(id *ID) int64 {
	if id.IsNumber {
		return id.Number
	}
	n, ok := l.texts[string(id.Text)]
	if !ok && len(l.texts) < maxLanes {
		n = -1<<62 - int64(len(l.texts))
		l.texts[string(id.Text)] = n
	}
	return n
}

// find returns the number of the lane of an event, or false if there are too many.
func (l *lanes) find(pid, tid *ID, async int) (uint16, bool) {
	key := laneKey{l.id(pid), l.id(tid), async}
	if key == l.last && len(l.all) > 0 {
		return l.lastAt, true
	}
	n, ok := l.index[key]
	if !ok {
		if len(l.all) == maxLanes {
			return 0, false
		}
		n = uint16(len(l.all))
		l.all = append(l.all, lane{
			process: string(pid.Text), thread: string(tid.Text), main: bytes.Equal(pid.Text, tid.Text), async: async > 0,
		})
		l.index[key] = n
	}
	l.last, l.lastAt = key, n
	return n, true
}

// place matches the parts of the name of a worker in a file of several ranks: the numbers after
// "rank" in the names of its threads, such as PP rank 1, TP rank 0.
var place = regexp.MustCompile(`(\w+) rank ([0-9]+)`)

// stage is the stage of the pipeline in a place.
var stage = regexp.MustCompile(`(?i)\b(PP|pipeline|stage) rank [0-9]+`)

// worker identifies a rank of a file of several ranks.
type worker struct {
	place   string // as text, for people
	numbers []int
	process string
}

func (w worker) compare(o worker) int {
	if c := slices.Compare(w.numbers, o.numbers); c != 0 {
		return c
	}
	a, err1 := strconv.Atoi(w.process)
	b, err2 := strconv.Atoi(o.process)
	if err1 == nil && err2 == nil && a != b {
		return cmp.Compare(a, b)
	}
	return strings.Compare(w.process, o.process)
}

func workerOf(l *lane) worker {
	w := worker{process: l.process}
	for _, m := range place.FindAllStringSubmatch(l.name, -1) {
		n, _ := strconv.Atoi(m[2]) // a number that is too large counts as none
		w.numbers = append(w.numbers, n)
		w.place += m[0] + ", "
	}
	w.place = strings.TrimSuffix(w.place, ", ")
	return w
}

// several assigns lanes to one rank for each worker: process, and place within it. It returns
// the workers in order of their ranks.
func (l *lanes) several() []worker {
	var workers []worker
	for i := range l.all {
		workers = append(workers, workerOf(&l.all[i]))
	}
	ordered := slices.Clone(workers)
	slices.SortFunc(ordered, worker.compare)
	ordered = slices.CompactFunc(ordered, func(a, b worker) bool { return a.compare(b) == 0 })
	for i := range l.all {
		l.all[i].rank, _ = slices.BinarySearchFunc(ordered, workers[i], worker.compare)
	}
	return ordered
}

// number numbers the threads of each rank: threads of the host, the main thread first and then
// those with most time in calls, then the streams of GPUs by device and stream, then the rest.
func (l *lanes) number() {
	order := make([]*lane, len(l.all))
	for i := range l.all {
		order[i] = &l.all[i]
	}
	group := func(l *lane) int {
		switch {
		case l.async:
			return 3
		case l.device:
			return 2
		case l.main:
			return 0
		}
		return 1
	}
	slices.SortFunc(order, func(a, b *lane) int {
		if c := cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(group(a), group(b))); c != 0 {
			return c
		}
		if a.device {
			if c := cmp.Or(compareNumbers(a.process, b.process), compareNumbers(a.thread, b.thread)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.first, b.first),
			compareNumbers(a.process, b.process), compareNumbers(a.thread, b.thread))
	})
	next := make(map[int]trace.Thread)
	for _, o := range order {
		if o.events == 0 {
			continue // only named
		}
		o.number = next[o.rank]
		next[o.rank]++
	}
}

// compareNumbers compares texts by their numbers if both are numbers.
func compareNumbers(a, b string) int {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 == nil && err2 == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}

// counts returns the number of threads of each rank.
func (l *lanes) counts(ranks int) []trace.Thread {
	n := make([]trace.Thread, ranks)
	for i := range l.all {
		if l.all[i].events > 0 {
			n[l.all[i].rank] = max(n[l.all[i].rank], l.all[i].number+1)
		}
	}
	return n
}
