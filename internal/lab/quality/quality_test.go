package quality

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/lab/simulate"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// recorded returns the directories of the recorded traces that exist.
func recorded(t *testing.T) (dirs []string) {
	t.Helper()
	_, missing, err := Find(tracetest.Root(), func(archive, name string) (string, error) {
		dirs = append(dirs, tracetest.Unpack(t, archive, name))
		return dirs[len(dirs)-1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Recorded() {
		if dir := tracetest.Root("testdata", "traces", name); exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, name := range missing {
		t.Logf("%s is missing: its floors are not checked", name)
	}
	return dirs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// All data sets run once, those of very many ranks with fewer. With the race detector
// it would take minutes, so a separate program runs them.
func TestResultsStayAboveFloors(t *testing.T) {
	tracetest.SkipShort(t, "builds and starts a program")
	args := append([]string{"run", "./internal/lab/quality/table", "-check"}, recorded(t)...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = tracetest.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args[:3], " "), err, out)
	}
}

// findingsKey is the detector of the rows of findings in docRows.
const findingsKey = "findings"

// docRows returns the rows of docs/quality.md by data set and detector, or findingsKey.
func docRows(t *testing.T) map[claimKey]string {
	t.Helper()
	text, err := os.ReadFile(tracetest.Root("docs", "quality.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[claimKey]string)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		switch text := strings.Join(strings.Fields(line), " "); len(cells) {
		case len(columns) + 4:
			rows[claimKey{strings.TrimSpace(cells[1]), outlier.Algorithm(strings.TrimSpace(cells[2]))}] = text
		case 2*len(halfColumns) + len(wholeColumns) + 3:
			rows[claimKey{strings.TrimSpace(cells[1]), findingsKey}] = text
		}
	}
	return rows
}

func TestQualityPageIsComplete(t *testing.T) {
	rows := docRows(t)
	for _, name := range slices.Concat(Recorded(), scenario.Names()) {
		for _, detector := range slices.Concat(Detectors, []outlier.Algorithm{findingsKey}) {
			if rows[claimKey{name, detector}] == "" {
				t.Errorf("docs/quality.md has no row for %s, %s: run make quality", name, detector)
			}
		}
	}
}

func TestQualityPageIsCurrent(t *testing.T) {
	tracetest.SkipShort(t, "measures quality")
	rows := docRows(t)
	sets, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		if !strings.HasSuffix(set.Name, "-few") { // others take longer
			continue
		}
		check := func(detector outlier.Algorithm, cells []string) {
			want := "| " + strings.Join(cells, " | ") + " |"
			if got := rows[claimKey{set.Name, detector}]; got != want {
				t.Errorf("docs/quality.md, %s, %s: run make quality\n got %s\nwant %s", set.Name, detector, got, want)
			}
		}
		for _, detector := range Detectors {
			result, findings, err := set.Measure(t.Context(), detector, t.TempDir(), false)
			if err != nil {
				t.Fatal(err)
			}
			check(detector, row(result))
			if findings != nil {
				check(findingsKey, findingRow(findings))
			}
		}
	}
}

// A simulation that is analyzed in memory gives the counts of one that is written to
// files, read again and compared with the truth in its file.
func TestSimulationsInMemoryAndFilesAgree(t *testing.T) {
	for _, name := range []string{"gpu-clock-drop", "huge-value", "message-size", "slow-rank"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := seeded(name, 0)
			if err == nil {
				err = s.Stretch(10)
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), name)
			written, err := simulate.New(s).Write(t.Context(), simulate.Target{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, detector := range []outlier.Algorithm{outlier.HBOS, outlier.SSTD} {
				memory, err := Scenario(t.Context(), s, detector, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				files, err := Trace(t.Context(), dir, []string{dir}, detector, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				if memory.Calls != written.Calls {
					t.Errorf("%s: %d calls, but %d were written", detector, memory.Calls, written.Calls)
				}
				counts := func(r *Result) string {
					return fmt.Sprint(r.Calls, r.Planted, r.Found, r.Excused, r.Other, r.Withdrawn, r.FirstFlags, r.FirstCalls, r.seen())
				}
				if got, want := counts(memory), counts(files); got != want {
					t.Errorf("%s: in memory %s, from files %s", detector, got, want)
				}
			}
		})
	}
}

func TestNormalCallsAreUntouched(t *testing.T) {
	f := func(name string, want func(r *Result) bool) {
		t.Helper()
		s, err := seeded(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Scenario(t.Context(), s, outlier.SSTD, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if !want(r) {
			t.Errorf("%s: of %d calls %d are normal, and %d planted", name, r.Calls, r.Normal, r.Planted)
		}
	}
	f("normal-few", func(r *Result) bool { return r.Planted > 0 && r.Normal == r.Calls-int64(r.Planted) })
	// For 3 of 12 seconds one of eight ranks is slow; others wait for it.
	f("slow-rank", func(r *Result) bool {
		return r.Planted == 0 && r.Normal < r.Calls-r.Calls/100 && r.Normal > r.Calls-r.Calls/10
	})
}

func TestFirstAndLateStepsAreCountedSeparately(t *testing.T) {
	s, err := seeded("bimodal", 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Scenario(t.Context(), s, outlier.HBOS, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	late := r.Late
	if r.FirstCalls != r.Calls/100 || late == nil || late.Found > r.Found || late.Missed > r.Planted-r.Found || late.Other > r.Other ||
		late.Found+late.Missed < r.Planted/3 || late.Found+late.Missed > r.Planted*2/3 {
		t.Errorf("got %+v, late %+v", r, late)
	}
}
