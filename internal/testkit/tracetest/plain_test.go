package tracetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// A test without the race detector runs once, in the package's directory.
func TestWithoutRaceRunsTestOnce(t *testing.T) {
	const env = "CHIMBUKO_TEST_RUNS"
	runs := os.Getenv(env)
	if runs == "" { // else the process without the detector
		runs = filepath.Join(t.TempDir(), "runs")
		t.Setenv(env, runs)
	}
	if tracetest.WithoutRace(t) {
		if b, err := os.ReadFile(runs); err != nil || string(b) != "x" {
			t.Errorf("runs %q, want one: %v", b, err)
		}
		return
	}
	if _, err := os.Stat("plain_test.go"); err != nil {
		t.Error(err)
	}
	f, err := os.OpenFile(runs, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
