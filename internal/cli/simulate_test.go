package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
)

// pair is a scenario of two ranks on two hosts; a step takes about 10 ms.
const pair = `
name = "pair"
text = "two ranks, of which one hangs"
seed = 4
steps = 6
iterations = 10
[[program]]
name = "pair"
ranks = 2
hosts = ["left", "right"]
body = ["work", "swap"]
[program.functions]
work = { time = { normal = [1000, 20] } }
swap = { kind = "exchange", neighbors = [1] }
[[trouble]]
name = "it hangs"
kind = "io-stall"
ranks = [1]
functions = ["work"]
from = 0.03
extra = { fixed = 5000 }
`

// pairFile writes the scenario to a file and returns its path.
func pairFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pair.toml")
	if err := os.WriteFile(path, []byte(pair), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// simulated writes the scenario with these flags and returns the directory.
func simulated(t *testing.T, flags ...string) (string, result) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "traces")
	r := run(t, append([]string{"simulate", "--scenario", pairFile(t), "--out", out}, flags...)...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%q: exit code %d, %s", flags, r.code, r.stderr)
	}
	return out, r
}

func TestSimulateListsBuiltInScenarios(t *testing.T) {
	r := run(t, "simulate", "--list")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != 0 || len(lines) != len(scenario.Names()) {
		t.Fatalf("exit code %d, %d lines, want %d: %s", r.code, len(lines), len(scenario.Names()), r.stderr)
	}
	for i, name := range scenario.Names() {
		if !regexp.MustCompile("^" + regexp.QuoteMeta(name) + ` +\d+ ranks? +\S.*$`).MatchString(lines[i]) {
			t.Errorf("line %d is %q, want name, ranks and text of %s", i, lines[i], name)
		}
	}
}

func TestSimulateShowsScenarioText(t *testing.T) {
	want, err := scenario.Builtin("slow-rank")
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, "simulate", "--scenario", "slow-rank", "--show"); r.code != 0 || r.stdout != string(want) {
		t.Errorf("exit code %d, %q", r.code, r.stdout)
	}
	if r := run(t, "simulate", "--scenario", pairFile(t), "--show"); r.code != 0 || r.stdout != pair {
		t.Errorf("of a file: exit code %d, %q", r.code, r.stdout)
	}
}

func TestSimulateWritesTracesAndTruth(t *testing.T) {
	dir, r := simulated(t)
	want := regexp.MustCompile(`^2 datasets, 12 steps, [\d,]+ events, [\d,]+ bytes in \S+
1 troubles?, planted in 1 calls? \(and 0 with a minor effect\); 1 calls? waited because of (it|them): ` + regexp.QuoteMeta(filepath.Join(dir, "truth.jsonl")) + "\n$")
	if !want.MatchString(r.stdout) {
		t.Errorf("the output is %q", r.stdout)
	}
	got, _ := info(t, dir)
	if len(got.Files) != 2 || got.Totals.Steps != 12 || got.Totals.FuncEvents == 0 || got.Totals.CommEvents != 2*2*60 {
		t.Errorf("the traces are %+v", got.Totals)
	}
	for _, f := range got.Files {
		if f.Engine != "BP4" || f.Active || f.Error != "" {
			t.Errorf("got %+v, want closed BP4", f)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "scenario.toml")); err != nil || string(text) != pair {
		t.Errorf("the scenario is not beside its traces: %v", err)
	}
	truth := truthLines(t, dir)
	if len(truth) != 3 || truth[0]["kind"] != "io-stall" || truth[1]["role"] != "victim" || truth[2]["role"] != "cause" {
		t.Errorf("the truth is %v", truth)
	}
	again, _ := simulated(t)
	other, _ := simulated(t, "--seed", "5")
	for path, same := range map[string]bool{again: true, other: false} {
		for _, name := range []string{"tau-metrics-pair-0.bp/data.0", "tau-metrics-pair-1.bp/data.0"} {
			a, err1 := os.ReadFile(filepath.Join(dir, name))
			b, err2 := os.ReadFile(filepath.Join(path, name))
			if err1 != nil || err2 != nil || bytes.Equal(a, b) != same {
				t.Errorf("%s with the same seed: %v; the same: %v %v %v", name, same, bytes.Equal(a, b), err1, err2)
			}
		}
	}
}

// truthLines returns the objects in the truth of a directory.
func truthLines(t *testing.T, dir string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "truth.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, object)
	}
	return lines
}

func TestSimulateResizesScenario(t *testing.T) {
	f := func(files, steps int, from float64, flags ...string) {
		t.Helper()
		dir, _ := simulated(t, flags...)
		got, _ := info(t, dir)
		if len(got.Files) != files || int(got.Totals.Steps) != files*steps {
			t.Errorf("%q: %d files, %d steps; want %d files of %d", flags, len(got.Files), got.Totals.Steps, files, steps)
		}
		trouble := truthLines(t, dir)[0]
		begin := trouble["from_us"].(float64) - float64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
		if diff := begin/1e6 - from; diff < -1e-5 || diff > 1e-5 {
			t.Errorf("%q: the trouble begins at %v s, want %v", flags, begin/1e6, from)
		}
	}
	f(2, 6, 0.03)
	f(5, 6, 0.03, "--ranks", "5")
	f(2, 9, 0.03, "--steps", "9")
	f(3, 4, 0.03, "--ranks", "3", "--steps", "4")
	f(2, 12, 0.06, "--duration", "126ms")
	f(2, 3, 0.015, "--duration", "30ms")
}

func TestSimulateHostDirectories(t *testing.T) {
	dir, _ := simulated(t, "--host-dirs")
	for host, rank := range map[string]int{"left": 0, "right": 1} {
		got, _ := info(t, filepath.Join(dir, host))
		if len(got.Files) != 1 || !strings.HasSuffix(got.Files[0].Path, fmt.Sprintf("%s/tau-metrics-pair-%d.bp", host, rank)) {
			t.Errorf("%s has %+v", host, got.Files)
		}
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"left", "right", "scenario.toml", "truth.jsonl"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("the directory has %q, want %q; %v", names, want, err)
	}
}

// TestSimulateAnalyzeEval simulates a program, analyzes its traces and evaluates the result.
func TestSimulateAnalyzeEval(t *testing.T) {
	dir, _ := simulated(t, "--steps", "40")
	out, r := analyze(t, dir)
	if r.code != 0 {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	e := run(t, "eval", "--json", out, dir)
	var got struct{ Planted, Found int }
	if err := json.Unmarshal([]byte(e.stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, e.stderr)
	}
	if got.Planted != 1 || got.Found != 1 {
		t.Errorf("%d planted calls, of which %d are found", got.Planted, got.Found)
	}
}

func TestSimulateReportsErrors(t *testing.T) {
	dir := t.TempDir()
	f := func(code int, want string, args ...string) {
		t.Helper()
		r := run(t, append([]string{"simulate"}, args...)...)
		if r.code != code || !strings.Contains(r.stderr, want) || r.stdout != "" || (code == 2) != strings.Contains(r.stderr, "--help") {
			t.Errorf("%q: exit code %d, %q; want %d and %q", args, r.code, r.stderr, code, want)
		}
	}
	file := pairFile(t)
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte(strings.Replace(pair, "io-stall", "bad luck", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "new")
	f(2, "--scenario is missing", "--out", out)
	f(2, "--out is missing", "--scenario", "slow-rank")
	f(1, `unknown scenario "nonsense" (want `, "--scenario", "nonsense", "--out", out)
	f(1, "missing.toml", "--scenario", "missing.toml", "--out", out)
	f(1, `trouble it hangs: unknown kind "bad luck"`, "--scenario", bad, "--out", out)
	f(1, `trouble it hangs: unknown kind "bad luck"`, "--scenario", bad, "--show")
	f(2, "--steps and --duration cannot both be given", "--scenario", file, "--out", out, "--steps", "3", "--duration", "1s")
	f(2, "--ranks 0: ", "--scenario", file, "--out", out, "--ranks", "0")
	f(2, "--ranks -1: ", "--scenario", file, "--out", out, "--ranks", "-1")
	f(2, "--steps 0: ", "--scenario", file, "--out", out, "--steps", "0")
	f(2, "--duration 0s: ", "--scenario", file, "--out", out, "--duration", "0")
	f(2, "--duration -1s: ", "--scenario", file, "--out", out, "--duration", "-1s")
	f(2, "invalid argument", "--scenario", file, "--out", out, "--seed", "-1")
	f(2, "neither a non-negative number nor max", "--scenario", file, "--out", out, "--live", "--speed", "fast")
	f(2, "--speed is for --live", "--scenario", file, "--out", out, "--speed", "2")
	f(2, `unexpected argument "extra"`, "extra", "--scenario", file, "--out", out)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f(1, dir+" exists and is not empty (choose another --out, or use --force)", "--scenario", file, "--out", dir)
	f(1, "mine", "--scenario", file, "--out", filepath.Join(dir, "mine"))
	if r := run(t, "simulate", "--scenario", file, "--out", dir, "--force"); r.code != 0 {
		t.Errorf("with --force: exit code %d, %q", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
		t.Errorf("an existing file is gone: %v", err)
	}
}

// TestSimulateLiveUsesCurrentTime writes in real time.
func TestSimulateLiveUsesCurrentTime(t *testing.T) {
	before := time.Now()
	dir, r := simulated(t, "--live", "--speed", "2", "--duration", "400ms")
	took := time.Since(before)
	if took < 190*time.Millisecond {
		t.Errorf("0.4 s at twice the speed took %v", took)
	}
	got, _ := info(t, dir)
	first := time.UnixMicro(got.Totals.FirstUS)
	if first.Before(before.Add(-time.Millisecond)) || first.After(before.Add(took)) {
		t.Errorf("it began at %v, and the trace begins at %v", before, first)
	}
	if !strings.HasPrefix(r.stdout, "2 datasets, ") {
		t.Errorf("the output is %q", r.stdout)
	}
}

func TestSimulateStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := filepath.Join(t.TempDir(), "traces")
	file := pairFile(t)
	var stdout, stderr bytes.Buffer
	done := make(chan int)
	go func() {
		env := &cli.Env{Stdout: &stdout, Stderr: &stderr}
		done <- cli.Run(ctx, env, []string{"simulate", "--scenario", file, "--out", out, "--live", "--duration", "2m"})
	}()
	for written := false; !written; { // until the second step of rank 0 is there
		index, err := os.Stat(filepath.Join(out, "tau-metrics-pair-0.bp", "md.idx"))
		written = err == nil && index.Size() >= 3*64
		select {
		case <-ctx.Done():
			t.Fatal("nothing is written")
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	code := <-done
	if code != 1 || stdout.Len() > 0 || !regexp.MustCompile(`stopped after [\d,]+ steps; the datasets in \S+ stay marked as being written`).MatchString(stderr.String()) {
		t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
	got, _ := info(t, out)
	if len(got.Files) != 2 || !got.Files[0].Active || got.Totals.Steps < 2 {
		t.Errorf("got %+v, want two datasets that are marked as being written", got)
	}
}
