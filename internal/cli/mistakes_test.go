package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMistakesAreExplained(t *testing.T) {
	traces, dir := "testdata/traces/ring-BP4", t.TempDir()
	run := filepath.Join(dir, "run")
	prepare(t, "analyze", traces, "--out", run)
	fails(t, 2, []string{"findngs", run}, `unknown command "findngs"`, "did you mean chimbuko findings?")
	fails(t, 2, []string{"trace", "dmp", traces}, "did you mean chimbuko trace dump?")
	fails(t, 2, []string{"findings", run, "--frmat", "json"}, "unknown flag: --frmat (did you mean --format?)")
	fails(t, 2, []string{"findings"}, "RUN is missing (usage: chimbuko findings RUN [NUMBER])")
	fails(t, 2, []string{"event", run}, "ID is missing (usage: chimbuko event RUN ID)")
	for _, command := range [][]string{{"findings", traces}, {"view", traces}, {"query", traces, "SELECT 1"}, {"report", traces}} {
		fails(t, 1, command, "testdata/traces/ring-BP4 has traces, but no analyzed run (to analyze it, run: chimbuko analyze testdata/traces/ring-BP4 --out")
	}
	fails(t, 1, []string{"findings", dir}, dir+" is not a run directory")
}

// Tables show f() [{/src/f.c} {31,0}] as f() f.c:31, and func accepts that.
func TestTablesShowFileAndLine(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	prepare(t, "analyze", "testdata/traces/gpu-BP5", "--out", run)
	names := regexp.MustCompile(`\S+\(.*\) \S+\.\w+:\d+$`)
	for _, command := range [][]string{{"top", run}, {"anomalies", run, "--limit", "1000"}, {"findings", run, "--all"}} {
		table := must(t, command...)
		if strings.Contains(table, "[{") {
			t.Errorf("%s shows locations as TAU writes them:\n%s", command[0], table)
		}
	}
	var shown string
	for line := range strings.Lines(must(t, "top", run, "--limit", "1000")) {
		cells := regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1)
		if name := cells[len(cells)-1]; names.MatchString(name) && !strings.Contains(name, "…") {
			shown = name
		}
	}
	if got := must(t, "func", run, shown); shown == "" || !strings.HasPrefix(got, strings.SplitN(shown, "(", 2)[0]) {
		t.Errorf("func %q shows\n%s", shown, got)
	}
}
