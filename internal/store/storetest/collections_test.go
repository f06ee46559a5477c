package storetest

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// summary returns statistics with different numbers for each n.
func summary(n float64) stats.Summary {
	return stats.Summary{
		Accumulate: n + 1e15, Count: 1000 + n, Kurtosis: -1.2 * n, Maximum: 1e9 / (3 + n),
		Mean: math.Pi * n, Minimum: 0.1 + n, Skewness: 1e-7 * n, Stddev: 1e22 + n*1e20,
	}
}

// funcStats returns functions of two programs, some of them without anomalies and with
// duplicate numbers.
func funcStats() (all []provenance.FuncStats) {
	for i := range 12 {
		f := provenance.FuncStats{
			App: trace.Program(i % 2), FID: i / 3, Name: fmt.Sprintf("function %d", i),
			RuntimeProfile: provenance.RuntimeProfile{Exclusive: summary(float64(i)), Inclusive: summary(float64(i) + 0.5)},
		}
		if i%3 > 0 {
			f.AnomalyMetrics = &provenance.AnomalyMetrics{
				Count: summary(float64(100 + i)), Score: summary(float64(200 + i)), Severity: summary(float64(300 + i)),
				FirstStep: int64(i), LastStep: math.MaxInt64 - int64(i), First: epoch + trace.Ticks(i), Last: epoch * 2,
			}
		}
		all = append(all, f)
	}
	return all
}

func counterStats() (all []provenance.CounterStats) {
	for i := range 6 {
		all = append(all, provenance.CounterStats{App: trace.Program(i % 2), Name: fmt.Sprintf("counter %d", i/2), Stats: summary(float64(i))})
	}
	return all
}

// adModels returns final models of functions with and without records, some of them null.
func adModels() (all []provenance.ADModel) {
	for i, f := range functions()[:20] {
		m := provenance.ADModel{FID: f.fid, Name: f.name, Model: f.model}
		switch i % 5 {
		case 1:
			m.Model = json.RawMessage(fmt.Sprintf(`{"accumulate":0,"count":%d,"mean":2.5}`, i))
		case 2:
			m.Model = json.RawMessage("null")
		case 3:
			m.PID = 1
		}
		all = append(all, m)
	}
	return all
}

func stepMetadata(rank, step int, descr ...string) provdb.StepMetadata {
	m := provdb.StepMetadata{Rank: trace.Rank(rank), Step: step}
	for i, d := range descr {
		m.Facts = append(m.Facts, provenance.Metadata{
			Descr: d, RID: m.Rank, TID: trace.Thread(i), Value: fmt.Sprintf("%s of rank %d in step %d", d, rank, step),
		})
	}
	return m
}
