package provenance

import (
	"encoding/json"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// FuncStats has the statistics of a function over all ranks, in the schema of the provenance
// database.
type FuncStats struct {
	AnomalyMetrics *AnomalyMetrics `json:"anomaly_metrics"` // nil without anomalies
	App            trace.Program   `json:"app"`
	FID            int             `json:"fid"`
	Name           string          `json:"fname"`
	RuntimeProfile RuntimeProfile  `json:"runtime_profile"`
}

// AnomalyMetrics has the statistics of the anomalies of a function.
type AnomalyMetrics struct {
	Count     stats.Summary `json:"anomaly_count"` // for each rank and step with anomalies
	FirstStep int64         `json:"first_io_step"`
	LastStep  int64         `json:"last_io_step"`
	Last      trace.Ticks   `json:"max_timestamp"` // exit of the last
	First     trace.Ticks   `json:"min_timestamp"` // entry of the first
	Score     stats.Summary `json:"score"`
	Severity  stats.Summary `json:"severity"`
}

// RuntimeProfile has the statistics of the times of all calls of a function.
type RuntimeProfile struct {
	Exclusive stats.Summary `json:"exclusive_runtime"`
	Inclusive stats.Summary `json:"inclusive_runtime"`
}

// CounterStats has the statistics of a counter over all ranks, in the schema of the
// provenance database.
type CounterStats struct {
	App   trace.Program `json:"app"`
	Name  string        `json:"counter"`
	Stats stats.Summary `json:"stats"`
}

// ADModel is the final model of a function, in the schema of the provenance
// database.
type ADModel struct {
	FID   int             `json:"fid"`
	Name  string          `json:"func_name"`
	Model json.RawMessage `json:"model"`
	PID   trace.Program   `json:"pid"`
}

// Collections are the run-level data over all ranks.
type Collections struct {
	FuncStats    []FuncStats
	CounterStats []CounterStats
	ADModels     []ADModel
	PathStats    []PathStats
	Findings     []Finding
	Links        []Link
	Peers        *Peers     // nil if unknown
	Breakdown    *Breakdown // nil without GPUs
}

// PathStats has the sums of all calls with one call path over all ranks. The paths of a run
// are a tree, and each follows its parent. The schema of the provenance database does not
// have this collection.
type PathStats struct {
	Calls     int64         `json:"calls"`        // that ended; 0 for a path that only leads to others
	Exclusive trace.Ticks   `json:"exclusive_us"` // without nested calls
	FID       int           `json:"fid"`          // of the last function; -1: none
	Func      string        `json:"func"`         // the last function, or callpath.OtherName for paths that are too deep
	Node      int           `json:"node"`         // position in the list, from 1
	Parent    int           `json:"parent"`       // node of the path without its last function; 0: none
	PID       trace.Program `json:"pid"`
}

// NewCollections returns the collections of a run, sorted by the numbers of functions, the
// names of counters and the names on call paths.
func NewCollections(o *summary.Outcome, models []ADModel) *Collections {
	return &Collections{
		FuncStats: funcStats(o), CounterStats: counterStats(o), ADModels: models, PathStats: NewPathStats(o.Paths),
		Breakdown: NewBreakdown(o.Unit, o.Breakdown),
	}
}

// NewPathStats returns the collection of these call paths, in their order.
func NewPathStats(paths []summary.Path) []PathStats {
	all := make([]PathStats, 0, len(paths))
	for i := range paths {
		p := &paths[i]
		all = append(all, PathStats{
			PID: p.Program, Node: i + 1, Parent: p.Parent + 1, FID: p.ID, Func: Text(p.Name),
			Calls: int64(min(p.Calls, math.MaxInt64)), Exclusive: trace.Ticks(min(p.Exclusive, math.MaxInt64)),
		})
	}
	return all
}

func funcStats(o *summary.Outcome) []FuncStats {
	all := make([]FuncStats, 0, len(o.Functions))
	for _, f := range o.Functions {
		fs := FuncStats{
			App: f.Program, FID: f.ID, Name: Text(f.Name),
			RuntimeProfile: RuntimeProfile{Exclusive: f.Exclusive.Summary(), Inclusive: f.Inclusive.Summary()},
		}
		if m := &f.Anomalies; !m.Empty() {
			fs.AnomalyMetrics = &AnomalyMetrics{
				Count: m.Count.Summary(), FirstStep: int64(m.FirstStep), LastStep: int64(m.LastStep),
				First: m.First, Last: m.Last, Score: m.Score.Summary(), Severity: m.Severity.Summary(),
			}
		}
		all = append(all, fs)
	}
	return all
}

func counterStats(o *summary.Outcome) []CounterStats {
	all := make([]CounterStats, 0, len(o.Counters))
	for _, c := range o.Counters {
		all = append(all, CounterStats{App: c.Program, Name: Text(c.Name), Stats: c.Values.Summary()})
	}
	return all
}
