// Package packettest has a small run with live statistics, and checks the structure of packets,
// for tests.
package packettest

import (
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Sums returns the sums of values.
func Sums(values ...uint64) *stats.Sums {
	s := new(stats.Sums)
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// Scores returns the statistics of scores.
func Scores(values ...float64) (s stats.RunStats) {
	for _, v := range values {
		s.Add(v)
	}
	return s
}

// Anomaly returns the metrics of one anomaly in a step.
func Anomaly(step int32, entry, exit trace.Ticks, score float64) summary.Metrics {
	m := summary.Metrics{Count: *Sums(1)}
	m.Add(step, entry, exit, score, exit-entry)
	return m
}

// Function returns the statistics of calls with these exclusive times. Inclusive times are
// 10 µs longer.
func Function(id int, program trace.Program, name string, times ...uint64) *summary.FunctionStats {
	f := &summary.FunctionStats{ID: id, FuncKey: trace.FuncKey{Program: program, Name: name}, Exclusive: *Sums(times...)}
	for _, v := range times {
		f.Inclusive.Add(v + 10)
	}
	return f
}

// SmallRun returns a run of two programs and three ranks, of which two have anomalies.
// TakeNews returns only some of them.
func SmallRun() *summary.Live {
	l := summary.NewLive()
	AddFunction(l, Function(4, 0, "solve<double>", 100, 110, 90), Sums(0, 1))
	AddFunction(l, Function(0, 0, `MPI_Send() [{a "quoted" name}]`, 7, 7), Sums(1, 0))
	AddFunction(l, Function(9, 1, "write", 3_000_000), Sums(0))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, Sums(0, 2))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, Sums(0, 0))
	l.AddRank(trace.RankKey{Program: 1, Rank: 0}, Sums(0))
	AddCounter(l, 0, "Bytes Sent", Sums(8, 16, 4096))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 1, First: 1000, Last: 2000, Scores: Scores(2.5, 12),
		Functions: []summary.FunctionStats{
			{ID: 4, Anomalies: Anomaly(1, 1100, 1210, 12)},
			{ID: 0, Anomalies: Anomaly(1, 1300, 1310, 2.5)},
		},
	})
	l.Discard()

	AddFunction(l, Function(4, 0, "solve<double>", 5000), Sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 3}, Sums(1))
	l.AddRank(trace.RankKey{Program: 0, Rank: 12}, Sums(1, 0))
	AddCounter(l, 1, "pages swapped", Sums(0, 0))
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 12}, Step: 2, First: 2000, Last: 3000, Scores: Scores(7),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: Anomaly(2, 2100, 2900, 7)}},
	})
	l.AddStep(&summary.StepReport{
		RankKey: trace.RankKey{Program: 0, Rank: 3}, Step: 4, First: 4000, Last: 9500, Scores: Scores(0.125),
		Functions: []summary.FunctionStats{{ID: 4, Anomalies: Anomaly(4, 4100, 9400, 0.125)}},
	})
	return l
}

// AddFunction adds calls of a function with anomalies in each step.
func AddFunction(l *summary.Live, f *summary.FunctionStats, anomalies *stats.Sums) {
	f.PerStep = *anomalies
	l.AddFunction(f)
}

// AddCounter adds values of a counter.
func AddCounter(l *summary.Live, program trace.Program, name string, values *stats.Sums) {
	l.AddCounter(&summary.Counter{FuncKey: trace.FuncKey{Program: program, Name: name}, Values: *values})
}
