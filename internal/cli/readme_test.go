package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/cli"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// consoleBlock matches a block of commands and their output in Markdown.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// volatile matches what differs between two executions of the same command: times,
// rates and the size of the database file.
var volatile = regexp.MustCompile(`in ([0-9]+m)?[0-9.]+ ?m?s\b( \([0-9.]+ (?:million|thousand) events/s\))?|` +
	`[0-9.]+ [kM]B of records \(1 of [0-9.]+ bytes\)`)

// TestREADMEShowsRealOutput runs the commands of the README, in order and in one
// directory, and compares what they print with what the README shows. With -update
// it writes their output into the README.
func TestREADMEShowsRealOutput(t *testing.T) {
	path := tracetest.Root("README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 120 {
		t.Errorf("README.md has %d lines, want at most 120", n)
	}
	t.Chdir(t.TempDir())
	commands := 0
	got := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		var b strings.Builder
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				b.WriteString(line + consoleOutput(t, strings.TrimSpace(command)))
			}
		}
		return "```console\n" + b.String() + "```"
	})
	if commands == 0 {
		t.Fatal("README.md shows no commands")
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a document of the repository
			t.Fatal(err)
		}
	case volatile.ReplaceAllString(got, "-") != volatile.ReplaceAllString(string(text), "-"):
		t.Errorf("README.md is out of date (run make docs); the commands print\n%s", strings.Join(consoleBlock.FindAllString(got, -1), "\n"))
	}
}

// consoleOutput runs a command of the README, which may end with "| head -N".
func consoleOutput(t *testing.T, command string) string {
	t.Helper()
	command, head, piped := strings.Cut(command, " | head -")
	args := strings.Fields(command)
	if args[0] != "chimbuko" {
		t.Fatalf("README.md runs %q, want chimbuko", args[0])
	}
	var out bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Version: "test", Commit: "none"}
	if code := cli.Run(t.Context(), env, args[1:]); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", command, code, out.String())
	}
	lines := strings.SplitAfter(progress.ReplaceAllString(out.String(), ""), "\n")
	if piped {
		n, err := strconv.Atoi(head)
		if err != nil {
			t.Fatalf("head -%s: %v", head, err)
		}
		lines = lines[:min(n, len(lines))]
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \n")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
