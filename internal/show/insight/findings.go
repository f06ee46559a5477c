package insight

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// findingKeys returns names of findings that stay the same while their numbers change. They depend
// on program, function, call path, kind and cause, but not on the number of anomalies, or on
// whether these come in bursts.
func findingKeys(findings []provenance.Finding) []string {
	keys := make([]string, len(findings))
	byNumber := make(map[int]string)
	for _, caused := range []bool{false, true} {
		for i := range findings {
			x := &findings[i]
			if (x.Cause > 0) != caused {
				continue
			}
			kind := x.Kind
			if kind == provenance.Burst {
				kind = provenance.Slow
			}
			h := sha256.New()
			for _, part := range []any{x.PID, x.Func, x.Path, kind, x.Role == provenance.Victim, byNumber[x.Cause]} {
				fmt.Fprintf(h, "%v\x00", part)
			}
			keys[i] = hex.EncodeToString(h.Sum(nil)[:8])
			if !caused {
				byNumber[x.Number] = keys[i]
			}
		}
	}
	return keys
}

func (d *runData) pageFinding(i int, labels map[string]api.Label) api.Finding {
	x := &d.findings[i]
	p := api.Finding{
		Key: d.keys[i], Number: x.Number, Program: int64(x.PID), Function: x.Func,
		FunctionID: d.functions[trace.FuncKey{Program: x.PID, Name: x.Func}], Path: x.Path,
		Kind: string(x.Kind), Role: string(x.Role), Cause: x.Cause, Anomalies: x.Anomalies, Lost: int64(x.LostTime), Longest: int64(x.Longest),
		Ranks: []int64{}, Hosts: append([]string{}, x.Hosts[:min(len(x.Hosts), maxFindingRanks)]...), RankCount: int64(len(x.Ranks)),
		HostCount: int64(len(x.Hosts)),
		First:     d.seconds(x.First), Last: d.seconds(x.Last), Trend: string(x.Trend), OverTime: append([]int64{}, x.OverTime...),
		Example: x.Example,
		Waits:   x.Waits, WaitRanks: x.WaitRanks, WaitLost: int64(x.WaitTime), Before: x.Before, After: x.After,
		Confidence: d.confidence(x), Sentence: d.findingSentence(x),
	}
	for _, r := range x.Ranks[:min(len(x.Ranks), maxFindingRanks)] {
		p.Ranks = append(p.Ranks, int64(r))
	}
	if !x.IsChange() {
		worst := int64(x.WorstRank)
		p.WorstRank, p.WorstLost = &worst, int64(x.WorstTime)
	}
	if l, ok := labels[p.Key]; ok {
		p.Label = &l
	}
	return p
}

// The confidences of findings.
const (
	confidenceWarming     = "warming"     // the run continues, and the function has few calls
	confidenceProvisional = "provisional" // the review at the end is still to come
	confidenceConfirmed   = "confirmed"
)

func (d *runData) confidence(x *provenance.Finding) string {
	switch {
	case d.run.State == provdb.Finished && d.info.Settings["review"] != "false":
		return confidenceConfirmed
	case d.sparse[trace.FuncKey{Program: x.PID, Name: x.Func}]:
		return confidenceWarming
	}
	return confidenceProvisional
}

// kindWords name one and several anomalies by kind.
var kindWords = map[provenance.AnomalyKind][2]string{
	provenance.Slow: {"slow call", "slow calls"}, provenance.Fast: {"call that was too fast", "calls that were too fast"},
	provenance.CommWait: {"long wait", "long waits"}, provenance.OnGPU: {"anomalous execution on a GPU", "anomalous executions on a GPU"},
	provenance.Burst: {"slow call in a burst", "slow calls in bursts"}, provenance.Recurring: {"recurring slow call", "recurring slow calls"},
}

// findingSentence describes a finding.
func (d *runData) findingSentence(x *provenance.Finding) string {
	since := " since " + text.Clock(d.seconds(x.First), float64(d.extent)/1e6)
	if x.IsChange() {
		return fmt.Sprintf("%s takes %s instead of %s%s", text.ShortName(x.Func), text.Duration(x.After),
			text.Duration(x.Before), since)
	}
	var b strings.Builder
	names, ok := kindWords[x.Kind]
	if !ok {
		names = [2]string{"anomaly", "anomalies"}
	}
	what := "1 " + names[0]
	if x.Anomalies != 1 {
		what = text.Int(x.Anomalies) + " " + names[1]
	}
	fmt.Fprintf(&b, "%s: %s on %s lost %s%s", text.ShortName(x.Func), what, whereText(x), text.Duration(float64(x.LostTime)),
		since)
	switch {
	case x.Cause > 0:
		fmt.Fprintf(&b, ", because of finding %d (%s)", x.Cause, text.ShortName(d.findings[x.Cause-1].Func))
	case x.Role == provenance.Victim:
		b.WriteString("; they waited for a late rank, for an unknown reason")
	case x.Waits > 0:
		fmt.Fprintf(&b, " and made %s on %s lose %s", text.Count(x.Waits, "wait"), text.Count(x.WaitRanks, "rank"),
			text.Duration(float64(x.WaitTime)))
	}
	return b.String()
}

// whereText names the rank, or counts the ranks, with hosts.
func whereText(x *provenance.Finding) string {
	words := text.Count(len(x.Ranks), "rank")
	if len(x.Ranks) == 1 {
		words = fmt.Sprintf("rank %d", x.Ranks[0])
	}
	if hosts := text.Hosts(x.Hosts); hosts != "" {
		words += " (" + hosts + ")"
	}
	return words
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
	p := &api.Plot{Points: []api.PlotPoint{}, Total: x.Anomalies}
	f, err := q.functionOfFinding(ctx, x)
	if err != nil || f == nil {
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
	return Problemf(api.NotFound, "findings lists the keys; findings of a running run may disappear",
		"no finding has the key %.40q", key)
}

// functionOfFinding returns the function of a finding; nil: not in the store.
func (q *runQuery) functionOfFinding(ctx context.Context, x *provenance.Finding) (*executions.Function, error) {
	id, ok := q.data.functions[trace.FuncKey{Program: x.PID, Name: x.Func}]
	if !ok {
		return nil, nil //nolint:nilnil // a lasting change without stored executions
	}
	return q.numbered(ctx, id)
}

// findingPoints returns the anomalies of a finding. If links are not stored, it selects them from
// those of the function.
func (q *runQuery) findingPoints(ctx context.Context, x *provenance.Finding, f *executions.Function, limit int) (
	[]executions.Execution, error,
) {
	if x.IsChange() {
		return nil, nil
	}
	if q.data.stored {
		return q.PointsOfFinding(ctx, x.Number, f, limit)
	}
	all, err := q.PointsOfFunction(ctx, f, MaxPoints)
	if err != nil || q.data.linkOf == nil {
		return all[:min(len(all), limit)], err
	}
	chosen := slices.DeleteFunc(all, func(p executions.Execution) bool {
		l := q.data.link(x.PID, p.Event)
		return l == nil || l.Finding != x.Number
	})
	return chosen[:min(len(chosen), limit)], nil
}

func (d *runData) plotPoints(points []executions.Execution, anomaly bool) []api.PlotPoint {
	list := make([]api.PlotPoint, 0, len(points))
	for _, p := range points {
		list = append(list, api.PlotPoint{
			Event: p.Event, At: d.seconds(p.Entry), Value: int64(p.Exclusive), Lost: int64(p.Lost), Rank: int64(p.Rank), Host: p.Host,
			Anomaly: anomaly, Status: p.Status,
		})
	}
	return list
}
