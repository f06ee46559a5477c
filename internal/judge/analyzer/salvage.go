package analyzer

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Salvage reviews ranks whose analyzer is lost. Only their provisional anomalies are available.
type Salvage struct {
	models    *Models
	inclusive bool
	ranks     map[trace.RankKey]*summary.RankReview
}

// Salvage returns a review by the models, which must be final. inclusive selects inclusive rather than exclusive times.
func (m *Models) Salvage(inclusive bool) *Salvage {
	m.settle()
	return &Salvage{models: m, inclusive: inclusive, ranks: make(map[trace.RankKey]*summary.RankReview)}
}

// Add judges an anomaly again and sets its record to confirmed or withdrawn, or to dropped if it is outside of the sample that is
// kept of many. It withdraws anomalies of functions that cannot be judged.
func (s *Salvage) Add(r *provenance.Record) {
	key := trace.RankKey{Program: r.PID, Rank: r.RID}
	if s.ranks[key] == nil {
		o := summary.NewRankReview(key, r.Hostname)
		s.ranks[key] = &o
	}
	o := s.ranks[key]
	time := int64(r.RuntimeExclusive)
	if s.inclusive {
		time = int64(r.RuntimeTotal)
	}
	f := s.models.byName[trace.FuncKey{Program: r.PID, Name: r.Func}]
	if f == nil {
		r.Status = provenance.Withdrawn
		o.Review.NotJudged++
		return
	}
	j, usual := s.models.Judge(f), f.Learned()
	path, work := f.models.at(r.Path(), false), r.Work()
	if path.anyWork {
		work = outlier.Work{}
	}
	by := path.by
	onPath := by != &f.models.allCalls
	if onPath {
		j, usual = by.judge, &by.model
	}
	score, verdict := j.JudgeCall(time, work)
	r.OutlierScore = score
	r.LostTime = trace.Ticks(max(0, time-int64(usual.Hist.Quantile(0.5))))
	n, ok := trace.EventNumbers(r.EventID)
	if id := (trace.EventID{Rank: r.RID, Step: int(n[1]), Row: uint32(n[2])}); ok && !j.Keep(verdict, id.Number()) {
		r.Status = provenance.Dropped
		o.Review.Dropped++
		return
	}
	status := provenance.Withdrawn
	if verdict >= outlier.Recurring {
		status = provenance.Confirmed
	}
	r.ExplainCall(j, time, work, onPath, status)
	if verdict == outlier.Recurring {
		r.Kind = provenance.Recurring
	}
	if status == provenance.Withdrawn {
		o.Review.Withdrawn++
		return
	}
	o.Review.Confirmed++
	o.Add(f.FuncKey, r.IOStep, r.Entry, r.Exit, score, r.RuntimeExclusive, r.LostTime)
}

// Outcomes returns the results of the ranks in order.
func (s *Salvage) Outcomes() (all []*summary.RankOutcome) {
	for _, o := range s.ranks {
		all = append(all, o.Outcome())
	}
	slices.SortFunc(all, func(a, b *summary.RankOutcome) int { return a.Compare(b.RankKey) })
	return all
}
