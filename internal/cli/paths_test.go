package cli_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

const pathSums = "SELECT pid, call_path, calls, exclusive_us FROM path_stats ORDER BY pid, call_path"

func TestCallPathsAreInFilesAndDatabase(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	for name, args := range map[string][]string{"workflow": workflowRun, "gpu": gpuRun} {
		dir := analyzed(t, name, args)
		var list []provenance.PathStats
		readJSON(t, filepath.Join(dir, "global", "path_stats.json"), &list)
		texts, want := make([]string, len(list)), make(map[string]string)
		for i, p := range list {
			if texts[i] = p.Func; p.Parent > 0 {
				texts[i] = texts[p.Parent-1] + " > " + p.Func
			}
			want[fmt.Sprint(p.PID, " ", texts[i])] = fmt.Sprint(p.Calls, " ", int64(p.Exclusive))
		}
		got := make(map[string]string)
		rows := queryJSON(t, "query", dir, pathSums)
		for _, row := range rows {
			got[fmt.Sprint(row["pid"], " ", row["call_path"])] = fmt.Sprintf("%.0f %.0f", row["calls"], row["exclusive_us"])
		}
		same(t, name, got, want)
		if len(rows) < 10 {
			t.Errorf("%s has %d call paths, too few for a test", name, len(rows))
		}
		again := filepath.Join(t.TempDir(), "imported")
		must(t, "import", dir, "--out", again)
		same(t, name+" imported", queryJSON(t, "query", again, pathSums), rows)
	}
}

func TestCallPathsAddUpToFunctions(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := analyzed(t, "gpu", gpuRun)
	rows := queryJSON(t, "query", dir, `SELECT s.fname FROM func_stats s
		LEFT JOIN (SELECT run, pid, fn, sum(calls) AS calls, sum(exclusive_us) AS time FROM path_stats GROUP BY run, pid, fn) p
			ON p.run = s.run AND p.pid = s.app AND p.fn = s.fn
		WHERE p.calls IS DISTINCT FROM s.exclusive_count OR p.time IS DISTINCT FROM s.exclusive_accumulate`)
	if len(rows) > 0 {
		t.Errorf("the calls of %d functions are not those of their call paths: %v", len(rows), rows)
	}
}
