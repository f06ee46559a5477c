package insight

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// maxHeatCells bounds the cells of a heatmap: more columns mean fewer rows.
const maxHeatCells = 100_000

// The metrics of a heatmap.
const (
	MetricLost      = "lost"
	MetricOwn       = "own" // lost, without waits for other ranks
	MetricAnomalies = "anomalies"
)

// HeatmapParams select the data of a heatmap.
type HeatmapParams struct {
	From, To      *time.Duration // since the start of the run; nil: its start, its end
	Columns, Rows int
	Metric        string            // lost, own or anomalies
	Filter        executions.Filter // only Program, Host and Function
}

// Check rejects invalid parameters and resolves the metric own.
func (h *HeatmapParams) Check() error {
	switch h.Metric {
	case MetricLost, MetricAnomalies:
	case MetricOwn:
		for _, k := range provenance.AnomalyKinds() {
			if k != provenance.CommWait {
				h.Filter.Kinds = append(h.Filter.Kinds, string(k))
			}
		}
	default:
		return api.Problemf(api.Invalid, api.ParamsHint, "parameter metric: unknown metric %.40q (want anomalies, lost or own)", h.Metric)
	}
	if h.From != nil && h.To != nil && *h.To <= *h.From {
		return api.Problemf(api.Invalid, api.ParamsHint, "parameter to: must be after from")
	}
	return nil
}

// span returns the times of the heatmap of a run of that length. It is never empty.
func (h *HeatmapParams) span(unit trace.Unit, length trace.Ticks) (from, to trace.Ticks) {
	to = length
	if h.From != nil {
		from = unit.Ticks(*h.From)
	}
	if h.To != nil {
		to = unit.Ticks(*h.To)
	}
	return from, max(to, from+1)
}

// Heatmap returns the lost time of ranks over time.
func (in *Insight) Heatmap(ctx context.Context, run string, h HeatmapParams) (*api.Heatmap, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Heatmap, error) { return in.heatmap(ctx, q, &h) })
}

func (in *Insight) heatmap(ctx context.Context, q *runQuery, h *HeatmapParams) (*api.Heatmap, error) {
	v, err := in.view(ctx, q)
	if err != nil {
		return nil, err
	}
	silent, never := v.silentRanks()
	ranks := slices.Clone(v.ranks())
	if v.ended() {
		for _, key := range never {
			silent[key] = ""
			ranks = append(ranks, query.RankHost{RankKey: key})
		}
		SortRanks(ranks)
	}
	heat, t := NewHeatmap(h, ranks, silent, q.Unit, q.data.extent)
	q.data.addEnds(heat)
	lines, err := q.Timeline(ctx, t)
	if err != nil {
		return nil, err
	}
	for i := range lines {
		AddLine(heat, q.Unit, &lines[i])
	}
	return heat, nil
}

// addEnds sets the ends of the data of rows whose traces are damaged.
func (d *runData) addEnds(h *api.Heatmap) {
	if d.peers == nil || len(d.info.Broken) == 0 {
		return
	}
	ends := make(map[trace.RankKey]float64)
	var longest float64 // window
	for i := range d.peers.Loads {
		if l := &d.peers.Loads[i]; l.TID == provenance.AllThreads && len(l.Windows) > 0 {
			w := &l.Windows[len(l.Windows)-1]
			ends[trace.RankKey{Program: l.PID, Rank: l.RID}] = w.To
			longest = max(longest, w.To-w.From)
		}
	}
	length := d.unit.Seconds(d.extent)
	for i := range h.Rows {
		row := &h.Rows[i]
		var end float64
		for rank := row.FirstRank; rank <= row.LastRank; rank++ {
			end = max(end, ends[trace.RankKey{Program: trace.Program(row.Program), Rank: trace.Rank(rank)}])
		}
		if end > 0 && end < length-longest {
			row.Until = &end
		}
	}
}

// NewHeatmap returns a heatmap of a run of that length with rows, but without cells, and the
// query for them. ranks are ordered by program, host and rank; silent are those without data.
func NewHeatmap(
	h *HeatmapParams, ranks []query.RankHost, silent map[trace.RankKey]string, unit trace.Unit, length trace.Ticks,
) (*api.Heatmap, executions.Timeline) {
	groups := groupRanks(chosenRanks(ranks, h.Filter), min(h.Rows, maxHeatCells/h.Columns))
	from, to := h.span(unit, length)
	t := executions.Timeline{
		From: from, To: to, Columns: h.Columns, Filter: executions.Filter{Function: h.Filter.Function, Kinds: h.Filter.Kinds},
		Lines: make(map[trace.RankKey]int),
	}
	heat := &api.Heatmap{
		From: unit.Seconds(from), To: unit.Seconds(from + t.ColumnWidth()*trace.Ticks(h.Columns)), Columns: h.Columns, Metric: h.Metric,
		Rows: make([]api.HeatRow, 0, len(groups)), Cells: []api.HeatCell{},
	}
	for i, group := range groups {
		for _, r := range group {
			t.Lines[r.RankKey] = i
		}
		heat.Rows = append(heat.Rows, heatRow(group, silent))
	}
	return heat, t
}

// AddLine adds a line to a heatmap.
func AddLine(h *api.Heatmap, unit trace.Unit, l *executions.Line) {
	row := &h.Rows[l.Number]
	for c := range l.Lost {
		value := unit.Micros(trace.Ticks(l.Lost[c]))
		row.Lost += value
		row.Anomalies += l.Anomalies[c]
		if h.Metric == MetricAnomalies {
			value = float64(l.Anomalies[c])
		}
		if value > 0 {
			h.Cells = append(h.Cells, api.HeatCell{Row: l.Number, Column: c, Value: value})
			h.Max = max(h.Max, value)
		}
	}
}

// heatRow returns the row of a group of ranks; silent are those without data.
func heatRow(group []query.RankHost, silent map[trace.RankKey]string) api.HeatRow {
	row := api.HeatRow{Program: int64(group[0].Program), Host: group[0].Host, FirstRank: math.MaxInt64, Ranks: int64(len(group)), Silent: true}
	for _, r := range group {
		row.FirstRank, row.LastRank = min(row.FirstRank, int64(r.Rank)), max(row.LastRank, int64(r.Rank))
		if _, ok := silent[r.RankKey]; !ok {
			row.Silent = false
		}
	}
	return row
}

// chosenRanks returns the ranks that pass a filter.
func chosenRanks(all []query.RankHost, f executions.Filter) []query.RankHost {
	if f.Program == nil && f.Host == "" {
		return all
	}
	match := outlier.Matcher(f.Host)
	return slices.DeleteFunc(slices.Clone(all), func(r query.RankHost) bool {
		return f.Program != nil && r.Program != *f.Program || !match(r.Host)
	})
}

// groupRanks divides all ranks, ordered by program, host and rank, into at most that many groups
// of neighbors: within a host if possible, else of whole hosts of one program, else across
// programs.
func groupRanks(all []query.RankHost, most int) [][]query.RankHost {
	if len(all) == 0 {
		return nil
	}
	hosts := ranks.CutWhere(all, func(a, b query.RankHost) bool { return a.Program != b.Program || a.Host != b.Host })
	if len(hosts) <= most {
		return smallest(most, hosts, func(host []query.RankHost, n int) [][]query.RankHost { return slices.Collect(slices.Chunk(host, n)) })
	}
	programs := ranks.CutWhere(hosts, func(a, b []query.RankHost) bool { return a[0].Program != b[0].Program })
	if len(programs) > most {
		programs = [][][]query.RankHost{hosts}
	}
	return smallest(most, programs, func(program [][]query.RankHost, n int) (groups [][]query.RankHost) {
		for chunk := range slices.Chunk(program, n) {
			groups = append(groups, slices.Concat(chunk...))
		}
		return groups
	})
}

// smallest cuts each part into pieces of the smallest size that gives at most that many
// pieces. There are no more parts than that.
func smallest[T any](most int, parts []T, cut func(part T, size int) [][]query.RankHost) [][]query.RankHost {
	for size := 1; ; size++ {
		var pieces [][]query.RankHost
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
