package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk is a scene whose run is on a separate disk, which can be filled.
func smallDisk(t testing.TB) *scene {
	t.Helper()
	s := newScene(t)
	disk := s.path("disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=160m", "chimbuko-e2e",
		disk).CombinedOutput(); err != nil {
		t.Skipf("SKIP: a disk that is full needs the right to mount one: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.run = filepath.Join(disk, "run")
	return s
}

// fill fills the disk of the run, and returns what makes room again.
func (s *scene) fill() (empty func()) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.run), "filler")
	f, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatal(err)
	}
	if err := f.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		if err := os.Remove(path); err != nil {
			s.t.Fatal(err)
		}
	}
}

// unwell waits until the services report an error.
func (s *scene) unwell(text string) {
	s.t.Helper()
	eventually(s.t, "the services report "+text, func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		for _, h := range st.Wrong() {
			if strings.Contains(h.Sentence, text) {
				return nil
			}
		}
		return fmt.Errorf("but %v", st.Health)
	})
}

func TestRunContinuesWhenFullDiskHasRoomAgain(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := smallDisk(t)
	serve := s.serve("--ranks", "3", "--save-model", s.path("model"))
	s.services()
	ads := s.ads(r)
	replay := s.paused(r, 3)
	s.steps(9)
	empty := s.fill()
	replay.resume()
	s.unwell("no space left on device")
	replay.succeed()
	empty()
	succeed(append(ads, serve)...)
	agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
}

func TestRunOnFullDiskIsFinishedLater(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := smallDisk(t)
	serve := s.serve("--ranks", "3")
	s.services()
	ads := s.ads(r)
	replay := s.paused(r, 3)
	s.steps(9)
	empty := s.fill()
	replay.resume()
	s.unwell("no space left on device")
	serve.signal(syscall.SIGTERM)
	serve.wait()
	for _, ad := range ads {
		ad.kill()
	}
	replay.succeed()
	contains(t, must(t, "anomalies", s.run), "EVENT") // stored anomalies can be read
	empty()
	must(t, "finish", s.run)
	s.ended()
	agree(t, outcomeOf(t, "", s.run), withoutModel(offlineOf(t, r)))
}
