package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// streamer is a program whose trace ADIOS2 itself streams.
type streamer struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	errors strings.Builder
}

// stream starts to stream a recorded trace of one rank.
func (s *scene) stream(trace string, options ...string) *streamer {
	s.t.Helper()
	if err := os.MkdirAll(s.path("live"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	p := &streamer{t: s.t, cmd: tracetest.Stream(s.t, append([]string{"relay", trace, s.live(trace)}, options...)...)}
	p.cmd.Stderr = &p.errors
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // if it still runs
		_ = p.cmd.Wait()         // finish has checked how it ended, if that matters
	})
	return p
}

// step lets a streamer with ask=1 write that many steps.
func (p *streamer) step(n int) {
	p.t.Helper()
	for range n {
		if _, err := io.WriteString(p.stdin, "go\n"); err != nil {
			p.t.Fatal(err)
		}
		if !p.lines.Scan() {
			p.t.Fatalf("the program ended: %s", &p.errors)
		}
	}
}

// finish fails unless the program ends well.
func (p *streamer) finish() {
	p.t.Helper()
	_, _ = io.WriteString(p.stdin, strings.Repeat("go\n", 100)) // if it waits for them
	for p.lines.Scan() {
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the program: %v: %s", err, &p.errors)
	}
}

func TestLiveStreamsAndRecordedTracesAgree(t *testing.T) {
	t.Parallel()
	f := func(name string, args ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			tracetest.Python(t, "adios2", "numpy")
			s := newScene(t)
			serve := s.serve("--save-model", s.path("model"))
			ad := s.ad("all", s.path("live"), append([]string{"--engine", "sst", "--traces", "3"}, args...)...)
			for _, trace := range r.traces {
				defer s.stream(trace).finish()
			}
			succeed(ad, serve)
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
		})
	}
	f("three ranks")
	f("three ranks through a small queue", "--stream-queue", "1")
}

func TestKilledStreamAnalyzerContinuesWithLaterSteps(t *testing.T) {
	t.Parallel()
	r := recorded(t, "gpu-BP5")
	tracetest.Python(t, "adios2", "numpy")
	s := newScene(t)
	serve := s.serve("--ranks", "1")
	s.services()
	contact := s.live(r.traces[0]) + ".sst"
	program := s.stream(r.traces[0], "ask=1")
	ad := s.ad("n", contact)
	program.step(5)
	s.steps(3)
	ad.kill()
	program.step(3) // it is not held up
	ad = s.ad("n", contact)
	ad.awaitLog("connected to the program") // which accepts it at the end of a step
	program.finish()
	run(t, "stop", s.run) // should it have come too late for all but the end
	if code := ad.wait(); code != 0 && code != 1 {
		t.Errorf("the analyzer has exit code %d:\n%s", code, &ad.stderr)
	}
	s.missing(serve, "")
	contains(t, must(t, "runs", s.run), "finished")
}

// Programs send the names of functions and the types of events only once.
func TestRunReplacesKilledAnalyzerOfStreams(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	tracetest.Python(t, "adios2", "numpy")
	s := newScene(t)
	pace := s.write("pace.sh", `
		go() { for i in $(seq $1); do sleep $2; echo go || exit; done; }
		until_exists() { while [ ! -e "$1" ]; do sleep 0.05; done; }
		go 4 0.2; until_exists `+s.path("killed")+`; go 3 0; until_exists `+s.path("replaced")+`; go 100 0.2`)
	script := `cd "$(dirname "$TAU_ADIOS2_FILENAME")"; `
	for _, trace := range r.traces {
		relay := tracetest.Stream(t, "relay", trace, filepath.Base(trace), "ask=1").Args
		script += "sh " + pace + " 2>/dev/null | " + strings.Join(relay, " ") + " >&2 & "
	}
	p := s.runs(script+"wait", "--engine", "sst")
	s.steps(9)
	kill(t, p.member("ad"))
	s.write("killed", "")
	eventually(t, "the replacement is connected with all streams", func() error {
		if n := strings.Count(s.read("run/logs/ad.log"), "connected to the program"); n < 6 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
	s.write("replaced", "")
	p.succeed()
	out := p.stderr.String()
	contains(t, out, "steps of live streams are lost until it is connected again",
		"steps of live streams that passed while no analyzer was connected")
	for _, wrong := range []string{"nothing is lost", "event type is unknown", "QueueFullPolicy", "removed the traces"} {
		if strings.Contains(out, wrong) {
			t.Errorf("the output contains %q:\n%s", wrong, out)
		}
	}
	info, unattended := s.ended("parts of the traces are missing or damaged"), int64(0)
	for _, note := range info.Notes {
		if note.Name == "steps-unattended" {
			unattended = note.Count
		}
	}
	var want struct {
		Totals struct {
			Steps int64 `json:"steps"`
			First int64 `json:"first_us"`
		} `json:"totals"`
	}
	if err := json.Unmarshal([]byte(must(t, "trace", "info", "--json", r.dir())), &want); err != nil {
		t.Fatal(err)
	}
	got := info.Totals
	if got.Steps+unattended != want.Totals.Steps || unattended < 3*3 || got.Begin != want.Totals.First || got.Ranks != 3 {
		t.Errorf("got %+v and %d steps without an analyzer, want %+v", got, unattended, want.Totals)
	}
}

func TestRunWithoutStreamCanBeStopped(t *testing.T) {
	t.Parallel()
	r := recorded(t, "gpu-BP5")
	tracetest.Python(t, "adios2", "numpy")
	s := newScene(t)
	serve := s.serve("--ranks", "1")
	s.services()
	contact := s.live(r.traces[0]) + ".sst"
	program := s.stream(r.traces[0], "ask=1")
	ad := s.ad("n", contact)
	program.step(5)
	s.steps(3)
	ad.kill()
	program.finish()
	ad = s.ad("n", contact, "--connect-timeout", "100ms")
	ad.awaitLog("no contact file within 100ms") // at once, and again at the end
	ad.awaitLog("all traces have ended")
	must(t, "stop", s.run)
	if code := ad.wait(); code != 1 {
		t.Errorf("an analyzer whose stream is gone has exit code %d", code)
	}
	contains(t, ad.stderr.String(), "no contact file within 100ms")
	s.missing(serve, "no contact file within 100ms")
	contains(t, must(t, "runs", s.run), "finished")
}

func TestTraceCommandsReadStream(t *testing.T) {
	t.Parallel()
	r := recorded(t, "ring-BP5")
	tracetest.Python(t, "adios2", "numpy")
	s := newScene(t)
	for _, command := range []string{"info", "dump"} {
		path := s.live(r.traces[0]) + ".sst"
		program := s.stream(r.traces[0])
		p := start(t, "trace", command, path)
		program.finish()
		p.succeed()
		want := must(t, "trace", command, r.traces[0])
		got := p.stdout.String()
		if command == "info" {
			contains(t, got, "SST", "closed", "184", filepath.Base(path))
			continue
		}
		if got != want {
			t.Errorf("trace dump of the stream differs from that of the dataset:\n%s", tail(got))
		}
	}
}

func TestStoppedStreamReaderDoesNotBlockProgram(t *testing.T) {
	t.Parallel()
	r := recorded(t, "gpu-BP5")
	tracetest.Python(t, "adios2", "numpy")
	t.Run("stopped run", func(t *testing.T) {
		s := newScene(t)
		serve := s.serve("--ranks", "1")
		s.services()
		program := s.stream(r.traces[0], "ask=1", "QueueLimit=1")
		ad := s.ad("n", s.path("live"))
		program.step(5)
		s.steps(3)
		must(t, "stop", s.run)
		ad.awaitLog("all traces have ended") // because of the stop
		program.finish()
		if code := ad.wait(); code != 1 {
			t.Errorf("an analyzer whose trace did not end has exit code %d", code)
		}
		contains(t, ad.stderr.String(), "the run was stopped before the trace ended")
		s.missing(serve, "the run was stopped before the trace ended")
	})
	t.Run("interrupted analyzer", func(t *testing.T) {
		s := newScene(t)
		program := s.stream(r.traces[0], "ask=1", "QueueLimit=1")
		ad := s.ad("n", s.path("live"))
		program.step(3)
		ad.signal(syscall.SIGINT)
		program.finish()
		if code := ad.wait(); code != 1 {
			t.Errorf("an analyzer that was interrupted has exit code %d", code)
		}
		contains(t, ad.stderr.String(), "live streams cannot be read again", "chimbuko stop")
	})
	t.Run("interrupted dump", func(t *testing.T) {
		s := newScene(t)
		program := s.stream(r.traces[0], "ask=1", "QueueLimit=1")
		dump := start(t, "trace", "dump", s.live(r.traces[0])+".sst")
		program.step(3)
		dump.signal(syscall.SIGINT)
		program.finish()
		dump.succeed()
	})
}

func TestRunAnalyzesLiveStreamsWithoutFiles(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	tracetest.Python(t, "adios2", "numpy")
	s := newScene(t)
	script := `test "$TAU_ADIOS2_ENGINE" = SST || exit 9; cd "$(dirname "$TAU_ADIOS2_FILENAME")"; `
	for _, trace := range r.traces {
		script += strings.Join(tracetest.Stream(t, "relay", trace, filepath.Base(trace)).Args, " ") + " >&2 & "
	}
	p := s.runs(script+"wait", "--engine", "sst", "--keep-traces")
	p.succeed()
	s.ended()
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
	if files, err := filepath.Glob(filepath.Join(s.run, "tau-traces", "*.bp")); err != nil || len(files) > 0 {
		t.Errorf("there are files of traces: %v, %v", files, err)
	}
}
