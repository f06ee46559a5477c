package otf2_test

import (
	"errors"
	"io"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// BenchmarkSteps reads the events of an archive of HPCG. The reference library reads the same with otf2-print --silent.
func BenchmarkSteps(b *testing.B) {
	dir := tracetest.Unpack(b, tracetest.Shared(b, "traces", "otf2", "hpcg-stall-OTF2.tar.zst"), "hpcg-stall-OTF2")
	anchor, ok := otf2.AnchorOf(dir)
	if !ok {
		b.Fatalf("%s is no archive", dir)
	}
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		a, err := otf2.Open(anchor)
		if err != nil {
			b.Fatal(err)
		}
		for _, rank := range a.Ranks {
			r, err := a.Steps(rank, new(tally.Tally))
			if err != nil {
				b.Fatal(err)
			}
			for {
				step, err := r.Next(b.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					b.Fatal(err)
				}
				events += step.Funcs + step.Comms + step.Counters
			}
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
