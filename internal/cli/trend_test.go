package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/comparison"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// nightly simulates five runs of a program and analyses them; the third and all after it
// have a slower function interpolate, and the last has slow calls of another. settings are
// those of the analysis, in which NAME is that of the run.
func nightly(t *testing.T, settings ...string) (dirs []string) {
	t.Helper()
	dir := t.TempDir()
	for night := 1; night <= 5; night++ {
		time := 400
		if night >= 3 {
			time = 840
		}
		text := fmt.Sprintf(`name = "nightly"
text = "a program that is run each night"
seed = %d
steps = 10
iterations = 40

[[program]]
name = "nightly"
ranks = 2
hosts = ["node00"]
body = ["interpolate", "2 relax"]

[program.functions]
interpolate = { time = { lognormal = [%d, 0.05] } }
relax = { time = { lognormal = [300, 0.05] } }
`, night, time)
		if night == 5 {
			text += "\n[[trouble]]\nname = \"relax\"\nkind = \"burst\"\nranks = [1]\nfunctions = [\"relax\"]\nfrom = 0.1\ncount = 10\nfactor = 10\n"
		}
		name := fmt.Sprint("night-", night)
		file := filepath.Join(dir, name+".toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		prepare(t, "simulate", "--scenario", file, "--out", filepath.Join(dir, "traces", name))
		out := filepath.Join(dir, name)
		args := []string{"analyze", filepath.Join(dir, "traces", name), "--out", out}
		for _, s := range settings {
			args = append(args, strings.ReplaceAll(s, "NAME", name))
		}
		must(t, args...)
		dirs = append(dirs, out)
	}
	return dirs
}

// trendOf returns the trend that diff prints as JSON.
func trendOf(t *testing.T, args ...string) (trend api.Trend) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, append([]string{"diff", "--format", "json"}, args...)...)), &trend); err != nil {
		t.Fatal(err)
	}
	return trend
}

const slower = "interpolate is 2.1 × slower since night-3: "

func TestDiffOfManyRunsFindsFirstChangedRun(t *testing.T) {
	tracetest.SkipShort(t, "simulates and analyzes five runs")
	dirs := nightly(t)
	shuffled := []string{dirs[3], dirs[0], dirs[4], dirs[1], dirs[2]}
	text := must(t, append([]string{"diff"}, shuffled...)...)
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, slower) || !strings.Contains(first, "relax loses ") ||
		!strings.Contains(first, "to anomalies since night-5, and nothing in night-4.") {
		t.Errorf("%s", first)
	}
	trend := trendOf(t, shuffled...)
	if trend.Verdict.Level != api.LevelBad || len(trend.Runs) != 5 || trend.Verdict.Sentence != first {
		t.Fatalf("%+v", trend.Verdict)
	}
	if s := trend.Time[1]; s.Function != "interpolate" || s.Since.Run != 2 || s.Since.Change != comparison.Worse || len(s.Values) != 5 {
		t.Errorf("%+v, %+v", s, s.Since)
	}
	for i := range 4 { // agrees with a comparison of two
		var d api.Difference
		if err := json.Unmarshal([]byte(must(t, "diff", "--format", "json", dirs[i], dirs[i+1])), &d); err != nil {
			t.Fatal(err)
		}
		for k, at := range []int{i, i + 1} {
			if r := trend.Runs[at]; r.Name != fmt.Sprint("night-", at+1) || r.Lost != d.Lost[k] || r.Exclusive != d.Exclusive[k] ||
				r.Anomalies != d.Anomalies[k] || r.Calls != d.Calls[k] || r.LostPercent != d.LostPercent[k] {
				t.Errorf("%+v, want %+v", r, d)
			}
		}
		for _, f := range d.Functions {
			for _, s := range trend.Time {
				if s.Function == f.Function && (*s.Values[i] != f.Exclusive[0] || *s.Values[i+1] != f.Exclusive[1] || s.Counts[i] != f.Calls[0]) {
					t.Errorf("%+v, want %+v", s, f)
				}
			}
		}
	}
	rows := queryCSV(t, append([]string{"diff", "--show", "lost"}, dirs...)...)
	if len(rows) != 3 || rows[1][6] != "all functions" || rows[2][0] != "new" || rows[2][1] != "night-5" || rows[2][6] != "relax" {
		t.Errorf("%q", rows)
	}
	if rows := queryCSV(t, append([]string{"diff"}, dirs...)...); rows[2][0] != "worse" ||
		!slices.Contains([]string{"▄▄▇▇█", "▄▄█▇▇", "▄▄▇█▇"}, rows[2][4]) {
		t.Errorf("%q", rows)
	}

	// A baseline stands for its run, and beside it counts once.
	file := filepath.Join(t.TempDir(), "first.baseline")
	must(t, "baseline", dirs[0], file)
	with := trendOf(t, append([]string{file}, dirs[1:]...)...)
	both := trendOf(t, append([]string{file}, dirs...)...)
	if !with.Runs[0].Baseline {
		t.Errorf("%+v is not a baseline", with.Runs[0])
	}
	with.Runs[0].Comparable = trend.Runs[0].Comparable
	same(t, "with a baseline", with, trend)
	same(t, "with both", both, trend)
	if two := trendOf(t, append(dirs, dirs[0], file, "--run", "night")...); len(two.Runs) != 5 {
		t.Errorf("%+v", two.Runs)
	}
	fails(t, 1, append([]string{"diff", "--run", "night-1"}, dirs...), "there are 1")

	fails(t, 1, []string{"diff", dirs[0]}, "a trend needs at least 2 finished runs", "there are 1")
	fails(t, 2, append([]string{"diff", "--fail-if", "lost>1"}, dirs...), "need exactly two runs")
	fails(t, 2, append([]string{"diff", "--show", "metadata"}, dirs...), "need exactly two runs")
	fails(t, 1, append([]string{"diff", filepath.Join(dirs[0], "nothing")}, dirs...), "nothing")
}

// One store that holds several runs is enough.
func TestDiffOfServerFindsFirstChangedRun(t *testing.T) {
	server := pgtest.Shared(t).Database(t)
	dirs := nightly(t, "--store", server, "--name", "NAME")
	for _, args := range [][]string{{server}, dirs, {server, "--run", "night-"}} {
		if got := trendOf(t, args...); len(got.Runs) != 5 || !strings.HasPrefix(got.Verdict.Sentence, slower) {
			t.Errorf("%q: %+v", args, got.Verdict)
		}
	}
}
