package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestTraceReplayCopiesDirectory(t *testing.T) {
	to := filepath.Join(t.TempDir(), "live")
	r := run(t, "trace", "replay", "testdata/traces", to, "--speed", "max")
	if r.code != 0 || r.stderr != "" || !strings.HasPrefix(r.stdout, "12 datasets, 55 steps, ") {
		t.Fatalf("exit code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	for _, path := range []string{
		"ring-BP4/tau-metrics-ring-1.bp/data.0", "ring-onefile-BP5/tau-metrics-ring.bp/md.idx", "burst/tau-metrics-burst-0.bp/md.0",
	} {
		got, err1 := os.ReadFile(filepath.Join(to, path))
		want, err2 := os.ReadFile(tracetest.Root("testdata", "traces", path))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs: %v, %v", path, err1, err2)
		}
	}
	if r := run(t, "trace", "replay", "testdata/traces/burst", filepath.Join(to, "burst")); r.code != 1 ||
		!strings.Contains(r.stderr, "exists already (use --force") {
		t.Errorf("a second replay: exit code %d, %q; want an error that names --force", r.code, r.stderr)
	}
	if r := run(t, "trace", "replay", "testdata/traces/burst/*.bp", filepath.Join(to, "burst"), "--force", "--speed", "0"); r.code != 0 {
		t.Errorf("with --force: exit code %d, %q", r.code, r.stderr)
	}
}

func TestTraceReplayAddsRanksAndShiftsTime(t *testing.T) {
	to := t.TempDir()
	before, _ := info(t, "testdata/traces/ring-BP5")
	if r := run(t, "trace", "replay", "testdata/traces/ring-BP5", to, "--speed", "1e6", "--ranks", "6", "--shift-time"); r.code != 0 ||
		r.stderr != "" {
		t.Fatalf("exit code %d, %q", r.code, r.stderr)
	}
	after, _ := info(t, to)
	a, b := after.Totals, before.Totals
	if len(after.Files) != 6 || a.FuncEvents != 3*b.FuncEvents || a.CommEvents != 3*b.CommEvents || a.Steps != 3*b.Steps ||
		a.LastUS-a.FirstUS != b.LastUS-b.FirstUS {
		t.Errorf("got %+v, want three times %+v", a, b)
	}
	for _, f := range after.Files {
		if f.Engine != "BP4" || f.Active || f.Error != "" {
			t.Errorf("got %+v, want closed BP4", f)
		}
	}
	if r := run(t, "trace", "replay", "testdata/traces/ring-onefile-BP5", to, "--shift-time", "--speed", "max"); r.code != 0 ||
		!strings.Contains(r.stderr, "attributes were omitted") {
		t.Errorf("one file for all ranks as BP4: exit code %d, %q; want a warning", r.code, r.stderr)
	}
}

func TestTraceReplayReportsErrors(t *testing.T) {
	f := func(code int, want string, args ...string) {
		t.Helper()
		r := run(t, append([]string{"trace", "replay"}, args...)...)
		if r.code != code || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", args, r.code, r.stderr, code, want)
		}
	}
	to := t.TempDir()
	f(2, "DST is missing", "testdata/traces")
	f(2, "neither a non-negative number nor max", "testdata/traces", to, "--speed", "fast")
	f(2, "neither a non-negative number nor max", "testdata/traces", to, "--speed", "-1")
	f(2, "neither a non-negative number nor max", "testdata/traces", to, "--speed", "NaN")
	f(2, "--ranks 0 is not positive", "testdata/traces", to, "--ranks", "0")
	f(1, "both contain rank 0", "testdata/traces", to, "--ranks", "9")
	f(1, "nothing matches", "testdata/none-*", to)
	f(1, "over itself", "testdata/traces/burst", "testdata/traces/burst", "--force")
	f(1, "no dataset yet", "testdata/none.bp", to)
	if entries, err := os.ReadDir(to); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

func TestTraceReplayStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	to := t.TempDir()
	code := cli.Run(ctx, &cli.Env{Stdout: &stdout, Stderr: &stderr},
		[]string{"trace", "replay", tracetest.Root("testdata", "traces", "burst"), to})
	if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "stopped before anything was written") {
		t.Errorf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
}

// TestReplayedTraceCanBeFollowed follows a replay from before its first file is
// there, with the real clock.
func TestReplayedTraceCanBeFollowed(t *testing.T) {
	for _, name := range []string{"ring-BP4", "ring-BP5"} {
		to := t.TempDir()
		from := tracetest.Root("testdata", "traces", name)
		var followed, stderr bytes.Buffer
		done := make(chan int)
		go func() {
			env := &cli.Env{Stdout: &followed, Stderr: &stderr}
			done <- cli.Run(t.Context(), env, []string{"trace", "dump", "--follow", "--poll", "1ms", filepath.Join(to, "tau-metrics-ring-1.bp")})
		}()
		if r := run(t, "trace", "replay", from, to, "--speed", "20"); r.code != 0 {
			t.Errorf("%s: exit code %d, %q", name, r.code, r.stderr)
		}
		code := <-done
		want := run(t, "trace", "dump", filepath.Join(from, "tau-metrics-ring-1.bp"))
		if code != 0 || followed.String() != want.stdout || want.stdout == "" {
			t.Errorf("%s: followed %d bytes with exit code %d, %q; want %d", name, followed.Len(), code, stderr.String(), len(want.stdout))
		}
	}
}
