package simulate

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

func load(tb testing.TB, name string) *scenario.Scenario {
	tb.Helper()
	text, err := scenario.Builtin(name)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := scenario.Parse(name, text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkSimulate is how fast events come: by themselves on one core, and as
// datasets in files. The target is 5 million events a second.
func BenchmarkSimulate(b *testing.B) {
	b.Run("events", func(b *testing.B) {
		var events int64
		for b.Loop() {
			run := New(load(b, "slow-rank"))
			for run.Advance() {
				for _, s := range run.Streams() {
					step, err := s.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					events += int64(step.Funcs + step.Comms + step.Counters)
				}
			}
		}
		b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	})
	b.Run("files", func(b *testing.B) {
		var events int64
		dir := b.TempDir()
		for b.Loop() {
			done, err := New(load(b, "slow-rank")).Write(b.Context(), Target{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			events += done.Events
		}
		b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	})
}
