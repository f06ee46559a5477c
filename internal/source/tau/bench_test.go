package tau_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestDecodingDoesNotAllocate(t *testing.T) {
	for _, run := range []string{"gpu-BP5", "ring-onefile-BP4", "ring-onefile-BP5", "ring-monitoring-BP4"} {
		r, err := bp.Open(tracetest.Recorded(t, run)[0], bp.Default())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := tau.NewDecoder(tau.Config{}, nil)
		events := 0
		decode := func() {
			step, err := d.Decode(s)
			if err != nil {
				t.Fatal(err)
			}
			events = step.Funcs + step.Comms + step.Counters
		}
		decode() // learns the names and makes room for the step
		s.Attributes = nil
		if n := testing.AllocsPerRun(20, decode); n != 0 || events == 0 {
			t.Errorf("%s: a step of %d events made %v allocations, want none", run, events, n)
		}
	}
}

// BenchmarkDecode decodes bytes from the page cache into events on one core. It reports
// the rate, and its ratio to the rate at which a plain loop sums the same bytes in memory
// in the same run.
func BenchmarkDecode(b *testing.B) {
	b.Run("gpu-BP5", func(b *testing.B) { benchmarkDecode(b, tracetest.Recorded(b, "gpu-BP5")) })
	for _, run := range []string{"heat2d-large-BP4", "heat2d-large-BP5"} {
		b.Run(run, func(b *testing.B) { benchmarkDecode(b, tracetest.Large(b, run)) })
	}
}

func benchmarkDecode(b *testing.B, datasets []string) {
	var words [][]uint64
	for _, d := range datasets {
		data, err := os.ReadFile(filepath.Join(d, "data.0"))
		if err != nil {
			b.Fatal(err)
		}
		w := make([]uint64, len(data)/8)
		for i := range w {
			w[i] = binary.LittleEndian.Uint64(data[8*i:])
		}
		words = append(words, w)
	}
	var events, bytes, summed int64
	var sum uint64
	var decoding, summing time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for _, d := range datasets {
			eachStep(b, d, func(s *trace.Step) {
				events += int64(s.Funcs + s.Comms + s.Counters)
				bytes += int64(48*s.Funcs + 64*s.Comms + 48*s.Counters)
			})
		}
		decoding += time.Since(start)
		start = time.Now()
		for _, w := range words {
			for _, v := range w {
				sum += v
			}
			summed += int64(8 * len(w))
		}
		summing += time.Since(start)
	}
	if sum == 1 {
		b.Log("the sum is used, so it must be computed")
	}
	rate := float64(bytes) / decoding.Seconds()
	b.ReportMetric(float64(events)/decoding.Seconds()/1e6, "Mevents/s")
	b.ReportMetric(rate/1e9, "GB/s")
	b.ReportMetric(100*rate/(float64(summed)/summing.Seconds()), "%ofsum")
}
