package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// TestStragglerInLogs simulates a training job with a rank that is late from the third second on, and analyzes what NCCL
// Inspector logs of it.
func TestStragglerInLogs(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	for _, format := range []string{"inspector", "inspector-verbose"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			logs, out := filepath.Join(dir, "logs"), filepath.Join(dir, "run")
			prepare(t, "simulate", "--scenario", "hidden-wait", "--format", format, "--out", logs)
			prepare(t, "analyze", logs, "--out", out)
			var found []struct {
				Kind  string
				Ranks []int
			}
			text := must(t, "findings", out, "--format", "json")
			if err := json.Unmarshal([]byte(text), &found); err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || found[0].Kind != "slow-peer" || len(found[0].Ranks) != 1 || found[0].Ranks[0] != 2 {
				t.Errorf("findings:\n%s", text)
			}
			if got := must(t, "eval", out, logs); !strings.Contains(got, "name the right place for 1 of 1 trouble") {
				t.Errorf("eval prints\n%s", got)
			}
			got := must(t, "breakdown", out, "--collectives")
			if !strings.Contains(got, "rank 2 (722 of 1,000)") || !strings.Contains(got, "3.7 GB/s") ||
				strings.Contains(got, "Clocks") != (format == "inspector-verbose") {
				t.Errorf("breakdown prints\n%s", got)
			}
		})
	}
}

func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	prepare(t, "simulate", "--scenario", "hidden-wait", "--steps", "2", "--format", "inspector", "--out", filepath.Join(dir, "logs"))
	path := filepath.Join(dir, "logs", "node01-pid4006.log")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-30], 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "analyze", filepath.Join(dir, "logs"), "--out", filepath.Join(dir, "run"))
	if r.code != 1 || !strings.Contains(r.stderr, "node01-pid4006.log: line 40, byte ") || !strings.Contains(r.stderr, "the last line is cut") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	r = run(t, "trace", "info", path)
	if r.code != 1 || !strings.Contains(r.stdout, "NCCL Inspector") || !strings.Contains(r.stdout, "part-unreadable") {
		t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
}
