package findings

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// late returns the party that lost more than half of the own time of a finding, or an empty string. Waits with a known cause
// have the result of their cause.
func (c *conclusion) late(g *group) provenance.Late {
	if g.cause != nil {
		return c.late(g.cause)
	}
	times := make(map[provenance.Late]trace.Ticks)
	add := func(function string, onDevice bool, lost trace.Ticks) {
		times[c.lateOf(function, onDevice)] += max(1, lost)
	}
	switch {
	case g.IsChange():
		onDevice, known := c.onDevice(trace.FuncKey{Program: g.PID, Name: g.Func})
		if !known && c.lateOf(g.Func, false) != c.lateOf(g.Func, true) {
			return ""
		}
		add(g.Func, onDevice, 1)
	case g.peer == nil:
		for _, i := range g.members {
			add(g.all[i].Func, g.all[i].OnDevice, g.all[i].Lost)
		}
	case len(g.peer.Functions) == 0:
		add("", g.peer.Device, 1)
	default:
		for i := range g.peer.Functions {
			add(g.peer.Functions[i].Func, g.peer.Device, g.peer.Functions[i].Beyond)
		}
	}
	var total trace.Ticks
	for _, time := range times {
		total += time
	}
	for late, time := range times {
		if 2*time > total {
			return late
		}
	}
	return ""
}

// lateOf returns the party that is late if a call of a function is; empty if unknown.
func (c *conclusion) lateOf(function string, onDevice bool) provenance.Late {
	switch {
	case c.run.WaitOf(function) == blame.Device:
		return provenance.LateDevice
	case sends(function):
		return provenance.LateCommunication
	case onDevice:
		return provenance.LateDevice
	case provenance.StageOf(function) != "" && !c.hasGPUs():
		return "" // the trace has one lane for the host and the GPU of a worker
	}
	return provenance.LateHost
}

// hasGPUs reports whether the trace has streams of GPUs.
func (c *conclusion) hasGPUs() bool {
	return slices.ContainsFunc(c.comparison.Loads, func(l provenance.RankLoad) bool { return l.Device }) ||
		slices.ContainsFunc(c.run.Anomalies, func(a blame.Anomaly) bool { return a.OnDevice })
}

// onDevice reports whether a function runs on GPUs. known is false if the comparison does not show it.
func (c *conclusion) onDevice(function trace.FuncKey) (onDevice, known bool) {
	if c.comparison.DeviceFunctions != nil {
		return c.comparison.DeviceFunctions[function], true
	}
	for i := range c.comparison.Loads { // without DeviceFunctions, while the run continues: the functions with most time
		l := &c.comparison.Loads[i]
		if l.PID == function.Program &&
			slices.ContainsFunc(l.Functions, func(f provenance.RankFunction) bool { return f.Func == function.Name }) {
			return l.Device, true
		}
	}
	return false, !c.hasGPUs()
}
