package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// usage is what a process uses. peak is the most memory so far.
type usage struct{ files, goroutines, kilobytes, peak int }

// usageOf returns the usage of a process that serves a page.
func usageOf(b *browser, p *process) (u usage, err error) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	entries, err := os.ReadDir(filepath.Join("/proc", pid, "fd"))
	if err != nil {
		return u, err
	}
	u.files = len(entries)
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return u, err
	}
	for name, into := range map[string]*int{"VmRSS:": &u.kilobytes, "VmHWM:": &u.peak} {
		_, rest, _ := strings.Cut(string(status), name)
		if _, err := fmt.Sscan(rest, into); err != nil {
			return u, fmt.Errorf("%s %w", name, err)
		}
	}
	code, metrics := b.get("metrics")
	_, rest, ok := strings.Cut(metrics, "\ngo_goroutines ")
	if !ok {
		return u, fmt.Errorf("%d: no go_goroutines in %.200s", code, metrics)
	}
	_, err = fmt.Sscan(rest, &u.goroutines)
	return u, err
}

// Queries, new connections and abandoned requests leave neither files nor goroutines behind.
// The first queries fill caches, so the start is measured after them.
func TestQueriesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	dir := filepath.Join(t.TempDir(), "run")
	must(t, append([]string{"analyze", "--out", dir}, tracetest.Recorded(t, "ring-BP5")...)...)
	view := start(t, "view", dir, "--http", "127.0.0.1:0")
	b := browse(t, view.address())
	leavesNothingBehind(t, b, view)
}

// leavesNothingBehind queries the run of a process that serves a page.
func leavesNothingBehind(t *testing.T, b *browser, p *process) {
	t.Helper()
	b.client.Transport = &http.Transport{DisableKeepAlives: true} // a connection for each request
	routes := []string{"overview", "heatmap", "ranks", "findings", "top", "events?limit=100", "functions", "flame", "counters", "search?q=main"}
	round := func() {
		for _, r := range routes {
			if code, body := b.get("api/v1/runs/run/" + r); code != http.StatusOK {
				t.Fatalf("%s: %d %s", r, code, body)
			}
		}
	}
	for range 3 {
		round()
	}
	before, err := usageOf(b, p)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		round()
	}
	// A leak for each of the 200 queries would exceed the first two limits tenfold; they permit connections and workers that
	// start late. Queries of a small run fit into what the first ones left; 100 MB are for the allocators of Go and DuckDB,
	// which keep freed memory.
	const moreFiles, moreGoroutines, moreMemory = 20, 20, 100_000 // kB
	eventually(t, "usage as before the queries", func() error {
		after, err := usageOf(b, p)
		if err == nil && (after.files > before.files+moreFiles || after.goroutines > before.goroutines+moreGoroutines ||
			after.kilobytes > before.kilobytes+moreMemory) {
			err = fmt.Errorf("before %+v, after %+v", before, after)
		}
		return err
	})
}

// programOf returns a program whose ranks call four functions. If slow is set, those of rank 1 take three times as long for a while.
func programOf(ranks, calls int, slow bool) string {
	text := fmt.Sprintf(`
name = "budget"
text = "calls of four functions"
seed = 1
steps = 20
iterations = 20
[[program]]
name = "budget"
ranks = %d
body = ["step"]
[program.functions]
step = { time = { normal = [60, 5] }, calls = ["%[2]d a", "%[2]d b", "%[2]d c", "%[2]d d"] }
a = { time = { normal = [150, 5] } }
b = { time = { normal = [150, 5] } }
c = { time = { normal = [150, 5] } }
d = { time = { normal = [150, 5] } }
`, ranks, calls)
	if slow {
		text += `
[[trouble]]
name = "slow"
kind = "slow-rank"
ranks = [1]
from = 5
to = 15
factor = 3
`
	}
	return text
}

// finished runs services and an analyzer for a simulated program. The services keep their page after the run.
func finished(t *testing.T, ranks, calls int, slow bool) (serve *process, b *browser, anomalies int) {
	t.Helper()
	s := newScene(t)
	if err := os.WriteFile(s.path("program.toml"), []byte(programOf(ranks, calls, slow)), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "simulate", "--scenario", s.path("program.toml"), "--out", s.path("traces"))
	serve = start(t, "serve", "--out", s.run, "--ranks", fmt.Sprint(ranks), "--stay")
	services := s.services()
	start(t, "ad", "--run-dir", s.run, "--traces", fmt.Sprint(ranks), s.path("traces")).succeed()
	serve.awaitLog("the page of the run remains at ")
	if _, err := fmt.Sscan(must(t, "query", s.run, "SELECT count(*) FROM anomalies", "--format", "csv")[len("count_star()\n"):], &anomalies); err != nil {
		t.Fatal(err)
	}
	return serve, browse(t, services.Web+"/?token="+services.Secret), anomalies
}

// Limits of the memory of services, in kB. The parameter server and the store take little for each rank. The store keeps 64 MB
// of its log in memory, twice while it is merged into the file, whatever the number of anomalies is.
const (
	memoryPerRank   = 1_000
	memoryOfStore   = 150_000
	memoryPer100000 = 400_000 // anomalies
)

func TestMemoryOfServicesHasABudget(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	peak := func(ranks, calls int, slow bool) (memory, anomalies int) {
		serve, b, anomalies := finished(t, ranks, calls, slow)
		if slow {
			defer leavesNothingBehind(t, b, serve)
		}
		u, err := usageOf(b, serve)
		if err != nil {
			t.Fatal(err)
		}
		return u.peak, anomalies
	}
	few, noise := peak(2, 5, false)
	many, more := peak(102, 5, false)
	t.Logf("%d kB for 2 ranks with %d anomalies, %d kB for 102 with %d", few, noise, many, more)
	if many > few+100*memoryPerRank {
		t.Errorf("%d kB for 102 ranks and %d kB for 2, more than %d kB a rank", many, few, memoryPerRank)
	}
	slow, anomalies := peak(2, 75, true)
	t.Logf("%d kB for %d anomalies", slow, anomalies)
	if anomalies < 5_000 {
		t.Errorf("only %d anomalies", anomalies)
	}
	if most := few + memoryOfStore + anomalies*(memoryPer100000/1000)/100; slow > most {
		t.Errorf("%d kB for %d anomalies, more than %d", slow, anomalies, most)
	}
}
