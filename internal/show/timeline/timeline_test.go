package timeline_test

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/activity"
	"github.com/chimbuko/chimbuko/internal/show/timeline"
)

const start = trace.Ticks(1 << 50)

// sketch returns ranks whose own code runs for 10 bins of 256 µs, then MPI for 5; each tenth rank has a gap of 4 bins before MPI.
func sketch(ranks int) *activity.Sketch {
	s := activity.New(trace.Microsecond)
	for r := range ranks {
		own, wait, gap := trace.Ticks(10*256), trace.Ticks(5*256), trace.Ticks(0)
		if r%10 == 0 {
			gap = 4 * 256
		}
		s.Add(trace.RankKey{Rank: trace.Rank(r)}, start, start+own+gap+wait, []activity.Record{
			{From: start, To: start + own, Time: uint64(own), Class: activity.Own},
			{From: start + own + gap, To: start + own + gap + wait, Time: uint64(wait), Class: activity.MPI},
		})
		s.AddMessages(trace.RankKey{Rank: trace.Rank(r)}, []activity.Sent{{To: trace.Rank((r + 1) % ranks), Traffic: activity.Traffic{Messages: 3, Bytes: 24}}})
	}
	return s
}

func all(trace.RankKey) bool { return true }

func line(t *testing.T, cells string, row, columns int) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(cells)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, c := range b[row*columns : (row+1)*columns] {
		text += string("-omgif"[c&7])
	}
	return text
}

func TestTimelineShowsDominantActivity(t *testing.T) {
	hosts := map[trace.RankKey]string{{Rank: 0}: "node1"}
	a := timeline.Of(sketch(20), trace.Microsecond, start, hosts, timeline.Params{Rows: 100, Selects: all})
	if !a.Recorded || a.Ranks != 20 || len(a.Rows) != 20 || a.Columns != 20 || a.From != 0 || a.Rows[0].Host != "node1" {
		t.Fatalf("%+v", a)
	}
	if got := line(t, a.Cells, 0, a.Columns); got != "oooooooooofffmmmmmm-"[:10]+"ffffmmmmm-" {
		t.Errorf("rank 0: %s", got)
	}
	if got := line(t, a.Cells, 1, a.Columns); got != "oooooooooommmmm-----" {
		t.Errorf("rank 1: %s", got)
	}
	if got := fmt.Sprint(a.Rows[0].Times); got != "[0 2560 1280 0 0 1024]" {
		t.Errorf("times %s", got)
	}
	if len(a.Messages) != 1 || a.Messages[0].Group != 1 || len(a.Messages[0].Pairs) != 20 {
		t.Errorf("messages %+v", a.Messages)
	}
}

func TestManyRanksShareRows(t *testing.T) {
	a := timeline.Of(sketch(1000), trace.Microsecond, start, nil, timeline.Params{Rows: 10, Selects: all})
	if a.Ranks != 1000 || len(a.Rows) > 10 || a.Rows[0].LastRank < 99 || a.Rows[len(a.Rows)-1].LastRank != 999 {
		t.Fatalf("%d rows, %+v", len(a.Rows), a.Rows)
	}
	if got := line(t, a.Cells, 0, a.Columns); got[:10] != "oooooooooo" || got[10] != 'm' {
		t.Errorf("most of the ranks are not shown: %s", got)
	}
}

func TestPartsOfATimeline(t *testing.T) {
	from, to := 11*256*time.Microsecond, 13*256*time.Microsecond
	a := timeline.Of(sketch(20), trace.Microsecond, start, nil, timeline.Params{
		From: &from, To: &to, Rows: 100, Selects: func(k trace.RankKey) bool { return k.Rank == 0 },
	})
	if a.Columns != 2 || a.Ranks != 1 || a.From != from.Seconds() || a.To != to.Seconds() || line(t, a.Cells, 0, 2) != "ff" {
		t.Errorf("%+v", a)
	}
	if e := timeline.Of(activity.New(trace.Microsecond), trace.Microsecond, 0, nil, timeline.Params{Rows: 9, Selects: all}); e.Recorded {
		t.Error("an empty sketch counts as recorded")
	}
}
