package question

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// Times are the anomalies of a run that were not withdrawn, by what a Timeline asks of
// them. An Asker that has them answers timelines from memory, some ten times as fast as
// the store can, and with the same numbers. Nobody changes them.
type Times struct {
	entry, ended, lost []int64 // in order of entry; ended is after entry
	process            []int32 // index of processes
	function           []int32 // index of functions
	kind               []uint8 // index of kinds

	latest    []int64 // of each timesBlock anomalies the latest end
	processes []Process
	functions []functionNumber
	names     []string // of functions
	kinds     []string
}

// functionNumber is a function as executions name it.
type functionNumber struct {
	program trace.Program
	fn      int32
}

// timesBlock is how many anomalies are left out at once that have ended before a timeline
// begins.
const timesBlock = 4096

// Len is how many anomalies they are of. Each takes 33 bytes.
func (t *Times) Len() int { return len(t.entry) }

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

// Times reads the times of the anomalies of a run; nil if there are more than limit.
func (a *Asker) Times(ctx context.Context, limit int) (*Times, error) {
	t := new(Times)
	var processes numbered[Process]
	var functions numbered[functionNumber]
	var kinds numbered[string]
	err := a.each(ctx, text("times"), func(row []any) {
		t.process = append(t.process, int32(processes.of(Process{whole[trace.Program](row[0]), whole[trace.Rank](row[1])})))
		t.function = append(t.function, int32(functions.of(functionNumber{whole[trace.Program](row[0]), whole[int32](row[2])})))
		t.kind = append(t.kind, uint8(min(kinds.of(word[string](row[3])), math.MaxUint8)))
		t.entry, t.ended, t.lost = append(t.entry, whole[int64](row[4])), append(t.ended, whole[int64](row[5])), append(t.lost, whole[int64](row[6]))
	}, int64(limit)+1)
	if err != nil {
		return nil, err
	}
	if t.Len() > limit || len(kinds.all) > math.MaxUint8 {
		return nil, nil //nolint:nilnil // too many
	}
	for block := range slices.Chunk(t.ended, timesBlock) {
		t.latest = append(t.latest, slices.Max(block))
	}
	t.processes, t.functions, t.kinds = processes.all, functions.all, kinds.all
	return t, a.nameTimes(ctx, t)
}

// nameTimes looks up the names of functions.
func (a *Asker) nameTimes(ctx context.Context, t *Times) error {
	all, err := a.Functions(ctx)
	if err != nil {
		return err
	}
	names := make(map[functionNumber]string, len(all))
	for i := range all {
		names[functionNumber{all[i].Program, all[i].fn}] = all[i].Name
	}
	for _, f := range t.functions {
		t.names = append(t.names, names[f])
	}
	return nil
}

// answers reports whether a timeline can be answered from memory.
func (t *Times) answers(q *Timeline) bool {
	f := q.Filter
	return t != nil && f.Host == "" && f.Program == nil && len(f.Ranks) == 0 && f.Steps == nil && f.Severity == 0 && f.Lost == 0 && f.Score == 0
}

// nowhere is the line of what is left out.
const nowhere = -1

// lines tells in which line an anomaly is by its process, or else by its kind.
func (t *Times) lines(q *Timeline) (ofProcess, ofKind []int32, list []Line) {
	ofKind = make([]int32, len(t.kinds))
	if q.Lines == nil {
		order := slices.Sorted(slices.Values(t.kinds))
		for i, kind := range t.kinds {
			ofKind[i] = int32(slices.Index(order, kind))
		}
		for _, kind := range order {
			list = append(list, Line{Kind: kind})
		}
	}
	if kinds := q.Filter.Kinds; len(kinds) > 0 {
		for i, kind := range t.kinds {
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
	ofProcess = make([]int32, len(t.processes))
	for i, p := range t.processes {
		ofProcess[i] = nowhere
		if line, ok := q.Lines[p]; ok {
			ofProcess[i] = int32(line)
		}
	}
	return ofProcess, ofKind, list
}

// chosen tells which functions a filter chooses; nil: all.
func (t *Times) chosen(f *Filter) []bool {
	if f.Function == "" && f.One == nil {
		return nil
	}
	glob := outlier.Glob(cmp.Or(f.Function, "*"))
	chosen := make([]bool, len(t.names))
	for i, name := range t.names {
		chosen[i] = glob.MatchString(name) && (f.One == nil || t.functions[i] == functionNumber{f.One.Program, f.One.fn})
	}
	return chosen
}

// timeline answers from memory, as timeline.sql does from the store.
func (t *Times) timeline(begin trace.Micros, q *Timeline) []Line {
	from, width := int64(begin+q.From), int64(q.ColumnWidth())
	to := from + width*int64(q.Columns)
	ofProcess, ofKind, list := t.lines(q)
	chosen := t.chosen(&q.Filter)
	rates := make([][]int64, len(list))
	for at, end := 0, sort.Search(t.Len(), func(i int) bool { return t.entry[i] >= to }); at < end; at++ {
		if at%timesBlock == 0 && t.latest[at/timesBlock] <= from {
			at += timesBlock - 1
			continue
		}
		line := ofKind[t.kind[at]]
		if line == nowhere || t.ended[at] <= from || chosen != nil && !chosen[t.function[at]] {
			continue
		}
		if ofProcess != nil {
			if line = ofProcess[t.process[at]]; line == nowhere {
				continue
			}
		}
		l := &list[line]
		if l.Lost == nil {
			l.Lost, l.Anomalies = make([]int64, q.Columns), make([]int64, q.Columns)
		}
		l.place(span64{t.entry[at] - from, t.ended[at] - from, t.lost[at], width}, &rates[line])
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
