package paramserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// faultSaves is the number of snapshots on a failing disk.
const faultSaves = 4

// grow makes the change of a state before a snapshot.
func grow(t *testing.T, s *State, save int) {
	t.Helper()
	mustRegister(t, s, fmt.Sprint("node", save), 1, uint32(10+save))
}

func TestSnapshotsSurviveFailingDisk(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	if dir := faultdisk.Dir(); dir != "" {
		s := busyState(t)
		for i := range faultSaves {
			grow(t, s, i)
			if _, err := s.Save(StatePath(dir, 0)); err != nil { // the server continues
				t.Error(err)
				continue
			}
			fmt.Printf("saved %d\n", i+1)
		}
		return
	}
	want := map[string]int{} // number of the save, by content
	calm := busyState(t)
	want[contentOf(t, newState(t, Config{}))] = 0
	for i := range faultSaves {
		grow(t, calm, i)
		want[contentOf(t, calm)] = i + 1
	}
	faultdisk.Torture(t, 12, faultdisk.Arbitrary, func(t *testing.T, after faultdisk.Aftermath) {
		saved := 0
		if at := strings.LastIndex(after.Output, "saved "); at >= 0 {
			if _, err := fmt.Sscanf(after.Output[at:], "saved %d", &saved); err != nil {
				t.Fatal(err)
			}
		}
		next, err := NewState(calm.cfg, 2)
		if err == nil {
			err = next.Restore(StatePath(after.Dir, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, known := want[contentOf(t, next)]
		if !known || got < saved {
			t.Errorf("save %d (known: %v) was restored, but save %d had succeeded", got, known, saved)
		}
		grow(t, next, faultSaves)
		if _, err := next.Save(filepath.Join(after.Dir, "parameters-0.state")); err != nil {
			t.Error(err)
		}
	})
}
