package query

import (
	"maps"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
)

// field is a column with what it is about.
type field struct {
	contrast.Column
	key  FieldKey
	rest string // what shares are of: ranks, calls …
}

// monitoring is how counters are named in the trace that tell the state of the node.
const monitoring = "monitoring: "

// fields makes columns of all that is known. Where several tell the same, the first is
// the simplest: a host before its ranks, a rank before who it talks to.
func (s *sampling) fields() []field {
	list := append(s.places(), s.column(FieldKey{Kind: FieldLink}, contrast.Labels, nil, ""), s.column(FieldKey{Kind: FieldPartner}, contrast.Numbers, nil, ""))
	list = append(list, s.paths(), s.column(FieldKey{Kind: FieldBytes}, contrast.Amounts, nil, ""))
	list = append(list, s.amounts(FieldState)...)
	list = append(list, s.amounts(FieldCounter)...)
	list = append(list, s.times()...)
	for i := range list {
		k := list[i].key
		switch {
		case s.chosenBy(k):
			list[i].Role = contrast.Chosen
		case k.Kind == FieldTime || k.Kind == FieldStep:
			list[i].Role = contrast.When
		}
	}
	return list
}

// chosenBy reports whether the selection was made by a field, so that it tells nothing.
func (s *sampling) chosenBy(k FieldKey) bool {
	f := &s.q.Filter
	if slices.ContainsFunc(s.q.Only, func(t Term) bool { return t.Field == k }) {
		return true
	}
	switch k.Kind {
	case FieldTime, FieldStep:
		// Of what one of them leaves out the other knows nothing.
		left := slices.ContainsFunc(s.q.Without, func(t Term) bool {
			return t.Field != k && (t.Field.Kind == FieldTime || t.Field.Kind == FieldStep)
		})
		return f.Since != nil || f.Until != nil || f.Steps != nil || len(s.q.Lasso) > 0 || left || s.q.only(FieldTime, FieldStep)
	case FieldHost:
		return f.Host != "" || len(f.Ranks) > 0 || s.q.only(FieldRank)
	case FieldRank:
		return len(f.Ranks) > 0
	case FieldDevice:
		return s.q.only(FieldStream)
	case FieldLink, FieldPartner:
		return s.q.only(FieldLink, FieldPartner)
	}
	return false
}

// column makes a field of values of the executions; without a share of what is known of
// all calls they are held against the others that are kept.
func (s *sampling) column(key FieldKey, shape contrast.Shape, shares []contrast.Share, rest string) field {
	selected, typical, others := s.selected, s.typical, s.others
	if key.Kind == FieldLink || key.Kind == FieldPartner {
		typical, others = s.onChosenRanks(typical), s.onChosenRanks(others)
	}
	if fieldForms[key.Kind].closely {
		selected, typical, others = s.closely(selected), s.closely(typical), s.closely(others)
	}
	shares = slices.DeleteFunc(shares, func(w contrast.Share) bool { return s.leftOut(key, w) })
	f := field{key: key, rest: rest, Column: contrast.Column{Name: key.words(), Shape: shape, Shares: shares, Of: len(selected)}}
	cells := func(list []*sampled) (cells []contrast.Cell) {
		for _, x := range list {
			if c, ok := s.cell(key, x); ok {
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

// leftOut reports whether all that has a value was left out.
func (s *sampling) leftOut(key FieldKey, w contrast.Share) bool {
	return slices.ContainsFunc(s.q.Without, func(t Term) bool {
		if t.Field != key {
			return false
		}
		if key.Kind == FieldTime { // of the part of the run
			width := float64(s.binWidth()) / 1e6
			return w.Number*width >= t.From-1e-6 && (w.Number+1)*width <= t.To+1e-6
		}
		return t.has(contrast.Cell{Label: w.Label, Number: w.Number})
	})
}

// cell is the value that an execution has of a field; !ok: none.
func (s *sampling) cell(key FieldKey, x *sampled) (c contrast.Cell, ok bool) {
	switch key.Kind {
	case FieldFunction:
		c.Label = x.function
		return c, c.Label != ""
	case FieldHost:
		c.Label = s.hosts[Process{x.program, x.rank}]
		return c, c.Label != ""
	case FieldDevice, FieldStream:
		d := s.devices[device{x.program, x.rank, x.thread}]
		if c.Label = d[0]; key.Kind == FieldStream {
			c.Label = d[1]
		}
		return c, c.Label != "" && x.onGPU
	case FieldRank:
		c.Number = float64(x.rank)
		return c, true
	case FieldThread:
		c.Number = float64(x.thread)
		return c, !x.onGPU
	case FieldLink:
		if x.message == nil || !x.message.own {
			return c, false
		}
		c.Label = linkLabel(int64(x.rank), x.message.partner)
		return c, true
	case FieldPartner:
		if x.message == nil || !x.message.own {
			return c, false
		}
		c.Number = float64(x.message.partner)
		return c, true
	case FieldBytes:
		if x.message == nil {
			return c, false
		}
		c.Number = x.message.bytes
		return c, true
	case FieldPath:
		c.Label = s.pathNames[[2]int64{int64(x.program), x.path}]
		return c, c.Label != ""
	case FieldState:
		c.Number, ok = x.states[key.Name]
		return c, ok
	case FieldCounter:
		c.Number, ok = x.counters[key.Name]
		return c, ok
	case FieldTime:
		c.Number = min(s.lastBin(), float64(max(0, x.entry-s.begin)/s.binWidth()))
		return c, true
	case FieldStep:
		c.Number = float64(x.step)
		return c, true
	}
	return c, false
}

// onChosenRanks leaves those on ranks of the selection if it was chosen by rank or host: who
// a rank talks to depends on the rank, and that was not found but chosen.
func (s *sampling) onChosenRanks(list []*sampled) []*sampled {
	if len(s.q.Filter.Ranks) == 0 && s.q.Filter.Host == "" && !s.q.only(FieldRank, FieldHost) {
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
	for _, r := range s.q.Ranks {
		host, rank := contrast.Share{Label: r.Host, Weight: 1}, contrast.Share{Number: float64(r.Rank), Weight: 1}
		if !programs[r.Program] || s.leftOut(FieldKey{Kind: FieldHost}, host) || s.leftOut(FieldKey{Kind: FieldRank}, rank) {
			continue
		}
		// Which host it is was chosen; which of its ranks was not.
		if !s.q.only(FieldHost) || slices.ContainsFunc(s.q.Only, func(t Term) bool { return t.Field.Kind == FieldHost && t.Label == r.Host }) {
			ranks = append(ranks, rank)
		}
		if r.Host != "" {
			hosts = append(hosts, host)
		}
	}
	for _, t := range s.threads {
		threads = append(threads, contrast.Share{Number: float64(t), Weight: 1})
	}
	devices, streams := s.streamShares(programs)
	return []field{
		s.column(FieldKey{Kind: FieldHost}, contrast.Labels, hosts, "ranks"),
		s.column(FieldKey{Kind: FieldDevice}, contrast.Labels, devices, "streams"),
		s.column(FieldKey{Kind: FieldStream}, contrast.Labels, streams, "streams"),
		s.column(FieldKey{Kind: FieldRank}, contrast.Numbers, ranks, "ranks"),
		s.column(FieldKey{Kind: FieldThread}, contrast.Numbers, threads, "threads"),
	}
}

func (s *sampling) streamShares(programs map[trace.Program]bool) (devices, streams []contrast.Share) {
	for key, d := range s.devices {
		if !programs[key.program] || s.leftOut(FieldKey{Kind: FieldDevice}, contrast.Share{Label: d[0]}) || s.leftOut(FieldKey{Kind: FieldStream}, contrast.Share{Label: d[1]}) {
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
	return s.column(FieldKey{Kind: FieldPath}, contrast.Labels, shares, "calls")
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
		f := s.column(FieldKey{kind, name}, contrast.Amounts, nil, "")
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
	last := s.lastBin()
	var times, steps []contrast.Share
	for i := 0.0; i <= last && i < 2*timeBins; i++ {
		times = append(times, contrast.Share{Number: i, Weight: 1})
	}
	for i := int64(0); i <= s.lastStep && i < maxSteps; i++ {
		steps = append(steps, contrast.Share{Number: float64(i), Weight: 1})
	}
	return []field{
		s.column(FieldKey{Kind: FieldTime}, contrast.Spans, times, "of the run"),
		s.column(FieldKey{Kind: FieldStep}, contrast.Spans, steps, "steps"),
	}
}

// maxSteps is how many steps of a run are told apart.
const maxSteps = 100_000

// binWidth is that of the parts of the run.
func (s *sampling) binWidth() trace.Micros { return max(1, (s.q.Extent+timeBins-1)/timeBins) }

// lastBin is the number of the last part of the run.
func (s *sampling) lastBin() float64 { return float64(max(0, (s.q.Extent-1)/s.binWidth())) }

// text writes a value of the field.
func (f *field) text(s *sampling, v float64) string { return s.text(f.key, v) }

func (s *sampling) text(key FieldKey, v float64) string {
	switch key.Kind {
	case FieldTime:
		return strconv.FormatFloat(v*float64(s.binWidth())/1e6, 'f', 2, 64) + " s"
	case FieldBytes, FieldState, FieldCounter:
		return amountText(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
