package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/sqlitetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// sqliteWriters write a trace of a program, and have names of its calls.
var sqliteWriters = map[string]struct {
	write  func(tb testing.TB, path string, p *sqlitetest.Program)
	launch string
}{
	"Nsight": {
		func(tb testing.TB, path string, p *sqlitetest.Program) {
			sqlitetest.Nsight(tb, path, sqlitetest.Nsight3, p)
		},
		"cudaLaunchKernel",
	},
	"rocpd": {
		func(tb testing.TB, path string, p *sqlitetest.Program) {
			sqlitetest.Rocpd(tb, path, sqlitetest.RocpdTracks, p)
		},
		"hipLaunchKernel",
	},
}

// TestSlowKernelsInSQLiteTraces plants slow kernels on rank 2 and expects them in all answers, with the calls that launched them.
func TestSlowKernelsInSQLiteTraces(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	for format, c := range sqliteWriters {
		t.Run(format, func(t *testing.T) {
			traces := writeSQLite(t, format)
			if info := must(t, "trace", "info", traces); strings.Count(info, "  "+format+"  ") != 4 || strings.Count(info, "3 (2 GPU)") != 4 {
				t.Errorf("trace info prints %s", info)
			}
			dir := filepath.Join(t.TempDir(), "run")
			must(t, "analyze", traces, "--out", dir)
			found := false
			for _, row := range queryJSON(t, "findings", dir) {
				if !strings.HasPrefix(row["function"].(string), "gemm(float*) [grid 8×2×1, block 128×1×1]") {
					continue
				}
				found = true
				id := row["examples"].([]any)[0].(string)
				if event := must(t, "event", dir, id); !strings.Contains(event, c.launch) || !strings.HasPrefix(id, "2:") {
					t.Errorf("event %s does not show its launch: %s", id, event)
				}
			}
			if !found {
				t.Error("no finding about the slow kernels")
			}
			ranks := must(t, "ranks", dir)
			for _, host := range []string{"node0", "node1"} {
				if !strings.Contains(ranks, host) {
					t.Errorf("ranks are %s", ranks)
				}
			}
			breakdown := must(t, "breakdown", dir)
			if strings.Count(breakdown, "\n3 ") != 1 || !strings.Contains(breakdown, "COMMUNICATION") {
				t.Errorf("the breakdown is %s", breakdown)
			}
		})
	}
}

// TestDamageDoesNotHideOtherRanks damages a file that holds two ranks.
func TestDamageDoesNotHideOtherRanks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "both.sqlite")
	first, second := &sqlitetest.Program{Steps: 300, World: 2}, &sqlitetest.Program{Rank: 1, Steps: 300, World: 2}
	sqlitetest.Nsight(t, path, sqlitetest.Nsight3, first, second)
	clearPage(t, path)
	r := run(t, "trace", "dump", path, "--format", "jsonl")
	if r.code == 0 || !strings.Contains(r.stdout, `"rank":0`) || !strings.Contains(r.stdout, `"rank":1`) {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

func TestDamagedSQLiteTraces(t *testing.T) {
	for format, c := range sqliteWriters {
		path := filepath.Join(t.TempDir(), "rank0.db")
		c.write(t, path, &sqlitetest.Program{Steps: 300, World: 1})
		clearPage(t, path)
		for _, args := range [][]string{{"trace", "info", path}, {"analyze", path, "--out", filepath.Join(t.TempDir(), "run")}} {
			r := run(t, args...)
			if r.code == 0 || !strings.Contains(r.stderr+r.stdout, path+": byte ") {
				t.Errorf("%s, %s: code %d, %s", format, args[0], r.code, r.stderr)
			}
		}
	}
}

// clearPage overwrites a page of a database with zeros.
func clearPage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[len(b)*4/5/4096*4096:][:4096])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
