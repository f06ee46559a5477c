package stats

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// seen is a number at a time.
type seen struct{ v, at int64 }

func randomSeen(r *rand.Rand, n int) []seen {
	all := make([]seen, n)
	start := r.Int64N(2e15)
	spread := int64(1) << r.IntN(45)
	for i := range all {
		all[i] = seen{v: r.Int64N(1 << r.IntN(40)), at: start + r.Int64N(spread)}
	}
	return all
}

func timelineOf(all []seen) *Timeline {
	t := new(Timeline)
	for _, s := range all {
		t.Add(s.v, s.at)
	}
	return t
}

func TestTimelinesMergeToTheSameInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all := randomSeen(r, 1+r.IntN(200))
		want := timelineOf(all).AppendBinary(nil)
		parts := make([]*Timeline, 1+r.IntN(8))
		for i := range parts {
			parts[i] = new(Timeline)
		}
		for _, i := range r.Perm(len(all)) {
			parts[r.IntN(len(parts))].Add(all[i].v, all[i].at)
		}
		for len(parts) > 1 { // as a tree of any shape
			i := r.IntN(len(parts) - 1)
			parts[i].Merge(parts[i+1])
			parts = append(parts[:i+1], parts[i+2:]...)
		}
		got := parts[0].AppendBinary(nil)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v\n got %v\nwant %v", all, got, want)
		}
		if n := parts[0].Total(); n != uint64(len(all)) {
			t.Fatalf("%d of %d are counted", n, len(all))
		}
		if n := len(parts[0].Spans()); n > maxSpans {
			t.Fatalf("%d spans", n)
		}
	}
}

func TestATimelineComesBackFromItsEncoding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var used Timeline // whose memory is used again
	for range 300 {
		want := timelineOf(randomSeen(r, r.IntN(100))).AppendBinary(nil)
		rest, err := used.Decode(append(bytes.Clone(want), "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Fatalf("%q, %v", rest, err)
		}
		if got := used.AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		if len(want) > 1 {
			if _, err := used.Decode(want[:r.IntN(len(want)-1)]); err == nil && len(want) > 2 {
				t.Fatal("a part of an encoding is taken for a whole")
			}
		}
	}
}

func TestSpansTellWhenNumbersChanged(t *testing.T) {
	var line Timeline
	const second = 1_000_000
	for i := range int64(60) {
		v := int64(1000)
		if i >= 30 {
			v = 3000
		}
		for j := range int64(10) {
			line.Add(v, 1_700_000_000*second+i*second+j*90_000)
		}
	}
	for _, s := range line.Spans() {
		middle := (s.From+s.To)/2/second - 1_700_000_000
		want := 1000.0
		if middle >= 30 {
			want = 3000
		}
		if m := s.Quantile(0.5); (middle < 26 || middle > 34) && (m < 0.88*want || m > 1.13*want) {
			t.Errorf("after %d s the median is %v instead of about %v", middle, m, want)
		}
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add(timelineOf(randomSeen(rand.New(rand.NewPCG(5, 6)), 40)).AppendBinary(nil))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var line Timeline
		rest, err := line.Decode(b)
		if err != nil {
			return
		}
		again := line.AppendBinary(nil)
		var second Timeline
		if left, err := second.Decode(again); err != nil || len(left) > 0 {
			t.Fatalf("%v decodes, but %v does not: %v", b[:len(b)-len(rest)], again, err)
		}
		second.Merge(&line)
		second.Add(7, 1<<40)
	})
}
