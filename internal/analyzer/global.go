package analyzer

import (
	"encoding/json"
	"fmt"

	"github.com/chimbuko/chimbuko/internal/provenance"
)

// FuncStats returns the profiles of all functions, in order of their numbers.
func (res *Result) FuncStats() []provenance.FuncStats {
	all := make([]provenance.FuncStats, 0, len(res.Functions))
	for _, f := range res.Functions {
		fs := provenance.FuncStats{
			App: f.Program, FID: f.ID, Name: provenance.Text(f.Name),
			RuntimeProfile: provenance.RuntimeProfile{Exclusive: f.Exclusive.Summary(), Inclusive: f.Inclusive.Summary()},
		}
		if m := f.Metrics; m != nil {
			fs.AnomalyMetrics = &provenance.AnomalyMetrics{
				Count: m.Count.Summary(), FirstStep: int64(m.FirstStep), LastStep: int64(m.LastStep),
				First: m.First, Last: m.Last, Score: m.Score.Summary(), Severity: m.Severity.Summary(),
			}
		}
		all = append(all, fs)
	}
	return all
}

// CounterStats returns what was learned of all counters, by program and name.
func (res *Result) CounterStats() []provenance.CounterStats {
	all := make([]provenance.CounterStats, 0, len(res.Counters))
	for _, c := range res.Counters {
		all = append(all, provenance.CounterStats{App: c.Program, Name: provenance.Text(c.Name), Stats: c.Stats.Summary()})
	}
	return all
}

// ADModels returns the final models of all functions, in order of their numbers.
func (res *Result) ADModels() ([]provenance.ADModel, error) {
	all := make([]provenance.ADModel, 0, len(res.Functions))
	for _, f := range res.Functions {
		m, err := json.Marshal(res.Models.Judge(f.Function))
		if err != nil {
			return nil, fmt.Errorf("model of %q: %w", f.Name, err)
		}
		all = append(all, provenance.ADModel{PID: f.Program, FID: f.ID, Name: provenance.Text(f.Name), Model: m})
	}
	return all, nil
}
