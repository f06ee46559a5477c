// Package ranks lays out the comparison of ranks with their peers: a table of ranks, hosts,
// threads, GPUs or roles, and how the time that a run lost is divided. It is pure.
package ranks

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Kinds of rows of a table.
const (
	ByRank   = "rank"
	ByHost   = "host"
	ByThread = "thread"
	ByDevice = "device"
	ByRole   = "role"
)

// By lists the kinds of rows of a table.
var By = []string{ByRank, ByHost, ByThread, ByDevice, ByRole}

// maxRows bounds the rows of a table. With 64 windows it has less than 300 kB.
const maxRows = 400

// Data is the input of a table.
type Data struct {
	Links

	Peers *provenance.Peers
	Lost  map[LostKey]trace.Ticks // to findings; nil: unknown
	// Known has the hosts of the known ranks of the run, including those without data. Gaps between them are
	// ranks, too.
	Known map[trace.RankKey]string
}

// LostKey is a rank, or one of its threads, that lost time.
type LostKey struct {
	trace.RankKey
	TID int64 // provenance.AllThreads: the rank
}

// Links connect slow peers with other answers.
type Links struct {
	// Finding returns the number and the key of the finding about a slow peer, or 0.
	Finding func(s *provenance.SlowPeer) (number int, key string)
	// FunctionID returns the ID of a function, or "".
	FunctionID func(f trace.FuncKey) string
}

// Params select the rows of a table.
type Params struct {
	By      string
	Program *trace.Program // nil: all
	Host    string         // pattern; "": all
	Ranks   []trace.Range  // any of them; nil: all
	Role    int            // 0: all
	Thread  *int64         // nil: all
}

// unit is a rank, thread or GPU. load is nil without data.
type unit struct {
	trace.RankKey
	host string
	load *provenance.RankLoad
}

// thread is a thread or GPU, or a rank.
type thread struct {
	trace.RankKey
	tid    int64
	device bool
}

// table builds a table.
type table struct {
	Data
	*Params
	programs bool           // several
	columns  map[int64]int  // by start of the window in microseconds
	slow     map[thread]int // index of the costliest slow peer; a role only if no other includes the thread
	answer   *api.RankTable
}

// newTable returns an empty table.
func newTable(d Data, p Params) *table {
	t := &table{Data: d, Params: &p, answer: &api.RankTable{
		By: p.By, Windows: []api.RankWindow{}, Rows: []api.RankRow{}, Efficiency: []api.Efficiency{}, Missing: []api.NoData{},
	}}
	if t.Peers == nil {
		t.Peers = new(provenance.Peers)
	}
	t.addKnown()
	for key := range t.Known {
		t.programs = t.programs || key.Program > 0
	}
	t.indexSlow()
	return t
}

// addKnown adds ranks with loads to those that are known, and gaps between them, since ranks have consecutive
// numbers.
func (t *table) addKnown() {
	known := make(map[trace.RankKey]string, len(t.Known))
	highest, count := make(map[trace.Program]trace.Rank), make(map[trace.Program]int)
	add := func(key trace.RankKey, host string) {
		old, ok := known[key]
		if known[key] = cmp.Or(old, host); !ok {
			highest[key.Program] = max(highest[key.Program], key.Rank)
			count[key.Program]++
		}
	}
	for key, host := range t.Known {
		add(key, host)
	}
	for i := range t.Peers.Loads {
		l := &t.Peers.Loads[i]
		add(trace.RankKey{Program: l.PID, Rank: l.RID}, l.Host)
	}
	for program, last := range highest {
		if 2*count[program] <= int(last) { // a selection of ranks was analyzed
			continue
		}
		for rank := range last {
			if key := (trace.RankKey{Program: program, Rank: rank}); known[key] == "" {
				known[key] = "" // a gap
			}
		}
	}
	t.Known = known
}

// New returns the table of a run for the page, which puts neighbors together if there are many.
func New(d Data, p Params) *api.RankTable {
	t := newTable(d, p)
	units := t.units()
	t.windows(units)
	groups := t.group(units)
	t.answer.Total = int64(len(groups))
	for _, g := range neighbors(groups, maxRows) {
		t.answer.Rows = append(t.answer.Rows, t.pageRow(g))
	}
	for i := range t.Peers.Efficiency {
		if e := &t.Peers.Efficiency[i]; p.Program == nil || e.PID == *p.Program {
			t.answer.Efficiency = append(t.answer.Efficiency, Efficiency(e))
		}
	}
	t.answer.Slow = Slow(t.Peers, d.Links)
	t.missingRanks(units)
	return t.answer
}

// Efficiency returns an efficiency as the API has it.
func Efficiency(e *provenance.Efficiency) api.Efficiency {
	return api.Efficiency{
		Program: int64(e.PID), Entire: e.Entire, From: e.From, To: e.To, Ranks: int64(e.Ranks), Parallel: e.Parallel,
		LoadBalance: e.LoadBalance, Communication: e.Communication, Slowest: e.Slowest, DeviceParallel: e.DeviceParallel,
		DeviceLoadBalance: e.DeviceLoadBalance,
	}
}

// maxSlowRanks bounds the listed ranks of a slow peer.
const maxSlowRanks = 1000

// Slow returns the slow peers as the API has them, the costliest first.
func Slow(p *provenance.Peers, links Links) []api.SlowPlace {
	list := []api.SlowPlace{}
	for i := range p.Slow {
		list = append(list, slowPlace(p.Unit, &p.Slow[i], links))
	}
	return list
}

func slowPlace(unit trace.Unit, s *provenance.SlowPeer, links Links) api.SlowPlace {
	a := api.SlowPlace{
		Place: s.Place(), Program: int64(s.PID), Pattern: string(s.Pattern), Ratio: s.Ratio, Peers: int64(s.Peers), Weak: s.Weak,
		From: s.From, To: s.To, Saved: unit.Micros(s.Saved), Share: s.Share, Ranks: []int64{}, RankCount: int64(len(s.Ranks)),
		Functions: []api.SlowFunction{}, Counters: []api.SlowCounter{},
	}
	a.Finding, a.FindingKey = links.Finding(s)
	for _, r := range s.Ranks[:min(len(s.Ranks), maxSlowRanks)] {
		a.Ranks = append(a.Ranks, int64(r))
	}
	if s.TID != provenance.AllThreads {
		a.Thread = &s.TID
	}
	if s.Twin != nil {
		a.Twin = new(int64(*s.Twin))
	}
	for _, f := range s.Functions {
		a.Functions = append(a.Functions, api.SlowFunction{
			Function: f.Func, FunctionID: links.FunctionID(trace.FuncKey{Program: s.PID, Name: f.Func}), Calls: f.Calls,
			Mean: unit.MicrosOf(f.Mean), Peers: unit.MicrosOf(f.Peers), Lost: unit.Micros(f.Beyond), PeerCalls: f.PeerCalls,
		})
	}
	for _, c := range s.Counters {
		a.Counters = append(a.Counters, api.SlowCounter(c))
	}
	return a
}

// units returns the units of all rows, ordered by program, host, rank and thread.
func (t *table) units() []unit {
	var units []unit
	threads := t.By == ByThread || t.By == ByDevice
	seen := make(map[trace.RankKey]bool)
	for i := range t.Peers.Loads {
		l := &t.Peers.Loads[i]
		if l.Device != (t.By == ByDevice) || t.By == ByThread && l.TID == provenance.AllThreads || !threads && l.TID != provenance.AllThreads {
			continue
		}
		key := trace.RankKey{Program: l.PID, Rank: l.RID}
		seen[key] = true
		units = append(units, unit{key, cmp.Or(l.Host, t.Known[key]), l})
	}
	if !threads {
		for key, host := range t.Known {
			if !seen[key] {
				units = append(units, unit{key, host, nil})
			}
		}
	}
	units = slices.DeleteFunc(units, t.excludes())
	slices.SortFunc(units, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.host, b.host), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.tid(), b.tid()))
	})
	return units
}

func (u *unit) tid() int64 {
	if u.load == nil {
		return provenance.AllThreads
	}
	return u.load.TID
}

// excludes returns a function that reports which units the filter leaves out.
func (t *table) excludes() func(u unit) bool {
	match := outlier.Matcher(t.Host)
	return func(u unit) bool {
		return t.Program != nil && u.Program != *t.Program || !match(u.host) || !trace.Selects(t.Ranks, int64(u.Rank)) ||
			t.Role != 0 && (u.load == nil || u.load.Role != t.Role) || t.Thread != nil && u.tid() != *t.Thread
	}
}

// micros returns a time in seconds as an exact key.
func micros(seconds float64) int64 { return int64(math.Round(seconds * 1e6)) }

// windows finds the windows of all units.
func (t *table) windows(units []unit) {
	ends := make(map[int64]float64)
	for i := range units {
		if units[i].load == nil {
			continue
		}
		for _, w := range units[i].load.Windows {
			ends[micros(w.From)] = max(ends[micros(w.From)], w.To)
		}
	}
	for from, to := range ends {
		t.answer.Windows = append(t.answer.Windows, api.RankWindow{From: float64(from) / 1e6, To: to})
	}
	slices.SortFunc(t.answer.Windows, func(a, b api.RankWindow) int { return cmp.Compare(a.From, b.From) })
	t.columns = make(map[int64]int, len(ends))
	for i, w := range t.answer.Windows {
		t.columns[micros(w.From)] = i
	}
}

// indexSlow finds the costliest slow peer of each rank, thread and GPU.
func (t *table) indexSlow() {
	t.slow = make(map[thread]int)
	for i := range t.Peers.Slow {
		s := &t.Peers.Slow[i]
		for _, r := range s.Ranks {
			key := thread{trace.RankKey{Program: s.PID, Rank: r}, s.TID, s.Device}
			if old, ok := t.slow[key]; !ok || t.Peers.Slow[old].Pattern == provenance.ByRole && s.Pattern != provenance.ByRole {
				t.slow[key] = i
			}
		}
	}
}

// group puts units together that make a row.
func (t *table) group(units []unit) [][]unit {
	switch t.By {
	case ByHost:
		return CutWhere(units, otherHost)
	case ByRole:
		role := func(u unit) int {
			if u.load == nil {
				return math.MaxInt // last
			}
			return u.load.Role
		}
		slices.SortStableFunc(units, func(a, b unit) int {
			return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(role(a), role(b)), cmp.Compare(a.Rank, b.Rank))
		})
		return CutWhere(units, func(a, b unit) bool { return otherProgram(a, b) || role(a) != role(b) })
	}
	return CutWhere(units, func(_, _ unit) bool { return true })
}

func otherHost(a, b unit) bool    { return otherProgram(a, b) || a.host != b.host }
func otherProgram(a, b unit) bool { return a.Program != b.Program }

// CutWhere splits a list between neighbors that are apart.
func CutWhere[T any](list []T, apart func(a, b T) bool) (parts [][]T) {
	first := 0
	for i := 1; i <= len(list); i++ {
		if i == len(list) || apart(list[i-1], list[i]) {
			parts = append(parts, list[first:i])
			first = i
		}
	}
	return parts
}

// neighbors merges as few neighboring groups as necessary to leave at most that many. It merges groups of one host
// if possible, else of one program. If possible, groups without data stay apart from others, so that they are
// visible.
func neighbors(groups [][]unit, most int) [][]unit {
	if len(groups) <= most {
		return groups
	}
	host := func(a, b []unit) bool { return otherHost(a[0], b[0]) }
	program := func(a, b []unit) bool { return otherProgram(a[0], b[0]) }
	data := func(a, b []unit) bool { return hasData(a) != hasData(b) }
	either := func(f, g func(a, b []unit) bool) func(a, b []unit) bool {
		return func(a, b []unit) bool { return f(a, b) || g(a, b) }
	}
	never := func(_, _ []unit) bool { return false }
	for _, apart := range []func(a, b []unit) bool{either(host, data), host, either(program, data), program, never} {
		sections := CutWhere(groups, apart)
		if len(sections) > most {
			continue
		}
		for size := 2; ; size++ {
			n := 0
			for _, s := range sections {
				n += (len(s) + size - 1) / size
			}
			if n > most {
				continue
			}
			merged := make([][]unit, 0, n)
			for _, s := range sections {
				for chunk := range slices.Chunk(s, size) {
					merged = append(merged, slices.Concat(chunk...))
				}
			}
			return merged
		}
	}
	return groups // not reached: one section always fits
}

// hasData reports whether a unit of a group has data.
func hasData(group []unit) bool {
	return slices.ContainsFunc(group, func(u unit) bool { return u.load != nil })
}

// missingRanks lists the ranks without data.
func (t *table) missingRanks(units []unit) {
	var without []unit
	for i := range units {
		if units[i].load == nil {
			without = append(without, units[i])
		}
	}
	slices.SortFunc(without, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.host, b.host), cmp.Compare(a.Rank, b.Rank))
	})
	for _, part := range CutWhere(without, otherHost) {
		if len(t.answer.Missing) == maxRows {
			break
		}
		ranks := make([]trace.Rank, len(part))
		for i := range part {
			ranks[i] = part[i].Rank
		}
		t.answer.Missing = append(t.answer.Missing, api.NoData{
			Program: int64(part[0].Program), Host: part[0].host, Ranks: text.Ranges(ranks), Count: int64(len(ranks)),
		})
	}
}
