package cli_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

func TestBreakdownShowsTimesOfGPUs(t *testing.T) {
	dir, r := analyze(t, "--records", "both", "testdata/traces/gpu-BP5")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	text := must(t, "breakdown", dir)
	for _, want := range []string{
		`^RANK +TOTAL +COMPUTE +COMMUNICATION +MEMORY +IDLE +HOST WAIT +KERNEL WAIT +OTHER WAIT +OVERLAP\n`,
		`(?m)^0 +2\.\d+ s +[0-9.]+ % +0 % +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +–$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	breakdown := func(dir string) (times api.GPUTimes) {
		if err := json.Unmarshal([]byte(must(t, "breakdown", dir, "--format", "json")), &times); err != nil {
			t.Fatal(err)
		}
		return times
	}
	got := breakdown(dir)
	if len(got.Rows) != 1 || len(got.Rows[0].Streams) < 2 {
		t.Fatalf("got %+v", got)
	}
	row := got.Rows[0]
	if sum := row.Compute + row.ExposedCommunication + row.ExposedMemory + row.Idle; math.Abs(sum-row.Total) > 0.5 || row.Compute == 0 {
		t.Errorf("shares add up to %g of %g", sum, row.Total)
	}
	if sum := row.HostWait + row.KernelWait + row.OtherWait; math.Abs(sum-row.Idle) > 0.5 {
		t.Errorf("reasons add up to %g of %g", sum, row.Idle)
	}
	imported := filepath.Join(t.TempDir(), "imported")
	must(t, "import", dir, "--out", imported)
	same(t, "breakdown of the records", breakdown(imported).Rows[0].Total, row.Total)

	same(t, "steps", must(t, "breakdown", dir, "--steps", "--format", "csv"),
		must(t, "breakdown", dir, "--rank", "7", "--format", "csv")) // only the heading
	if text := must(t, "breakdown", dir, "--collectives"); !strings.Contains(text, "no collective operations") {
		t.Errorf("got %s", text)
	}
	if r := run(t, "breakdown", dir, "--collectives", "--steps"); r.code != 2 || !strings.Contains(r.stderr, "omit --steps") {
		t.Errorf("got %d, %s", r.code, r.stderr)
	}
}

func TestBreakdownNeedsGPUs(t *testing.T) {
	dir, _ := analyze(t, "testdata/traces/ring-BP5")
	if r := run(t, "breakdown", dir); r.code != 1 || !strings.Contains(r.stderr, "no times of GPUs and no collective operations") {
		t.Errorf("got %d, %s", r.code, r.stderr)
	}
}
