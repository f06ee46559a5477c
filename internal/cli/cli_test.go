package cli_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var update = flag.Bool("update", false, "rewrite the golden files; check the difference before you commit it")

// result is what a command did.
type result struct {
	stdout, stderr string
	code           int
}

// run executes a command line in the root of the repository.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t, "", args...)
}

// runWith executes a command line with this text as its standard input.
func runWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	t.Chdir(tracetest.Root())
	var stdout, stderr bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Version: "test", Commit: "none"}
	code := cli.Run(t.Context(), env, args)
	return result{stdout.String(), tracetest.WithoutProgress(stderr.String()), code}
}

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := tracetest.Root("internal", "cli", "testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestVersion(t *testing.T) {
	if command, flag := run(t, "version"), run(t, "--version"); command != flag || command.code != 0 ||
		!strings.HasPrefix(command.stdout, "chimbuko version ") {
		t.Errorf("got %+v and %+v", command, flag)
	}
}

func TestInvalidCommandLinesAreExplained(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		r := run(t, args...)
		if r.code != 2 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "--help") || r.stdout != "" {
			t.Errorf("%q: got exit code %d and %q, want 2 and %q", args, r.code, r.stderr, want)
		}
	}
	trace := "testdata/traces/ring-BP4"
	f(`unknown command "nonsense"`, "nonsense")
	f(`unknown command "nonsense" for "chimbuko trace"`, "trace", "nonsense")
	f(`PATH is missing`, "trace", "info")
	f(`unexpected argument`, "trace", "dump", trace, trace)
	f(`unknown flag: --nonsense`, "trace", "info", "--nonsense", trace)
	f(`unknown value "xml" (want text, jsonl, csv`, "trace", "dump", "--format", "xml", trace)
	f(`"7-3" is neither a number nor a range`, "trace", "dump", "--step", "7-3", trace)
	f(`unknown value "entry" (want enter, exit`, "trace", "dump", "--kind", "entry", trace)
	f(`poll interval 0s must be positive`, "trace", "dump", "--follow", "--poll", "0s", trace)
	f(`--limit -1 is negative`, "trace", "dump", "--limit", "-1", trace)
}

func TestHelpShowsEveryCommandWithAnExample(t *testing.T) {
	for _, args := range [][]string{
		{"--help"},
		{"trace"},
		{"trace", "info", "--help"},
		{"trace", "dump", "--help"},
		{"trace", "metadata", "--help"},
	} {
		r := run(t, args...)
		if r.code != 0 || !strings.Contains(r.stdout, "Usage:") {
			t.Errorf("%q: got exit code %d and %q", args, r.code, r.stdout)
		}
		if len(args) == 3 && !strings.Contains(r.stdout, "Examples:") {
			t.Errorf("%q shows no example", args)
		}
	}
}

func TestPathsWithoutTraceAreExplained(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := func(path string, want ...string) {
		t.Helper()
		for _, command := range []string{"info", "dump", "metadata"} {
			r := run(t, "trace", command, path)
			for _, w := range want {
				if r.code != 1 || !strings.Contains(r.stderr, w) {
					t.Errorf("trace %s %s: got exit code %d and %q, want 1 and %q", command, path, r.code, r.stderr, w)
				}
			}
		}
	}
	f(filepath.Join(dir, "nothing.bp"), "does not exist", "--follow")
	f(filepath.Join(dir, "nothing*.bp"), "nothing matches")
	f(write("live/x.bp.sst", "#ADIOS2-SST v0\n0x1:AAA"), "SST contact file")
	f(filepath.Join(dir, "live"), "SST contact file")
	f(filepath.Join(dir, "live", "x.bp"), "SST contact file", "--engine sst", "TAU_ADIOS2_ENGINE=BP4")
	f(write("y.bp", "\x89HDF\r\n\x1a\n0000000000"), "HDF5")
	f(write("notes.txt", "hello"), "not an ADIOS2 dataset")
	f(filepath.Dir(write("empty/readme", "")), "no .bp dataset, no OTF2 archive, no trace of a profiler and no log of NCCL Inspector in this directory")
	f(filepath.Dir(write("daos.bp/data_oids.txt", "")), "DAOS")
	f(filepath.Dir(write("young.bp/data.0", "")), "no md.idx")
}

// Programs of a workflow have the same ranks. A run that failed because two programs could not
// be distinguished reports that everywhere.
func TestReportOfWorkflowAndOfFailedRun(t *testing.T) {
	tracetest.SkipShort(t, "analyzes or compares large runs")
	dir := t.TempDir()
	traces, run, failed := filepath.Join(dir, "traces"), filepath.Join(dir, "run"), filepath.Join(dir, "failed")
	prepare(t, "simulate", "--scenario", "workflow", "--steps", "30", "--out", traces)
	prepare(t, "analyze", traces, "--out", run, "--program", "0=*simulation*", "--program", "1=*analysis*")
	file := filepath.Join(dir, "report.html")
	if text := must(t, "report", run, "-o", file); !strings.HasPrefix(text, "run: ") || strings.Contains(text, "No data yet") ||
		!strings.Contains(text, "update_block") {
		t.Errorf("got %s", text)
	}
	fails(t, 1, []string{"analyze", traces, "--program", "0=*", "--out", failed}, "both contain rank 0 of program 0")
	text := must(t, "report", failed, "-o", file)
	if !strings.HasPrefix(text, "failed: The analysis failed and stored nothing: ") || !strings.Contains(text, "--program") {
		t.Errorf("got %s", text)
	}
}
