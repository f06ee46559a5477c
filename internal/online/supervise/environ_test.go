package supervise

import (
	"slices"
	"testing"
)

func TestChildEnvironRemovesSettings(t *testing.T) {
	got := childEnviron([]string{"A=1", "CHIMBUKO_SIGMA=3", "TMPDIR=/there", "HOME=/home"}, "/here")
	if want := []string{"A=1", "HOME=/home", "TMPDIR=/here"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
