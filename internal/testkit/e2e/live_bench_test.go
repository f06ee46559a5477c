package e2e

import (
	"fmt"
	"os"
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

// shareScenario is a program of eight ranks that call a hundred functions, one step each second for twenty seconds.
const shareScenario = `
name = "share"
seed = 1
steps = 20
iterations = %d

[[program]]
name = "solver"
ranks = 8
hosts = ["node00"]
body = [%s]

[program.functions]
%s
[[trouble]]
name = "odd calls"
kind = "slow-call"
functions = [%s]
chance = 0.0002
value = { uniform = [3000, 5000] }
`

// BenchmarkShare measures the processors that an analyzer and the services use while a program of eight ranks runs, and
// their share of those of the ranks. Ranks write 53,000 or 530,000 events per second together.
func BenchmarkShare(b *testing.B) {
	for _, of := range []struct{ iterations, time int }{{33, 300}, {330, 30}} {
		b.Run(fmt.Sprintf("events=%d", 8*of.iterations*200), func(b *testing.B) {
			s := newScene(b)
			var names []string
			var times strings.Builder
			for i := range 100 {
				names = append(names, fmt.Sprintf(`"function_%03d"`, i))
				fmt.Fprintf(&times, "function_%03d = { time = { lognormal = [%d, 0.1] } }\n", i, of.time)
			}
			list := strings.Join(names, ", ")
			file := s.write("share.toml", fmt.Sprintf(shareScenario, of.iterations, list, times.String(), list))
			must(b, "simulate", "--scenario", file, "--out", s.path("traces"))
			for i := range b.N {
				benchShare(b, s, i)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchShare(b *testing.B, s *scene, i int) {
	b.Helper()
	const first, last, ranks = 4, 16, 8 // steps between which to measure, without start and review
	live := s.path(fmt.Sprint("live", i))
	s.run = s.path(fmt.Sprint("run", i))
	serve := start(b, "serve", "--out", s.run, "--ranks", strconv.Itoa(ranks))
	s.services()
	ad := start(b, "ad", "--run-dir", s.run, live, "--traces", strconv.Itoa(ranks))
	replay := start(b, "trace", "replay", s.path("traces"), live)
	s.written(live, ranks, first)
	begin, usedBefore, servedBefore := time.Now(), ad.usedSoFar(), serve.usedSoFar()
	s.written(live, ranks, last)
	seconds := time.Since(begin).Seconds()
	analyzer := (ad.usedSoFar() - usedBefore).Seconds() / seconds
	services := (serve.usedSoFar() - servedBefore).Seconds() / seconds
	succeed(replay, ad, serve)
	b.ReportMetric(1000*analyzer, "mCPU-analyzer")
	b.ReportMetric(1000*services, "mCPU-services")
	b.ReportMetric(100*analyzer/ranks, "%-analyzer")
	b.ReportMetric(100*(analyzer+services)/ranks, "%-all")
}

// usedSoFar returns the processor time of a process that runs.
func (p *process) usedSoFar() time.Duration {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
