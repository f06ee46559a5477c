package e2e

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// program of ranks, each of which calls all functions ten times in a step and takes
// much longer in one of 500 calls.
const sizingScenario = `
name = "sizing"
seed = 1
steps = 10
iterations = 10

[[program]]
name = "solver"
ranks = %d
hosts = ["node00"]
body = [%s]

[program.functions]
%s
[[trouble]]
name = "odd calls"
kind = "slow-call"
functions = [%s]
chance = 0.002
value = { uniform = [3000, 5000] }
`

// simulated are the traces of a program with so many ranks and functions.
func simulated(b *testing.B, s *scene, ranks, functions int) recording {
	b.Helper()
	var names []string
	var times strings.Builder
	for i := range functions {
		names = append(names, fmt.Sprintf("%q", fmt.Sprintf("function_%03d", i)))
		fmt.Fprintf(&times, "function_%03d = { time = { lognormal = [300, 0.1] } }\n", i)
	}
	list := strings.Join(names, ", ")
	file := s.write("sizing.toml", fmt.Sprintf(sizingScenario, ranks, list, times.String(), list))
	must(b, "simulate", "--scenario", file, "--out", s.path("traces"))
	traces, err := filepath.Glob(filepath.Join(s.path("traces"), "*.bp"))
	if err != nil || len(traces) != ranks {
		b.Fatalf("%d traces for %d ranks: %v", len(traces), ranks, err)
	}
	return recording{"sizing", traces}
}

// peak is the most memory that a process had, in MB.
func (p *process) peak() float64 {
	p.t.Helper()
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		p.t.Fatalf("the memory of %s is unknown", p.name)
	}
	return float64(usage.Maxrss) / 1000 // of 1024 bytes on Linux
}

// cpu is the processor time of a process and those that it started.
func (p *process) cpu() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// BenchmarkMemory measures the peak memory of the processes of a run: an analyzer of all
// ranks of a node, the parameter server, the store with the page, and NATS.
func BenchmarkMemory(b *testing.B) {
	for _, of := range []struct{ ranks, functions int }{{16, 100}, {64, 100}, {192, 100}, {64, 400}} {
		b.Run(fmt.Sprintf("ranks=%d/functions=%d", of.ranks, of.functions), func(b *testing.B) {
			s := newScene(b)
			r := simulated(b, s, of.ranks, of.functions)
			for i := range b.N {
				s.run = s.path(fmt.Sprint("run", i))
				nats := s.serve("--roles", "nats")
				s.services()
				params := s.serve("--roles", "params", "--ranks", strconv.Itoa(of.ranks))
				store := s.serve("--roles", "store,web")
				ad := s.ad("n0", r.dir(), "--traces", strconv.Itoa(of.ranks))
				succeed(ad, params)
				store.signal(syscall.SIGTERM)
				nats.signal(syscall.SIGTERM)
				store.wait()
				nats.wait()
				b.ReportMetric(ad.peak(), "MB-ad")
				b.ReportMetric(params.peak(), "MB-params")
				b.ReportMetric(store.peak(), "MB-store")
				b.ReportMetric(nats.peak(), "MB-nats")
			}
		})
	}
}

// BenchmarkManyAnomalies measures how long the end of a live run with 47,000 anomalies takes, from
// the end of its traces, relative to the time of chimbuko analyze for the same traces.
func BenchmarkManyAnomalies(b *testing.B) {
	s := newScene(b)
	must(b, "simulate", "--scenario", "demo", "--out", s.path("traces"))
	flags := []string{"--threshold", "1", "--min-loss", "1us"}
	for i := range b.N {
		start := time.Now()
		analyze := startWith(b, nil, slices.Concat([]string{"analyze", "--out", s.path(fmt.Sprint("recorded", i)), s.path("traces")}, flags)...)
		analyze.succeed()
		recorded := time.Since(start)
		s.run = s.path(fmt.Sprint("run", i))
		serve := s.serve("--ranks", "16")
		s.services()
		ad := s.ad("n0", s.path("traces"), append([]string{"--traces", "16"}, flags...)...)
		ad.awaitLog("all traces have ended")
		start = time.Now()
		succeed(ad, serve)
		b.ReportMetric(time.Since(start).Seconds(), "end-s")
		b.ReportMetric(time.Since(start).Seconds()/recorded.Seconds(), "x-analyze")
		b.ReportMetric(serve.peak(), "MB-serve")
		b.ReportMetric(serve.cpu().Seconds(), "CPU-s-serve")
		b.ReportMetric(ad.peak(), "MB-ad")
		b.ReportMetric(analyze.peak(), "MB-analyze")
	}
}

// BenchmarkShards measures the cost of the parameter server as several processes. What they
// gain shows on a machine with more cores than these and the analyzers need.
func BenchmarkShards(b *testing.B) {
	s := newScene(b)
	r := simulated(b, s, 64, 400)
	for _, shards := range []int{1, 2, 4} {
		b.Run(strconv.Itoa(shards), func(b *testing.B) {
			for i := range b.N {
				s.run = s.path(fmt.Sprintf("run%d-%d", shards, i))
				nats := s.serve("--roles", "nats")
				s.services()
				params := s.serve("--roles", "params", "--ranks", "64", "--shards", strconv.Itoa(shards))
				store := s.serve("--roles", "store,web")
				params.awaitLog("analyzers join") // and sends them the number of shards
				ad := s.ad("n0", r.dir(), "--traces", "64")
				succeed(ad, params)
				for _, p := range []*process{store, nats} {
					p.signal(syscall.SIGTERM)
					p.wait()
				}
				b.ReportMetric(params.cpu().Seconds(), "CPU-s") // with the shards that it started
				b.ReportMetric(params.peak(), "MB-largest")
			}
		})
	}
}

// BenchmarkStreamOnDisk measures the bytes of a record in the stream while the store is
// away.
func BenchmarkStreamOnDisk(b *testing.B) {
	b.Run("simulated", func(b *testing.B) {
		s := newScene(b)
		benchStream(b, s, simulated(b, s, 16, 100))
	})
	b.Run("recorded", func(b *testing.B) { benchStream(b, newScene(b), threeRanks(b)) })
}

func benchStream(b *testing.B, s *scene, r recording) {
	ranks := strconv.Itoa(len(r.traces))
	for i := range b.N {
		s.run = s.path(fmt.Sprint("run", i))
		nats := s.serve("--roles", "nats")
		s.services()
		params := s.serve("--roles", "params", "--ranks", ranks)
		store := s.serve("--roles", "store", "--store-delay", "1h") // it makes the stream, and stores nothing
		sum := summaryOf(s.ad("n0", r.dir(), "--traces", ranks, "--json", "--outbox", "1000"))
		var size int64
		err := filepath.WalkDir(runfiles.Bus(s.run), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/float64(sum.Records), "B/record")
		b.ReportMetric(float64(sum.Records), "records")
		for _, p := range []*process{params, store, nats} {
			p.kill()
		}
	}
}

// BenchmarkNetwork measures the traffic of an analyzer of the ranks of a node while
// the program continues, and in the review.
func BenchmarkNetwork(b *testing.B) {
	n := newNetwork(b, 2)
	s := newScene(b)
	r := simulated(b, s, 64, 100)
	for i := range b.N {
		s.run = s.path(fmt.Sprint("run", i))
		serve := n.start(0, "serve", "--out", s.run, "--ranks", "64", "--nats-listen", n.address(0)+":0")
		s.services()
		ad := n.start(1, "ad", s.path(fmt.Sprint("live", i)), "--run-dir", s.run, "--traces", "64", "--json")
		before := n.traffic(1)
		replay := start(b, "trace", "replay", r.dir(), s.path(fmt.Sprint("live", i)), "--speed", "1")
		replay.succeed()
		running := n.traffic(1)
		succeed(ad, serve)
		all := n.traffic(1)
		sum := summaryOf(ad)
		b.ReportMetric(float64(running[0]-before[0])/sum.Reading/1000, "kB-in/s")
		b.ReportMetric(float64(running[1]-before[1])/sum.Reading/1000, "kB-out/s")
		b.ReportMetric(float64(all[0]-running[0])/1e6, "MB-in-at-the-end")
		b.ReportMetric(float64(all[1]-running[1])/1e6, "MB-out-at-the-end")
		b.ReportMetric(float64(sum.Records), "records")
		b.ReportMetric(float64(sum.Events)/sum.Reading/1e6, "Mevents/s")
	}
}

// traffic returns the bytes that a host received and sent.
func (n *network) traffic(host int) (bytes [2]int64) {
	n.t.Helper()
	for i, name := range []string{"rx_bytes", "tx_bytes"} {
		command := slices.Concat(n.command(host), []string{"cat", "/sys/class/net/eth0/statistics/" + name})
		out, err := exec.Command(command[0], command[1:]...).Output()
		n.must(err)
		bytes[i], err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		n.must(err)
	}
	return bytes
}
