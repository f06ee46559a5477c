package legacy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/heatmap"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// ErrNotInPackets is the answer to requests for data that packets do not contain.
var ErrNotInPackets = api.Problemf(api.NotFound, "analyze the traces with chimbuko analyze or ad, then chimbuko view shows all of it",
	"statistics packets contain counts of anomalies only: no executions, call paths, hosts or typical times")

// seconds returns the time since the first anomaly.
func (p *Packets) seconds(t trace.Ticks) float64 { return float64(t-p.begin) / 1e6 }

// Overview returns the key figures of the run, without findings.
func (p *Packets) Overview(_ context.Context, _ string, of insight.OverviewParams) (*api.Overview, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := &api.Overview{
		Run: p.name, State: p.state(), Notices: p.notices(), Findings: []api.Finding{}, Notes: []api.Finding{},
		Programs: []api.Program{}, Slowest: []api.Slowest{}, Efficiency: []api.Efficiency{}, Slow: []api.SlowPlace{},
		Strip: api.Strip{Series: []api.Layer{}}, Live: !p.ended, Length: max(0, p.seconds(p.end)), Packets: p.pageInfo(),
	}
	if p.begin > 0 {
		o.Began = time.UnixMicro(int64(p.begin)).UTC()
	}
	programs := make(map[trace.Program]int64)
	for rank := range p.ranks {
		programs[rank.Program]++
	}
	for _, program := range slices.Sorted(maps.Keys(programs)) {
		o.Programs = append(o.Programs, api.Program{Program: int64(program), Ranks: programs[program]})
	}
	f := &o.Figures
	anomalies, calls := p.totals()
	f.Provisional, f.Ranks, f.Functions = true, int64(len(p.ranks)), int64(len(p.functions))
	f.Anomalies, f.Calls = anomalies, insight.Positive(calls)
	if o.Length > 0 {
		f.AnomaliesPerHour = float64(f.Anomalies) / o.Length * 3600
		o.Strip = p.strip(of.Columns)
	}
	o.Verdict = p.verdict(o)
	return o, nil
}

func (p *Packets) notices() (all []api.Notice) {
	add := func(level api.Level, sentence string) {
		all = append(all, api.Notice{Level: level, Topic: "packets", Sentence: sentence})
	}
	switch {
	case p.info.Taken > 0:
	case p.receive:
		add(api.LevelUnknown, "No packets received yet: start the parameter server with -ws_addr http://THIS-HOST:PORT"+Path+
			", or chimbuko serve with --stats-url")
	default:
		add(api.LevelUnknown, "No packets received yet")
	}
	add(api.LevelUnknown, "Only statistics packets are available: they count anomalies by rank, step and function, but contain "+
		"no executions, so lost time, hosts, causes and evidence are unknown")
	if p.info.Refused > 0 {
		add(api.LevelWatch, p.refusedText())
	}
	if p.info.LeftOut > 0 {
		add(api.LevelWatch, text.Int(p.info.LeftOut)+" entries of packets were dropped: out of room")
	}
	return all
}

// verdict summarizes the run in a sentence.
func (p *Packets) verdict(o *api.Overview) api.Verdict {
	n := o.Figures.Anomalies
	switch {
	case p.info.Taken == 0:
		return api.Verdict{Level: api.LevelUnknown, Sentence: "No statistics packets yet"}
	case n == 0:
		return api.Verdict{Level: api.LevelGood, Sentence: "No anomalies in " + text.Count(p.info.Taken, "packet")}
	}
	ranks := int64(0)
	for _, r := range p.ranks {
		if r.anomalies() > 0 {
			ranks++
		}
	}
	sentence := fmt.Sprintf("%s on %s", text.Count(n, "anomaly"), text.Count(ranks, "rank"))
	if len(o.Packets.Totals) > 0 {
		f := o.Packets.Totals[0]
		sentence += fmt.Sprintf("; most in %s (%s)", text.ShortName(f.Function), text.Int(f.Anomalies))
	}
	return api.Verdict{Level: api.LevelWatch, Sentence: sentence}
}

// pageInfo returns the packets' own figures for the page.
func (p *Packets) pageInfo() *api.PacketsInfo {
	info := p.info
	info.Worst, info.Totals = []api.PacketWorst{}, []api.PacketsCount{}
	for _, m := range p.metrics {
		w := api.PacketWorst{
			Program: m.Program, Rank: m.Rank, Function: m.Name, Anomalies: count(m.All.Count.Accumulate),
			Time: float64(count(m.All.Severity.Accumulate)), Longest: float64(count(m.All.Severity.Maximum)),
			Score: insight.Finite(m.All.Score.Maximum),
		}
		info.Time += w.Time
		info.Worst = amongFirst(info.Worst, w, func(a, b api.PacketWorst) int {
			return cmp.Or(cmp.Compare(b.Anomalies, a.Anomalies), cmp.Compare(b.Time, a.Time), cmp.Compare(a.Program, b.Program),
				cmp.Compare(a.Rank, b.Rank), strings.Compare(a.Function, b.Function))
		})
	}
	for _, f := range p.functions {
		if n := count(f.Anomalies.Accumulate); n > 0 {
			total := api.PacketsCount{Program: f.Program, Function: f.Name, Anomalies: n, Calls: count(f.Exclusive.Count)}
			info.Totals = amongFirst(info.Totals, total, func(a, b api.PacketsCount) int {
				return cmp.Or(cmp.Compare(b.Anomalies, a.Anomalies), cmp.Compare(a.Program, b.Program), strings.Compare(a.Function, b.Function))
			})
		}
	}
	return &info
}

// amongFirst inserts a value into a sorted list of at most packetsShown elements.
func amongFirst[T any](list []T, value T, order func(a, b T) int) []T {
	at, _ := slices.BinarySearchFunc(list, value, order)
	if at == packetsShown {
		return list
	}
	list = slices.Insert(list, at, value)
	return list[:min(len(list), packetsShown)]
}

// strip counts anomalies over time.
func (p *Packets) strip(columns int) api.Strip {
	width := (&executions.Timeline{To: p.end - p.begin, Columns: columns}).ColumnWidth()
	counts := make([]int64, columns)
	for _, r := range p.ranks {
		for _, s := range r.steps {
			counts[max(0, min(int64(columns)-1, int64((s.first-p.begin)/width)))] += s.anomalies
		}
	}
	return api.Strip{To: float64(width*trace.Ticks(columns)) / 1e6, Series: []api.Layer{{Lost: make([]float64, columns), N: counts}}}
}

// Heatmap returns the anomalies of ranks over the first time of their steps, whatever the metric.
func (p *Packets) Heatmap(_ context.Context, _ string, h heatmap.Params) (*api.Heatmap, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h.Metric = heatmap.MetricAnomalies
	ranks := make([]executions.RankHost, 0, len(p.ranks))
	for rank := range p.ranks {
		ranks = append(ranks, executions.RankHost{RankKey: rank})
	}
	heatmap.SortRanks(ranks)
	heat, t := heatmap.New(&h, ranks, nil, trace.Microsecond, max(1, p.end-p.begin))
	lines := make([]executions.Line, len(heat.Rows))
	for i := range lines {
		lines[i] = executions.Line{Number: i, Lost: make([]int64, h.Columns), Anomalies: make([]int64, h.Columns)}
	}
	width := t.ColumnWidth()
	for rank, row := range t.Lines {
		for _, s := range p.ranks[rank].steps {
			if at := s.first - p.begin - t.From; at >= 0 && at < width*trace.Ticks(h.Columns) {
				lines[row].Anomalies[at/width] += s.anomalies
			}
		}
	}
	for i := range lines {
		heatmap.AddLine(heat, trace.Microsecond, &lines[i])
	}
	return heat, nil
}

// ofProgram reports whether a filter admits a program.
func ofProgram(filter *trace.Program, program int64) bool {
	return filter == nil || int64(*filter) == program
}

// Functions returns the functions in the given order.
func (p *Packets) Functions(_ context.Context, _ string, of query.FunctionTable) (*api.FunctionTable, error) {
	order := cmp.Or(of.Order, "lost")
	key, ok := functionOrders[order]
	if !ok {
		return nil, &executions.ChoiceError{What: "order", Word: order, Among: slices.Sorted(maps.Keys(functionOrders))}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	matches := outlier.Matcher(of.Name)
	all := []api.FunctionRow{}
	for _, f := range p.functions {
		if ofProgram(of.Program, f.Program) && matches(f.Name) {
			all = append(all, f.row())
		}
	}
	slices.SortFunc(all, func(a, b api.FunctionRow) int {
		return cmp.Or(cmp.Compare(key(&b), key(&a)), cmp.Compare(a.Program, b.Program), strings.Compare(a.Function, b.Function),
			cmp.Compare(a.FID, b.FID))
	})
	table := &api.FunctionTable{Rows: all[min(of.Offset, len(all)):], Total: int64(len(all))}
	if len(table.Rows) > of.Limit {
		table.Rows, table.Next = table.Rows[:of.Limit], strconv.Itoa(of.Offset+of.Limit)
	}
	return table, nil
}

// functionOrders are the orders of functions, largest first. Packets have no lost time.
var functionOrders = map[string]func(f *api.FunctionRow) float64{
	"name":      func(*api.FunctionRow) float64 { return 0 },
	"lost":      func(f *api.FunctionRow) float64 { return float64(f.Anomalies) },
	"anomalies": func(f *api.FunctionRow) float64 { return float64(f.Anomalies) },
	"calls":     func(f *api.FunctionRow) float64 { return float64(*f.Calls) },
	"exclusive": func(f *api.FunctionRow) float64 { return *f.Exclusive },
	"inclusive": func(f *api.FunctionRow) float64 { return *f.Inclusive },
}

// row returns the function as a row of the table. It computes sums of times from the means, because
// packets have no sums.
func (f *Function) row() api.FunctionRow {
	finite := func(x float64) *float64 { return new(insight.Finite(x)) }
	calls := count(f.Exclusive.Count)
	row := api.FunctionRow{
		ID: fmt.Sprintf("%d:%d", f.Program, f.FID), Program: f.Program, FID: f.FID, Function: f.Name, Group: activity.Group(f.Name, false),
		Calls: &calls, Anomalies: count(f.Anomalies.Accumulate),
		Exclusive: finite(f.Exclusive.Mean * f.Exclusive.Count), ExclusiveMean: finite(f.Exclusive.Mean),
		ExclusiveMax: finite(f.Exclusive.Maximum),
		Inclusive:    finite(f.Inclusive.Mean * f.Inclusive.Count), InclusiveMean: finite(f.Inclusive.Mean),
	}
	if calls > 0 {
		row.AnomalousCalls = new(100 * float64(row.Anomalies) / float64(calls))
	}
	return row
}

// Counters lists counters in the form of those of a store.
func (p *Packets) Counters(_ context.Context, _ string, of insight.CountersParams) (*api.List, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	matches := outlier.Matcher(of.Name)
	list := &api.List{Rows: []json.RawMessage{}}
	for _, key := range slices.SortedFunc(maps.Keys(p.counters), trace.FuncKey.Compare) {
		if len(list.Rows) == of.Limit {
			break
		}
		c := p.counters[key]
		if !ofProgram(of.Program, c.Program) || !matches(c.Name) {
			continue
		}
		row, err := api.Marshal(struct {
			Program int64   `json:"program"`
			Counter string  `json:"counter"`
			Values  int64   `json:"values"`
			Mean    float64 `json:"mean"`
			Stddev  float64 `json:"stddev"`
			Minimum float64 `json:"minimum"`
			Maximum float64 `json:"maximum"`
			Sum     float64 `json:"sum"`
		}{
			c.Program, c.Name, count(c.Stats.Count), insight.Finite(c.Stats.Mean), insight.Finite(c.Stats.Stddev),
			insight.Finite(c.Stats.Minimum), insight.Finite(c.Stats.Maximum), insight.Finite(c.Stats.Accumulate),
		})
		if err != nil {
			return nil, err
		}
		list.Rows = append(list.Rows, row)
	}
	return list, nil
}

// Search finds functions by a part of their names.
func (p *Packets) Search(_ context.Context, _ string, of insight.SearchParams) (*api.FoundList, error) {
	part := strings.ToLower(strings.TrimSpace(of.Text))
	matches := &api.FoundList{Rows: []api.Found{}}
	if part == "" {
		return matches, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.functions {
		if strings.Contains(strings.ToLower(f.Name), part) {
			matches.Rows = append(matches.Rows, api.Found{Kind: "function", Text: f.Name, Route: insight.Route("/functions", "name", f.Name)})
		}
	}
	slices.SortFunc(matches.Rows, func(a, b api.Found) int {
		return cmp.Or(cmp.Compare(len(a.Text), len(b.Text)), strings.Compare(a.Text, b.Text))
	})
	matches.Rows = matches.Rows[:min(of.Limit, len(matches.Rows))]
	return matches, nil
}
