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

// usage is what a process uses.
type usage struct{ files, goroutines, kilobytes int }

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
	if _, rest, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, err = fmt.Sscan(rest, &u.kilobytes)
	}
	if err != nil {
		return u, err
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
	before, err := usageOf(b, view)
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
		after, err := usageOf(b, view)
		if err == nil && (after.files > before.files+moreFiles || after.goroutines > before.goroutines+moreGoroutines ||
			after.kilobytes > before.kilobytes+moreMemory) {
			err = fmt.Errorf("before %+v, after %+v", before, after)
		}
		return err
	})
}
