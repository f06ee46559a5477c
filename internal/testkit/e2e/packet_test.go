package e2e

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// references are packets with the documented structure and with that of the original.
// Package legacy tests both.
var references = map[string]string{"1": "packet-v1.json", "2": "sample-packet-v2.json"}

// sameStructure fails unless all packets have the keys and types of the reference,
// and none of its parts is missing in all of them.
func sameStructure(t testing.TB, schema string, packets [][]byte) {
	t.Helper()
	text, err := os.ReadFile(tracetest.Root("internal", "show", "legacy", "testdata", references[schema]))
	if err != nil {
		t.Fatal(err)
	}
	want := packettest.Structure(t, text)
	seen := map[string]bool{}
	for n, p := range packets {
		for path, fields := range packettest.Structure(t, p) {
			if path == "" { // parts without news are left out
				for field := range strings.SplitSeq(fields, ", ") {
					if !slices.Contains(strings.Split(want[path], ", "), field) {
						t.Errorf("packet %d has %s", n, field)
					}
				}
			} else if fields != want[path] {
				t.Errorf("packet %d: %q:\n got %s\nwant %s", n, path, fields, want[path])
			}
			seen[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !seen[path] {
			t.Errorf("no packet has %q", path)
		}
	}
}
