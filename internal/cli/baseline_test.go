package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestBaselineReplacesRun(t *testing.T) {
	a, b := oneRank(t, 0), oneRank(t, 1)
	file := filepath.Join(t.TempDir(), "good.baseline")
	if r := run(t, "baseline", a, file); r.code != 0 || r.stderr != "" || !strings.Contains(r.stdout, `baseline of run "rank0"`) {
		t.Fatalf("exit code %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for _, show := range tracetest.Sample([]string{"lost", "time", "metadata"}, 3) {
		for _, sides := range tracetest.Sample([][4]string{{a, b, file, b}, {b, a, b, file}, {a, a, file, file}}, 3) {
			same(t, show, queryCSV(t, "diff", sides[2], sides[3], "--show", show, "--all"),
				queryCSV(t, "diff", sides[0], sides[1], "--show", show, "--all"))
		}
	}
	same(t, "json", must(t, "diff", file, b, "--format", "json"), must(t, "diff", a, b, "--format", "json"))
	same(t, "the sentence", strings.SplitN(must(t, "diff", file, b), "\n", 2)[0], strings.SplitN(must(t, "diff", a, b), "\n", 2)[0])
	if r := run(t, "diff", file, b, "--fail-if", "new>0"); r.code != 3 {
		t.Errorf("exit code %d, want 3: %s", r.code, r.stderr)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	must(t, "baseline", a, file) // again
	after, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("written again it differs: %v", err)
	}
	must(t, "baseline", file, file+"2") // of a baseline
	if err := os.WriteFile(file, before[:len(before)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, []string{"diff", file, b}, file, "not a file of chimbuko baseline")
	fails(t, 1, []string{"baseline", filepath.Join(a, "nothing"), file}, "nothing", "no such file")
	fails(t, 1, []string{"baseline", a, filepath.Join(a, "nothing", "file")}, "nothing")
	fails(t, 1, []string{"baseline", a, file, "--run", "nobody"}, `run "nobody": not found`)
}

func TestDiffListsTimesAndMetadata(t *testing.T) {
	a, b := oneRank(t, 0), oneRank(t, 1)
	var got struct {
		Verdict   struct{ Level, Sentence string }
		Functions []struct {
			Change    string
			Function  string
			Exclusive [2]float64 `json:"exclusive_us"`
			Calls     [2]int64
		}
		Metadata []struct {
			Change, Section, Name string
			Values                [2]string
		}
	}
	if err := json.Unmarshal([]byte(must(t, "diff", a, b, "--format", "json")), &got); err != nil {
		t.Fatal(err)
	}
	profiles := [2]map[string]profileOf{profilesOf(t, a), profilesOf(t, b)}
	names := make(map[string]bool)
	for i := range profiles {
		for _, p := range profiles[i] {
			names[p.Name] = true
		}
	}
	last := -1.0
	for _, f := range got.Functions {
		for i := range profiles {
			p := profiles[i]["0"+f.Function].Profile.Exclusive
			if p.Accumulate != f.Exclusive[i] || int64(p.Count) != f.Calls[i] {
				t.Errorf("%s took %v us in %d calls, want %+v", f.Function, f.Exclusive[i], f.Calls[i], p)
			}
		}
		apart := max(f.Exclusive[0]-f.Exclusive[1], f.Exclusive[1]-f.Exclusive[0])
		if last >= 0 && apart > last {
			t.Errorf("%s with a change of %v is after %v", f.Function, apart, last)
		}
		last = apart
	}
	if len(got.Functions) != len(names) || got.Verdict.Sentence == "" || len(got.Metadata) == 0 {
		t.Errorf("%d functions, want %d; %+v", len(got.Functions), len(names), got.Verdict)
	}
	if lines := queryCSV(t, "diff", a, b, "--show", "time", "--limit", "3", "--all"); len(lines) != 4 ||
		lines[1][len(lines[1])-1] != got.Functions[0].Function {
		t.Errorf("%q", lines)
	}
	if text := must(t, "diff", a, b, "--show", "metadata", "--all", "--limit", "100"); !strings.Contains(text, "algorithm") ||
		!strings.Contains(text, "copod") {
		t.Errorf("%s", text)
	}
	fails(t, 2, []string{"diff", a, b, "--show", "beauty"}, "want lost, time, metadata")
	fails(t, 2, []string{"diff", a, b, "--limit", "-1"}, "negative")
	for condition, code := range map[string]int{"time>0": 3, "time>1e": 2, "time>99999999": 0} {
		first, second := a, b
		if got.Functions[0].Exclusive[1] < got.Functions[0].Exclusive[0] {
			first, second = b, a
		}
		if r := run(t, "diff", first, second, "--fail-if", condition); r.code != code {
			t.Errorf("%s: exit code %d, want %d: %s", condition, r.code, code, r.stderr)
		}
	}
}

func TestViewChecksReferencesBeforeServing(t *testing.T) {
	a, b := oneRank(t, 0), oneRank(t, 1)
	fails(t, 1, []string{"view", b, "--compare", filepath.Join(a, "nothing")}, "no such file", "no run of the store has that name",
		"chimbuko baseline")
	fails(t, 2, []string{"view", b, "--compare", b}, "the store of the run itself")
	fails(t, 2, []string{"view", b, "--compare", filepath.Join(b, "provenance.duckdb")}, "the store of the run itself")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte{0x1f, 0x8b, 1, 2, 3}, 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, []string{"view", b, "--compare", broken}, broken, "not a file of chimbuko baseline")
	fails(t, 1, []string{"view", b, "--compare", t.TempDir()}, "is not a run directory")
}
