package query

import (
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// monitoring is the prefix of the names of counters that hold node states.
const monitoring = "monitoring: "

// fields returns the columns of all fields. Simpler fields come first and win if several fields
// explain the same: a host before its ranks, a rank before its partners.
func (s *sampling) fields() []contrast.Field {
	list := append(s.places(), s.column(contrast.FieldKey{Kind: contrast.FieldLink}, contrast.Labels, nil, ""),
		s.column(contrast.FieldKey{Kind: contrast.FieldPartner}, contrast.Numbers, nil, ""))
	list = append(list, s.paths(), s.column(contrast.FieldKey{Kind: contrast.FieldBytes}, contrast.Amounts, nil, ""))
	list = append(list, s.amounts(contrast.FieldState)...)
	list = append(list, s.amounts(contrast.FieldCounter)...)
	list = append(list, s.times()...)
	for i := range list {
		k := list[i].Key
		switch {
		case s.selectsBy(k):
			list[i].Role = contrast.Chosen
		case k.Kind == contrast.FieldTime || k.Kind == contrast.FieldStep:
			list[i].Role = contrast.When
		}
	}
	return list
}

// selectsBy reports whether the selection depends on a field, so that the field explains nothing.
func (s *sampling) selectsBy(k contrast.FieldKey) bool {
	f := &s.q.Filter
	if slices.ContainsFunc(s.q.Only, func(t contrast.Term) bool { return t.Field == k }) {
		return true
	}
	switch k.Kind {
	case contrast.FieldTime, contrast.FieldStep:
		// Shares of times do not account for excluded steps, and vice versa.
		excluded := slices.ContainsFunc(s.q.Without, func(t contrast.Term) bool {
			return t.Field != k && (t.Field.Kind == contrast.FieldTime || t.Field.Kind == contrast.FieldStep)
		})
		return f.Since != nil || f.Until != nil || f.Steps != nil || len(s.q.Lasso) > 0 || excluded ||
			s.q.only(contrast.FieldTime, contrast.FieldStep)
	case contrast.FieldHost:
		return f.Host != "" || len(f.Ranks) > 0 || s.q.only(contrast.FieldRank)
	case contrast.FieldRank:
		return len(f.Ranks) > 0
	case contrast.FieldDevice:
		return s.q.only(contrast.FieldStream)
	case contrast.FieldLink, contrast.FieldPartner:
		return s.q.only(contrast.FieldLink, contrast.FieldPartner)
	}
	return false
}

// column returns the values of a field. They are compared with shares of all calls, or without
// shares with the other stored executions.
func (s *sampling) column(key contrast.FieldKey, shape contrast.Shape, shares []contrast.Share, rest string) contrast.Field {
	selected, typical, others := s.selected, s.typical, s.others
	if key.Kind == contrast.FieldLink || key.Kind == contrast.FieldPartner {
		typical, others = s.onSelectedRanks(typical), s.onSelectedRanks(others)
	}
	if key.Kind.NeedsDetails() {
		selected, typical, others = s.toExamine(selected), s.toExamine(typical), s.toExamine(others)
	}
	shares = slices.DeleteFunc(shares, func(w contrast.Share) bool { return s.excluded(key, w) })
	f := contrast.Field{Key: key, Rest: rest, Column: contrast.Column{Name: key.Words(), Shape: shape, Shares: shares, Of: len(selected)}}
	cells := func(list []*sampled) (cells []contrast.Cell) {
		for _, x := range list {
			if c, ok := s.cell(key, x); ok {
				c.Unit = s.unit(x, (x.Entry-s.begin)/s.bins().Width())
				cells = append(cells, c)
			}
		}
		return cells
	}
	f.Selection = cells(selected)
	if len(shares) == 0 {
		f.Baseline = append(cells(typical), cells(others)...)
		f.Rest = "others"
	}
	return f
}

// excluded reports whether Without excludes all executions with the value of a share.
func (s *sampling) excluded(key contrast.FieldKey, w contrast.Share) bool {
	return slices.ContainsFunc(s.q.Without, func(t contrast.Term) bool {
		if t.Field != key {
			return false
		}
		if key.Kind == contrast.FieldTime { // w.Number is a bin
			width := s.tick.Seconds(s.bins().Width())
			return w.Number*width >= t.From-1e-6 && (w.Number+1)*width <= t.To+1e-6
		}
		return t.Has(contrast.Cell{Label: w.Label, Number: w.Number})
	})
}

// cell returns the value of a field of an execution.
func (s *sampling) cell(key contrast.FieldKey, x *sampled) (c contrast.Cell, ok bool) {
	switch key.Kind {
	case contrast.FieldFunction:
		c.Label = x.Function
		return c, c.Label != ""
	case contrast.FieldHost:
		c.Label = s.host(trace.RankKey{Program: x.Program, Rank: x.Rank})
		return c, c.Label != ""
	case contrast.FieldDevice, contrast.FieldStream:
		d := s.devices[device{x.Program, x.Rank, x.Thread}]
		if c.Label = d[0]; key.Kind == contrast.FieldStream {
			c.Label = d[1]
		}
		return c, c.Label != "" && x.OnGPU
	case contrast.FieldRank:
		c.Number = float64(x.Rank)
		return c, true
	case contrast.FieldThread:
		c.Number = float64(x.Thread)
		return c, !x.OnGPU
	case contrast.FieldLink:
		if x.message == nil || !x.message.own {
			return c, false
		}
		c.Label = contrast.LinkLabel(int64(x.Rank), x.message.partner)
		return c, true
	case contrast.FieldPartner:
		if x.message == nil || !x.message.own {
			return c, false
		}
		c.Number = float64(x.message.partner)
		return c, true
	case contrast.FieldBytes:
		if x.message == nil || x.message.bytes == nil {
			return c, false
		}
		c.Number = *x.message.bytes
		return c, true
	case contrast.FieldPath:
		c.Label = s.pathNames[x.PathID()]
		return c, c.Label != ""
	case contrast.FieldState:
		c.Number, ok = x.states[key.Name]
		return c, ok
	case contrast.FieldCounter:
		c.Number, ok = x.counters[key.Name]
		return c, ok
	case contrast.FieldTime:
		c.Number = min(s.bins().Last(), float64(max(0, x.Entry-s.begin)/s.bins().Width()))
		return c, true
	case contrast.FieldStep:
		c.Number = float64(x.Step)
		return c, true
	}
	return c, false
}

// host returns the host of a rank, or "" if it is unknown.
func (s *sampling) host(rank trace.RankKey) string {
	if s.hosts == nil {
		s.hosts = make(map[trace.RankKey]string)
		for _, r := range s.q.Ranks {
			s.hosts[r.RankKey] = r.Host
		}
	}
	return s.hosts[rank]
}

// onSelectedRanks returns the executions on ranks of the selection if it selects by rank or host:
// partners depend on the rank, so other ranks are no baseline.
func (s *sampling) onSelectedRanks(list []*sampled) []*sampled {
	if len(s.q.Filter.Ranks) == 0 && s.q.Filter.Host == "" && !s.q.only(contrast.FieldRank, contrast.FieldHost) {
		return list
	}
	ranks := make(map[trace.RankKey]bool)
	for _, x := range s.selected {
		ranks[trace.RankKey{Program: x.Program, Rank: x.Rank}] = true
	}
	var kept []*sampled
	for _, x := range list {
		if ranks[trace.RankKey{Program: x.Program, Rank: x.Rank}] {
			kept = append(kept, x)
		}
	}
	return kept
}

// places returns the fields of hosts, devices, streams, ranks and threads.
func (s *sampling) places() []contrast.Field {
	programs := make(map[trace.Program]bool)
	for _, x := range s.selected {
		programs[x.Program] = true
	}
	var hosts, ranks, threads []contrast.Share
	for _, r := range s.q.Ranks {
		host, rank := contrast.Share{Label: r.Host, Weight: 1}, contrast.Share{Number: float64(r.Rank), Weight: 1}
		if !programs[r.Program] || s.excluded(contrast.FieldKey{Kind: contrast.FieldHost}, host) ||
			s.excluded(contrast.FieldKey{Kind: contrast.FieldRank}, rank) {
			continue
		}
		// Compare with the ranks of the selected hosts only.
		if !s.q.only(contrast.FieldHost) || slices.ContainsFunc(s.q.Only,
			func(t contrast.Term) bool { return t.Field.Kind == contrast.FieldHost && t.Label == r.Host }) {
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
	return []contrast.Field{
		s.column(contrast.FieldKey{Kind: contrast.FieldHost}, contrast.Labels, hosts, "ranks"),
		s.column(contrast.FieldKey{Kind: contrast.FieldDevice}, contrast.Labels, devices, "streams"),
		s.column(contrast.FieldKey{Kind: contrast.FieldStream}, contrast.Labels, streams, "streams"),
		s.column(contrast.FieldKey{Kind: contrast.FieldRank}, contrast.Numbers, ranks, "ranks"),
		s.column(contrast.FieldKey{Kind: contrast.FieldThread}, contrast.Numbers, threads, "threads"),
	}
}

func (s *sampling) streamShares(programs map[trace.Program]bool) (devices, streams []contrast.Share) {
	for key, d := range s.devices {
		if !programs[key.program] || s.excluded(contrast.FieldKey{Kind: contrast.FieldDevice}, contrast.Share{Label: d[0]}) ||
			s.excluded(contrast.FieldKey{Kind: contrast.FieldStream}, contrast.Share{Label: d[1]}) {
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

// paths returns the field of call paths, without values if the selection has several functions: then a path would
// only name the function.
func (s *sampling) paths() contrast.Field {
	functions := make(map[executions.FunctionID]bool)
	for _, x := range s.selected {
		functions[x.FunctionID()] = true
	}
	key := contrast.FieldKey{Kind: contrast.FieldPath}
	if len(functions) > 1 {
		return contrast.Field{Key: key, Column: contrast.Column{Name: key.Words(), Shape: contrast.Labels}}
	}
	var shares []contrast.Share
	for path, n := range s.pathCalls {
		shares = append(shares, contrast.Share{Label: s.pathNames[path], Weight: n})
	}
	return s.column(key, contrast.Labels, shares, "calls")
}

// amounts returns the fields of counters or node states of the selection.
func (s *sampling) amounts(kind contrast.FieldKind) []contrast.Field {
	values := func(x *sampled) map[string]float64 {
		if kind == contrast.FieldState {
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
	var list []contrast.Field
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := s.column(contrast.FieldKey{Kind: kind, Name: name}, contrast.Amounts, nil, "")
		if kind == contrast.FieldState {
			f.Selection, f.Baseline = s.stateCells(name)
			f.Rest, f.Stale = "other states", true
			if m, ok := s.readings[monitoring+name]; ok {
				f.Moments = &m
			}
		}
		list = append(list, f)
	}
	return list
}

// stateCells returns the node states of the selection and of its baseline, which has no reading of the selection.
func (s *sampling) stateCells(name string) (selection, rest []contrast.Cell) {
	used := make(map[uint64]bool)
	for _, x := range s.selected {
		if v, ok := x.states[name]; ok {
			selection = append(selection, contrast.Cell{Number: v, Unit: x.stateUnit})
			used[x.stateUnit] = true
		}
	}
	for _, list := range [][]*sampled{s.typical, s.others, s.anywhere} {
		for _, x := range list {
			if v, ok := x.states[name]; ok && !used[x.stateUnit] {
				rest = append(rest, contrast.Cell{Number: v, Unit: x.stateUnit})
				used[x.stateUnit] = true
			}
		}
	}
	return selection, rest
}

// times returns the fields of the time since the start of the run, in bins, and of the step.
func (s *sampling) times() []contrast.Field {
	last := s.bins().Last()
	var times, steps []contrast.Share
	for i := 0.0; i <= last && i < s.bins().Most(); i++ {
		times = append(times, contrast.Share{Number: i, Weight: 1})
	}
	for i := int64(0); i <= s.lastStep && i < maxSteps; i++ {
		steps = append(steps, contrast.Share{Number: float64(i), Weight: 1})
	}
	return []contrast.Field{
		s.column(contrast.FieldKey{Kind: contrast.FieldTime}, contrast.Spans, times, "of the run"),
		s.column(contrast.FieldKey{Kind: contrast.FieldStep}, contrast.Spans, steps, "steps"),
	}
}

// maxSteps bounds the steps of a run that are distinguished.
const maxSteps = 100_000

// bins returns the time bins of the run.
func (s *sampling) bins() contrast.Bins { return contrast.Bins{Extent: s.q.Extent, Unit: s.tick} }
