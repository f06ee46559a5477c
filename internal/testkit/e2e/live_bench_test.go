package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// BenchmarkExit measures the time from the end of a program to that of chimbuko run, which reviews, stores and prints
// the results in between: of a program that writes files, and of one with live streams.
func BenchmarkExit(b *testing.B) {
	b.Run("files", func(b *testing.B) {
		benchExit(b, program+" simulate --scenario slow-rank --live --duration 5s >&2; ")
	})
	b.Run("streams", func(b *testing.B) {
		r := threeRanks(b)
		tracetest.Python(b, "adios2", "numpy")
		script := `cd "$(dirname "$TAU_ADIOS2_FILENAME")"; `
		for _, trace := range r.traces {
			script += strings.Join(tracetest.Stream(b, "relay", trace, filepath.Base(trace)).Args, " ") + " >&2 & "
		}
		benchExit(b, script+"wait; ", "--engine", "sst")
	})
}

func benchExit(b *testing.B, script string, args ...string) {
	b.Helper()
	var all []float64
	for i := range b.N {
		s := newScene(b)
		s.run = s.path(fmt.Sprint("run", i))
		p := s.runs(script+"date +%s.%N", args...)
		p.succeed()
		end := time.Now()
		program, err := strconv.ParseFloat(strings.TrimSpace(p.stdout.String()), 64)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, float64(end.UnixNano())/1e9-program)
	}
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2], "s-after-program")
	b.ReportMetric(all[0], "s-shortest")
	b.ReportMetric(0, "ns/op")
}
