package executions

import (
	"context"
	"slices"
	"strconv"
	"strings"

	words "github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// MaxCached is the maximum number of executions of a run that Copy copies into memory.
const MaxCached = 4_000_000

// Execution is a stored execution.
type Execution struct {
	Program   trace.Program `sql:"pid"`
	Rank      trace.Rank    `sql:"rid"`
	Thread    int64         `sql:"tid"`
	Event     string        `sql:"event_id"`
	Number    int32         `sql:"fn"` // number of its function
	Path      int32         `sql:"path"`
	Host      string        `sql:"hostname"`
	Function  string        `sql:"func"`
	Entry     trace.Ticks   `sql:"entry"`
	Exit      trace.Ticks   `sql:"exit"`
	Exclusive trace.Ticks   `sql:"runtime_exclusive"`
	Lost      trace.Ticks   `sql:"lost_time"`
	Step      int64         `sql:"io_step"`
	OnGPU     bool          `sql:"is_gpu_event"`
	Anomalous bool          `sql:"anomalous"`
	Status    string        `sql:"status"` // empty for typical executions
}

// FunctionID identifies the function of the execution.
func (e *Execution) FunctionID() FunctionID { return FunctionID{e.Program, e.Number} }

// PathID identifies the call path of the execution.
func (e *Execution) PathID() PathID { return PathID{e.Program, e.Path} }

// Columns contains the executions of a run in memory in the order of their entries, as a slice of values for each column. It
// is read-only.
type Columns struct {
	Tables
	entry, exit, exclusive, total, lost, row, thread []int64
	score, severity                                  []float64
	step, ioStep, finding                            []int32
	place, function, path, host, culprit             []int32 // positions in places, functions, pathIDs, hosts and culprits
	kind, status                                     []int32 // positions in kinds and statuses
	anomalous, isFlagged, onGPU                      []bool
	texts                                            map[int32]string // ids that are not rank:step:row

	places                 []trace.RankKey
	programs, ranks        []int64  // of places
	metadataHosts          []string // of places
	functions              []FunctionID
	pathIDs                []PathID
	pathNames              []string
	hosts, kinds, statuses []string
	names                  []string         // of functions
	culprits               []trace.EventKey // of victims; zero for others

	byPlace, byFunction, byHost, byCulprit positions
	sampled                                []int32 // rows in sampling order
}

// Fact is a host, device or stream of the metadata.
type Fact struct {
	trace.RankKey `sql:"pid,rid"`
	Thread        int64  `sql:"tid"`
	Name          string `sql:"descr"`
	Value         string `sql:"value"`
}

// RankHost is a rank and its host.
type RankHost struct {
	trace.RankKey `sql:"pid,rid"`
	Host          string `sql:"host"` // empty if unknown
}

// CallPath is a call path of a run.
type CallPath struct {
	Name  string
	Funcs []string // from the outermost
	// Number and Calls are set if the sums of all calls are stored.
	Number int32 // number of the last function
	Calls  float64
}

// readPaths reads all call paths.
func (a *Reader) readPaths(ctx context.Context, names FunctionNames) (map[PathID]*CallPath, error) {
	all, err := a.PathFunctions(ctx, nil, names)
	if err != nil {
		return nil, err
	}
	paths := make(map[PathID]*CallPath, len(all))
	for id, funcs := range all {
		paths[id] = &CallPath{Name: strings.Join(funcs, " > "), Funcs: funcs} // as in the view call_paths
	}
	type called struct {
		PathID
		Number int32   `sql:"fn"`
		Calls  float64 `sql:"calls"`
	}
	err = ReadEach(ctx, a, "SELECT pid, path, fn, calls FROM path_profiles WHERE run = $1 AND calls > 0", func(r *called) {
		if p := paths[r.PathID]; p != nil {
			p.Number, p.Calls = r.Number, r.Calls
		}
	})
	return paths, err
}

// PathNames returns the call paths as text.
func (a *Reader) PathNames(ctx context.Context) (map[PathID]string, error) {
	type row struct {
		PathID
		Name string `sql:"call_path"`
	}
	names := make(map[PathID]string)
	err := ReadEach(ctx, a, text("call_paths"), func(r *row) { names[r.PathID] = r.Name })
	return names, err
}

// positions are rows by the position of a value, in order.
type positions struct{ rows, first []int32 }

func newPositions(numbers []int32, values int) positions {
	p := positions{make([]int32, len(numbers)), make([]int32, values+1)}
	for _, n := range numbers {
		p.first[n+1]++
	}
	for i := range values {
		p.first[i+1] += p.first[i]
	}
	next := slices.Clone(p.first)
	for row, n := range numbers {
		p.rows[next[n]] = int32(row)
		next[n]++
	}
	return p
}

// of returns the rows of a value.
func (p *positions) of(i int) []int32 {
	return p.rows[p.first[i]:p.first[i+1]]
}

// ofFew returns the rows of the values in a set, in order, or nil if they are a large part of all
// rows.
func (p *positions) ofFew(set []bool) []int32 {
	rows, lists := []int32{}, 0
	for i, has := range set {
		if !has {
			continue
		}
		switch lists++; lists {
		case 1:
			rows = p.of(i)
		case 2:
			rows = slices.Concat(rows, p.of(i))
		default:
			rows = append(rows, p.of(i)...)
		}
		if lists > 1 && 8*len(rows) > len(p.rows) {
			return nil
		}
	}
	if lists > 1 {
		slices.Sort(rows)
	}
	return rows
}

// numbering numbers values in order of appearance.
type numbering[V comparable] map[V]int32

func (n numbering[V]) of(v V, all *[]V) int32 {
	i, ok := n[v]
	if !ok {
		i = int32(len(*all))
		n[v], *all = i, append(*all, v)
	}
	return i
}

// Copy reads the executions of a run into memory. It returns nil if there are more than limit.
func (a *Reader) Copy(ctx context.Context, limit int64) (Source, error) {
	n, err := a.Count(ctx)
	if err != nil || n > limit {
		return nil, err
	}
	x := &Columns{texts: make(map[int32]string), Tables: Tables{Threads: make(map[trace.Program][]int64)}}
	if err := x.read(ctx, a, int(n)); err != nil {
		return nil, err
	}
	x.byPlace, x.byFunction = newPositions(x.place, len(x.places)), newPositions(x.function, len(x.functions))
	x.byHost, x.byCulprit = newPositions(x.host, len(x.hosts)), newPositions(x.culprit, len(x.culprits))
	names, err := a.FunctionNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range x.functions {
		x.names = append(x.names, names[f])
	}
	if x.Paths, err = a.readPaths(ctx, names); err != nil {
		return nil, err
	}
	for _, id := range x.pathIDs {
		name := ""
		if p := x.Paths[id]; p != nil {
			name = p.Name
		}
		x.pathNames = append(x.pathNames, name)
	}
	if x.Facts, err = ReadAll[Fact](ctx, a, text("copy_metadata")); err != nil {
		return nil, err
	}
	hosts := make(map[trace.RankKey]string)
	for _, f := range x.Facts {
		if f.Name == "Hostname" {
			hosts[f.RankKey] = f.Value
		}
	}
	for _, p := range x.places {
		x.programs, x.ranks = append(x.programs, int64(p.Program)), append(x.ranks, int64(p.Rank))
		x.metadataHosts = append(x.metadataHosts, hosts[p])
	}
	all := make([]int32, len(x.entry))
	for i := range all {
		all[i] = int32(i)
	}
	x.sampled = x.inSamplingOrder(all)
	x.FunctionSums = SumText(x.sums(AllOf(), ByFunction))
	return x, nil
}

// read reads n executions.
func (x *Columns) read(ctx context.Context, a *Reader, n int) error {
	for _, column := range []*[]int64{&x.entry, &x.exit, &x.exclusive, &x.total, &x.lost, &x.row, &x.thread} {
		*column = make([]int64, 0, n)
	}
	for _, column := range []*[]int32{
		&x.step, &x.ioStep, &x.finding, &x.place, &x.function, &x.path, &x.host, &x.culprit, &x.kind, &x.status,
	} {
		*column = make([]int32, 0, n)
	}
	type row struct {
		Program   trace.Program  `sql:"pid"`
		Rank      trace.Rank     `sql:"rid"`
		Thread    int64          `sql:"tid"`
		Step      int32          `sql:"ev_step"`
		Row       int64          `sql:"ev_row"`
		Text      string         `sql:"ev_text"`
		Number    int32          `sql:"fn"`
		Path      int32          `sql:"path"`
		Host      string         `sql:"hostname"`
		Entry     int64          `sql:"entry"`
		Exit      int64          `sql:"exit"`
		Exclusive int64          `sql:"runtime_exclusive"`
		Total     int64          `sql:"runtime_total"`
		Lost      int64          `sql:"lost_time"`
		IOStep    int32          `sql:"io_step"`
		Score     float64        `sql:"outlier_score"`
		Severity  float64        `sql:"outlier_severity"`
		Kind      string         `sql:"kind"`
		Status    string         `sql:"status"`
		Anomalous bool           `sql:"anomalous"`
		OnGPU     bool           `sql:"is_gpu_event"`
		Finding   int32          `sql:"finding"`
		Culprit   trace.EventKey `sql:"culprit_pid,culprit_event_id"`
	}
	places, functions := make(numbering[trace.RankKey]), make(numbering[FunctionID])
	culprits, paths := make(numbering[trace.EventKey]), make(numbering[PathID])
	hosts, kinds, statuses := make(numbering[string]), make(numbering[string]), make(numbering[string])
	type programThread struct {
		program trace.Program
		thread  int64
	}
	threads := make(map[programThread]bool)
	return ReadEach(ctx, a, text("copy_executions"), func(r *row) {
		if r.Text != "" {
			x.texts[int32(len(x.entry))] = r.Text
		}
		x.entry, x.exit, x.exclusive = append(x.entry, r.Entry), append(x.exit, r.Exit), append(x.exclusive, r.Exclusive)
		x.total, x.lost, x.row = append(x.total, r.Total), append(x.lost, r.Lost), append(x.row, r.Row)
		x.thread, x.score, x.severity = append(x.thread, r.Thread), append(x.score, r.Score), append(x.severity, r.Severity)
		x.step, x.ioStep, x.finding = append(x.step, r.Step), append(x.ioStep, r.IOStep), append(x.finding, r.Finding)
		x.path = append(x.path, paths.of(PathID{r.Program, r.Path}, &x.pathIDs))
		x.place = append(x.place, places.of(trace.RankKey{Program: r.Program, Rank: r.Rank}, &x.places))
		x.function = append(x.function, functions.of(FunctionID{r.Program, r.Number}, &x.functions))
		x.culprit = append(x.culprit, culprits.of(r.Culprit, &x.culprits))
		x.host = append(x.host, hosts.of(r.Host, &x.hosts))
		x.kind = append(x.kind, kinds.of(r.Kind, &x.kinds))
		x.status = append(x.status, statuses.of(r.Status, &x.statuses))
		x.anomalous, x.onGPU = append(x.anomalous, r.Anomalous), append(x.onGPU, r.OnGPU)
		x.isFlagged = append(x.isFlagged, r.Anomalous && r.Status != string(provenance.Withdrawn))
		x.LastStep = max(x.LastStep, int64(r.IOStep))
		if t := (programThread{r.Program, r.Thread}); !r.OnGPU && !threads[t] {
			threads[t] = true
			x.Threads[r.Program] = append(x.Threads[r.Program], r.Thread)
		}
	})
}

// each calls f with the rows that a condition selects until it returns false.
func (x *Columns) each(where Condition, f func(row int32) bool) {
	keep, rows := where.test(x)
	if rows != nil {
		for _, row := range rows {
			if keep(row) && !f(row) {
				return
			}
		}
		return
	}
	for row := range int32(len(x.entry)) {
		if keep(row) && !f(row) {
			return
		}
	}
}

// Lot returns the number by which executions are sampled.
func (x *Columns) lot(row int32) int64 { return (x.row[row]*7919 + x.ranks[x.place[row]]) % Lots }

// inSamplingOrder returns sorted rows in sampling order.
func (x *Columns) inSamplingOrder(rows []int32) []int32 {
	lots := make([]int32, len(rows))
	for i, row := range rows {
		lots[i] = int32(x.lot(row)) + Lots - 1 // lots of negative numbers are negative
	}
	order := newPositions(lots, 2*Lots-1).rows
	for i, at := range order {
		order[i] = rows[at]
	}
	return order
}

// id returns the event id of a row.
func (x *Columns) id(row int32) string {
	if id, ok := x.texts[row]; ok {
		return id
	}
	b := strconv.AppendInt(make([]byte, 0, 32), x.ranks[x.place[row]], 10)
	b = strconv.AppendInt(append(b, ':'), int64(x.step[row]), 10)
	return string(strconv.AppendInt(append(b, ':'), x.row[row], 10))
}

// execution returns a row.
func (x *Columns) execution(row int32) Execution {
	place, f := x.places[x.place[row]], x.functions[x.function[row]]
	return Execution{
		Program: place.Program, Rank: place.Rank, Thread: x.thread[row], Event: x.id(row), Number: f.Number, Path: x.pathIDs[x.path[row]].Path,
		Host: words.Host(x.hosts[x.host[row]]), Function: x.names[x.function[row]],
		Entry: trace.Ticks(x.entry[row]), Exit: trace.Ticks(x.exit[row]),
		Exclusive: trace.Ticks(x.exclusive[row]), Lost: trace.Ticks(x.lost[row]), Step: int64(x.ioStep[row]), OnGPU: x.onGPU[row],
		Anomalous: x.anomalous[row], Status: x.statuses[x.status[row]],
	}
}

// first returns the rows from offset to offset+limit among those that a condition selects.
func (x *Columns) first(where Condition, by Order, offset, limit int) []int32 {
	most := offset + limit
	var rows []int32
	if by.isSampling() {
		keep, list := where.test(x)
		if list == nil {
			list = x.sampled
		} else {
			list = x.inSamplingOrder(list)
		}
		for _, row := range list {
			if len(rows) == most {
				break
			}
			if keep(row) {
				rows = append(rows, row)
			}
		}
	} else {
		compare := by.compare(x)
		room := 2*most + 1000
		last := int32(-1) // among the first so far
		x.each(where, func(row int32) bool {
			if last >= 0 && compare(row, last) >= 0 {
				return true
			}
			if rows = append(rows, row); len(rows) == room && most > 0 {
				slices.SortFunc(rows, compare)
				rows, last = rows[:most], rows[most-1]
			}
			return true
		})
		slices.SortFunc(rows, compare)
	}
	return rows[min(offset, len(rows)):min(most, len(rows))]
}

func (x *Columns) tables() *Tables { return &x.Tables }

func (x *Columns) count(context.Context) (int64, error) { return int64(len(x.entry)), nil }

func (x *Columns) list(_ context.Context, where Condition, by Order, limit int) (list []Execution, err error) {
	for _, row := range x.first(where, by, 0, limit) {
		list = append(list, x.execution(row))
	}
	return list, nil
}

func (x *Columns) sum(_ context.Context, where Condition, by Grouping) ([]Sums, error) {
	return x.sums(where, by), nil
}

// Sums are sums over executions. Columns that are not in the grouping are undefined.
type Sums struct {
	Program    trace.Program `sql:"pid"`
	Rank       trace.Rank    `sql:"rid"`
	Thread     int64         `sql:"tid"`
	Number     int32         `sql:"fn"`
	Function   string        `sql:"func"`
	Path       int32         `sql:"path"`
	Host       string        `sql:"hostname"`
	Step       int64         `sql:"io_step"`
	OnGPU      bool          `sql:"is_gpu_event"`
	Executions int64         `sql:"executions"`
	First      trace.Ticks   `sql:"first_us"`
	Last       trace.Ticks   `sql:"last_us"`
	// Sums over anomalies that were not withdrawn.
	Anomalies int64       `sql:"anomalies"`
	Lost      trace.Ticks `sql:"lost_us"`
	Exclusive trace.Ticks `sql:"anomalous_us"`
	Longest   trace.Ticks `sql:"longest_us"`
}

func (x *Columns) sums(where Condition, by Grouping) (list []Sums) {
	var numbers []func(row int32) int64
	for _, column := range by {
		numbers = append(numbers, column.numbers(x))
	}
	at := make(map[[3]int64]int)
	x.each(where, func(row int32) bool {
		i, ok := 0, len(list) > 0
		var key [3]int64
		if len(by) > 0 {
			for k, number := range numbers {
				key[k] = number(row)
			}
			i, ok = at[key]
		}
		if !ok {
			i = len(list)
			at[key] = i
			e := x.execution(row)
			list = append(list, Sums{
				Program: e.Program, Rank: e.Rank, Thread: e.Thread, Number: e.Number, Function: e.Function, Path: e.Path, Host: e.Host, Step: e.Step,
				OnGPU: e.OnGPU, First: e.Entry, Last: e.Exit,
			})
		}
		s := &list[i]
		s.Executions++
		s.OnGPU = s.OnGPU || x.onGPU[row]
		s.First, s.Last = min(s.First, trace.Ticks(x.entry[row])), max(s.Last, trace.Ticks(x.exit[row]))
		if x.isFlagged[row] {
			s.Anomalies++
			s.Lost += trace.Ticks(x.lost[row])
			s.Exclusive += trace.Ticks(x.exclusive[row])
			s.Longest = max(s.Longest, trace.Ticks(x.exclusive[row]))
		}
		return true
	})
	return list
}

// PathID identifies the call path of a group.
func (s *Sums) PathID() PathID { return PathID{s.Program, s.Path} }
