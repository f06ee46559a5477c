package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestStopsInArchive analyzes an OTF2 archive of HPCG, one of whose ranks was stopped twelve times.
func TestStopsInArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: it takes several seconds")
	}
	dir := tracetest.Unpack(t, tracetest.Shared(t, "traces", "otf2", "hpcg-stall-OTF2.tar.zst"), "hpcg-stall-OTF2")
	out := filepath.Join(t.TempDir(), "run")
	must(t, "analyze", dir, "--out", out)
	var score struct {
		External struct {
			Stops int
			Found int `json:"stops_found"`
			Named int `json:"stops_named"`
		}
	}
	if err := json.Unmarshal([]byte(must(t, "eval", out, filepath.Join(dir, "truth.jsonl"), "--json")), &score); err != nil {
		t.Fatal(err)
	}
	if e := score.External; e.Stops != 12 || e.Found < 11 || e.Named < 11 {
		t.Errorf("%d of %d stops found, %d named as culprit", e.Found, e.Stops, e.Named)
	}
}

func TestArchive(t *testing.T) {
	archive := tracetest.Root("internal", "source", "otf2", "testdata", "calls")
	if got := must(t, "trace", "info", archive); !strings.Contains(got, "2 ranks    OTF2") || !strings.Contains(got, "node7") {
		t.Errorf("trace info prints\n%s", got)
	}
	if r := run(t, "trace", "dump", filepath.Join(archive, "traces.otf2"), "--rank", "1", "--kind", "send"); r.code != 0 ||
		strings.Count(r.stdout, "\n") != 2 || !strings.HasPrefix(r.stderr, "info: 10 records of the trace") {
		t.Errorf("trace dump: %+v", r)
	}
	out := filepath.Join(t.TempDir(), "run")
	if got := must(t, "analyze", archive, "--out", out); !strings.Contains(got, "28 events, 7 calls of 3 functions on 2 ranks") {
		t.Errorf("analyze prints\n%s", got)
	}
	r := run(t, "analyze", archive, tracetest.Recorded(t, "ring-BP4")[0], "--out", out, "--force")
	if r.code == 0 || !strings.Contains(r.stderr, "is an OTF2 archive and") {
		t.Errorf("analyze of an archive and a dataset: %+v", r)
	}
}

// TestTracesOfCommunicationShowDelaysBetweenCalls analyzes a program of which EZTrace recorded nothing but MPI. Its rank 1 slept
// three times.
func TestTracesOfCommunicationShowDelaysBetweenCalls(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run(t, "analyze", tracetest.Root("testdata", "otf2", "eztrace"), "--out", dir) // EZTrace lacks two entries
	var found []struct {
		Kind, Function string
		Ranks          []int
		Calls          int
	}
	r := run(t, "findings", dir, "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	for _, f := range found {
		if f.Kind == "outlier" {
			if f.Function != "code between MPI_Allreduce and MPI_Sendrecv" || !slices.Equal(f.Ranks, []int{1}) || f.Calls != 3 {
				t.Errorf("the outlier is %+v, want 3 calls of the code before MPI_Sendrecv on rank 1", f)
			}
			return
		}
	}
	t.Errorf("no finding is an outlier: %s", r.stdout)
}
