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

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// Bounds of lists of issues.
const (
	maxIssues     = 2000
	maxIssueRanks = 1000 // and hosts of one
)

// Issues returns all issues of a run.
func (in *Insight) Issues(ctx context.Context, run string) (*api.IssueList, error) {
	return informed(ctx, in, run, func(ctx context.Context, q *asked) (*api.IssueList, error) {
		if q.known.wrong != nil {
			return nil, q.known.wrong
		}
		labels, err := in.labels(ctx, q.Run.Name)
		if err != nil {
			return nil, err
		}
		rows := q.known.pageIssues(labels)
		return &api.IssueList{
			Rows: rows[:min(len(rows), maxIssues)], Writable: in.Writable(), Stored: q.known.stored, Total: int64(len(q.known.issues)),
		}, nil
	})
}

// labels are those of a run; none where nobody can say anything.
func (in *Insight) labels(ctx context.Context, run string) (map[string]api.Label, error) {
	if in.Labels == nil {
		return nil, nil //nolint:nilnil // no labels
	}
	return in.Labels.Labels(ctx, run)
}

// issueKeys are names of issues by which they are known while their numbers change:
// they depend on program, function, call path, kind and cause, but neither on how many
// anomalies there are nor on whether they come in bursts.
func issueKeys(issues []provenance.Issue) []string {
	keys := make([]string, len(issues))
	byNumber := make(map[int]string)
	for _, caused := range []bool{false, true} {
		for i := range issues {
			x := &issues[i]
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

// pageIssues are all issues as the page wants them.
func (k *known) pageIssues(labels map[string]api.Label) []api.Issue {
	list := make([]api.Issue, 0, len(k.issues))
	for i := range k.issues {
		list = append(list, k.pageIssue(i, labels))
	}
	return list
}

func (k *known) pageIssue(i int, labels map[string]api.Label) api.Issue {
	x := &k.issues[i]
	p := api.Issue{
		Key: k.keys[i], Number: x.Number, Program: int64(x.PID), Function: x.Func,
		FunctionID: k.functions[trace.FuncKey{Program: x.PID, Name: x.Func}], Path: x.Path,
		Kind: string(x.Kind), Role: string(x.Role), Cause: x.Cause, Anomalies: x.Anomalies, Lost: int64(x.LostTime), Longest: int64(x.Longest),
		Ranks: []int64{}, Hosts: append([]string{}, x.Hosts[:min(len(x.Hosts), maxIssueRanks)]...), RankCount: int64(len(x.Ranks)),
		HostCount: int64(len(x.Hosts)),
		First:     k.seconds(x.First), Last: k.seconds(x.Last), Trend: string(x.Trend), OverTime: append([]int64{}, x.OverTime...),
		Example: x.Example,
		Waits:   x.Waits, WaitRanks: x.WaitRanks, WaitLost: int64(x.WaitTime), Before: x.Before, After: x.After,
		Confidence: k.confidence(x), Sentence: k.issueSentence(x),
	}
	for _, r := range x.Ranks[:min(len(x.Ranks), maxIssueRanks)] {
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

// The confidences of issues.
const (
	confidenceWarming     = "warming"     // the run goes on, and few calls of the function are known
	confidenceProvisional = "provisional" // the review at the end is still to come
	confidenceConfirmed   = "confirmed"
)

func (k *known) confidence(x *provenance.Issue) string {
	switch {
	case k.run.State == provdb.Finished && k.info.Settings["review"] != "false":
		return confidenceConfirmed
	case k.thin[trace.FuncKey{Program: x.PID, Name: x.Func}]:
		return confidenceWarming
	}
	return confidenceProvisional
}

// kindWords are what one and several anomalies of an issue are, by its kind.
var kindWords = map[provenance.AnomalyKind][2]string{
	provenance.Slow: {"slow call", "slow calls"}, provenance.Fast: {"call that was too fast", "calls that were too fast"},
	provenance.CommWait: {"long wait", "long waits"}, provenance.OnGPU: {"odd execution on a GPU", "odd executions on a GPU"},
	provenance.Burst: {"slow call in a burst", "slow calls in bursts"},
}

// issueSentence tells an issue in words.
func (k *known) issueSentence(x *provenance.Issue) string {
	since := " since " + text.Clock(k.seconds(x.First), float64(k.extent)/1e6)
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
		fmt.Fprintf(&b, ", because of issue %d (%s)", x.Cause, text.ShortName(k.issues[x.Cause-1].Func))
	case x.Role == provenance.Victim:
		b.WriteString("; they waited for somebody who was late, why is not known")
	case x.Waits > 0:
		fmt.Fprintf(&b, " and made %s on %s lose %s", text.Count(x.Waits, "wait"), text.Count(x.WaitRanks, "rank"),
			text.Duration(float64(x.WaitTime)))
	}
	return b.String()
}

// whereText names the rank or counts ranks, with hosts.
func whereText(x *provenance.Issue) string {
	words := text.Count(int64(len(x.Ranks)), "rank")
	if len(x.Ranks) == 1 {
		words = fmt.Sprintf("rank %d", x.Ranks[0])
	}
	if hosts := text.Hosts(x.Hosts); hosts != "" {
		words += " (" + hosts + ")"
	}
	return words
}

// MaxPoints is how many points a plot has at most.
const MaxPoints = 20_000

// PlotParams choose the points of a plot.
type PlotParams struct {
	Key   string // of the issue
	Limit int    // of points
}

// Plot returns the executions of an issue over time.
func (in *Insight) Plot(ctx context.Context, run string, of PlotParams) (*api.Plot, error) {
	return informed(ctx, in, run, func(ctx context.Context, q *asked) (*api.Plot, error) { return q.plot(ctx, of) })
}

func (q *asked) plot(ctx context.Context, of PlotParams) (*api.Plot, error) {
	if q.known.wrong != nil {
		return nil, q.known.wrong
	}
	x, ok := q.known.issue(of.Key)
	if !ok {
		return nil, noIssue(of.Key)
	}
	limit := of.Limit
	p := &api.Plot{Points: []api.PlotPoint{}, Total: x.Anomalies}
	f, err := q.functionOfIssue(ctx, x)
	if err != nil || f == nil {
		return p, err
	}
	var anomalies, typical []query.Point
	var params json.RawMessage
	g, asking := errgroup.WithContext(ctx)
	g.Go(func() (err error) { anomalies, err = q.issuePoints(asking, x, f, limit); return err })
	g.Go(func() (err error) { typical, err = q.TypicalPoints(asking, f, limit); return err })
	g.Go(func() (err error) { params, err = q.ModelNow(asking, f); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	typical = typical[:min(len(typical), limit-len(anomalies)/2)]
	p.Points = append(q.known.plotPoints(anomalies, true), q.known.plotPoints(typical, false)...)
	slices.SortStableFunc(p.Points, func(a, b api.PlotPoint) int { return cmp.Compare(a.At, b.At) })
	if m := q.known.pageModel(params); m != nil {
		p.TypicalUS, p.Threshold = m.Typical, m.Threshold
	}
	return p, nil
}

func noIssue(key string) error {
	return Problemf(api.NotFound, "issues lists the keys; while a run goes on an issue may vanish when more is known",
		"no issue has the key %.40q", key)
}

// functionOfIssue finds the function; nil: the store does not know it.
func (q *asked) functionOfIssue(ctx context.Context, x *provenance.Issue) (*query.Function, error) {
	id, ok := q.known.functions[trace.FuncKey{Program: x.PID, Name: x.Func}]
	if !ok {
		return nil, nil //nolint:nilnil // it is of a lasting change of which nothing is kept
	}
	return q.numbered(ctx, id)
}

// issuePoints are the anomalies of an issue. Where it is not stored to which issue they
// belong, they are chosen from all of the function.
func (q *asked) issuePoints(ctx context.Context, x *provenance.Issue, f *query.Function, limit int) ([]query.Point, error) {
	if x.IsChange() {
		return nil, nil
	}
	if q.known.stored {
		return q.PointsOfIssue(ctx, x.Number, f, limit)
	}
	all, err := q.PointsOfFunction(ctx, f, MaxPoints)
	if err != nil || q.known.linkOf == nil {
		return all[:min(len(all), limit)], err
	}
	chosen := all[:0]
	for _, p := range all {
		if i, ok := q.known.linkOf[trace.EventKey{Program: x.PID, ID: p.Event}]; ok && q.known.links[i].Issue == x.Number && len(chosen) < limit {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

func (k *known) plotPoints(points []query.Point, anomaly bool) []api.PlotPoint {
	list := make([]api.PlotPoint, 0, len(points))
	for _, p := range points {
		list = append(list, api.PlotPoint{
			Event: p.Event, At: k.seconds(p.Entry), Value: int64(p.Exclusive), Lost: int64(p.Lost), Rank: int64(p.Rank), Host: p.Host,
			Anomaly: anomaly, Status: p.Status,
		})
	}
	return list
}
