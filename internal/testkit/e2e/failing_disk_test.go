package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
)

// diskRun runs chimbuko run in a new directory on a disk, with a program that replays a recording.
func diskRun(t testing.TB, r recording, f faultdisk.Fault) (d *faultdisk.Disk, s *scene, output string) {
	t.Helper()
	s = newScene(t)
	disk := s.path("disk")
	s.run = filepath.Join(disk, "run")
	if err := os.MkdirAll(filepath.Join(disk, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	d = faultdisk.New(t, disk, "run/tau-traces", "run/logs")
	output, _ = d.Run(t, f, []string{"TMPDIR=" + filepath.Join(disk, "tmp")}, program, "run", "--out", s.run, "--", program, "trace", "replay", r.dir(),
		filepath.Join(s.run, "tau-traces"), "--speed", "max")
	return d, s, output
}

// finishRun finishes a run on a disk that works again, and fails unless it equals analyze.
func (s *scene) finishRun(r recording) {
	s.t.Helper()
	switch traces, err := os.ReadDir(runfiles.Traces(s.run)); {
	case runfiles.HasFinished(s.run):
	case err != nil || len(traces) == 0: // the program was not started: start it again
		must(s.t, "analyze", "--passes", "1", "--out", s.path("again"), r.dir())
		s.run = s.path("again")
	default:
		must(s.t, "finish", s.run)
	}
	agree(s.t, outcomeOf(s.t, "", s.run), withoutModel(offlineOf(s.t, r)))
}

// operations returns the number of operations of a run on a disk.
func operations(t testing.TB, r recording) int {
	t.Helper()
	d, s, output := diskRun(t, r, faultdisk.Fault{})
	if !runfiles.HasFinished(s.run) {
		t.Fatal(output)
	}
	s.finishRun(r)
	t.Logf("%d operations", len(d.Ops()))
	return len(d.Ops())
}

func TestRunOnFailingDiskCanBeFinished(t *testing.T) {
	faultdisk.Long(t)
	r := threeRanks(t)
	for i, n := range faultdisk.Sample(operations(t, r), 6) {
		f := faultdisk.Fail(n)
		if i%2 == 1 {
			f = faultdisk.Full(n, 20)
		}
		t.Run(fmt.Sprint(f.From, " to ", f.To), func(t *testing.T) {
			t.Parallel()
			d, s, output := diskRun(t, r, f)
			t.Logf("failed: %s\n%s", d.Failures(), tail(output))
			s.finishRun(r)
		})
	}
}

func TestRunCanBeFinishedAfterLossOfPower(t *testing.T) {
	faultdisk.Long(t)
	r := threeRanks(t)
	for i, n := range faultdisk.Sample(operations(t, r), 6) {
		seed := uint64(n * (i % 2)) // every other time all that was not synced is lost
		t.Run(fmt.Sprint(n, " seed ", seed), func(t *testing.T) {
			t.Parallel()
			d, s, output := diskRun(t, r, faultdisk.Stop(n))
			t.Logf("stopped at: %s\n%s", d.Failures(), tail(output))
			if err := d.LosePower(seed, faultdisk.Ordered); err != nil {
				t.Fatal(err)
			}
			s.finishRun(r)
		})
	}
}
