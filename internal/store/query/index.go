package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Index is what is asked of many executions of a run at once, in memory. An Asker that has
// one answers from it what would take the store too long, and with the same numbers.
// Nobody changes it.
type Index struct {
	flagged   columns // anomalies that were not withdrawn
	typical   columns
	withdrawn columns

	processes []Process
	processAt map[Process]int
	hosts     []string // of processes, by which executions say that they ran there
	functions []functionNumber
	names     []string // of functions
	kinds     []string
	statuses  []string
	threads   []int64
	onHosts   map[trace.Program][]int64 // threads that are not of GPUs, in order
	lastStep  int64
	unlike    bool // severities of some anomalies are not their exclusive times
	allNames  functionNames
	paths     map[[2]int64]indexPath // by program and number

	anywhere     []drawn // the first of all that were not withdrawn
	functionSums string  // of all functions, for function_sums_given.sql
}

// indexPath is a call path.
type indexPath struct {
	fns   []int32 // from the outermost function on
	fn    int32   // of calls
	calls int64   // of the run; 0: not known
}

// columns are executions in order of entry, a value of each in each column: 79 bytes.
type columns struct {
	entry, exit, lost, exclusive, row []int64
	step, ioStep                      []int32
	process, function                 []int32 // index of those of Index
	path, issue                       []int32 // issue as it is stored; 0: none
	culprit                           []int32 // for which it waited, as it is stored: its place among all that are flagged, from 1; 0: none
	thread                            []uint16
	kind, status                      []uint8
	gpu                               []bool
	lot                               []int16          // in whose order many are drawn
	texts                             map[int32]string // ids that are not rank:step:row

	latest []int64 // of each indexBlock executions the latest end
	of     []int32 // places by process, in order of entry
	first  []int32 // of each process in of; and the end
}

// functionNumber is a function as executions name it.
type functionNumber struct {
	program trace.Program
	fn      int32
}

// indexBlock is how many executions are left out at once that have ended before a timeline
// begins.
const indexBlock = 4096

// Len is how many executions it is of.
func (x *Index) Len() int { return x.flagged.len() + x.typical.len() + x.withdrawn.len() }

func (c *columns) len() int { return len(c.entry) }

// ended is the end of an execution, which is after its entry.
func (c *columns) ended(i int) int64 { return max(c.exit[i], c.entry[i]+1) }

// numbered gives numbers to things.
type numbered[K comparable] struct {
	numbers map[K]int
	all     []K
}

func (n *numbered[K]) of(key K) int {
	i, ok := n.numbers[key]
	if !ok {
		if n.numbers == nil {
			n.numbers = make(map[K]int)
		}
		i = len(n.all)
		n.numbers[key], n.all = i, append(n.all, key)
	}
	return i
}

// indexing reads an Index.
type indexing struct {
	x         *Index
	processes numbered[Process]
	functions numbered[functionNumber]
	kinds     numbered[string]
	statuses  numbered[string]
	threads   numbered[int64]
	onHosts   numbered[[2]int64]
	waits     []waiting
}

// waiting is an anomaly that waited for another.
type waiting struct {
	at      int32 // place among all that are flagged
	program trace.Program
	culprit string
}

// Index reads the index of a run; nil if there are more than limit executions.
func (a *Asker) Index(ctx context.Context, limit int) (*Index, error) {
	r := indexing{x: new(Index)}
	if err := a.each(ctx, text("index"), r.add, int64(limit)+1); err != nil {
		return nil, err
	}
	x := r.x
	if x.Len() > limit || len(r.kinds.all) > math.MaxUint8 || len(r.statuses.all) > math.MaxUint8 || len(r.threads.all) > math.MaxUint16 {
		return nil, nil //nolint:nilnil // too many
	}
	x.processes, x.processAt, x.functions, x.kinds, x.statuses, x.threads = r.processes.all, r.processes.numbers, r.functions.all, r.kinds.all, r.statuses.all, r.threads.all
	x.onHosts = make(map[trace.Program][]int64)
	for _, t := range r.onHosts.all {
		x.onHosts[trace.Program(t[0])] = append(x.onHosts[trace.Program(t[0])], t[1])
	}
	for _, list := range x.onHosts {
		slices.Sort(list)
	}
	for _, c := range []*columns{&x.flagged, &x.typical, &x.withdrawn} {
		c.arrange(len(x.processes))
		c.lot = make([]int16, c.len())
		for i := range c.lot {
			c.lot[i] = int16((c.row[i]*7919 + int64(x.processes[c.process[i]].Rank)) % lots)
		}
	}
	x.anywhere = x.anyOf(new(choice), maxStates)
	for _, w := range r.waits {
		if c, i := x.find(w.program, w.culprit); c == &x.flagged {
			x.flagged.culprit[w.at] = int32(i) + 1
		}
	}
	x.functionSums = x.sums()
	return x, a.nameIndex(ctx, x)
}

// add adds an execution.
func (r *indexing) add(row []any) {
	x := r.x
	c := &x.typical
	status := word[string](row[15])
	switch {
	case row[16] == true && status == string(provenance.Withdrawn):
		c = &x.withdrawn
	case row[16] == true:
		c = &x.flagged
	}
	program, thread, onGPU, ioStep := whole[trace.Program](row[0]), whole[int64](row[2]), row[13] == true, whole[int32](row[12])
	if !onGPU {
		r.onHosts.of([2]int64{int64(program), thread})
	}
	if id := word[string](row[5]); id != "" {
		if c.texts == nil {
			c.texts = make(map[int32]string)
		}
		c.texts[int32(c.len())] = id
	}
	c.process = append(c.process, int32(r.processes.of(Process{program, whole[trace.Rank](row[1])})))
	c.thread = append(c.thread, uint16(min(r.threads.of(thread), math.MaxUint16)))
	c.step, c.row = append(c.step, whole[int32](row[3])), append(c.row, whole[int64](row[4]))
	c.function = append(c.function, int32(r.functions.of(functionNumber{program, whole[int32](row[6])})))
	c.path = append(c.path, whole[int32](row[7]))
	c.entry, c.exit = append(c.entry, whole[int64](row[8])), append(c.exit, whole[int64](row[9]))
	c.exclusive, c.lost = append(c.exclusive, whole[int64](row[10])), append(c.lost, whole[int64](row[11]))
	c.ioStep, c.gpu = append(c.ioStep, ioStep), append(c.gpu, onGPU)
	c.kind = append(c.kind, uint8(min(r.kinds.of(word[string](row[14])), math.MaxUint8)))
	c.status = append(c.status, uint8(min(r.statuses.of(status), math.MaxUint8)))
	c.issue = append(c.issue, whole[int32](row[17]))
	if id := word[string](row[19]); id != "" && c == &x.flagged {
		r.waits = append(r.waits, waiting{int32(c.len() - 1), whole[trace.Program](row[18]), id})
	}
	x.lastStep = max(x.lastStep, int64(ioStep))
	x.unlike = x.unlike || row[20] == true
}

// arrange makes what executions are found by. Room that is not needed is given back.
func (c *columns) arrange(processes int) {
	for _, list := range []*[]int64{&c.entry, &c.exit, &c.lost, &c.exclusive, &c.row} {
		*list = slices.Clip(slices.Clone(*list))
	}
	for _, list := range []*[]int32{&c.step, &c.ioStep, &c.process, &c.function, &c.path, &c.issue} {
		*list = slices.Clip(slices.Clone(*list))
	}
	c.culprit = make([]int32, c.len())
	for at := 0; at < c.len(); at += indexBlock {
		latest := int64(math.MinInt64)
		for i := at; i < min(at+indexBlock, c.len()); i++ {
			latest = max(latest, c.ended(i))
		}
		c.latest = append(c.latest, latest)
	}
	c.first = make([]int32, processes+1)
	for _, p := range c.process {
		c.first[p+1]++
	}
	for p := range processes {
		c.first[p+1] += c.first[p]
	}
	c.of = make([]int32, c.len())
	next := slices.Clone(c.first)
	for i, p := range c.process {
		c.of[next[p]] = int32(i)
		next[p]++
	}
}

// nameIndex looks up the names of functions and hosts, and call paths.
func (a *Asker) nameIndex(ctx context.Context, x *Index) (err error) {
	if x.allNames, err = a.names(ctx); err != nil {
		return err
	}
	for _, f := range x.functions {
		x.names = append(x.names, x.allNames[[2]int64{int64(f.program), int64(f.fn)}])
	}
	hosts := make(map[Process]string)
	err = a.each(ctx, text("index_hosts"), func(row []any) {
		hosts[Process{whole[trace.Program](row[0]), whole[trace.Rank](row[1])}] = word[string](row[2])
	})
	for _, p := range x.processes {
		x.hosts = append(x.hosts, hosts[p])
	}
	if err != nil {
		return err
	}
	x.paths = make(map[[2]int64]indexPath)
	var bad error
	err = a.each(ctx, text("path_list"), func(row []any) {
		var p indexPath
		raw, _ := row[2].(json.RawMessage)
		if err := json.Unmarshal(raw, &p.fns); err != nil {
			bad = fmt.Errorf("call path %s: %w", raw, err)
		}
		x.paths[[2]int64{whole[int64](row[0]), whole[int64](row[1])}] = p
	}, nil)
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return a.each(ctx, text("index_calls"), func(row []any) {
		key := [2]int64{whole[int64](row[0]), whole[int64](row[1])}
		p := x.paths[key]
		p.fn, p.calls = whole[int32](row[2]), whole[int64](row[3])
		x.paths[key] = p
	})
}

// pathNames are the functions of a call path.
func (x *Index) pathNames(program, path int64) []string {
	fns := x.paths[[2]int64{program, path}].fns
	names := make([]string, len(fns))
	for i, fn := range fns {
		names[i] = x.allNames[[2]int64{program, int64(fn)}]
	}
	return names
}

// event is the id of an execution.
func (x *Index) event(c *columns, i int) string {
	if id, ok := c.texts[int32(i)]; ok {
		return id
	}
	b := strconv.AppendInt(make([]byte, 0, 32), int64(x.processes[c.process[i]].Rank), 10)
	b = strconv.AppendInt(append(b, ':'), int64(c.step[i]), 10)
	return string(strconv.AppendInt(append(b, ':'), c.row[i], 10))
}

// find finds an execution that is no typical one; nil if there is none of that id.
func (x *Index) find(program trace.Program, event string) (*columns, int) {
	if x == nil {
		return nil, 0
	}
	n, numbered := eventNumbers(event)
	for _, c := range []*columns{&x.flagged, &x.withdrawn} {
		if !numbered {
			for i, id := range c.texts {
				if id == event && x.processes[c.process[i]].Program == program {
					return c, int(i)
				}
			}
			continue
		}
		p, ok := x.processAt[Process{program, trace.Rank(n[0])}]
		if !ok {
			continue
		}
		for _, i := range c.of[c.first[p]:c.first[p+1]] {
			if c.row[i] == n[2] && int64(c.step[i]) == n[1] && c.texts[i] == "" {
				return c, int(i)
			}
		}
	}
	return nil, 0
}

// answers reports whether a timeline can be answered from memory.
func (x *Index) answers(q *Timeline) bool {
	f := q.Filter
	f.Since, f.Until, f.Normal, f.Withdrawn, f.Order, f.Limit, f.Offset = nil, nil, false, false, "", 0, 0 // are not looked at
	f.Function, f.One, f.Kinds = "", nil, nil
	return x != nil && reflect.ValueOf(f).IsZero()
}

// nowhere is the line of what is left out.
const nowhere = -1

// lines tells in which line an anomaly is by its process, or else by its kind.
func (x *Index) lines(q *Timeline) (ofProcess, ofKind []int32, list []Line) {
	ofKind = make([]int32, len(x.kinds))
	if q.Lines == nil {
		order := slices.Sorted(slices.Values(x.kinds))
		for i, kind := range x.kinds {
			ofKind[i] = int32(slices.Index(order, kind))
		}
		for _, kind := range order {
			list = append(list, Line{Kind: kind})
		}
	}
	if kinds := q.Filter.Kinds; len(kinds) > 0 {
		for i, kind := range x.kinds {
			if !slices.Contains(kinds, kind) {
				ofKind[i] = nowhere
			}
		}
	}
	if q.Lines == nil {
		return nil, ofKind, list
	}
	most := nowhere
	for _, line := range q.Lines {
		most = max(most, line)
	}
	for i := range most + 1 {
		list = append(list, Line{Number: i})
	}
	ofProcess = make([]int32, len(x.processes))
	for i, p := range x.processes {
		ofProcess[i] = nowhere
		if line, ok := q.Lines[p]; ok {
			ofProcess[i] = int32(line)
		}
	}
	return ofProcess, ofKind, list
}

// chosen tells which functions a filter chooses; nil: all.
func (x *Index) chosen(f *Filter) []bool {
	if f.Function == "" && f.One == nil {
		return nil
	}
	glob := outlier.Glob(cmp.Or(f.Function, "*"))
	chosen := make([]bool, len(x.names))
	for i, name := range x.names {
		chosen[i] = glob.MatchString(name) && (f.One == nil || x.functions[i] == functionNumber{f.One.Program, f.One.fn})
	}
	return chosen
}

// timeline answers from memory, as timeline.sql does from the store.
func (x *Index) timeline(begin trace.Micros, q *Timeline) []Line {
	c, from, width := &x.flagged, int64(begin+q.From), int64(q.ColumnWidth())
	to := from + width*int64(q.Columns)
	ofProcess, ofKind, list := x.lines(q)
	chosen := x.chosen(&q.Filter)
	rates := make([][]int64, len(list))
	for at, end := 0, sort.Search(c.len(), func(i int) bool { return c.entry[i] >= to }); at < end; at++ {
		if at%indexBlock == 0 && c.latest[at/indexBlock] <= from {
			at += indexBlock - 1
			continue
		}
		line := ofKind[c.kind[at]]
		if line == nowhere || c.ended(at) <= from || chosen != nil && !chosen[c.function[at]] {
			continue
		}
		if ofProcess != nil {
			if line = ofProcess[c.process[at]]; line == nowhere {
				continue
			}
		}
		l := &list[line]
		if l.Lost == nil {
			l.Lost, l.Anomalies = make([]int64, q.Columns), make([]int64, q.Columns)
		}
		l.place(span64{c.entry[at] - from, c.ended(at) - from, c.lost[at], width}, &rates[line])
	}
	for i := range list {
		list[i].spread(rates[i])
	}
	return slices.DeleteFunc(list, func(l Line) bool { return l.Lost == nil })
}

// span64 is an anomaly in a timeline, and the width of its columns.
type span64 struct{ begun, ended, lost, width int64 }

// place adds an anomaly; what is to be added to several columns is put into rates, of
// which each is for all columns from there on. It shares as timeline.sql does.
func (l *Line) place(s span64, rates *[]int64) {
	columns := int64(len(l.Lost))
	first, last := floorDiv(s.begun, s.width), floorDiv(s.ended-1, s.width)
	if first == last {
		if first >= 0 {
			l.Lost[first] += s.lost
			l.Anomalies[first]++
		}
		return
	}
	length := float64(s.ended - s.begun)
	each := int64(math.Floor(float64(s.lost) * float64(s.width) / length))
	tail := int64(math.Floor(float64(s.lost) * float64(s.ended-last*s.width) / length))
	if first >= 0 {
		l.Lost[first] += s.lost - tail - each*max(last-first-1, 0)
		l.Anomalies[first]++
	}
	if last < columns {
		l.Lost[last] += tail
	}
	if begin := max(first+1, 0); begin < last && begin < columns {
		if *rates == nil {
			*rates = make([]int64, columns+1)
		}
		(*rates)[begin] += each
		(*rates)[min(last, columns)] -= each
	}
}

// spread adds what is for several columns.
func (l *Line) spread(rates []int64) {
	var rate int64
	for i := range min(len(rates), len(l.Lost)) {
		rate += rates[i]
		l.Lost[i] += rate
	}
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}
