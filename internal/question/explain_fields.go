package question

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/contrast"
	"github.com/chimbuko/chimbuko/internal/trace"
)

// field is a column with what it is about.
type field struct {
	contrast.Column
	kind FieldKind
	rest string // what shares are of: ranks, calls …
}

// monitoring is how counters are named in the trace that tell the state of the node.
const monitoring = "monitoring: "

// fields makes columns of all that is known. Where several tell the same, the first is
// the simplest: a host before its ranks, a rank before who it talks to.
func (s *sampling) fields() []field {
	list := append(s.places(), s.partners()...)
	list = append(list, s.paths(), s.bytes())
	list = append(list, s.amounts(FieldState)...)
	list = append(list, s.amounts(FieldCounter)...)
	list = append(list, s.times()...)
	f := &s.q.Filter
	for i := range list {
		switch k := list[i].kind; {
		case k == FieldTime || k == FieldStep:
			list[i].Role = contrast.When
			if f.Since != nil || f.Until != nil || f.Steps != nil {
				list[i].Role = contrast.Chosen
			}
		case k == FieldHost && (f.Host != "" || len(f.Ranks) > 0), k == FieldRank && len(f.Ranks) > 0:
			list[i].Role = contrast.Chosen
		}
	}
	return list
}

// column makes a field of values of the executions; without a share of what is known of
// all calls they are held against the others that are kept.
func (s *sampling) column(kind FieldKind, name string, shape contrast.Shape, shares []contrast.Share, rest string, value func(x *sampled) (contrast.Cell, bool)) field {
	selected, typical, others := s.selected, s.typical, s.others
	if kind == FieldLink || kind == FieldPartner {
		typical, others = s.onChosenRanks(typical), s.onChosenRanks(others)
	}
	if kind == FieldLink || kind == FieldPartner || kind == FieldBytes || kind == FieldCounter || kind == FieldState {
		selected, typical, others = s.closely(selected), s.closely(typical), s.closely(others)
	}
	f := field{kind: kind, rest: rest, Column: contrast.Column{Name: name, Shape: shape, Shares: shares, Of: len(selected)}}
	cells := func(list []*sampled) (cells []contrast.Cell) {
		for _, x := range list {
			if c, ok := value(x); ok {
				c.Unit = s.unit(x, (x.entry-s.begin)/s.binWidth())
				cells = append(cells, c)
			}
		}
		return cells
	}
	f.Selection = cells(selected)
	if len(shares) == 0 {
		f.Baseline = append(cells(typical), cells(others)...)
		f.rest = "others"
	}
	return f
}

// onChosenRanks leaves those on ranks of the selection if it was chosen by rank or host: who
// a rank talks to depends on the rank, and that was not found but chosen.
func (s *sampling) onChosenRanks(list []*sampled) []*sampled {
	if len(s.q.Filter.Ranks) == 0 && s.q.Filter.Host == "" {
		return list
	}
	chosen := make(map[Process]bool)
	for _, x := range s.selected {
		chosen[Process{x.program, x.rank}] = true
	}
	var left []*sampled
	for _, x := range list {
		if chosen[Process{x.program, x.rank}] {
			left = append(left, x)
		}
	}
	return left
}

// places are hosts, devices, streams, ranks and threads.
func (s *sampling) places() []field {
	programs := make(map[trace.Program]bool)
	for _, x := range s.selected {
		programs[x.program] = true
	}
	var hosts, ranks, threads []contrast.Share
	hostOf := make(map[Process]string)
	for _, r := range s.q.Ranks {
		hostOf[r.Process] = r.Host
		if !programs[r.Program] {
			continue
		}
		ranks = append(ranks, contrast.Share{Number: float64(r.Rank), Weight: 1})
		if r.Host != "" {
			hosts = append(hosts, contrast.Share{Label: r.Host, Weight: 1})
		}
	}
	for _, t := range s.threads {
		threads = append(threads, contrast.Share{Number: float64(t), Weight: 1})
	}
	devices, streams := s.streamShares(programs)
	part := func(i int) func(x *sampled) (contrast.Cell, bool) {
		return func(x *sampled) (contrast.Cell, bool) {
			d, ok := s.devices[device{x.program, x.rank, x.thread}]
			return contrast.Cell{Label: d[i]}, ok && d[i] != "" && x.onGPU
		}
	}
	return []field{
		s.column(FieldHost, "host", contrast.Labels, hosts, "ranks", func(x *sampled) (contrast.Cell, bool) {
			host := hostOf[Process{x.program, x.rank}]
			return contrast.Cell{Label: host}, host != ""
		}),
		s.column(FieldDevice, "GPU device", contrast.Labels, devices, "streams", part(0)),
		s.column(FieldStream, "GPU stream", contrast.Labels, streams, "streams", part(1)),
		s.column(FieldRank, "rank", contrast.Numbers, ranks, "ranks", func(x *sampled) (contrast.Cell, bool) {
			return contrast.Cell{Number: float64(x.rank)}, true
		}),
		s.column(FieldThread, "thread", contrast.Numbers, threads, "threads", func(x *sampled) (contrast.Cell, bool) {
			return contrast.Cell{Number: float64(x.thread)}, !x.onGPU
		}),
	}
}

func (s *sampling) streamShares(programs map[trace.Program]bool) (devices, streams []contrast.Share) {
	for key, d := range s.devices {
		if !programs[key.program] {
			continue
		}
		if d[0] != "" {
			devices = append(devices, contrast.Share{Label: d[0], Weight: 1})
		}
		if d[1] != "" {
			streams = append(streams, contrast.Share{Label: d[1], Weight: 1})
		}
	}
	return devices, streams
}

// partners are who executions talked to.
func (s *sampling) partners() []field {
	return []field{
		s.column(FieldLink, "link", contrast.Labels, nil, "", func(x *sampled) (contrast.Cell, bool) {
			if x.message == nil || !x.message.own {
				return contrast.Cell{}, false
			}
			low, high := min(int64(x.rank), x.message.partner), max(int64(x.rank), x.message.partner)
			return contrast.Cell{Label: fmt.Sprintf("%d – %d", low, high)}, true
		}),
		s.column(FieldPartner, "message partner", contrast.Numbers, nil, "", func(x *sampled) (contrast.Cell, bool) {
			if x.message == nil || !x.message.own {
				return contrast.Cell{}, false
			}
			return contrast.Cell{Number: float64(x.message.partner)}, true
		}),
	}
}

// paths are how functions were called.
func (s *sampling) paths() field {
	functions := make(map[[2]int64]bool)
	for _, x := range s.selected {
		functions[[2]int64{int64(x.program), x.fn}] = true
	}
	var shares []contrast.Share
	if len(functions) == 1 { // else a function would be taken for its path
		for key, n := range s.pathCalls {
			shares = append(shares, contrast.Share{Label: s.pathNames[key], Weight: n})
		}
	}
	return s.column(FieldPath, "call path", contrast.Labels, shares, "calls", func(x *sampled) (contrast.Cell, bool) {
		name := s.pathNames[[2]int64{int64(x.program), x.path}]
		return contrast.Cell{Label: name}, name != ""
	})
}

func (s *sampling) bytes() field {
	return s.column(FieldBytes, "message bytes", contrast.Amounts, nil, "", func(x *sampled) (contrast.Cell, bool) {
		if x.message == nil {
			return contrast.Cell{}, false
		}
		return contrast.Cell{Number: x.message.bytes}, true
	})
}

// amounts are counters that were read in executions, or states of nodes.
func (s *sampling) amounts(kind FieldKind) []field {
	values := func(x *sampled) map[string]float64 {
		if kind == FieldState {
			return x.states
		}
		return x.counters
	}
	names := make(map[string]bool)
	for _, x := range s.selected {
		for name := range values(x) {
			names[name] = true
		}
	}
	var list []field
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := s.column(kind, name, contrast.Amounts, nil, "", func(x *sampled) (contrast.Cell, bool) {
			v, ok := values(x)[name]
			return contrast.Cell{Number: v}, ok
		})
		if kind == FieldState {
			f.Selection, f.Baseline = s.stateCells(name)
			f.rest, f.Stale = "other states", true
			if m, ok := s.readings[monitoring+name]; ok {
				f.Moments = &m
			}
		}
		list = append(list, f)
	}
	return list
}

// stateCells are the states of nodes. One that the selection has is not held against it.
func (s *sampling) stateCells(name string) (selection, rest []contrast.Cell) {
	taken := make(map[uint64]bool)
	for _, x := range s.selected {
		if v, ok := x.states[name]; ok {
			selection = append(selection, contrast.Cell{Number: v, Unit: x.stateUnit})
			taken[x.stateUnit] = true
		}
	}
	for _, list := range [][]*sampled{s.typical, s.others, s.anywhere} {
		for _, x := range list {
			if v, ok := x.states[name]; ok && !taken[x.stateUnit] {
				rest = append(rest, contrast.Cell{Number: v, Unit: x.stateUnit})
				taken[x.stateUnit] = true
			}
		}
	}
	return selection, rest
}

// times are the time since the begin of the run, in parts of it, and the step.
func (s *sampling) times() []field {
	width := s.binWidth()
	last := float64(max(0, (s.q.Extent-1)/width))
	var times, steps []contrast.Share
	for i := 0.0; i <= last && i < 2*timeBins; i++ {
		times = append(times, contrast.Share{Number: i, Weight: 1})
	}
	for i := int64(0); i <= s.lastStep && i < maxSteps; i++ {
		steps = append(steps, contrast.Share{Number: float64(i), Weight: 1})
	}
	return []field{
		s.column(FieldTime, "time", contrast.Spans, times, "of the run", func(x *sampled) (contrast.Cell, bool) {
			return contrast.Cell{Number: min(last, float64(max(0, x.entry-s.begin)/width))}, true
		}),
		s.column(FieldStep, "step", contrast.Spans, steps, "steps", func(x *sampled) (contrast.Cell, bool) {
			return contrast.Cell{Number: float64(x.step)}, true
		}),
	}
}

// maxSteps is how many steps of a run are told apart.
const maxSteps = 100_000

// binWidth is that of the parts of the run.
func (s *sampling) binWidth() trace.Micros { return max(1, (s.q.Extent+timeBins-1)/timeBins) }

// text writes a value of the field.
func (f *field) text(s *sampling, v float64) string {
	switch f.kind {
	case FieldTime:
		return strconv.FormatFloat(v*float64(s.binWidth())/1e6, 'f', 2, 64) + " s"
	case FieldBytes, FieldState, FieldCounter:
		return amountText(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
