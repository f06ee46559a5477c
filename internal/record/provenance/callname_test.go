package provenance_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestCallNameNumbersTrainingSteps(t *testing.T) {
	for _, c := range [][3]string{
		{"ProfilerStep", "3:22:1", "ProfilerStep#22"},
		{"ProfilerStep", "", "ProfilerStep"},
		{"forward", "3:22:4", "forward"},
	} {
		if got := provenance.CallName(c[0], c[1]); got != c[2] {
			t.Errorf("call %s of event %q is named %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
