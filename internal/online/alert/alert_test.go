package alert_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/alert"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// finding returns a finding of a function that deserves an alert.
func finding(number int, function string) provenance.Finding {
	return provenance.Finding{
		Number: number, Kind: provenance.Outlier, Status: provenance.Provisional, Severity: provenance.Alarm, Func: function,
		Share: 0.1, Ranks: []trace.Rank{3}, Hosts: []string{"node1"}, Summary: function + " is slow",
	}
}

func runner(command string, log io.Writer) *alert.Runner {
	return &alert.Runner{
		Command: command, Environ: os.Environ(), TimeLimit: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

func TestCommandRunsOnceForEachNewFinding(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := t.TempDir()
	r := runner(`cat > "$(mktemp `+filepath.Join(dir, "XXXXXX")+`)"`, io.Discard)
	minor, note, withdrawn, caused := finding(3, "minor"), finding(4, "note"), finding(5, "withdrawn"), finding(6, "caused")
	minor.Share, note.Severity, withdrawn.Status, caused.Cause = 1e-6, provenance.Note, provenance.Withdrawn, 1
	r.Check(t.Context(), []provenance.Finding{finding(1, "solve"), minor, note, withdrawn, caused})
	r.Check(t.Context(), []provenance.Finding{finding(1, "read"), finding(2, "solve")}) // with other numbers
	final := finding(2, "solve")
	final.Status = provenance.Confirmed
	r.Check(t.Context(), []provenance.Finding{final})
	r.Wait()
	got := make(map[string]int)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := new(provenance.Finding)
		if err := json.Unmarshal(b, f); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if f.Kind != provenance.Outlier || len(f.Ranks) != 1 || f.Summary == "" {
			t.Errorf("the command received %s", b)
		}
		got[f.Func]++
	}
	if len(got) != 2 || got["solve"] != 1 || got["read"] != 1 {
		t.Errorf("commands for %v, want one each for solve and read", got)
	}
}

func TestFewCommandsRunAtATime(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := t.TempDir()
	// Each command counts those that run; the first ones wait until four do.
	r := runner(fmt.Sprintf(`cd %s; touch running.$$; ls running.* | wc -l >> counts
while [ "$(ls | grep -c 'running\|done')" -lt 4 ]; do sleep 0.01; done; mv running.$$ done.$$`, dir), io.Discard)
	var all []provenance.Finding
	for i := range 130 {
		all = append(all, finding(i, fmt.Sprint("f", i)))
	}
	for range 2 { // the queue has room for 100
		r.Check(t.Context(), all)
		r.Wait()
	}
	b, err := os.ReadFile(filepath.Join(dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	counts := strings.Fields(string(b))
	if len(counts) != 130 {
		t.Errorf("%d commands, want 130", len(counts))
	}
	for _, n := range counts {
		if n > "4" || len(n) > 1 {
			t.Fatalf("%s commands at a time", n)
		}
	}
}

func TestProblemsOfCommandAreLogged(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	f := func(command string, limit time.Duration, want string) {
		t.Helper()
		var log bytes.Buffer
		r := runner(command, &log)
		r.TimeLimit = limit
		r.Check(t.Context(), []provenance.Finding{finding(1, "solve")})
		r.Wait()
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s: the log %q does not contain %q", command, log.String(), want)
		}
	}
	f("echo no such room >&2; exit 3", time.Minute, "no such room")
	f("sleep 1000 & sleep 1000", 50*time.Millisecond, "longer than 50ms")
	f("exit 0", time.Minute, "") // and does not read its input
}

func TestEndOfContextEndsCommands(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	ctx, cancel := context.WithCancel(t.Context())
	r := runner("sleep 1000", io.Discard)
	r.Check(ctx, []provenance.Finding{finding(1, "solve"), finding(2, "read")})
	cancel()
	r.Wait()
}
