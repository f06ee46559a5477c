package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// runInfo is the part of run.json that tests check.
type runInfo struct {
	State      string   `json:"state"`
	Incomplete []string `json:"incomplete"`
	Program    *struct {
		Command []string `json:"command"`
		Code    int      `json:"exit_code"`
		Signal  string   `json:"signal"`
	} `json:"program"`
	Totals struct {
		Ranks int   `json:"ranks"`
		Steps int64 `json:"steps"`
		Calls int64 `json:"calls"`
		Begin int64 `json:"begin_us"`
	} `json:"totals"`
	Notes []tally.Note `json:"notes"`
}

// info reads run.json.
func (s *scene) info() *runInfo {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.run, "run.json"))
	info := new(runInfo)
	if err == nil {
		err = json.Unmarshal(b, info)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// ended fails unless the run has ended as it should, and is incomplete for a reason
// that has all parts; none means that nothing is missing.
func (s *scene) ended(reasons ...string) *runInfo {
	s.t.Helper()
	info := s.info()
	if info.State != "finished" {
		s.t.Errorf("the run is %s, want finished", info.State)
	}
	s.because(info, reasons...)
	return info
}

// because fails unless a run is incomplete for a reason that has all parts.
func (s *scene) because(info *runInfo, reasons ...string) {
	s.t.Helper()
	if len(reasons) == 0 && len(info.Incomplete) > 0 {
		s.t.Errorf("the run is incomplete: %q", info.Incomplete)
	}
	contains(s.t, strings.Join(info.Incomplete, "\n"), reasons...)
}

// replaying is a line of shell that writes the traces of a recording where TAU would.
func replaying(r recording, speed string) string {
	return fmt.Sprintf(`"%s" trace replay "%s" "$(dirname "$TAU_ADIOS2_FILENAME")" --speed %s`, program, r.dir(), speed)
}

// until continues a line of shell, which waits until there is a file.
func (s *scene) until(file string) string {
	return "; while [ ! -e " + s.path(file) + " ]; do sleep 0.1; done"
}

// runs starts a program in chimbuko run, as a line of shell.
func (s *scene) runs(script string, args ...string) *process {
	s.t.Helper()
	return start(s.t, slices.Concat([]string{"run", "--out", s.run, "--save-model", s.path("model")}, args,
		[]string{"--", "sh", "-c", script})...)
}

// paused waits until a program of holding has written some steps of each trace, and pauses it, so that it keeps signals.
func (p *process) paused(s *scene, traces, steps int) (pid int) {
	p.t.Helper()
	s.written(runfiles.Traces(s.run), traces, steps)
	eventually(p.t, "the program is paused", func() error {
		for child, command := range descendants(p.t, p.cmd.Process.Pid) {
			if fields := strings.Split(command, "\x00"); len(fields) > 1 && fields[1] == "-held" {
				pid = child
				return syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		return errors.New("there is none")
	})
	return pid
}

// received waits until a signal has reached a paused process.
func received(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	eventually(t, fmt.Sprintf("the program has received %v", s), func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(status), "\nShdPnd:")
		text, _, _ := strings.Cut(rest, "\n")
		if pending, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64); err != nil || pending>>(s-1)&1 == 0 {
			return fmt.Errorf("pending: %q", text)
		}
		return nil
	})
}

// resume continues a paused process.
func resume(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// member waits for the process of a run that has a role.
func (p *process) member(role string) (pid int) {
	p.t.Helper()
	eventually(p.t, "there is a process of the role "+role, func() error {
		for child, command := range descendants(p.t, p.cmd.Process.Pid) {
			if fields := strings.Split(command, "\x00"); len(fields) > 1 && filepath.Base(fields[0]) == "chimbuko" && fields[1] == role {
				pid = child
				return nil
			}
		}
		return errors.New("there is none")
	})
	return pid
}

func TestRunForwardsIOAndAgreesWithAnalyze(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	input := s.write("input", "what the program reads\n")
	p := start(t, "run", "--out", s.run, "--save-model", s.path("model"), "--on-finding", `cat >>"$CHIMBUKO_RUN/alerts"`, "--", "sh", "-c",
		`cat <"`+input+`"; echo "$TAU_ADIOS2_ENGINE $TAU_ADIOS2_PERIODIC $TAU_ADIOS2_PERIOD"; echo oops >&2; `+replaying(r, "4")+` >&2; exit 3`)
	if code := p.wait(); code != 3 {
		t.Errorf("exit code %d, want that of the program", code)
	}
	if got := p.stdout.String(); got != "what the program reads\nBP5 1 1000000\n" {
		t.Errorf("standard output is %q, want only the output of the program", got)
	}
	contains(t, p.stderr.String(), "oops", "anomalies stored with their context", "finding", "The run is in "+s.run)
	info := s.ended()
	if info.Program == nil || info.Program.Code != 3 {
		t.Errorf("run.json has the program %+v", info.Program)
	}
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	s.alerted()
	if left, err := filepath.Glob(filepath.Join(s.run, "tau-traces", "*")); err != nil || len(left) > 0 {
		t.Errorf("traces are left: %v, %v", left, err)
	}
}

// alerted fails unless the command of --on-finding, which appends its input to a file, received every alarm
// among the findings that are listed.
func (s *scene) alerted() {
	s.t.Helper()
	type finding struct { // without its kind, which may change while the program runs
		Function string `json:"function"`
		Severity string `json:"severity"`
	}
	received := make(map[finding]bool)
	b, err := os.ReadFile(filepath.Join(s.run, "alerts"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			s.t.Errorf("the command received %q: %v", line, err)
		}
		received[f] = true
	}
	p := start(s.t, "findings", s.run, "--format", "json")
	p.succeed()
	var list []finding
	if err := json.Unmarshal([]byte(p.stdout.String()), &list); err != nil || len(list) == 0 {
		s.t.Fatalf("findings are %s: %v", p.stdout.String(), err)
	}
	for _, f := range list {
		if f.Severity == "alarm" && !received[f] {
			s.t.Errorf("no command for the finding %+v; there were some for %+v", f, received)
		}
	}
}

func TestRunForwardsStandardInput(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := startWith(t, strings.NewReader("one\ntwo\n"), "run", "--quiet", "--out", s.run, "--", "sh", "-c", "read line; echo got $line")
	p.succeed()
	if got := p.stdout.String(); got != "got one\n" {
		t.Errorf("the program printed %q", got)
	}
}

func TestRunReportsProgramWithoutTraces(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.runs("exit 0")
	p.succeed()
	contains(t, p.stderr.String(), "the program wrote no trace", "tau_exec -adios2_trace")
	s.ended()
}

func TestRunOfMissingProgramExitsLikeShell(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	_, stderr, code := run(t, "run", "--out", s.run, "--", "no-such-program-at-all")
	if code != 127 {
		t.Errorf("exit code %d, want 127", code)
	}
	contains(t, stderr, "no-such-program-at-all")
	_, _, code = run(t, "run", "--out", s.run, "--", s.write("text", "#!/bin/sh\n"))
	if code != 126 {
		t.Errorf("exit code %d of a file that is not a program, want 126", code)
	}
	if _, err := os.Stat(s.run); err == nil {
		t.Error("a run directory was made")
	}
	_, stderr, code = run(t, "run", "--out", s.run)
	if code != 2 {
		t.Errorf("exit code %d without a command, want 2", code)
	}
	contains(t, stderr, "no command is given")
}

func TestRunWaitsForLateTraces(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	s.runs("sleep 7; " + replaying(r, "max")).succeed() // longer than anything lingers
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestRunWaitsForBackgroundProcesses(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs("(" + replaying(r, "0.8") + " &) ; sleep 1")
	p.succeed()
	contains(t, p.stderr.String(), "processes it left behind")
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestRunRestartsKilledServicesAndAnalyzers(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs(replaying(r, "1") + s.until("go"))
	s.steps(6)
	kill(t, p.member("serve"))
	kill(t, p.member("ad"))
	p.awaitLog("the services (chimbuko serve, process ")
	s.steps(24)
	kill(t, p.member("ad"))
	s.write("go", "")
	p.succeed()
	contains(t, p.stderr.String(), "restarting it, nothing is lost")
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestCtrlCEndsProgramAndPrintsResults(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs("exec " + s.holding(r, 8))
	held := p.paused(s, 3, 8)
	s.steps(24)
	p.signal(syscall.SIGINT)
	received(t, held, syscall.SIGINT)
	resume(t, held)
	if code := p.wait(); code != 1 { // that of an interrupted replay
		t.Errorf("exit code %d, want that of the program", code)
	}
	contains(t, p.stderr.String(), "anomalies stored with their context", "incomplete: 3 of 3 traces could be read only in part")
	s.ended("the writer ended without closing the trace")
	s.stored()
	if left := descendants(t, p.cmd.Process.Pid); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestCtrlCReachesProgramOnce(t *testing.T) {
	t.Parallel()
	f := func(name, script, prints string, code int, incomplete ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			command := fmt.Sprintf(`exec %s run --quiet --out %s -- sh -c '%s'`, program, s.run, script)
			terminal := exec.CommandContext(t.Context(), "script", "-qefc", command, "/dev/null") // with a terminal
			keys, err := terminal.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var shown output
			terminal.Stdout = shown.create(t)
			if err := terminal.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the program runs", func() error {
				if !strings.Contains(shown.String(), "waiting") {
					return errors.New("not yet")
				}
				return nil
			})
			if _, err := keys.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
			_ = terminal.Wait() // the exit code is checked below
			if got := terminal.ProcessState.ExitCode(); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			text := strings.ReplaceAll(shown.String(), "\r\n", "\n")
			if !strings.Contains(text, "waiting\n^C"+prints) || strings.Contains(text, "without the review") {
				t.Errorf("the terminal shows %q, want %q after Ctrl-C, and a review", text, prints)
			}
			s.ended(incomplete...)
		})
	}
	f("handled", `trap "echo interrupted; told=1" INT; echo waiting; while [ -z "$told" ]; do sleep 0.1; done; echo over; exit 9`,
		"interrupted\nover\n", 9)
	f("not handled", "echo waiting; exec sleep 60", "", 128+int(syscall.SIGINT), "the program was ended by a signal (interrupt)")
}

func TestSIGTERMToAllProcessesEndsRunCleanly(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs("exec "+s.holding(r, 8), "--grace", patience.String())
	held := p.paused(s, 3, 8)
	s.steps(24)
	all := []int{p.cmd.Process.Pid}
	for pid := range descendants(t, p.cmd.Process.Pid) {
		if pid != held {
			all = append(all, pid)
		}
	}
	if len(all) < 3 {
		t.Fatalf("only the processes %v are there", all)
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGTERM) // one may end before its turn
	}
	received(t, held, syscall.SIGTERM) // so chimbuko run has, and knows why the program ends
	_ = syscall.Kill(held, syscall.SIGTERM)
	resume(t, held)
	p.wait()
	s.ended("the writer ended without closing the trace")
	s.stored()
}

func TestKilledProgramLeavesReadableIncompleteRun(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs("exec " + s.holding(r, 8))
	held := p.paused(s, 3, 8)
	s.steps(24)
	kill(t, held)
	if code := p.wait(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d, want 137", code)
	}
	s.ended("the program was ended by a signal (killed)", "3 of 3 traces")
	s.stored()
}

func TestProgramIgnoringSIGTERMDoesNotDelayResults(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs("trap '' TERM; "+replaying(r, "max")+s.until("go")+"; exit 5", "--grace", "500ms")
	s.steps(3)
	p.signal(syscall.SIGTERM)
	p.awaitLog("The run is in")
	s.ended("the program was signaled to stop and has not ended")
	s.write("go", "")
	if code := p.wait(); code != 5 {
		t.Errorf("exit code %d, want that of the program", code)
	}
}

func TestRunWithKilledProcessTreeIsFinishedLater(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	// The program continues, as it does on other nodes.
	p := s.runs("setsid " + replaying(r, "1") + s.until("go") + "; touch " + s.path("over"))
	s.steps(12)
	p.signal(syscall.SIGKILL)
	p.wait()
	eventually(t, "services and analyzers end with the process that started them", func() error {
		if s.info().State != "incomplete" {
			return errors.New(s.info().State)
		}
		return nil
	})
	s.because(s.info(), "the services ended before the run")
	contains(t, must(t, "runs", s.run), "incomplete")
	must(t, "findings", s.run)
	s.write("go", "")
	eventually(t, "the program ends by itself", func() error { _, err := os.Stat(s.path("over")); return err })
	f := start(t, "finish", s.run)
	f.succeed()
	contains(t, f.stderr.String(), "anomalies stored with their context")
	s.ended()
	agree(t, outcomeOf(t, "", s.run), withoutModel(offlineOf(t, r)))
	contains(t, must(t, "runs", s.run), "finished")
	again := start(t, "finish", s.run)
	again.succeed()
	contains(t, again.stderr.String(), "has already finished")

	database := filepath.Join(s.run, "provenance.duckdb")
	b, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		b[len(b)/2+i] ^= 0xa5
	}
	if err := os.WriteFile(database, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "finish", s.run)
	if code != 1 || strings.Contains(stderr, "already finished") {
		t.Errorf("finish of a damaged run: exit code %d: %s", code, stderr)
	}
	contains(t, stderr, "the file is damaged", database)
}

func TestSecondCtrlCPostponesReview(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := s.runs(replaying(r, "max") + s.until("go"))
	s.steps(3)
	if err := syscall.Kill(p.member("ad"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.write("go", "")
	p.awaitLog("Ctrl-C to postpone")
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d, want that of the program", code)
	}
	contains(t, p.stderr.String(), "ending without the review", "the run is incomplete; chimbuko finish")
	if state := s.info().State; state != "incomplete" {
		t.Errorf("the run is %s", state)
	}
	must(t, "finish", s.run)
	s.ended()
	agree(t, outcomeOf(t, "", s.run), withoutModel(offlineOf(t, r)))
}

func TestRecordsOfLostNodeAreReviewed(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3")
	s.services()
	ads := s.ads(r)
	replay := s.paused(r, 10)
	s.steps(30)
	for _, p := range append(ads, serve) {
		p.signal(syscall.SIGKILL)
	}
	replay.resume()
	replay.wait()
	if err := os.RemoveAll(s.live(r.traces[1])); err != nil { // with the disk of its node
		t.Fatal(err)
	}
	f := start(t, "finish", s.run)
	f.succeed()
	contains(t, f.stderr.String(), "the traces of n1 (ranks 1, host ", "are missing")
	info := s.ended("the analyzers of rank 1 (n1) were lost")
	if info.Totals.Ranks != 3 {
		t.Errorf("the run has %d ranks, want 3", info.Totals.Ranks)
	}
	o := outcomeOf(t, "", s.run)
	if o.statuses["provisional"] > 0 {
		t.Errorf("anomalies are %v", o.statuses)
	}
	count := must(t, "query", s.run, "SELECT count(*) AS n FROM executions WHERE anomalous AND rid = 1 AND status = 'confirmed'", "--format",
		"csv")
	if strings.TrimSpace(count) == "n\n0" {
		t.Error("nothing of the lost rank is confirmed")
	}
}

func TestAttachAnalyzesSeparatelyStartedProgram(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	p := start(t, "run", "--attach", "--out", s.run, "--save-model", s.path("model"))
	s.services()
	variables := filepath.Join(s.run, "tau.env")
	eventually(t, "the variables are there", func() error { _, err := os.Stat(variables); return err })
	shell(t, ". "+variables+"; "+replaying(r, "4"))
	p.succeed()
	contains(t, p.stdout.String(), "export TAU_ADIOS2_FILENAME='"+s.run)
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestFinishIgnoresRunningRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.services()
	_, stderr, code := run(t, "finish", s.run)
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, stderr, "is running", "chimbuko stop")
	_, stderr, code = run(t, "finish", s.path("nothing"))
	if code != 1 {
		t.Errorf("exit code %d of no run", code)
	}
	contains(t, stderr, "holds no run")
}

// withoutModel is an outcome as if its model had not been saved.
func withoutModel(o *outcome) *outcome {
	other := *o
	other.model = nil
	return &other
}

func kill(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// shell runs a line of shell, which must succeed.
func shell(t testing.TB, script string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// descendants are the processes that descend from a process, with their command lines.
func descendants(t testing.TB, ancestor int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := make(map[int]int)
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest) // state, parent
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	found := make(map[int]string)
	for pid := range parents {
		for at := parents[pid]; at != 0; at = parents[at] {
			if at == ancestor {
				if command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
					found[pid] = string(command)
				}
				break
			}
		}
	}
	return found
}

func TestRunInPostgreSQLIsFinishedLater(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	server := pgtest.Shared(t).Database(t)
	serve := s.serve("--ranks", "3", "--store", server, "--save-model", s.path("model"))
	s.services()
	ads := s.ads(r)
	replay := s.paused(r, 4)
	s.steps(12)
	serve.signal(syscall.SIGTERM)
	if code := serve.wait(); code != 1 {
		t.Errorf("services that are ended have exit code %d", code)
	}
	for _, ad := range ads {
		ad.kill()
	}
	replay.resume()
	replay.succeed()
	if state := s.info().State; state != "incomplete" {
		t.Errorf("the run is %s", state)
	}
	contains(t, must(t, "runs", server), "incomplete")
	must(t, "finish", s.run, "--store", server)
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestFailingAnalysisDoesNotDisturbProgram(t *testing.T) {
	t.Parallel()
	r := recorded(t, "gpu-BP5")
	s := newScene(t)
	// Two executables that are forced into one program are both its rank 0.
	p := s.runs(replaying(r, "max")+`; cd "$(dirname "$TAU_ADIOS2_FILENAME")"; cp -r *-0.bp tau-other-0.bp`+s.until("go")+
		`; exit 4`, "--program", "0=*")
	p.awaitLog("is not restarted; the program continues")
	s.write("go", "")
	if code := p.wait(); code != 4 {
		t.Errorf("exit code %d, want that of the program", code)
	}
	contains(t, p.stderr.String(), "the analyzer died 6 times", "both contain rank 0 of program 0", "the run is incomplete; chimbuko finish "+s.run)
}
