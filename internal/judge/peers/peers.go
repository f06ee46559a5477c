// Package peers compares ranks, threads and GPUs that do equal work, and computes the efficiency of programs. It finds places
// that are slower than their peers, since when they are, and how much shorter the run would be otherwise. docs/findings.md
// has the rules. The package is pure.
package peers

import (
	"math"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// comparison is the state of Compare.
type comparison struct {
	tick       trace.Unit // unit of times
	works      []workload.Work
	threads    []bool // by index of works: is the call of an entire thread, during which a GPU is idle
	name       func(trace.Program, uint32) string
	load       *workload.Load // for counters only
	begin, end trace.Ticks    // limits of the run
	first      int64          // number of the first window
	windows    int
	edges      []trace.Ticks   // limits of windows
	fewest     int             // least number of windows of an interval in which a unit is slow
	cells      []workload.Cell // scratch
}

// unit is a rank, thread or GPU that is compared with others.
type unit struct {
	*workload.Lane                  // main thread of a rank
	lanes          []*workload.Lane // lanes whose work is compared
	tid            int64
	index          int // index in its population
	role, peers    int
	share          int // units of the role with the same share have the same number of calls
	// By window. Useful time is negative if the unit was not present. A unit with gaps is idle outside of calls.
	useful, wait, sync, idle []float64
	work                     []float64 // time of all work, by window
	busy                     []float64 // time of the work of a stream, by window
	// By window: time of comparable work, time of equal work of peers, the logarithm of their ratio, and that logarithm
	// with the mean of the role. These are NaN without such work.
	time, expected, excess, raw []float64
	slow                        *interval // nil if it is not slow
	functions                   []rankFunction
	byMean                      float64 // expected time by the mean of the role
	function                    *uint32 // the only function of a part of the work
}

// population has all ranks of a program, all of its threads, or all of its GPUs.
type population struct {
	program  trace.Program
	units    []*unit
	ofRanks  bool    // units are ranks
	waiting  []*unit // ranks that may wait for units
	device   bool
	least    float64     // logarithm of the least ratio of a slow unit
	perBlock int         // number of windows of a block; see block
	rounds   float64     // number of rounds of a window; see rounds
	noise    *float64    // see noiseOf
	calls    [][]float64 // calls of usual functions, by unit
	times    []float64   // times of calls of these functions
	largest  []int       // largest roles; see base
}

// OfRun compares the ranks, threads and GPUs of a run with an outcome. It returns nil if their load is unknown.
func OfRun(o *summary.Outcome) *provenance.Peers {
	if o.Load == nil || o.Load.Empty() {
		return nil
	}
	names := make(map[uint32]string, len(o.Functions))
	for _, f := range o.Functions {
		names[uint32(f.ID)] = f.Name
	}
	all := CompareIn(o.Unit, o.Load, func(_ trace.Program, function uint32) string { return names[function] })
	all.Work = workTimes(o.Load, names)
	if o.Breakdown == nil {
		return all
	}
	all.Steps = make(map[trace.RankKey][]provenance.StepStart)
	for i := range o.Breakdown.Ranks {
		r := &o.Breakdown.Ranks[i]
		for k := range r.Steps {
			all.Steps[r.RankKey] = append(all.Steps[r.RankKey], provenance.StepStart{Number: r.Steps[k].Number, Start: r.Steps[k].Start})
		}
	}
	return all
}

// Compare is like CompareIn for a load in microseconds.
func Compare(load *workload.Load, name func(trace.Program, uint32) string) *provenance.Peers {
	return CompareIn(trace.Microsecond, load, name)
}

// CompareIn compares the ranks, threads and GPUs of each program of a load in ticks of a unit. name returns the name of a function.
func CompareIn(unit trace.Unit, load *workload.Load, name func(trace.Program, uint32) string) *provenance.Peers {
	out := &provenance.Peers{Unit: unit, DeviceFunctions: make(map[trace.FuncKey]bool)}
	lanes := load.Lanes()
	lanes = slices.DeleteFunc(lanes, func(l *workload.Lane) bool { return l.First == 0 && l.Last == 0 })
	if len(lanes) == 0 {
		return out
	}
	c := &comparison{tick: unit, works: load.Works(), name: name, load: load}
	for _, w := range c.works {
		c.threads = append(c.threads, strings.HasPrefix(name(w.Program, w.Function), trace.WholeThread))
	}
	c.begin, c.end = lanes[0].First, lanes[0].Last
	for _, l := range lanes {
		c.begin, c.end = min(c.begin, l.First), max(c.end, l.Last)
	}
	c.first = int64(c.begin) >> load.Shift()
	c.windows = int(int64(c.end)>>load.Shift()-c.first) + 1
	for w := range c.windows {
		c.edges = append(c.edges, max(c.begin, trace.Ticks((c.first+int64(w))<<load.Shift())))
	}
	c.edges = append(c.edges, c.end)
	if c.fewest = fewestWindows; len(lanes) > manyLanes {
		c.fewest = fewestWide
	}
	for len(lanes) > 0 {
		n := slices.IndexFunc(lanes, func(l *workload.Lane) bool { return l.Program != lanes[0].Program })
		if n < 0 {
			n = len(lanes)
		}
		c.program(out, lanes[:n])
		c.deviceFunctions(lanes[:n], out.DeviceFunctions)
		lanes = lanes[n:]
	}
	slices.SortStableFunc(out.Slow, compareSlow)
	if a := load.Activities(); !a.Empty() {
		load.NameActivities()
		out.Activity = a.AppendBinary(nil)
	}
	return out
}

// program compares the lanes of a program.
func (c *comparison) program(out *provenance.Peers, lanes []*workload.Lane) {
	ranks, threads, devices := c.populations(lanes)
	for _, p := range []*population{ranks, threads, devices} {
		c.divide(p)
		for _, role := range p.roles() {
			c.compareRole(p, role)
		}
	}
	blameThreads(ranks, threads)
	c.extra(ranks)
	c.extra(devices)
	blameDevices(ranks, devices)
	for _, p := range []*population{ranks, threads, devices} {
		out.Slow = append(out.Slow, c.slowPeers(p)...)
	}
	out.Efficiency = append(out.Efficiency, c.efficiency(ranks, devices)...)
	out.Loads = append(out.Loads, c.loads(out.Slow, ranks, threads, devices)...)
}

// deviceFunctions adds the functions of GPUs. Functions that only wait for other ranks have no cells.
func (c *comparison) deviceFunctions(lanes []*workload.Lane, functions map[trace.FuncKey]bool) {
	onDevice := make([]bool, len(c.works))
	for _, l := range lanes {
		if !l.Device {
			continue
		}
		for i := range l.Windows {
			for _, cell := range c.decode(&l.Windows[i]) {
				onDevice[cell.Work] = true
			}
		}
	}
	for i, w := range c.works {
		if onDevice[i] && !c.threads[i] {
			functions[trace.FuncKey{Program: w.Program, Name: c.name(w.Program, w.Function)}] = true
		}
	}
}

// populations returns the units of a program. It omits threads of ranks that have only one.
func (c *comparison) populations(lanes []*workload.Lane) (ranks, threads, devices *population) {
	p := lanes[0].Program
	ranks = &population{program: p, least: math.Log(leastRatio)}
	threads = &population{program: p, least: math.Log(leastRatio)}
	devices = &population{program: p, least: math.Log(leastDeviceRatio), device: true}
	for len(lanes) > 0 {
		n := slices.IndexFunc(lanes, func(l *workload.Lane) bool { return l.Rank != lanes[0].Rank })
		if n < 0 {
			n = len(lanes)
		}
		var cpu []*workload.Lane
		for _, l := range lanes[:n] {
			if l.Device {
				devices.units = append(devices.units, c.unit(l, int64(l.Thread), l))
			} else {
				cpu = append(cpu, l)
			}
		}
		if len(cpu) > 0 {
			ranks.units = append(ranks.units, c.unit(cpu[0], provenance.AllThreads, cpu...))
		}
		for _, l := range cpu {
			if len(cpu) > 1 {
				threads.units = append(threads.units, c.unit(l, int64(l.Thread), l))
			}
		}
		lanes = lanes[n:]
	}
	ranks.ofRanks, threads.waiting, devices.waiting, ranks.waiting = true, ranks.units, ranks.units, ranks.units
	return ranks, threads, devices
}

// newUnit returns a unit without work.
func (c *comparison) newUnit(main *workload.Lane, tid int64, lanes ...*workload.Lane) *unit {
	all := make([]float64, 9*c.windows)
	part := func(i int) []float64 { return all[i*c.windows : (i+1)*c.windows : (i+1)*c.windows] }
	u := &unit{
		Lane: main, lanes: lanes, tid: tid, useful: part(0), wait: part(1), sync: part(2),
		time: part(3), expected: part(4), excess: part(5), raw: part(6), idle: part(7), work: part(8),
	}
	for i := range u.excess {
		u.excess[i], u.raw[i] = math.NaN(), math.NaN()
	}
	return u
}

// unit returns a unit with the work of lanes and the waiting time of the main lane.
func (c *comparison) unit(main *workload.Lane, tid int64, lanes ...*workload.Lane) *unit {
	u := c.newUnit(main, tid, lanes...)
	idle := main.Device || main.Gaps // idle outside of calls
	if main.Device {
		u.busy = make([]float64, c.windows)
	}
	for i := range main.Windows {
		w := &main.Windows[i]
		at := c.index(w)
		u.wait[at], u.sync[at] = float64(w.Wait), float64(w.Sync)
		if idle {
			for _, cell := range c.decode(w) {
				u.useful[at] += float64(cell.Exclusive)
				if main.Device && !c.threads[cell.Work] {
					u.busy[at] += float64(cell.Exclusive)
				}
			}
		}
	}
	for w := c.windows - 1; w >= 0; w-- {
		from, to := c.bounds(w)
		present := float64(min(to, main.Last) - max(from, main.First))
		most := max(0, present-u.wait[w])
		switch {
		case present < 0 || present == 0 && u.wait[w] == 0 && u.useful[w] == 0:
			u.useful[w] = -1
		case !idle:
			u.useful[w] = most
		case w > 0 && u.useful[w] > most && !main.Device: // calls count when they end
			u.useful[w-1] += u.useful[w] - most
			u.useful[w] = most
		}
		if main.Gaps && u.useful[w] >= 0 {
			u.idle[w] = max(0, most-u.useful[w])
		}
	}
	return u
}

// index returns the index of a window.
func (c *comparison) index(w *workload.Window) int {
	return int(min(max(w.Number-c.first, 0), int64(c.windows-1)))
}

// decode returns the cells of a window. They are valid until the next call.
func (c *comparison) decode(w *workload.Window) []workload.Cell {
	c.cells = w.Cells(c.cells[:0])
	return c.cells
}

// bounds returns the beginning and the end of a window.
func (c *comparison) bounds(w int) (from, to trace.Ticks) { return c.edges[w], c.edges[w+1] }

// seconds returns the time since the start of the run.
func (c *comparison) seconds(at trace.Ticks) float64 { return c.tick.Seconds(at - c.begin) }

// loads returns the loads of all units of a program.
func (c *comparison) loads(slow []provenance.SlowPeer, all ...*population) []provenance.RankLoad {
	var loads []provenance.RankLoad
	for _, p := range all {
		for _, u := range p.units {
			loads = append(loads, c.rankLoad(u))
		}
	}
	slices.SortStableFunc(loads, func(a, b provenance.RankLoad) int {
		if a.RID != b.RID {
			return int(a.RID) - int(b.RID)
		}
		return int(a.TID - b.TID)
	})
	for i := range slow {
		mark(loads, &slow[i])
	}
	return loads
}

// mark sets the times at which the places of a slow peer were slow in their loads, unless another slow peer costs more.
func mark(loads []provenance.RankLoad, s *provenance.SlowPeer) {
	for k := range loads {
		l := &loads[k]
		streams := s.Device && s.TID == provenance.AllThreads // several streams of a GPU
		if l.PID == s.PID && l.Pattern == "" && l.Device == s.Device && (l.TID == s.TID || streams) && l.Saved <= s.Saved &&
			slices.Contains(s.Ranks, l.RID) {
			l.Pattern, l.Saved, l.Share, l.From, l.To = s.Pattern, s.Saved, s.Share, new(s.From), s.To
		}
	}
}

func (c *comparison) rankLoad(u *unit) provenance.RankLoad {
	l := provenance.RankLoad{
		PID: u.Program, RID: u.Rank, TID: u.tid, Device: u.Device, Host: u.Host, Role: u.role, Peers: u.peers,
		Elapsed: u.Last - u.First, Windows: []provenance.LoadWindow{},
	}
	if u.slow != nil && u.slow.extra {
		l.Peers = u.slow.peers
	}
	for w := range c.windows {
		if u.useful[w] >= 0 {
			l.Useful += trace.Ticks(u.useful[w])
		}
		l.Wait += trace.Ticks(u.wait[w])
		l.Sync += trace.Ticks(u.sync[w])
	}
	l.Ratio = ratio(sum(u.time), sum(u.expected))
	l.Windows = append(l.Windows, c.loadWindows(u, 0, c.windows)...)
	l.Functions = u.rankFunctions()
	return l
}

// loadWindows returns the windows of a unit in which it was present.
func (c *comparison) loadWindows(us *unit, from, to int) []provenance.LoadWindow {
	all := []provenance.LoadWindow{}
	for w := from; w < to; w++ {
		if us.useful[w] < 0 {
			continue
		}
		a, b := c.bounds(w)
		all = append(all, provenance.LoadWindow{
			From: c.seconds(a), To: c.seconds(b), Useful: trace.Ticks(us.useful[w]), Wait: trace.Ticks(us.wait[w]),
			Ratio: ratio(us.time[w], us.expected[w]),
		})
	}
	return all
}

// ratio returns time/expected, or nil if expected is unknown.
func ratio(time, expected float64) *float64 {
	if expected <= 0 {
		return nil
	}
	return new(time / expected)
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}
