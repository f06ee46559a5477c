package legacy_test

import (
	"os"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

// TestDamagedPackets reads mutations of statistics packets.
func TestDamagedPackets(t *testing.T) {
	sample, err := os.ReadFile("testdata/sample-packet-v2.json")
	if err != nil {
		t.Fatal(err)
	}
	own, _ := encode(packettest.SmallRun(), 1, 5)
	for name, b := range map[string][]byte{"original": sample, "own": own} {
		t.Run(name, func(t *testing.T) {
			damage.Run(t, damage.Format{Files: damage.Files{"packet": b}, Read: func(files damage.Files) error {
				p, err := legacy.ReadPacket(files["packet"])
				if (p == nil) != (err != nil) {
					t.Errorf("packet %v with the error %v", p, err)
				}
				return nil
			}})
		})
	}
}
