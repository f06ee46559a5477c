package analyzer_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

type discardSink struct{}

func (discardSink) Metadata(context.Context, analyzer.StepKey, []provenance.Metadata) error {
	return nil
}

func (discardSink) Records(context.Context, analyzer.StepKey, []*provenance.Record, []*provenance.Record) error {
	return nil
}

// BenchmarkAnalyze analyzes four ranks and writes their records. It reports the rate,
// and its ratio to the rate at which one core decodes the same traces in the same run.
func BenchmarkAnalyze(b *testing.B) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) {
			var inputs []analyzer.Input
			for _, path := range tracetest.Large(b, run) {
				inputs = append(inputs, analyzer.Input{Path: path})
			}
			events := int64(0)
			var analyzing, decoding time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				decode(b, inputs)
				decoding += time.Since(start)
				start = time.Now()
				dir := recordfile.NewWriter(b.TempDir())
				cfg := analyzer.Default()
				cfg.SpoolDir = b.TempDir()
				res, err := analyzer.New(cfg, dir, nil).Run(b.Context(), inputs)
				if err != nil {
					b.Fatal(err)
				}
				known, err := res.Collections()
				if err != nil {
					b.Fatal(err)
				}
				if err := dir.WriteGlobal(known); err != nil {
					b.Fatal(err)
				}
				events += res.Totals.Events
				analyzing += time.Since(start)
			}
			b.ReportMetric(float64(events)/analyzing.Seconds()/1e6, "Mevents/s")
			b.ReportMetric(100*decoding.Seconds()/analyzing.Seconds(), "%ofdecode")
		})
	}
}

// decode reads all events of the traces, one after the other.
func decode(b *testing.B, inputs []analyzer.Input) {
	b.Helper()
	for _, in := range inputs {
		r, err := bp.Open(in.Path, bp.Default())
		if err != nil {
			b.Fatal(err)
		}
		steps := tau.NewReader(r, tau.Config{}, nil)
		for err == nil {
			_, err = steps.Next(b.Context())
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		r.Close()
	}
}

// BenchmarkDetectors reports the time of an analysis with the default detector relative
// to hbos as x-hbos. The detectors alternate.
func BenchmarkDetectors(b *testing.B) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) {
			var inputs []analyzer.Input
			for _, path := range tracetest.Large(b, run) {
				inputs = append(inputs, analyzer.Input{Path: path})
			}
			took := make(map[outlier.Algorithm]time.Duration)
			for b.Loop() {
				for _, detector := range []outlier.Algorithm{outlier.Default().Algorithm, outlier.HBOS} {
					start := time.Now()
					dir := recordfile.NewWriter(b.TempDir())
					cfg := analyzer.Default()
					cfg.Outlier.Algorithm, cfg.SpoolDir = detector, b.TempDir()
					if _, err := analyzer.New(cfg, dir, nil).Run(b.Context(), inputs); err != nil {
						b.Fatal(err)
					}
					took[detector] += time.Since(start)
				}
			}
			b.ReportMetric(took[outlier.Default().Algorithm].Seconds()/took[outlier.HBOS].Seconds(), "x-hbos")
		})
	}
}
