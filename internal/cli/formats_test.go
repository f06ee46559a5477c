package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// formats write or find a trace with troubles.
var formats = map[string]func(t *testing.T) string{
	"Nsight": func(t *testing.T) string { return writeSQLite(t, "Nsight") },
	"rocpd":  func(t *testing.T) string { return writeSQLite(t, "rocpd") },
	"NCCL Inspector": func(t *testing.T) string {
		t.Helper()
		logs := filepath.Join(t.TempDir(), "logs")
		prepare(t, "simulate", "--scenario", "hidden-wait", "--format", "inspector-verbose", "--out", logs)
		return logs
	},
	"Kineto": func(t *testing.T) string { return tracetest.Kineto(t, "transformer4-stalls") },
	"OTF2": func(t *testing.T) string {
		t.Helper()
		return tracetest.Unpack(t, tracetest.Shared(t, "traces", "otf2", "hpcg-stall-OTF2.tar.zst"), "hpcg-stall-OTF2")
	},
}

// writeSQLite writes traces of four ranks with slow kernels on rank 2.
func writeSQLite(t *testing.T, format string) string {
	t.Helper()
	traces := t.TempDir()
	for rank := range 4 {
		p := &sqlitetest.Program{Rank: rank, World: 4, Steps: 120}
		if rank == 2 {
			p.Slow = map[int]bool{50: true, 90: true}
		}
		sqliteWriters[format].write(t, filepath.Join(traces, fmt.Sprint("report-", rank, ".db")), p)
	}
	return traces
}

// TestQueriesAnswerForAllFormats uses all commands that read a run on a run of each format.
func TestQueriesAnswerForAllFormats(t *testing.T) {
	tracetest.SkipShort(t, "analyzes large traces")
	if tracetest.WithoutRace(t) {
		return
	}
	for format, traces := range formats {
		t.Run(format, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			prepare(t, "analyze", traces(t), "--out", dir)
			longest := queryJSON(t, "anomalies", dir)[0]
			function, id := longest["function"].(string), longest["event_id"].(string)
			for _, args := range [][]string{
				{"findings", dir},
				{"findings", dir, "1"},
				{"anomalies", dir},
				{"top", dir},
				{"top", dir, "--by", "rank"},
				{"ranks", dir},
				{"func", dir, function},
				{"counters", dir},
				{"event", dir, id},
				{"explain", dir},
				{"diff", dir, dir},
				{"runs", dir},
				{"query", dir, "SELECT rid, func, runtime_exclusive FROM anomalies"},
			} {
				if must(t, args...) == "" {
					t.Errorf("%s prints nothing", args[0])
				}
				if text := must(t, append(args, "--format", "json")...); !json.Valid([]byte(text)) {
					t.Errorf("%s prints %s", args[0], text)
				}
			}
			checkFiles(t, dir, id, function)
			switch breakdown := run(t, "breakdown", dir); {
			case format == "OTF2": // HPCG uses no GPU
				if breakdown.code == 0 || !strings.Contains(breakdown.stderr, "no times of GPUs") {
					t.Errorf("breakdown: %+v", breakdown)
				}
			case breakdown.code != 0:
				t.Errorf("breakdown: %+v", breakdown)
			}
		})
	}
}

// checkFiles writes the files that commands make of a run.
func checkFiles(t *testing.T, dir, id, function string) {
	t.Helper()
	out := t.TempDir()
	path := func(name string) string { return filepath.Join(out, name) }
	must(t, "report", dir, "-o", path("report.html"))
	must(t, "export", dir, path("tables"), "--to", "parquet")
	must(t, "export", dir, path("event.pftrace"), "--event", id, "--to", "perfetto")
	must(t, "baseline", dir, path("baseline"))
	must(t, "diff", path("baseline"), dir)
	for name, least := range map[string]int64{"report.html": 10_000, "event.pftrace": 100, "baseline": 100, "tables/anomalies.parquet": 100} {
		if info, err := os.Stat(path(name)); err != nil || info.Size() < least {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	short, _, _ := strings.Cut(function, "(")
	if page, err := os.ReadFile(path("report.html")); err != nil || !strings.Contains(string(page), short) {
		t.Errorf("the report does not name %s", short)
	}
}
