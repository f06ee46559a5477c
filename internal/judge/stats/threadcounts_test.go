package stats_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

func TestThreadCountsCountThreadsSeparately(t *testing.T) {
	var n stats.ThreadCounts
	for thread := range uint32(64) {
		for range min(int(thread), stats.ManyCalls) {
			n.Add(stats.ThreadBit(thread))
		}
	}
	for thread := range uint32(64) {
		bit := stats.ThreadBit(thread)
		if none, many := n.None(bit), n.Many(bit); none != (thread == 0) || many != (thread >= stats.ManyCalls) {
			t.Errorf("after %d calls: none %v, many %v", thread, none, many)
		}
	}
	if stats.ThreadBit(64) != 0 {
		t.Error("thread 64 has a bit")
	}
}
