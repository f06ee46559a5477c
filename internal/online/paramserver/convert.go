package paramserver

import (
	"errors"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// reader turns parts of messages into what they stand for. Its error is that of
// the first part that is malformed.
type reader struct{ err error }

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", stats.ErrEncoding, what)
	}
}

// next splits the first field off an encoded message. That without a tag comes
// after the last, and for the rest of a malformed one.
func (r *reader) next(b []byte) (f field, rest []byte) {
	if len(b) == 0 {
		return field{}, nil
	}
	f, rest, ok := nextField(b)
	if !ok {
		r.fail("message")
		return field{}, nil
	}
	return f, rest
}

// sums reads sums; those that are left out are empty.
func (r *reader) sums(b []byte) (s stats.Sums) {
	r.readSums(&s, b)
	return s
}

// readSums is sums without a copy.
func (r *reader) readSums(s *stats.Sums, b []byte) {
	if len(b) == 0 {
		*s = stats.Sums{}
		return
	}
	rest, err := s.Decode(b)
	if err != nil || len(rest) > 0 || s.Count() > maxValues {
		r.fail("sums")
	}
}

func (r *reader) moments(m *protocol.Moments) stats.RunStats {
	s := stats.RunStats{
		N: m.GetN(), Mean: m.GetMean(), M2: m.GetM2(), M3: m.GetM3(), M4: m.GetM4(), Min: m.GetMin(), Max: m.GetMax(),
	}
	if !s.Valid() {
		r.fail("moments")
		return stats.RunStats{}
	}
	return s
}

func (r *reader) metrics(m *protocol.Metrics) summary.Metrics {
	return summary.Metrics{
		Count: r.sums(m.GetCount()), FirstStep: m.GetFirstStep(), LastStep: m.GetLastStep(),
		First: trace.Micros(m.GetFirst()), Last: trace.Micros(m.GetLast()),
		Score: r.moments(m.GetScore()), Severity: r.sums(m.GetSeverity()),
	}
}

func (r *reader) stepReport(m *protocol.StepReport) *summary.StepReport {
	s := &summary.StepReport{
		Program: trace.Program(m.GetProgram()), Rank: trace.Rank(m.GetRank()), Step: int32(m.GetStep()),
		First: trace.Micros(m.GetFirst()), Last: trace.Micros(m.GetLast()), Scores: r.moments(m.GetScores()),
	}
	for _, f := range m.GetFunctions() {
		s.Functions = append(s.Functions, summary.StepFunction{Function: int(f.GetId()), Metrics: r.metrics(f.GetMetrics())})
	}
	return s
}

func momentsTo(s stats.RunStats) *protocol.Moments {
	return &protocol.Moments{N: s.N, Mean: s.Mean, M2: s.M2, M3: s.M3, M4: s.M4, Min: s.Min, Max: s.Max}
}

func metricsTo(m *summary.Metrics) *protocol.Metrics {
	return &protocol.Metrics{
		Count: m.Count.AppendBinary(nil), FirstStep: m.FirstStep, LastStep: m.LastStep,
		First: int64(m.First), Last: int64(m.Last), Score: momentsTo(m.Score), Severity: m.Severity.AppendBinary(nil),
	}
}

func stepReportTo(s *summary.StepReport) *protocol.StepReport {
	m := &protocol.StepReport{
		Program: uint32(s.Program), Rank: uint32(s.Rank), Step: uint32(s.Step),
		First: int64(s.First), Last: int64(s.Last), Scores: momentsTo(s.Scores),
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		m.Functions = append(m.Functions, &protocol.StepFunction{Id: uint32(f.Function), Metrics: metricsTo(&f.Metrics)})
	}
	return m
}

func rankOutcomeTo(o *summary.RankOutcome) *protocol.RankOutcome {
	v := o.Review
	m := &protocol.RankOutcome{
		Program: uint32(o.Program), Rank: uint32(o.Rank), Host: o.Host,
		Review: &protocol.Review{
			Anomalies: v.Anomalies, Confirmed: v.Confirmed, Withdrawn: v.Withdrawn, Promoted: v.Promoted,
			Dropped: v.Dropped, NotJudged: v.NotJudged, Typical: v.Typical,
		},
	}
	for i := range o.Functions {
		f := &o.Functions[i]
		m.Functions = append(m.Functions, &protocol.FunctionOutcome{Name: []byte(f.Name), Metrics: metricsTo(&f.Metrics), Lost: int64(f.LostTime)})
	}
	return m
}

func rankOutcomeFrom(m *protocol.RankOutcome) (*summary.RankOutcome, error) {
	v := m.GetReview()
	o := &summary.RankOutcome{
		Program: trace.Program(m.GetProgram()), Rank: trace.Rank(m.GetRank()), Host: m.GetHost(),
		Review: summary.Review{
			Anomalies: v.GetAnomalies(), Confirmed: v.GetConfirmed(), Withdrawn: v.GetWithdrawn(), Promoted: v.GetPromoted(),
			Dropped: v.GetDropped(), NotJudged: v.GetNotJudged(), Typical: v.GetTypical(),
		},
	}
	var r reader
	for _, f := range m.GetFunctions() {
		o.Functions = append(o.Functions, summary.FunctionOutcome{
			Name: string(f.GetName()), Metrics: r.metrics(f.GetMetrics()), LostTime: trace.Micros(f.GetLost()),
		})
	}
	if r.err != nil {
		return nil, errors.New("what came of a rank is malformed")
	}
	return o, nil
}

func totalsTo(t summary.Totals) *protocol.Totals {
	return &protocol.Totals{
		Steps: int64(t.Steps), Events: t.Events, Calls: t.Calls, Flagged: t.Flagged, Ranks: int64(t.Ranks), Begin: int64(t.Begin),
	}
}

func totalsFrom(m *protocol.Totals) summary.Totals {
	return summary.Totals{
		Steps: int(m.GetSteps()), Events: m.GetEvents(), Calls: m.GetCalls(), Flagged: m.GetFlagged(),
		Ranks: int(m.GetRanks()), Begin: trace.Micros(m.GetBegin()),
	}
}

// TallyTo returns the counts as messages carry them.
func TallyTo(t *tally.Tally) (counts []*protocol.Count) {
	for kind, n := range t.All() {
		counts = append(counts, &protocol.Count{Kind: uint32(kind), Count: n})
	}
	return counts
}

// addTally adds counts; those of kinds that are not known come from a later
// version and are left out.
func addTally(t *tally.Tally, counts []*protocol.Count) {
	for _, c := range counts {
		if c.GetKind() < uint32(tally.NumKinds) {
			t.Add(tally.Kind(c.GetKind()), c.GetCount())
		}
	}
}
