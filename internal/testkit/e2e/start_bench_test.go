package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkStart measures the processor time and memory of short commands: the analysis of a trace with about 10,000
// events, and commands that read no data.
func BenchmarkStart(b *testing.B) {
	s := newScene(b)
	must(b, "simulate", "--scenario", "slow-rank", "--ranks", "2", "--duration", "1s", "--out", s.path("traces"))
	for _, args := range [][]string{{"analyze", s.path("traces")}, {"version"}, {"help"}} {
		b.Run(args[0], func(b *testing.B) {
			var cpu, memory []float64
			for i := range b.N {
				all := args
				if args[0] == "analyze" {
					all = append(slices.Clone(args), "--out", s.path(fmt.Sprint("run", b.N, "-", i)))
				}
				p := start(b, all...)
				p.succeed()
				cpu, memory = append(cpu, float64(p.cpu().Microseconds())/1e3), append(memory, p.peak())
			}
			slices.Sort(cpu)
			slices.Sort(memory)
			b.ReportMetric(cpu[len(cpu)/2], "cpu-ms")
			b.ReportMetric(cpu[0], "cpu-ms-least")
			b.ReportMetric(memory[len(memory)/2], "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
