package analyzer

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Salvage reviews ranks whose analyzer is lost: of them there is only what was flagged
// while their traces were written.
type Salvage struct {
	models    *Models
	inclusive bool
	ranks     map[trace.RankKey]*salvaged
}

// salvaged is what came of such a rank.
type salvaged struct {
	outcome summary.RankOutcome
	found   map[string]*summary.FunctionStats
	steps   map[string]map[int32]uint64 // anomalies of a function in a step
}

// Salvage returns a review by models that are final. Executions are judged by all of
// their time, or by that without calls inside them.
func (m *Models) Salvage(inclusive bool) *Salvage {
	m.settle()
	return &Salvage{models: m, inclusive: inclusive, ranks: make(map[trace.RankKey]*salvaged)}
}

// Add judges an anomaly once more, which changes its record: it is confirmed or
// withdrawn. One of a function that cannot be judged is withdrawn.
func (s *Salvage) Add(r *provenance.Record) {
	of := s.rank(r)
	time := int64(r.RuntimeExclusive)
	if s.inclusive {
		time = int64(r.RuntimeTotal)
	}
	f := s.models.byName[trace.FuncKey{Program: r.PID, Name: r.Func}]
	if f == nil || s.models.Judge(f) == nil {
		r.Status = provenance.Withdrawn
		of.outcome.Review.NotJudged++
		return
	}
	j := s.models.Judge(f)
	score, verdict := j.Judge(time)
	r.OutlierScore = score
	r.LostTime = trace.Micros(max(0, time-int64(f.Learned().Hist.Quantile(0.5))))
	status := provenance.Withdrawn
	if verdict == outlier.Outlier {
		status = provenance.Confirmed
	}
	d := j.Describe(time)
	r.Explain(&d, status)
	if status == provenance.Withdrawn {
		of.outcome.Review.Withdrawn++
		return
	}
	of.outcome.Review.Confirmed++
	of.outcome.Review.Anomalies++
	o := of.found[r.Func]
	if o == nil {
		o = &summary.FunctionStats{FuncKey: f.FuncKey}
		of.found[r.Func], of.steps[r.Func] = o, make(map[int32]uint64)
	}
	o.Anomalies.Add(r.IOStep, r.Entry, r.Exit, score, r.RuntimeExclusive)
	o.LostTime += r.LostTime
	of.steps[r.Func][r.IOStep]++
}

func (s *Salvage) rank(r *provenance.Record) *salvaged {
	key := trace.RankKey{Program: r.PID, Rank: r.RID}
	of := s.ranks[key]
	if of == nil {
		of = &salvaged{
			outcome: summary.RankOutcome{RankKey: key, Host: r.Hostname},
			found:   make(map[string]*summary.FunctionStats), steps: make(map[string]map[int32]uint64),
		}
		s.ranks[key] = of
	}
	return of
}

// Outcomes are what came of the ranks, in order.
func (s *Salvage) Outcomes() (all []*summary.RankOutcome) {
	for _, of := range s.ranks {
		of.outcome.Functions = nil
		for name, f := range of.found {
			for _, n := range of.steps[name] {
				f.Anomalies.Count.Add(n)
			}
			of.outcome.Functions = append(of.outcome.Functions, *f)
		}
		slices.SortFunc(of.outcome.Functions, func(a, b summary.FunctionStats) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, &of.outcome)
	}
	slices.SortFunc(all, func(a, b *summary.RankOutcome) int { return a.Compare(b.RankKey) })
	return all
}
