package insight

import (
	"slices"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

func TestAgeOfLiveRunIsReported(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		state         provdb.State
		read, finding time.Duration
		want          []string
	}{
		{provdb.Running, time.Second, 119 * time.Second, nil},
		{provdb.Running, time.Second, 150 * time.Second, []string{"Findings are of 2 minutes ago; newer ones are being computed"}},
		{provdb.Running, 2 * time.Hour, time.Hour, []string{
			"Figures are of 120 minutes ago; newer ones are being computed", "Findings are of 60 minutes ago; newer ones are being computed",
		}},
		{provdb.Finished, 2 * time.Hour, time.Hour, nil},
	} {
		d := &runData{run: provdb.Run{State: x.state}, read: now.Add(-x.read), conclusion: &conclusion{begun: now.Add(-x.finding)}}
		var list noticeList
		d.addAge(now, &list)
		var got []string
		for _, n := range list {
			got = append(got, n.Sentence)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s, read %v ago, findings of %v ago: got %q, want %q", x.state, x.read, x.finding, got, x.want)
		}
	}
}
