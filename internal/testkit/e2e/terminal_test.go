package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// terminal is a program in a terminal of 80 columns and 24 lines.
type terminal struct {
	t      testing.TB
	socket string
}

// openTerminal runs chimbuko in a terminal, with further variables of the environment.
func openTerminal(t testing.TB, environ []string, args ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; scripts/test-setup installs it", err)
		}
		t.Skipf("%v; scripts/test-setup installs it", err)
	}
	v := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux")}
	command := []string{"new-session", "-d", "-x", "80", "-y", "24", "env"}
	command = append(command, environ...)
	v.tmux(append(append(command, program), args...)...)
	// The screen stays when the program has ended.
	v.tmux("set-option", "-g", "remain-on-exit", "on")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", v.socket, "kill-server").Run() }) // it may have ended
	return v
}

func (v *terminal) tmux(args ...string) string {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), "tmux", append([]string{"-f", os.DevNull, "-S", v.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// shows waits until the screen has all parts, and returns it.
func (v *terminal) shows(parts ...string) (screen string) {
	v.t.Helper()
	eventually(v.t, "the screen shows "+strings.Join(parts, ", "), func() error {
		screen = v.tmux("capture-pane", "-p")
		for _, p := range parts {
			if !strings.Contains(screen, p) {
				return fmt.Errorf("%q is not in\n%s", p, screen)
			}
		}
		return nil
	})
	return screen
}

// ends waits until the program has ended.
func (v *terminal) ends() {
	v.t.Helper()
	eventually(v.t, "the program ends", func() error {
		if dead := v.tmux("list-panes", "-F", "#{pane_dead}"); dead != "1\n" {
			return fmt.Errorf("the pane shows %q", dead)
		}
		return nil
	})
}

func (v *terminal) press(keys ...string) {
	v.t.Helper()
	v.tmux(append([]string{"send-keys"}, keys...)...)
}

func TestTerminalOverviewMatchesPage(t *testing.T) {
	t.Parallel()
	dir := analyzed(t)
	view := start(t, "view", dir)
	type overview struct {
		Verdict  struct{ Sentence string }
		Findings []struct {
			Function string
			Sentence string
		}
	}
	page := fetch[overview](browse(t, view.address()), "api/v1/runs/done/overview")
	view.interrupt()
	v := openTerminal(t, nil, "top", dir, "--live")
	words := strings.Fields(page.Verdict.Sentence)
	screen := v.shows("chimbuko done  FINISHED", words[0]+" "+words[1], ">   1 ", "Ranks: own slowness", "Pipeline", "j/k move", "q quit")
	lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("wider than the screen: %s", l)
		}
	}
	if joined := strings.Join(strings.Fields(screen), " "); !strings.Contains(joined, strings.Join(words[:min(len(words), 12)], " ")) {
		t.Errorf("the verdict is %q on the page, and here\n%s", page.Verdict.Sentence, screen)
	}
	v.press("Enter")
	v.shows("Finding 1: ", "Evidence ", "Why it was flagged", "Esc back")
	v.press("Escape")
	v.shows(">   1 ")
	v.press("j")
	v.shows(">   2 ")
	v.press("?")
	v.shows("Keys", "Terms")
	v.press("q")
	v.ends()
}

func TestTerminalOverviewWithoutColors(t *testing.T) {
	t.Parallel()
	dir := analyzed(t)
	v := openTerminal(t, []string{"NO_COLOR=1"}, "top", dir, "--live")
	v.shows(">   1 ", "q quit")
	if screen := v.tmux("capture-pane", "-p", "-e"); strings.Contains(screen, "\x1b[31m") || strings.Contains(screen, "\x1b[33m") {
		t.Errorf("there are colors: %q", screen)
	}
	v.press("q")
	v.ends()
	// A terminal that can do nothing, and none at all, get the same as plain text.
	dumb := openTerminal(t, []string{"TERM=dumb"}, "top", dir, "--live")
	dumb.shows("Pipeline")
	dumb.ends()
	plain := must(t, "top", dir, "--live")
	contains(t, plain, "chimbuko done  FINISHED", "Findings", "Ranks: own slowness", "Pipeline")
	if strings.Contains(plain, "\x1b") {
		t.Errorf("%q", plain)
	}
}

func TestTerminalAndReportFollowRunToEnd(t *testing.T) {
	t.Parallel()
	r := recorded(t, "gpu-BP5")
	s := newScene(t)
	serve := s.serve("--ranks", fmt.Sprint(len(r.traces)))
	s.services()
	ads := s.ads(r)
	v := openTerminal(t, nil, "top", s.run, "--live", "--every", "200ms")
	v.shows("LIVE", "No data yet", "waiting for traces")
	replay := s.paused(r, 5)
	v.shows("LIVE, running", "reading")
	file := s.path("live.html")
	contains(t, must(t, "report", s.run, "-o", file), "of HTML; open it in a browser")
	text, err := os.ReadFile(file) //nolint:gosec // the name was made here
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "results so far")
	v.press("p")
	v.shows("PAUSED")
	v.press("p")
	replay.resume()
	replay.succeed()
	succeed(ads...)
	serve.succeed()
	v.shows("FINISHED", ">   ") // the selected finding may have lost its first place
	v.press("q")
	v.ends()
	file = s.path("ended.html")
	must(t, "report", s.run, "-o", file)
	if text, err = os.ReadFile(file); err != nil { //nolint:gosec // the name was made here
		t.Fatal(err)
	}
	if strings.Contains(string(text), "so far") {
		t.Error("the run has ended")
	}
}
