package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// copyRing copies the two ranks of a recorded ring under the name of a program.
func copyRing(t *testing.T, from, dir, name string) {
	t.Helper()
	for rank := range 2 {
		to := filepath.Join(dir, fmt.Sprintf("%s-%d.bp", name, rank))
		if err := os.CopyFS(to, os.DirFS(tracetest.Root("testdata", "traces", from, fmt.Sprintf("tau-metrics-ring-%d.bp", rank)))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProgramsAreRecognizedByNamesOfTraces(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	f := func(name, want string, args ...string) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "run")
		text := must(t, append([]string{"analyze", "--out", to}, args...)...)
		rows := queryJSON(t, "query", to, "SELECT pid, rid FROM metadata WHERE descr = 'Hostname' GROUP BY pid, rid ORDER BY pid, rid")
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r["pid"], ":", r["rid"]))
		}
		if list, programs, _ := strings.Cut(want, "; "); strings.Join(got, " ") != list ||
			programs != "" && !strings.Contains(text, programs) || programs == "" && strings.Contains(text, "programs by") {
			t.Errorf("%s: got ranks %v and %s", name, got, text)
		}
	}
	dir := t.TempDir()
	copyRing(t, "ring-BP4", dir, "tau-metrics-my-app2")
	copyRing(t, "ring-BP5", dir, "tau-metrics-my-app")
	f("two programs", "0:0 0:1 1:0 1:1; 2 programs by the names of their traces: 0 my-app, 1 my-app2", dir)
	f("two programs in another order", "0:0 0:1 1:0 1:1; 0 my-app, 1 my-app2", filepath.Join(dir, "*app2*"), filepath.Join(dir, "*app-*"))
	f("one of two programs", "0:0 0:1", filepath.Join(dir, "*app2*"))
	f("numbers of the user", "3:0 3:1 5:0 5:1", dir, "--program", "3=*app-*", "--program", "5=*app2*")
	f("an executable for each rank", "0:0 0:1", filepath.Join(dir, "*app-0.bp"), filepath.Join(dir, "*app2-1.bp"))
	copyRing(t, "ring-default", dir, "tau-viz")
	f("other prefixes", "0:0 0:1 1:0 1:1 2:0 2:1; 0 my-app, 1 my-app2, 2 viz", dir)

	one := t.TempDir()
	for name, from := range map[string]string{"tau-metrics-b.bp": "ring-onefile-BP5", "tau-metrics-a.bp": "ring-onefile-BP4"} {
		if err := os.CopyFS(filepath.Join(one, name), os.DirFS(tracetest.Root("testdata", "traces", from, "tau-metrics-ring.bp"))); err != nil {
			t.Fatal(err)
		}
	}
	f("one trace for all ranks of a program", "0:0 0:1 1:0 1:1; 0 a, 1 b", one)
	f("a single trace", "0:0 0:1", filepath.Join(one, "tau-metrics-b.bp"))
	f("two programs in files of one and of all ranks", "0:0 0:1 1:0; 0 a, 1 my-app", filepath.Join(one, "tau-metrics-a.bp"),
		filepath.Join(dir, "*app-0.bp"))
	f("a program in two directories", "0:0 0:1", "testdata/traces/ring-BP4/*-0.bp", "testdata/traces/ring-BP5/*-1.bp")
}

// Each trace of one directory contains a rank that a trace of the other contains, too, under the same name.
func TestConflictingRanksPrintCommandThatWorks(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	to := filepath.Join(t.TempDir(), "my run")
	r := run(t, "analyze", "testdata/traces/ring-BP4", "testdata/traces/ring-BP5", "--out", to)
	_, command, ok := strings.Cut(r.stderr, "to separate them, run: chimbuko ")
	if r.code != 1 || !strings.Contains(r.stderr, "both contain rank 0 of program 0") || !ok {
		t.Fatalf("exit code %d, got %s", r.code, r.stderr)
	}
	words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command).Output() // as a shell splits them
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, strings.Split(strings.TrimSpace(string(words)), "\n")...)
	same(t, "ranks", queryJSON(t, "query", to, "SELECT pid, count(DISTINCT rid) AS n FROM metadata GROUP BY pid ORDER BY pid"),
		[]object{{"pid": 0.0, "n": 2.0}, {"pid": 1.0, "n": 2.0}})
}

// The truth numbers programs in the order of the scenario: simulation, analysis.
func TestEvalMatchesProgramsByName(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	if tracetest.WithoutRace(t) {
		return
	}
	dir := t.TempDir()
	traces := filepath.Join(dir, "traces")
	prepare(t, "simulate", "--scenario", "workflow", "--steps", "60", "--out", traces)
	score := func(name string, args ...string) string {
		run := filepath.Join(dir, name)
		prepare(t, append([]string{"analyze", traces, "--out", run}, args...)...)
		return must(t, "eval", run, traces)
	}
	want := score("assigned", "--program", "0=*simulation*", "--program", "1=*analysis*")
	if !strings.Contains(want, "100.0 %") && !strings.Contains(want, "100 %") {
		t.Errorf("got %s", want)
	}
	same(t, "by name", score("recognized"), want)
	same(t, "by name, in files", score("files", "--records", "json"), want)
}
