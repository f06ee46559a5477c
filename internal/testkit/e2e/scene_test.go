package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// recording is traces to replay, one dataset for each rank.
type recording struct {
	name   string
	traces []string
}

// recorded are traces of the repository.
func recorded(t testing.TB, name string) recording {
	t.Helper()
	return recording{name, tracetest.Recorded(t, name)}
}

// large are traces beside the repository; without them the test is skipped.
func large(t testing.TB, name string) recording {
	t.Helper()
	return recording{name, tracetest.Large(t, name)}
}

// threeRanks are three ranks of the program with a GPU, as BP4.
func threeRanks(t testing.TB) recording {
	t.Helper()
	one := tracetest.Recorded(t, "gpu-BP5")[0]
	dir := filepath.Join(filepath.Dir(program), "three")
	makeThree.Do(func() { must(t, "trace", "replay", one, dir, "--speed", "max", "--ranks", "3") })
	traces, err := filepath.Glob(filepath.Join(dir, "*.bp"))
	if err != nil || len(traces) != 3 {
		t.Fatalf("%d traces in %s: %v", len(traces), dir, err)
	}
	return recording{"gpu-BP4 three times", traces}
}

var makeThree sync.Once

// dir is where the traces are.
func (r recording) dir() string { return filepath.Dir(r.traces[0]) }

// scene is a run with its services, analyzers and traces, in a directory of its
// own.
type scene struct {
	t   testing.TB
	run string // directory of the run
	dir string
}

func newScene(t testing.TB) *scene {
	t.Helper()
	dir := t.TempDir()
	return &scene{t: t, dir: dir, run: filepath.Join(dir, "run")}
}

func (s *scene) path(name string) string { return filepath.Join(s.dir, name) }

// live is where the traces are while they are written.
func (s *scene) live(trace string) string { return filepath.Join(s.dir, "live", filepath.Base(trace)) }

// serve starts services of the run, all of them unless args select some.
func (s *scene) serve(args ...string) *process {
	s.t.Helper()
	return start(s.t, append([]string{"serve", "--out", s.run, "--snapshot", "200ms", "--store-delay", "100ms"}, args...)...)
}

// ad starts an analyzer.
func (s *scene) ad(node, trace string, args ...string) *process {
	s.t.Helper()
	return start(s.t, append([]string{"ad", "--run-dir", s.run, trace, "--node", node, "--exchange", "100ms"}, args...)...)
}

// ads starts an analyzer for each trace of a recording.
func (s *scene) ads(r recording, args ...string) (all []*process) {
	s.t.Helper()
	for i, trace := range r.traces {
		all = append(all, s.ad(fmt.Sprintf("n%d", i), s.live(trace), args...))
	}
	return all
}

// allButLast starts the analyzers of all traces but the last. The run cannot end before last
// starts that one, on a machine of any speed.
func (s *scene) allButLast(r recording, args ...string) (ads []*process, last func() *process) {
	s.t.Helper()
	n := len(r.traces) - 1
	ads = s.ads(recording{r.name, r.traces[:n]}, args...)
	return ads, func() *process { return s.ad(fmt.Sprintf("n%d", n), s.live(r.traces[n]), args...) }
}

// replay starts to write the traces of a recording.
func (s *scene) replay(r recording, speed string) *process {
	s.t.Helper()
	return start(s.t, "trace", "replay", r.dir(), s.path("live"), "--speed", speed)
}

// paused starts to write the traces of a recording and pauses when each has some steps, so
// that the run continues until resume is called, on a machine of any speed.
func (s *scene) paused(r recording, steps int) *process {
	s.t.Helper()
	p := s.replay(r, "0.5")
	s.written(s.path("live"), len(r.traces), steps)
	p.signal(syscall.SIGSTOP)
	return p
}

// resume continues a paused replay, which then writes all steps that are due.
func (p *process) resume() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
}

// written waits until a replay has written some steps of each trace into a directory.
func (s *scene) written(dir string, traces, steps int) {
	s.t.Helper()
	const record = 64 // bytes of a step in the index, and of its header
	eventually(s.t, fmt.Sprintf("%d traces have %d steps each", traces, steps), func() error {
		found, err := filepath.Glob(filepath.Join(dir, "*.bp", "md.idx"))
		if err != nil {
			return err
		}
		if len(found) < traces {
			return fmt.Errorf("only %d traces", len(found))
		}
		for _, index := range found {
			info, err := os.Stat(index)
			if err != nil {
				return err
			}
			if info.Size() < record*int64(1+steps) {
				return fmt.Errorf("%s has only %d bytes", index, info.Size())
			}
		}
		return nil
	})
}

// services waits until the run directory has the addresses of the services.
func (s *scene) services() *runfiles.Services {
	s.t.Helper()
	var found *runfiles.Services
	eventually(s.t, "services are announced", func() (err error) {
		found, err = runfiles.ReadServices(s.run)
		return err
	})
	return found
}

// succeed waits until all processes have ended well.
func succeed(all ...*process) {
	for _, p := range all {
		p.t.Helper()
		p.succeed()
	}
}

// contains fails unless text has all parts.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, tail(text))
		}
	}
}
