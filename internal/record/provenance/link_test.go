package provenance_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestLinkSentence(t *testing.T) {
	late := trace.Rank(4)
	for want, l := range map[string]provenance.Link{
		"": {},
		"It waited because of solve(int) on rank 3 (node01); with 1 other wait between them": {Role: provenance.Victim, Hops: 2},
		"It waited because of solve(int) on rank 3 (node01) of program 1":                    {Role: provenance.Victim, CulpritPID: 1},
		"2 waits on 1 rank lost 5.00 ms because of it": {
			Role: provenance.Culprit, Waits: 2, WaitRanks: 1, WaitTime: 5000,
		},
		"Others waited for its rank, most because of solve(int); " +
			"it waited for a late message from rank 4, which has no anomaly itself": {Role: provenance.Culprit, LateRank: &late},
	} {
		if got := l.Sentence(0, "solve(int)", 3, "node01"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for want, l := range map[string]provenance.Link{
		"It waited for rank 4, which was late for an unknown reason": {Role: provenance.Victim, LateRank: &late},
		"It waited for an unknown rank that was late":                {Role: provenance.Victim},
	} {
		if got := l.Sentence(0, "", 0, ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
