// Package heatmap divides the ranks of a run into rows, and the time that they lost to anomalies into cells over time. It is
// pure.
package heatmap

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// maxCells bounds the cells of a heatmap: more columns mean fewer rows.
const maxCells = 100_000

// The metrics of a heatmap.
const (
	MetricLost      = "lost"
	MetricOwn       = "own" // lost, without waits for other ranks
	MetricAnomalies = "anomalies"
)

// Params select the data of a heatmap.
type Params struct {
	From, To      *time.Duration // since the start of the run; nil: its start, its end
	Columns, Rows int
	Metric        string            // lost, own or anomalies
	Filter        executions.Filter // only Program, Host and Function
}

// Check rejects invalid parameters and resolves the metric own.
func (h *Params) Check() error {
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
func (h *Params) span(unit trace.Unit, length trace.Ticks) (from, to trace.Ticks) {
	to = length
	if h.From != nil {
		from = unit.Ticks(*h.From)
	}
	if h.To != nil {
		to = unit.Ticks(*h.To)
	}
	return from, max(to, from+1)
}

// New returns a heatmap of a run of that length with rows, but without cells, and the
// query for them. ranks are ordered by program, host and rank; silent are those without data.
func New(
	h *Params, ranks []executions.RankHost, silent map[trace.RankKey]string, unit trace.Unit, length trace.Ticks,
) (*api.Heatmap, executions.Timeline) {
	groups := groupRanks(chosenRanks(ranks, h.Filter), min(h.Rows, maxCells/h.Columns))
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
		heat.Rows = append(heat.Rows, newRow(group, silent))
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

// SortRanks sorts ranks by program, host and rank.
func SortRanks(ranks []executions.RankHost) {
	slices.SortFunc(ranks, func(a, b executions.RankHost) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Rank, b.Rank))
	})
}

// newRow returns the row of a group of ranks; silent are those without data.
func newRow(group []executions.RankHost, silent map[trace.RankKey]string) api.HeatRow {
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
func chosenRanks(all []executions.RankHost, f executions.Filter) []executions.RankHost {
	if f.Program == nil && f.Host == "" {
		return all
	}
	match := outlier.Matcher(f.Host)
	return slices.DeleteFunc(slices.Clone(all), func(r executions.RankHost) bool {
		return f.Program != nil && r.Program != *f.Program || !match(r.Host)
	})
}

// groupRanks divides all ranks, ordered by program, host and rank, into at most that many groups
// of neighbors: within a host if possible, else of whole hosts of one program, else across
// programs.
func groupRanks(all []executions.RankHost, most int) [][]executions.RankHost {
	if len(all) == 0 {
		return nil
	}
	hosts := ranks.CutWhere(all, func(a, b executions.RankHost) bool { return a.Program != b.Program || a.Host != b.Host })
	if len(hosts) <= most {
		return cutParts(most, hosts, func(host []executions.RankHost, n int) [][]executions.RankHost {
			return slices.Collect(slices.Chunk(host, n))
		})
	}
	programs := ranks.CutWhere(hosts, func(a, b []executions.RankHost) bool { return a[0].Program != b[0].Program })
	if len(programs) > most {
		programs = [][][]executions.RankHost{hosts}
	}
	return cutParts(most, programs, func(program [][]executions.RankHost, n int) (groups [][]executions.RankHost) {
		for chunk := range slices.Chunk(program, n) {
			groups = append(groups, slices.Concat(chunk...))
		}
		return groups
	})
}

// cutParts cuts each part into pieces of the smallest size that gives at most that many
// pieces. There must be at most that many parts.
func cutParts[T any](most int, parts []T, cut func(part T, size int) [][]executions.RankHost) [][]executions.RankHost {
	for size := 1; ; size++ {
		var pieces [][]executions.RankHost
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
