package insight

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// Bounds of lists of findings.
const (
	maxFindings     = 2000
	maxFindingRanks = 1000 // and hosts of one
)

// Findings returns all findings of a run.
func (in *Insight) Findings(ctx context.Context, run string) (*api.FindingList, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.FindingList, error) {
		if q.data.err != nil {
			return nil, q.data.err
		}
		labels, err := in.labels(ctx, q.Run.Name)
		if err != nil {
			return nil, err
		}
		total := len(q.data.findings)
		list := &api.FindingList{Rows: []api.Finding{}, Writable: in.Writable(), Stored: q.data.stored, Total: int64(total)}
		for i := range min(total, maxFindings) {
			list.Rows = append(list.Rows, q.data.pageFinding(i, labels))
		}
		return list, nil
	})
}

// labels returns the labels of a run, if there are any.
func (in *Insight) labels(ctx context.Context, run string) (map[string]api.Label, error) {
	if in.Labels == nil {
		return nil, nil //nolint:nilnil // no labels
	}
	return in.Labels.Labels(ctx, run)
}

func (d *runData) pageFinding(i int, labels map[string]api.Label) api.Finding {
	x := &d.findings[i]
	hosts := text.KnownHosts(x.Hosts)
	p := api.Finding{
		Key: d.keys[i], Number: x.Number, Kind: string(x.Kind), Form: string(x.Form), Status: d.status(x), Severity: string(x.Severity),
		Listed: x.Listed(), Program: int64(x.PID), Function: x.Func,
		FunctionID: d.functions[trace.FuncKey{Program: x.PID, Name: x.Func}], Path: x.Path, Role: string(x.Role),
		Late: string(x.Late), Cause: x.Cause,
		Calls: x.Calls, OfCalls: x.OfCalls, Expected: d.unit.MicrosOf(x.Expected), Actual: d.unit.MicrosOf(x.Actual), Period: x.Period,
		LostOwn: d.micros(x.LostOwn), LostWaits: d.micros(x.LostCaused), Lost: d.micros(x.Lost), Share: x.Share, Longest: d.micros(x.Longest),
		Ranks: []int64{}, Hosts: hosts[:min(len(hosts), maxFindingRanks)], RankCount: int64(len(x.Ranks)),
		HostCount: int64(len(hosts)),
		From:      x.From, To: x.To, Last: d.seconds(x.Last), Trend: string(x.Trend), OverTime: append([]int64{}, x.OverTime...),
		OverTo:  d.unit.Seconds(cmp.Or(d.until, d.extent)),
		Example: x.Example(), Examples: append([]string{}, x.Examples...), Waits: x.Waits, WaitRanks: x.WaitRanks,
		Confidence: x.Confidence, Summary: x.Summary, Reason: x.Reason,
	}
	for _, r := range x.Ranks[:min(len(x.Ranks), maxFindingRanks)] {
		p.Ranks = append(p.Ranks, int64(r))
	}
	if !x.IsChange() {
		p.WorstRank, p.WorstLost = new(int64(x.WorstRank)), d.micros(x.WorstTime)
	}
	if l, ok := labels[p.Key]; ok {
		p.Label = &l
	}
	return p
}

// statusWarming is the status of findings of a running run whose function has few calls.
const statusWarming = "warming"

func (d *runData) status(x *provenance.Finding) string {
	switch {
	case x.Status == provenance.Withdrawn:
	case d.run.State == provdb.Finished && d.info.Settings["review"] != "false":
		return string(provenance.Confirmed)
	case d.sparse[trace.FuncKey{Program: x.PID, Name: x.Func}]:
		return statusWarming
	default:
		return string(provenance.Provisional)
	}
	return string(x.Status)
}

// MaxPoints bounds the points of a plot.
const MaxPoints = 20_000

// PlotParams select the points of a plot.
type PlotParams struct {
	Key   string // of the finding
	Limit int    // of points
}

// Plot returns the executions of a finding over time.
func (in *Insight) Plot(ctx context.Context, run string, of PlotParams) (*api.Plot, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (*api.Plot, error) { return q.plot(ctx, of) })
}

func (q *runQuery) plot(ctx context.Context, of PlotParams) (*api.Plot, error) {
	x, err := q.data.finding(of.Key)
	if err != nil {
		return nil, err
	}
	limit := of.Limit
	p := &api.Plot{Points: []api.PlotPoint{}, Total: x.Calls}
	f, err := q.functionOfFinding(ctx, x)
	if err != nil {
		return nil, err
	}
	if f == nil { // of several functions
		anomalies, err := q.findingPoints(ctx, x, nil, limit)
		p.Points = q.data.plotPoints(anomalies, true)
		slices.SortStableFunc(p.Points, func(a, b api.PlotPoint) int { return cmp.Compare(a.At, b.At) })
		return p, err
	}
	var anomalies, typical []executions.Execution
	var params json.RawMessage
	g, group := errgroup.WithContext(ctx)
	g.Go(func() (err error) { anomalies, err = q.findingPoints(group, x, f, limit); return err })
	g.Go(func() (err error) { typical, err = q.TypicalPoints(group, f, limit); return err })
	g.Go(func() (err error) { params, err = q.ModelNow(group, f); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	typical = typical[:min(len(typical), limit-len(anomalies)/2)]
	p.Points = append(q.data.plotPoints(anomalies, true), q.data.plotPoints(typical, false)...)
	slices.SortStableFunc(p.Points, func(a, b api.PlotPoint) int { return cmp.Compare(a.At, b.At) })
	if m := q.data.pageModel(params); m != nil {
		p.TypicalUS, p.Threshold = m.Typical, m.Threshold
	}
	return p, nil
}

func noFinding(key string) error {
	return api.Problemf(api.NotFound, "findings lists the keys; findings of a running run may disappear",
		"no finding has the key %.40q", key)
}

// functionOfFinding returns the function of a finding; nil: not in the store.
func (q *runQuery) functionOfFinding(ctx context.Context, x *provenance.Finding) (*executions.Function, error) {
	id, ok := q.data.functions[trace.FuncKey{Program: x.PID, Name: x.Func}]
	if !ok {
		return nil, nil //nolint:nilnil // a lasting change without stored executions
	}
	return q.functionByID(ctx, id)
}

// findingPoints returns the anomalies of a finding. If links are not stored, it selects them from
// those of the function.
func (q *runQuery) findingPoints(ctx context.Context, x *provenance.Finding, f *executions.Function, limit int) (
	[]executions.Execution, error,
) {
	if x.IsChange() || x.Status == provenance.Withdrawn || f == nil && !q.data.stored {
		return nil, nil
	}
	if q.data.stored {
		return q.PointsOfFinding(ctx, x.Number, limit)
	}
	all, err := q.PointsOfFunction(ctx, f, MaxPoints)
	if err != nil || q.data.linkOf == nil {
		return all[:min(len(all), limit)], err
	}
	matches := slices.DeleteFunc(all, func(p executions.Execution) bool {
		l := q.data.link(x.PID, p.Event)
		return l == nil || l.Finding != x.Number
	})
	return matches[:min(len(matches), limit)], nil
}

func (d *runData) plotPoints(points []executions.Execution, anomaly bool) []api.PlotPoint {
	list := make([]api.PlotPoint, 0, len(points))
	for _, p := range points {
		list = append(list, api.PlotPoint{
			Event: p.Event, At: d.seconds(p.Entry), Value: d.micros(p.Exclusive), Lost: d.micros(p.Lost), Rank: int64(p.Rank), Host: p.Host,
			Anomaly: anomaly, Status: p.Status,
		})
	}
	return list
}
