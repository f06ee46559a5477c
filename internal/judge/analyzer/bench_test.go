package analyzer_test

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"runtime"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/cputime"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/recordfile"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

type discardSink struct{}

func (discardSink) Metadata(context.Context, trace.StepKey, []provenance.Metadata) error {
	return nil
}

func (discardSink) Records(context.Context, trace.StepKey, []*provenance.Record, []*provenance.Record) error {
	return nil
}

// withLargeTraces runs a benchmark with the traces of four ranks in each format.
func withLargeTraces(b *testing.B, bench func(b *testing.B, inputs []analyzer.Input)) {
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) { bench(b, largeInputs(b, run)) })
	}
}

func largeInputs(tb testing.TB, run string) (inputs []analyzer.Input) {
	tb.Helper()
	for _, path := range tracetest.Large(tb, run) {
		inputs = append(inputs, analyzer.Input{Path: path})
	}
	return inputs
}

// BenchmarkAnalyze analyzes four ranks and writes their records. It reports the rate,
// and its ratio to the rate at which one core decodes the same traces in the same run.
func BenchmarkAnalyze(b *testing.B) {
	withLargeTraces(b, func(b *testing.B, inputs []analyzer.Input) {
		events := int64(0)
		var analyzing, decoding time.Duration
		b.ReportAllocs()
		for b.Loop() {
			start := time.Now()
			decode(b, inputs, func([]trace.Event) {})
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

// BenchmarkOneCore analyzes four ranks with one worker and without storing records. It reports the events per second of
// processor time, and their ratio to those of a loop that only decodes the same traces, matches entries with exits, and
// counts times in a histogram. The two alternate.
func BenchmarkOneCore(b *testing.B) {
	withLargeTraces(b, func(b *testing.B, inputs []analyzer.Input) {
		events := int64(0)
		var analyzing, bare time.Duration
		for b.Loop() {
			start := cputime.OfProcess()
			decode(b, inputs, new(bareLoop).add)
			bare += cputime.OfProcess() - start
			start = cputime.OfProcess()
			cfg := analyzer.Default()
			cfg.Workers, cfg.SpoolDir = 1, b.TempDir()
			res, err := analyzer.New(cfg, discardSink{}, nil).Run(b.Context(), inputs)
			if err != nil {
				b.Fatal(err)
			}
			analyzing += cputime.OfProcess() - start
			events += res.Totals.Events
		}
		b.ReportMetric(float64(events)/analyzing.Seconds()/1e6, "Mevents/s")
		b.ReportMetric(bare.Seconds()/analyzing.Seconds(), "x-bare")
	})
}

// BenchmarkWorkers analyzes four ranks with one worker and with one for each processor. It reports the parallel efficiency:
// the time with one worker, divided by the time with all and by their number. The two alternate. It needs an idle machine.
func BenchmarkWorkers(b *testing.B) {
	inputs := largeInputs(b, "heat2d-large-BP4")
	workers := runtime.GOMAXPROCS(0)
	took := make(map[int]time.Duration)
	for b.Loop() {
		for _, n := range []int{1, workers} {
			start := time.Now()
			cfg := analyzer.Default()
			cfg.Workers, cfg.SpoolDir = n, b.TempDir()
			if _, err := analyzer.New(cfg, discardSink{}, nil).Run(b.Context(), inputs); err != nil {
				b.Fatal(err)
			}
			took[n] += time.Since(start)
		}
	}
	b.ReportMetric(took[1].Seconds()/took[workers].Seconds()/float64(workers), "efficiency")
}

// bareLoop is the least that an analysis does.
type bareLoop struct {
	stack     []trace.Ticks
	histogram [64]int
}

func (l *bareLoop) add(events []trace.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case trace.Enter:
			l.stack = append(l.stack, e.Time)
		case trace.Exit:
			if n := len(l.stack) - 1; n >= 0 {
				l.histogram[bits.Len64(uint64(e.Time-l.stack[n]))&63]++
				l.stack = l.stack[:n]
			}
		}
	}
}

// decode passes all events of the traces to use, one thread and step after the other.
func decode(b *testing.B, inputs []analyzer.Input, use func([]trace.Event)) {
	b.Helper()
	for _, in := range inputs {
		r, err := bp.Open(in.Path, bp.Default())
		if err != nil {
			b.Fatal(err)
		}
		steps := tau.NewReader(r, tau.Config{}, nil)
		for {
			step, stepErr := steps.Next(b.Context())
			if err = stepErr; err != nil {
				break
			}
			for i := range step.Batches {
				use(step.Batches[i].Events)
			}
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
	withLargeTraces(b, func(b *testing.B, inputs []analyzer.Input) {
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
