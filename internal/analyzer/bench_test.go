package analyzer_test

import (
	"context"
	"testing"

	"github.com/chimbuko/chimbuko/internal/analyzer"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/rundir"
	"github.com/chimbuko/chimbuko/internal/tracetest"
)

type nowhere struct{}

func (nowhere) Metadata(context.Context, analyzer.StepKey, []provenance.Metadata) error { return nil }
func (nowhere) Records(context.Context, analyzer.StepKey, []*provenance.Record, []*provenance.Record) error {
	return nil
}

// BenchmarkAnalyze analyses four ranks end to end, records written.
func BenchmarkAnalyze(b *testing.B) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) {
			var inputs []analyzer.Input
			for _, path := range tracetest.Large(b, run) {
				inputs = append(inputs, analyzer.Input{Path: path})
			}
			events := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				dir, err := rundir.Create(b.TempDir(), false)
				if err != nil {
					b.Fatal(err)
				}
				cfg := analyzer.Default()
				cfg.SpoolDir = dir.Spool()
				res, err := analyzer.New(cfg, dir, nil).Run(b.Context(), inputs)
				if err != nil {
					b.Fatal(err)
				}
				if err := dir.Finish(res); err != nil {
					b.Fatal(err)
				}
				events += res.Totals.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
