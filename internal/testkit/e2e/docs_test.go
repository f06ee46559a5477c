package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var updateDocs = flag.Bool("update", false, "write the output of the commands into README.md and the guides")

// codeBlock matches a block of code in Markdown: its language and its lines.
var codeBlock = regexp.MustCompile("(?sm)^```(\\w+)\n(.*?)^```")

// volatile matches what differs between two executions of the same command: times, rates and the size of the database file.
var volatile = regexp.MustCompile(`in ([0-9]+m)?[0-9.]+ ?m?s\b( \([0-9.]+ (?:million|thousand) events/s\))?|` +
	`[0-9.]+ [kM]B of records( \(1 of [0-9.]+ bytes\))?`)

// TestDocsShowRealOutput runs the commands in the README and the guides as a reader would, those of each document in order and
// in one directory, and compares what they print with what the document shows. With -update it writes their output into the
// documents. Blocks of sh and python need TAU, Score-P or PyTorch; only their syntax is checked.
func TestDocsShowRealOutput(t *testing.T) {
	guides, err := filepath.Glob(tracetest.Root("docs", "guides", "*.md"))
	if err != nil || len(guides) < 3 {
		t.Fatalf("found the guides %q: %v", guides, err)
	}
	for _, path := range append(guides, tracetest.Root("README.md"), tracetest.Root("docs", "getting-started.md")) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			showsRealOutput(t, path)
		})
	}
}

func TestREADMEIsShort(t *testing.T) {
	text, err := os.ReadFile(tracetest.Root("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 120 {
		t.Errorf("README.md has %d lines, want at most 120", n)
	}
}

func showsRealOutput(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // which looks like the source tree
	if err := os.Symlink(tracetest.Root("testdata"), filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	commands := 0
	var got strings.Builder
	end := 0
	for _, m := range codeBlock.FindAllSubmatchIndex(text, -1) {
		language, block := string(text[m[2]:m[3]]), string(text[m[4]:m[5]])
		got.Write(text[end:m[4]])
		end = m[5]
		switch language {
		case "console":
			for line := range strings.Lines(block) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					commands++
					got.WriteString(line + printed(t, dir, strings.TrimSpace(command)))
				}
			}
			continue
		case "sh":
			parses(t, block, "bash", "-n")
		case "python":
			parses(t, block, tracetest.Python(t, "ast"), "-c", "import ast, sys; ast.parse(sys.stdin.read())")
		}
		got.WriteString(block)
	}
	got.Write(text[end:])
	if commands == 0 {
		t.Fatal("the document shows no commands")
	}
	switch {
	case *updateDocs:
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a document of the repository
			t.Fatal(err)
		}
	case volatile.ReplaceAllString(got.String(), "-") != volatile.ReplaceAllString(string(text), "-"):
		t.Errorf("%s is out of date (run make docs); with the output of its commands it is\n%s", path, got.String())
	}
}

// printed returns what a command of a document prints.
func printed(t *testing.T, dir, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 141) { // of a pipe to head
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	lines := strings.Split(tracetest.WithoutProgress(string(out)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	if text := strings.TrimRight(strings.Join(lines, "\n"), "\n"); text != "" {
		return text + "\n"
	}
	return ""
}

// parses checks the syntax of a block of code.
func parses(t *testing.T, block string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(block)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, block)
	}
}
