package query

import (
	"context"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/executions"
)

// RankTable describes a query for ranks compared with their peers.
type RankTable struct {
	By      string // rank, host, thread, device or role
	Program *trace.Program
	Limit   int
}

// RankRow is a row of a RankTable. Values without data are nil.
type RankRow struct {
	Program trace.Program `json:"program"`
	Ranks   []trace.Rank  `json:"ranks"`
	Thread  *int64        `json:"tid"`  // nil for entire ranks
	Host    string        `json:"host"` // empty if there are several, or it is unknown
	Role    *int          `json:"role"` // nil if there are several
	Peers   *int          `json:"peers"`
	// Units is the number of ranks or threads in the row. HaveData of them have data, and Slow of them
	// were slower than their peers.
	Units    int64 `json:"units"`
	HaveData int64 `json:"units_with_data"`
	Slow     int64 `json:"slow_units"`
	// Times are sums over the units: useful, waiting, and lost by anomalies.
	Useful *trace.Micros `json:"useful_us"`
	Wait   *trace.Micros `json:"wait_us"`
	Lost   *trace.Micros `json:"lost_us"`
	// Ratio is the time of the work divided by that of equal work of peers.
	Ratio *float64 `json:"ratio"`
	// Pattern, From and To are when the costliest unit was slow, in seconds since the start of the
	// run. Saved is by how much the run would be shorter without that, and Share its share of the run.
	Pattern provenance.Pattern `json:"pattern"`
	From    *float64           `json:"from_s"`
	To      *float64           `json:"to_s"`
	Saved   *trace.Micros      `json:"saved_us"`
	Share   *float64           `json:"saved_share"`
}

// RankRows are the first rows of a RankTable, and how many there are without its limit: all, and those
// without data.
type RankRows struct {
	Rows  []RankRow `json:"rows"`
	All   int64     `json:"all_rows"`
	Empty int64     `json:"empty_rows"`
}

// rankTables maps By to the statement of the units, and to the columns that identify a row in a program.
var rankTables = map[string]struct{ units, key, device string }{
	"rank":   {"peer_ranks", "rid", ""},
	"host":   {"peer_ranks", "host", ""},
	"role":   {"peer_ranks", `"role"`, ""},
	"thread": {"peer_threads", "rid, tid", "false"},
	"device": {"peer_threads", "rid, tid", "true"},
}

// RankTable compares ranks with their peers, the costliest first, then the slowest. Ranks without
// data are last.
func (a *Queries) RankTable(ctx context.Context, q RankTable) (*RankRows, error) {
	answer := &RankRows{Rows: []RankRow{}}
	by, err := executions.Choose("by", q.By, rankTables)
	if err != nil {
		return nil, err
	}
	if has, err := a.hasPeerTables(ctx); err != nil || !has {
		return answer, err
	}
	units, err := a.rollupStatement(ctx, by.units)
	if err != nil {
		return nil, err
	}
	thread := "NULL::BIGINT"
	if strings.Contains(by.key, "tid") {
		thread = "tid"
	}
	sql := strings.NewReplacer("/*units*/", strings.ReplaceAll(units, "/*device*/", by.device), "/*thread*/", thread, "/*key*/", by.key).
		Replace(text("peer_table"))
	type row struct {
		RankRow
		All   int64 `json:"all_rows"`
		Empty int64 `json:"empty_rows"`
	}
	err = executions.ReadEach(ctx, a, sql, func(r *row) {
		answer.Rows, answer.All, answer.Empty = append(answer.Rows, r.RankRow), r.All, r.Empty
	}, executions.OptionalProgram(q.Program), int64(q.Limit))
	return answer, err
}

// Efficiency returns the efficiency of the programs of the run: of the entire run, or by windows of
// time. It returns none if it is unknown.
func (a *Queries) Efficiency(ctx context.Context, entire bool) ([]provenance.Efficiency, error) {
	if has, err := a.hasPeerTables(ctx); err != nil || !has {
		return nil, err
	}
	all, err := executions.ReadAll[provenance.Efficiency](ctx, a, text("efficiency"))
	return slices.DeleteFunc(all, func(e provenance.Efficiency) bool { return e.Entire != entire }), err
}
