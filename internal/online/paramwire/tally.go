package paramwire

import (
	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// TallyTo returns the counts as messages carry them.
func TallyTo(t *tally.Tally) (counts []*protocol.Count) {
	for kind, n := range t.All() {
		counts = append(counts, &protocol.Count{Kind: uint32(kind), Count: n})
	}
	return counts
}
