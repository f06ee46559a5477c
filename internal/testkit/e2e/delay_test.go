package e2e

import (
	"regexp"
	"strconv"
	"testing"
)

// BenchmarkTimeToFinding measures how long after a place has become slow a finding names it, while the
// built-in demo runs.
func BenchmarkTimeToFinding(b *testing.B) {
	begins := regexp.MustCompile(`(?m)^ +\+([\d.]+) s  (memory-pressure|gpu-clock-drop) `)
	names := map[string]*regexp.Regexp{
		"memory-pressure": regexp.MustCompile(`(?m)^ +\+([\d.]+) s  named .*: node02 `),
		"gpu-clock-drop":  regexp.MustCompile(`(?m)^ +\+([\d.]+) s  named .*: .*GPU.* rank 13 `),
	}
	seconds := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	for range b.N {
		output := must(b, "demo")
		planted := begins.FindAllStringSubmatch(output, -1)
		if len(planted) != len(names) {
			b.Fatalf("the demo plants %v:\n%s", planted, output)
		}
		for _, trouble := range planted {
			named := names[trouble[2]].FindStringSubmatch(output)
			if named == nil {
				b.Fatalf("no finding names the place of %s:\n%s", trouble[2], output)
			}
			b.ReportMetric(seconds(named[1])-seconds(trouble[1]), "s-"+trouble[2])
		}
	}
}
