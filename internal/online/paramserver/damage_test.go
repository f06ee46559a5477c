package paramserver

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedSnapshots loads mutations of a snapshot. A checksum protects it, so none is accepted.
func TestDamagedSnapshots(t *testing.T) {
	state := busyState(t)
	var good []byte
	if _, err := state.saveWith(func(b []byte) error { good = b; return nil }); err != nil {
		t.Fatal(err)
	}
	damage.Run(t, damage.Format{Files: damage.Files{"snapshot": good}, Read: func(files damage.Files) error {
		s, err := NewState(state.cfg, 1)
		if err != nil {
			return err
		}
		if err := s.load(files["snapshot"]); err == nil && string(files["snapshot"]) != string(good) {
			t.Error("a damaged snapshot was accepted")
		}
		return nil
	}})
}
