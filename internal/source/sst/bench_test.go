package sst_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/sst"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// BenchmarkStream reads streams of ADIOS2 with our reader and with that of
// ADIOS2, one after the other, each time from a new writer of the same steps.
// The time is that from the first step to the end of the stream. x-adios2 is how
// many times as fast ours is, by the medians. ADIOS2 is called from Python, which
// costs it little where steps are large.
func BenchmarkStream(b *testing.B) {
	f := func(name string, steps, rows int, preload bool) {
		b.Run(name, func(b *testing.B) {
			tracetest.Python(b, "adios2", "numpy")
			var ours, theirs []float64
			for b.Loop() {
				// Alternate, because the load of the machine changes.
				for _, own := range [][]bool{{true, false}, {false, true}}[len(theirs)%2] {
					w := startWriter(b, "same", fmt.Sprintf("steps=%d", steps), fmt.Sprintf("rows=%d", rows))
					if own {
						ours = append(ours, readOurs(b, w, steps, rows, preload))
					} else {
						theirs = append(theirs, readTheirs(b, w, steps, rows))
					}
					if err := w.finish(); err != nil {
						b.Fatal(err)
					}
				}
			}
			size := float64(steps) * float64(rows) * 48
			b.ReportMetric(median(theirs)/median(ours), "x-adios2")
			b.ReportMetric(size/median(ours)/1e6, "MB/s")
			b.ReportMetric(float64(steps)/median(ours), "steps/s")
			b.ReportMetric(size/median(theirs)/1e6, "adios2-MB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	f("8 MB steps", 60, 170000, false)
	f("8 MB steps unasked", 60, 170000, true)
	f("50 kB steps", 2000, 1000, false)
	f("50 kB steps unasked", 2000, 1000, true)
}

func readOurs(b *testing.B, w *writer, steps, rows int, preload bool) float64 {
	b.Helper()
	r := open(b, w.contact, func(o *sst.Options) { o.Preload = preload })
	var start time.Time
	n, size := 0, int64(0)
	for {
		s, err := r.Next(b.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			start = time.Now()
		}
		n++
		size += s.Variables[0].Blocks[0].Size()
	}
	took := time.Since(start).Seconds()
	if n != steps || size != int64(steps)*int64(rows)*48 {
		b.Fatalf("%d steps of %d bytes in all", n, size)
	}
	return took
}

func readTheirs(b *testing.B, w *writer, steps, rows int) float64 {
	b.Helper()
	out, err := tracetest.Stream(b, "read", strings.TrimSuffix(w.contact, ".sst")).Output()
	if err != nil {
		b.Fatal(err)
	}
	var n int
	var size int64
	var took float64
	if _, err := fmt.Sscan(string(out), &n, &size, &took); err != nil || n != steps || size != int64(steps)*int64(rows)*48 {
		b.Fatalf("%s: %v", out, err)
	}
	return took
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
