package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// oneRank analyses one of the two ranks of a trace, so that two runs have other
// times of the same functions, and functions that the other does not have.
func oneRank(t *testing.T, rank int) string {
	t.Helper()
	return analyzed(t, fmt.Sprint("rank", rank), []string{
		fmt.Sprintf("testdata/traces/ring-monitoring-BP4/tau-metrics-ring-%d.bp", rank),
		"--algorithm", "copod", "--threshold", "0.3", "--min-samples", "3", "--skip-first=false",
	})
}

func TestRunDoesNotDifferFromItself(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	for name, dir := range map[string]string{"workflow": analyzed(t, "workflow", workflowRun), "gpu": analyzed(t, "gpu", gpuRun)} {
		rows := queryJSON(t, "query", dir, "SELECT count(DISTINCT (pid, path)) AS n FROM anomalies WHERE status IS DISTINCT FROM 'withdrawn'")
		r := run(t, "diff", dir, dir, "--all", "--limit", "1000", "--format", "csv", "--fail-if", "lost>0", "--fail-if", "new>0", "--fail-if",
			"worse>0", "--fail-if", "anomalies>0%")
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if r.code != 0 || r.stderr != "" || float64(len(lines)-1) != rows[0]["n"] {
			t.Fatalf("%s: exit code %d, %d lines, want %v: %s", name, r.code, len(lines), rows[0]["n"], r.stderr)
		}
		for _, line := range lines[1:] {
			if !strings.HasPrefix(line, "same,") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if text := must(t, "diff", dir, filepath.Join(dir, "provenance.duckdb")); !strings.Contains(text, "(none)") {
			t.Errorf("%s: without --all it lists\n%s", name, text)
		}
	}
}

// differences are the expected output of diff for two runs, from their files alone.
func differences(t *testing.T, dirs [2]string) []object {
	t.Helper()
	type key struct {
		pid        int64
		name, path string
	}
	var sums [2]map[key]*sum
	keys := make(map[key]bool)
	for i, dir := range dirs {
		sums[i] = make(map[key]*sum)
		for _, s := range sumUp(counting(recordsOf(t, dir)), func(k *kept) string { return fmt.Sprint(k.PID, k.path()) }) {
			sums[i][key{s.pid, s.name, s.path}], keys[key{s.pid, s.name, s.path}] = s, true
		}
	}
	var all []object
	for k := range keys {
		var lost, anomalies [2]int64
		var calls, mean [2]float64
		var there [2]bool
		for i, dir := range dirs {
			if s := sums[i][k]; s != nil {
				lost[i], anomalies[i], there[i] = s.lost, s.anomalies, true
			}
			if p := profilesOf(t, dir)[fmt.Sprint(k.pid, k.name)].Profile.Exclusive; p.Count > 0 {
				calls[i], mean[i] = p.Count, p.Accumulate/p.Count
			}
		}
		change, most := "same", float64(max(lost[0], lost[1]))
		switch apart := float64(lost[1] - lost[0]); {
		case !there[0]:
			change = "new"
		case !there[1]:
			change = "gone"
		case apart > most/10:
			change = "worse"
		case -apart > most/10:
			change = "better"
		}
		distance, moved := distanceOf(t, dirs, k.pid, k.name)
		all = append(all, object{
			"change": change, "program": k.pid, "function": k.name, "call_path": k.path, "anomalies": anomalies, "lost_us": lost,
			"calls": calls, "mean_us": mean, "distance": distance, "moved_us": moved,
		})
	}
	slices.SortFunc(all, func(a, b object) int {
		apart := func(o object) int64 { lost := o["lost_us"].([2]int64); return max(lost[1]-lost[0], lost[0]-lost[1]) }
		return cmp.Or(cmp.Compare(apart(b), apart(a)), cmp.Compare(a["function"].(string), b["function"].(string)))
	})
	return all
}

// distanceOf compares the shares of calls up to any time in two runs: their largest
// difference, and the sum of all. Both are nil where one has no histogram.
func distanceOf(t *testing.T, dirs [2]string, pid int64, name string) (distance, moved any) {
	t.Helper()
	var share [2]func(x float64) float64
	least, longest := math.Inf(1), math.Inf(-1)
	for i, dir := range dirs {
		var models []struct {
			PID   int64
			Name  string `json:"func_name"`
			Model struct {
				Histogram struct {
					Counts []float64 `json:"Histogram Bin Counts"`
					Edges  []float64 `json:"Histogram Bin Edges"`
				}
			}
		}
		readJSON(t, filepath.Join(dir, "global", "ad_model.json"), &models)
		for _, m := range models {
			h := m.Model.Histogram
			if m.PID != pid || m.Name != name || len(h.Counts) == 0 {
				continue
			}
			least, longest = min(least, h.Edges[0]), max(longest, h.Edges[len(h.Edges)-1])
			share[i] = func(x float64) float64 {
				below, all := 0.0, 0.0
				for bin, n := range h.Counts {
					all += n
					below += n * min(max((x-h.Edges[bin])/(h.Edges[bin+1]-h.Edges[bin]), 0), 1)
				}
				return below / all
			}
		}
	}
	if share[0] == nil || share[1] == nil {
		return nil, nil
	}
	most, sum := 0.0, 0.0
	for x := least; x <= longest; x += 1 { // edges are whole microseconds
		most = max(most, math.Abs(share[0](x)-share[1](x)))
	}
	const part = 1.0 / 64 // of a microsecond, so that little is lost where the shares cross
	for x := least + part/2; x <= longest; x += part {
		sum += part * math.Abs(share[0](x)-share[1](x))
	}
	return most, sum
}

func TestDiffMatchesRecords(t *testing.T) {
	a, b := oneRank(t, 0), oneRank(t, 1)
	seen := make(map[string]bool)
	for _, dirs := range [][2]string{{a, b}, {b, a}} {
		want := differences(t, dirs)
		var got struct {
			Changes     []object
			Anomalies   [2]int64
			Lost        [2]int64   `json:"lost_us"`
			LostPercent [2]float64 `json:"lost_percent"`
		}
		if err := json.Unmarshal([]byte(must(t, "diff", dirs[0], dirs[1], "--format", "json")), &got); err != nil {
			t.Fatal(err)
		}
		for i, c := range got.Changes {
			seen[c["change"].(string)] = true
			// Sums of shares are rounded, by either in its own order.
			for name, near := range map[string]float64{"distance": 1e-9, "moved_us": 1e-2} {
				got, known := c[name].(float64)
				if wanted, ok := want[i][name].(float64); ok != known || math.Abs(got-wanted) > near {
					t.Errorf("%s of %v is %v, want %v", name, c["function"], c[name], want[i][name])
				}
				seen["a "+name] = seen["a "+name] || got > 0
				delete(c, name)
				delete(want[i], name)
			}
			if c["hosts"] == nil {
				t.Errorf("%v has no hosts", c)
			}
			delete(c, "hosts")
		}
		same(t, "changes", got.Changes, want)
		for i, dir := range dirs {
			s := sumUp(counting(recordsOf(t, dir)), func(*kept) string { return "" })[0]
			all := 0.0
			for _, p := range profilesOf(t, dir) {
				all += p.Profile.Exclusive.Accumulate
			}
			if got.Lost[i] != s.lost || got.Anomalies[i] != s.anomalies || math.Abs(got.LostPercent[i]-100*float64(s.lost)/all) > 1e-9 {
				t.Errorf("run %d lost %d (%v %%) to %d anomalies, want %d (%v %%) to %d", i, got.Lost[i], got.LostPercent[i], got.Anomalies[i],
					s.lost, 100*float64(s.lost)/all, s.anomalies)
			}
		}
	}
	for _, change := range []string{"new", "gone", "worse", "better", "same", "a distance", "a moved_us"} {
		if !seen[change] {
			t.Errorf("the runs have nothing %s", change)
		}
	}
	lines := queryCSV(t, "diff", a, b, "--limit", "2")
	if len(lines) != 3 || lines[1][0] != "gone" || lines[2][0] != "new" { // same ones are left out
		t.Errorf("the two largest changes are %q", lines)
	}
	out := filepath.Join(t.TempDir(), "diff.txt")
	if text := must(t, "diff", a, b, "--output", out); text != "" {
		t.Errorf("with --output it prints %q", text)
	}
}

func TestDiffFailsIfAConditionIsTrue(t *testing.T) {
	a, b := oneRank(t, 0), oneRank(t, 1)
	f := func(code int, conditions ...string) {
		t.Helper()
		args := []string{"diff", a, b}
		for _, c := range conditions {
			args = append(args, "--fail-if", c)
		}
		r := run(t, args...)
		if r.code != code || (code == 3) != strings.Contains(r.stderr, "it is ") || !strings.Contains(r.stdout, "Lost to anomalies") {
			t.Errorf("%q: exit code %d, want %d: %s", conditions, r.code, code, r.stderr)
		}
	}
	f(0, "new>1", "worse>2", "lost>0", "lost>0%", "anomalies>7", "anomalies>31%")
	for _, conditions := range tracetest.Sample([][]string{
		{"lost>1", "new>0"}, // one of them is enough
		{"new>0"},
		{"worse>1"},
		{" anomalies > 30.4 % "},
		{"anomalies>6"},
	}, 3) {
		f(3, conditions...)
	}
	if r := run(t, "diff", b, a, "--fail-if", "lost>4ms", "--fail-if", "lost>0.4%"); r.code != 2 {
		t.Errorf("4ms: exit code %d", r.code)
	}
	if r := run(t, "diff", b, a, "--fail-if", "lost>4000", "--fail-if", "lost>0.4%"); r.code != 3 || strings.Count(r.stderr, "it is ") != 2 {
		t.Errorf("both conditions are true: exit code %d, %s", r.code, r.stderr)
	}
	for _, c := range tracetest.Sample([]string{"", "lost", "lost>", "lost<1", "beauty>1", "lost>x", "lost>1.2.3", "new>1%", "worse>5%", "lost>1%%"}, 5) {
		fails(t, 2, []string{"diff", a, b, "--fail-if", c}, "--fail-if", "--help")
	}
	fails(t, 1, []string{"diff", a, filepath.Join(a, "nothing")}, "nothing", "no such file")
	fails(t, 1, []string{"diff", a, a, "--run-b", "nobody"}, `run "nobody": not found; the store holds rank0`)
	fails(t, 1, []string{"diff", a, b, "--run-b", "nobody"}, `run "nobody": not found; the store holds rank1`)
}
