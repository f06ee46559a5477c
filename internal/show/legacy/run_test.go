package legacy_test

import (
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
)

// encode returns the next packet of l and reports whether it has news.
func encode(l *summary.Live, schema int, millis int64) (packet []byte, news bool) {
	p := legacy.NewPacket(l, schema, time.UnixMilli(millis))
	return p.Encode(), p.Anomalies != nil
}

func sums(values ...uint64) *stats.Sums {
	s := new(stats.Sums)
	for _, v := range values {
		s.Add(v)
	}
	return s
}

func scores(values ...float64) (s stats.RunStats) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// anomaly returns the metrics of one anomaly in a step.
func anomaly(step int32, entry, exit trace.Micros, score float64) summary.Metrics {
	m := summary.Metrics{Count: *sums(1)}
	m.Add(step, entry, exit, score, exit-entry)
	return m
}

func function(id int, program trace.Program, name string, times ...uint64) *summary.FunctionStats {
	f := &summary.FunctionStats{ID: id, FuncKey: trace.FuncKey{Program: program, Name: name}, Exclusive: *sums(times...)}
	for _, v := range times {
		f.Inclusive.Add(v + 10)
	}
	return f
}

// smallRun is a run of two programs and three ranks, of which two have anomalies:
// some of them reported by an earlier packet.
func smallRun() *summary.Live {
	l := summary.NewLive()
	addFunction(l, function(4, 0, "solve<double>", 100, 110, 90), sums(0, 1))
	addFunction(l, function(0, 0, `MPI_Send() [{a "quoted" name}]`, 7, 7), sums(1, 0))
	addFunction(l, function(9, 1, "write", 3_000_000), sums(0))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums(0, 2))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, sums(0, 0))
	l.AddRank(trace.RankKey{Program: 1, Rank: 0}, sums(0))
	addCounter(l, 0, "Bytes Sent", sums(8, 16, 4096))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 1, First: 1000, Last: 2000, Scores: scores(2.5, 12),
		Functions: []summary.FunctionStats{
			{ID: 4, Anomalies: anomaly(1, 1100, 1210, 12)},
			{ID: 0, Anomalies: anomaly(1, 1300, 1310, 2.5)},
		},
	})
	l.Discard()

	addFunction(l, function(4, 0, "solve<double>", 5000), sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, sums(1, 0))
	addCounter(l, 1, "pages swapped", sums(0, 0))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 12}, Step: 2, First: 2000, Last: 3000, Scores: scores(7),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: anomaly(2, 2100, 2900, 7)}},
	})
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 4, First: 4000, Last: 9500, Scores: scores(0.125),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: anomaly(4, 4100, 9400, 0.125)}},
	})
	return l
}

// addFunction adds calls of a function with anomalies in each step.
func addFunction(l *summary.Live, f *summary.FunctionStats, anomalies *stats.Sums) {
	f.PerStep = *anomalies
	l.AddFunction(f)
}

func addCounter(l *summary.Live, program trace.Program, name string, values *stats.Sums) {
	l.AddCounter(&summary.Counter{FuncKey: trace.FuncKey{Program: program, Name: name}, Values: *values})
}
