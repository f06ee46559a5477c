package peers

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// efficiency returns the metrics of the POP methodology for a program: first for the run, then for its windows.
func (c *comparison) efficiency(ranks, devices *population) []provenance.Efficiency {
	if len(ranks.units) == 0 {
		return nil
	}
	begin, end := ranks.units[0].First, ranks.units[0].Last
	for _, u := range ranks.units {
		begin, end = min(begin, u.First), max(end, u.Last)
	}
	all := []provenance.Efficiency{c.efficiencyOf(ranks, devices, 0, c.windows, begin, end)}
	all[0].Entire = true
	for w := range c.windows {
		from, to := c.bounds(w)
		if from, to = max(from, begin), min(to, end); from < to {
			all = append(all, c.efficiencyOf(ranks, devices, w, w+1, from, to))
		}
	}
	return all
}

// efficiencyOf returns the metrics of windows. The program was present from one time to another.
func (c *comparison) efficiencyOf(ranks, devices *population, first, end int, from, to trace.Ticks) provenance.Efficiency {
	e := provenance.Efficiency{PID: ranks.program, Begin: c.begin, From: c.seconds(from), To: c.seconds(to), Slowest: -1}
	elapsed := max(1, float64(to-from))
	n, total, most, slowest := usefulIn(ranks, first, end)
	if e.Ranks = n; n > 0 {
		e.Slowest = int64(slowest)
		e.Parallel, e.LoadBalance, e.Communication = total/float64(n)/elapsed, total/float64(n)/max(1, most), most/elapsed
	}
	if n, total, most := busyIn(devices, first, end, elapsed); n > 0 {
		parallel, balance := total/float64(n)/elapsed, total/float64(n)/max(1, most)
		e.DeviceParallel, e.DeviceLoadBalance = &parallel, &balance
	}
	return e
}

// usefulIn returns the number of units that were present in windows, their total and their greatest useful time, and the
// slowest unit.
func usefulIn(p *population, first, end int) (n int, total, most float64, slowest trace.Rank) {
	slowest = -1
	for _, u := range p.units {
		useful, present := u.usefulIn(first, end)
		if !present {
			continue
		}
		n++
		total += useful
		if slowest < 0 || useful > most {
			most, slowest = useful, u.Rank
		}
	}
	return n, total, most, slowest
}

// usefulIn returns the useful time in windows, and whether the unit was present.
func (u *unit) usefulIn(first, end int) (useful float64, present bool) {
	for _, v := range u.useful[first:end] {
		useful, present = useful+max(0, v), present || v >= 0
	}
	return useful, present
}

// gpu is a GPU of a rank.
type gpu struct {
	rank   trace.Rank
	number uint64
}

// busyIn returns the number of GPUs that were present in windows, which take the elapsed time, and their total and greatest
// busy time. The units are streams. A GPU is not busier than the elapsed time even if its streams overlap; by how much they
// overlap is unknown.
func busyIn(streams *population, first, end int, elapsed float64) (n int, total, most float64) {
	index := make(map[gpu]int)
	var busy []float64
	for _, u := range streams.units {
		_, present := u.usefulIn(first, end)
		if !present {
			continue
		}
		at, ok := index[gpu{u.Rank, u.GPU}]
		if !ok {
			at = len(busy)
			index[gpu{u.Rank, u.GPU}], busy = at, append(busy, 0)
		}
		for _, v := range u.busy[first:end] {
			busy[at] += v
		}
	}
	for _, time := range busy {
		time = min(time, elapsed)
		total, most = total+time, max(most, time)
	}
	return len(busy), total, most
}
