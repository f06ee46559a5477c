package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Rows of a heatmap unless told, and at most; and cells, so that an answer has its bounds
// whatever the number of ranks is: of many columns there are fewer rows.
const (
	usualHeatRows = 100
	maxHeatRows   = 300
	maxHeatCells  = 100_000
)

// The metrics of a heatmap.
const (
	metricLost      = "lost"
	metricOwn       = "own" // lost otherwise than by waiting for others
	metricAnomalies = "anomalies"
)

// heatQuestion is what a heatmap is of.
type heatQuestion struct {
	from, to      *trace.Micros // since the begin of the run; nil: its begin, its end
	columns, rows int
	metric        string
	filter        query.Filter
}

// heat reads the parameters of a heatmap.
func (p *params) heat() heatQuestion {
	q := heatQuestion{
		from: p.duration("from", time.Second), to: p.duration("to", time.Second),
		columns: int(p.integer("columns", usualColumns, 1, maxColumns)), rows: int(p.integer("rows", usualHeatRows, 1, maxHeatRows)),
		metric: p.word("metric", metricLost), filter: query.Filter{Program: p.program(), Host: p.text("host"), Function: p.text("func")},
	}
	switch q.metric {
	case metricLost, metricAnomalies:
	case metricOwn:
		for _, k := range provenance.AnomalyKinds() {
			if k != provenance.CommWait {
				q.filter.Kinds = append(q.filter.Kinds, string(k))
			}
		}
	default:
		p.fail("metric", "unknown value %.40q (want anomalies, lost, own)", q.metric)
	}
	if q.from != nil && q.to != nil && *q.to <= *q.from {
		p.fail("to", "it is not after from")
	}
	return q
}

// span are the times of the heatmap of a run of some length. A time that is empty
// because one end is not given is a column's width long.
func (h *heatQuestion) span(length trace.Micros) (from, to trace.Micros) {
	to = length
	if h.from != nil {
		from = *h.from
	}
	if h.to != nil {
		to = *h.to
	}
	return from, max(to, from+1)
}

// heatmap is ranks times time.
func (s *server) heatmap(ctx context.Context, q *asked) (any, error) {
	h := q.p.heat()
	if err := q.p.done(); err != nil {
		return nil, err
	}
	v := view{known: q.known}
	if q.Run.Name == s.Run {
		status, err := s.Source.Status(ctx)
		if err != nil {
			return nil, err
		}
		v.status = status
	}
	silent, _ := v.silentRanks()
	groups := groupRanks(chosenRanks(v.ranks(), h.filter), min(h.rows, maxHeatCells/h.columns))
	from, to := h.span(q.known.extent)
	t := query.Timeline{From: from, To: to, Columns: h.columns, Filter: query.Filter{Function: h.filter.Function, Kinds: h.filter.Kinds}, Lines: make(map[trace.RankKey]int)}
	heat := api.Heatmap{
		From: float64(from) / 1e6, To: float64(from+t.ColumnWidth()*trace.Micros(h.columns)) / 1e6, Columns: h.columns, Metric: h.metric,
		Rows: make([]api.HeatRow, 0, len(groups)), Cells: []api.HeatCell{},
	}
	for i, group := range groups {
		for _, r := range group {
			t.Lines[r.RankKey] = i
		}
		heat.Rows = append(heat.Rows, heatRow(group, silent))
	}
	lines, err := q.Timeline(ctx, t)
	if err != nil {
		return nil, err
	}
	for i := range lines {
		addLine(&heat, &lines[i])
	}
	return heatmapJSON(&heat)
}

// heatmapJSON is what marshal gives, but for the many cells in a tenth of the time.
func heatmapJSON(h *api.Heatmap) (json.RawMessage, error) {
	cells := h.Cells
	h.Cells = []api.HeatCell{}
	body, err := marshal(h)
	h.Cells = cells
	if err != nil {
		return nil, err
	}
	const none = `"cells":[]`
	before, after, _ := bytes.Cut(body, []byte(none))
	out := make([]byte, 0, len(body)+28*len(cells))
	out = append(append(out, before...), none[:len(none)-1]...)
	for i, c := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, `{"r":`...), int64(c.Row), 10)
		out = strconv.AppendInt(append(out, `,"c":`...), int64(c.Column), 10)
		out = strconv.AppendInt(append(out, `,"v":`...), int64(c.Value), 10) // counts and microseconds are whole
		out = append(out, '}')
	}
	return append(append(out, ']'), after...), nil
}

// addLine adds a line to a heatmap.
func addLine(h *api.Heatmap, l *query.Line) {
	row := &h.Rows[l.Number]
	for c := range l.Lost {
		row.Lost += l.Lost[c]
		row.Anomalies += l.Anomalies[c]
		value := float64(l.Lost[c])
		if h.Metric == metricAnomalies {
			value = float64(l.Anomalies[c])
		}
		if value > 0 {
			h.Cells = append(h.Cells, api.HeatCell{Row: l.Number, Column: c, Value: value})
			h.Max = max(h.Max, value)
		}
	}
}

func heatRow(group []query.Placed, silent map[trace.RankKey]string) api.HeatRow {
	row := api.HeatRow{Program: int64(group[0].Program), Host: group[0].Host, FirstRank: math.MaxInt64, Ranks: int64(len(group)), Silent: true}
	for _, r := range group {
		row.FirstRank, row.LastRank = min(row.FirstRank, int64(r.Rank)), max(row.LastRank, int64(r.Rank))
		if _, ok := silent[r.RankKey]; !ok {
			row.Silent = false
		}
	}
	return row
}

// chosenRanks are those that a filter lets through.
func chosenRanks(all []query.Placed, f query.Filter) []query.Placed {
	if f.Program == nil && f.Host == "" {
		return all
	}
	match := func(string) bool { return true }
	if f.Host != "" {
		match = outlier.Glob(f.Host).MatchString
	}
	var chosen []query.Placed
	for _, r := range all {
		if (f.Program == nil || r.Program == *f.Program) && match(r.Host) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// groupRanks divides ranks, which are in order of program, host and rank, into at most
// so many groups of neighbors: of one host each if that is possible, else of whole
// hosts of one program, and only if there are more programs than groups of several.
func groupRanks(ranks []query.Placed, most int) [][]query.Placed {
	if len(ranks) == 0 {
		return nil
	}
	hosts := cutWhere(ranks, func(a, b query.Placed) bool { return a.Program != b.Program || a.Host != b.Host })
	if len(hosts) <= most {
		return smallest(most, hosts, func(host []query.Placed, n int) [][]query.Placed { return slices.Collect(slices.Chunk(host, n)) })
	}
	programs := cutWhere(hosts, func(a, b []query.Placed) bool { return a[0].Program != b[0].Program })
	if len(programs) > most {
		programs = [][][]query.Placed{hosts}
	}
	return smallest(most, programs, func(program [][]query.Placed, n int) (groups [][]query.Placed) {
		for chunk := range slices.Chunk(program, n) {
			groups = append(groups, slices.Concat(chunk...))
		}
		return groups
	})
}

// cutWhere cuts a list between two neighbors that are apart.
func cutWhere[T any](list []T, apart func(a, b T) bool) (parts [][]T) {
	first := 0
	for i := 1; i <= len(list); i++ {
		if i == len(list) || apart(list[i-1], list[i]) {
			parts = append(parts, list[first:i])
			first = i
		}
	}
	return parts
}

// smallest cuts each part into pieces of the least size with which there are no more
// than most of them. There are no more parts than that.
func smallest[T any](most int, parts []T, cut func(part T, size int) [][]query.Placed) [][]query.Placed {
	for size := 1; ; size++ {
		var pieces [][]query.Placed
		for _, p := range parts {
			if pieces = append(pieces, cut(p, size)...); len(pieces) > most {
				break
			}
		}
		if len(pieces) <= most {
			return pieces
		}
	}
}
