package stats

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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

func TestTimelineMergeIsIndependentOfOrder(t *testing.T) {
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

// Parts with spans as long as those of the whole so far give the same whole.
func TestTimelineFollowsItsMergeTarget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 100 {
		all := randomSeen(r, 1+r.IntN(200))
		var whole, part Timeline
		for at, s := range all {
			part.Add(s.v, s.at)
			if r.IntN(10) == 0 || at == len(all)-1 {
				part.Follow(&whole)
				if whole.length > part.length {
					t.Fatalf("spans of 2^%d us, those of the whole have 2^%d us", part.length, whole.length)
				}
				whole.Merge(&part)
				part.Reset()
				part.Follow(&whole)
			}
		}
		if got, want := whole.AppendBinary(nil), timelineOf(all).AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("%v\n got %v\nwant %v", all, got, want)
		}
	}
}

func TestTrimmedMeanOfSpan(t *testing.T) {
	var line Timeline
	for v := range int64(1000) {
		line.Add(1000+v, 5)
	}
	for range 20 {
		line.Add(1e9, 5)
	}
	s := line.Spans()[0]
	if got := s.Mean(0.05); math.Abs(got-1510) > 10 {
		t.Errorf("got %.1f", got)
	}
}

func TestTimelineEncodingRoundTrip(t *testing.T) {
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

func TestSpansShowChange(t *testing.T) {
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

func TestCoarseBinsCoverAllNumbers(t *testing.T) {
	if low := binLow(0, coarseBits); low != 0 || CoarseBinOf(-7) != 0 {
		t.Errorf("the first bin begins with %d; -7 is in bin %d", low, CoarseBinOf(-7))
	}
	if bin := CoarseBinOf(math.MaxInt64); bin != numCoarseBins-1 {
		t.Errorf("the largest number is in bin %d of %d", bin, numCoarseBins)
	}
	for b := range numCoarseBins {
		low, next := binLow(b, coarseBits), binLow(b+1, coarseBits)
		if low >= next || CoarseBinOf(low) != b || CoarseBinOf(next-1) != b {
			t.Fatalf("bin %d from %d to before %d: these are in bins %d and %d", b, low, next, CoarseBinOf(low), CoarseBinOf(next-1))
		}
		if width := next - low; width > 1 && width > low/8 {
			t.Errorf("bin %d from %d is %d wide", b, low, width)
		}
	}
}

// Each bin of a histogram lies in one coarse bin.
func TestCoarseBinsAreUnionsOfBins(t *testing.T) {
	for b := range NumBins {
		low, high := BinLow(b), BinLow(b+1)-1
		if CoarseBinOf(low) != CoarseBinOf(high) || CoarseBinOf(int64(BinMiddle(b))) != CoarseBinOf(low) && b < NumBins-1 {
			t.Fatalf("bin %d from %d to %d is in coarse bins %d and %d", b, low, high, CoarseBinOf(low), CoarseBinOf(high))
		}
	}
}

func TestTimelineMergeKeepsSource(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		a, b := timelineOf(randomSeen(r, r.IntN(50))), timelineOf(randomSeen(r, r.IntN(50)))
		wantA, wantB := a.AppendBinary(nil), b.AppendBinary(nil)
		c := a.Clone()
		c.Merge(b)
		c.Add(5, 1<<41)
		if !bytes.Equal(a.AppendBinary(nil), wantA) || !bytes.Equal(b.AppendBinary(nil), wantB) {
			t.Fatal("a copy, or what was merged into it, changed with it")
		}
		var empty Timeline
		a.Merge(&empty)
		empty.Merge(a)
		if got := a.AppendBinary(nil); !bytes.Equal(got, wantA) || !bytes.Equal(empty.AppendBinary(nil), wantA) {
			t.Fatalf("with nothing it became\n%v instead of\n%v", got, wantA)
		}
		a.Reset()
		if a.Total() != 0 || len(a.Spans()) != 0 || !bytes.Equal(a.AppendBinary(nil), []byte{0}) {
			t.Fatal("after reset there is something left")
		}
		a.Merge(b)
		if got := a.AppendBinary(nil); !bytes.Equal(got, wantB) {
			t.Fatalf("in used memory it became\n%v instead of\n%v", got, wantB)
		}
	}
}

// inOrder complains about spans that are not of equal length, one after the other,
// or that do not begin and end with something.
func inOrder(t *testing.T, line *Timeline) {
	t.Helper()
	spans := line.Spans()
	total := uint64(0)
	for i, s := range spans {
		if s.From < 0 || s.From >= s.To || i > 0 && s.From != spans[i-1].To || s.From%(1<<line.length) != 0 {
			t.Fatalf("span %d of %d is from %d to %d, 2^%d long", i, len(spans), s.From, s.To, line.length)
		}
		n := uint64(0)
		from, to := s.Range()
		for bin := from; bin < to; bin++ {
			n += s.Count(bin)
		}
		if n != s.Total || (i == 0 || i == len(spans)-1) && n == 0 {
			t.Fatalf("span %d of %d counts %d in its bins, %d in all", i, len(spans), n, s.Total)
		}
		total += n
	}
	if total != line.Total() || len(spans) > maxSpans {
		t.Fatalf("%d spans have %d, not %d", len(spans), total, line.Total())
	}
}

func TestExtremeTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		var line Timeline
		n := 1 + r.IntN(20)
		for range n {
			at := []int64{0, -5, math.MaxInt64, math.MinInt64, r.Int64(), r.Int64N(1 << 51), r.Int64N(1 << 22)}[r.IntN(7)]
			line.Add(r.Int64()>>r.IntN(63), at)
		}
		inOrder(t, &line)
		b := line.AppendBinary(nil)
		var again Timeline
		if rest, err := again.Decode(b); err != nil || len(rest) > 0 || again.Total() != uint64(n) {
			t.Fatalf("%v is not read: %d of %d, %v", b, again.Total(), n, err)
		}
		inOrder(t, &again)
	}
}

func TestInvalidTimelineIsRefused(t *testing.T) {
	f := func(why string, numbers ...uint64) {
		t.Helper()
		var b []byte
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		var line Timeline
		line.Add(7, 7)
		if rest, err := line.Decode(b); !errors.Is(err, ErrEncoding) || rest != nil || line.Total() != 0 {
			t.Errorf("%s: %v, rest %v, total %d", why, err, rest, line.Total())
		}
	}
	const last = math.MaxInt64 >> 20
	const at5 = 2*(5+1) + 1 // the first count is that of bin 5
	f("nothing")
	f("too many spans", append([]uint64{17, 20, 0}, slices.Repeat([]uint64{1, at5, 1}, 17)...)...)
	f("spans that are too short", 1, 12, 0, 1, at5, 1)
	f("spans that are too long", 1, 60, 0, 1, at5, 1)
	f("a time beyond all", 1, 20, last+1, 1, at5, 1)
	f("a second span beyond all time", 2, 20, last, 1, at5, 1, 1, at5, 1)
	f("a long span beyond all time", 1, 40, last>>20+1, 1, at5, 1)
	f("a first span that is empty", 2, 20, 0, 0, 1, at5, 1)
	f("a last span that is empty", 2, 20, 0, 1, at5, 1, 0)
	f("a bin that is empty", 1, 20, 0, 2, at5, 0, 2)
	f("a second bin that is empty", 1, 20, 0, 2, at5, 1, 0)
	f("more bins than there are", 1, 20, 0, numCoarseBins+1, 0, 1)
	f("a bin that does not exist", 1, 20, 0, 2, 2*numCoarseBins+1, 1, 2)
	f("a bin far beyond the last", 1, 20, 0, 2, at5, 1, math.MaxUint64, 1)
	f("a step to the next bin that is written as a long one", 1, 20, 0, 2, at5, 1, 3, 1)
	f("more than can be counted", 1, 20, 0, 2, at5, math.MaxInt64, 2)
	f("more than can be counted, in two spans", 2, 20, 0, 1, at5, math.MaxInt64, 1, at5, 1)
	f("a count that is missing", 1, 20, 0, 2, at5, 1)
	var line Timeline
	if _, err := line.Decode([]byte{1, 20, 3, 2, at5, 1, 2 * 9}); err != nil || line.Total() != 10 {
		t.Errorf("what can be true is refused: %v", err)
	}
}

// A wide timeline fits with longer spans, however it was created.
func TestFittingCommutesWithMerge(t *testing.T) {
	const most = 600
	r := rand.New(rand.NewPCG(4, 4))
	var whole Timeline
	parts := make([]Timeline, 5)
	for i := range 3000 {
		v, at := int64(math.Exp(14*r.Float64())), int64(i)<<13
		whole.Add(v, at)
		parts[r.IntN(len(parts))].Add(v, at)
	}
	want := whole.Fitting(most)
	if want == &whole || len(want.spans) >= len(whole.spans) || len(want.spans) < 2 {
		t.Fatalf("%d spans were made to %d", len(whole.spans), len(want.spans))
	}
	if n := len(want.AppendBinary(nil)); n > most {
		t.Errorf("made to fit %d bytes, it has %d", most, n)
	}
	var merged Timeline
	for i := range parts {
		var read Timeline
		if _, err := read.Decode(parts[i].Fitting(most).AppendBinary(nil)); err != nil {
			t.Fatal(err)
		}
		merged.Merge(&read)
	}
	if got := merged.Fitting(most); !bytes.Equal(got.AppendBinary(nil), want.AppendBinary(nil)) {
		t.Error("parts that were made to fit and merged differ from the whole that is made to fit")
	}
	if whole.Total() != want.Total() || whole.Fitting(1<<20) != &whole {
		t.Error("what fits is not left alone, or counts are lost")
	}
	if n := len(whole.Fitting(1).spans); n != 1 {
		t.Errorf("what never fits has %d spans, not one", n)
	}
}

func TestSpanQuantilesLieInTrueBin(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var line Timeline
	values := make([]int64, 999)
	for i := range values {
		values[i] = r.Int64N(1 << r.IntN(40))
		line.Add(values[i], 5)
	}
	slices.Sort(values)
	s := line.Spans()[0]
	for i, want := range values {
		got := s.Quantile((float64(i) + 0.5) / float64(len(values)))
		low, next := float64(binLow(CoarseBinOf(want), coarseBits)), float64(binLow(CoarseBinOf(want)+1, coarseBits))
		if got < low || got > next {
			t.Fatalf("quantile %d of %d is %v; %d is in the bin from %v to %v", i, len(values), got, want, low, next)
		}
	}
}

func TestTimelineAddDoesNotAllocate(t *testing.T) {
	line := timelineOf([]seen{{100, 0}, {2000, 15 << shortestSpan}, {100, 15 << shortestSpan}, {2000, 0}})
	if n := testing.AllocsPerRun(100, func() {
		line.Add(100, 5)
		line.Add(2000, 15<<shortestSpan)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzTimeline reads two timelines from any bytes. What can be read is consistent, can
// be written and read again, and merges alike before and after.
func FuzzTimeline(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	f.Add(timelineOf(randomSeen(r, 40)).AppendBinary(nil), timelineOf(randomSeen(r, 3)).AppendBinary(nil), int64(7))
	f.Add([]byte{0}, []byte{1, 20, 3, 1, 5, 1}, int64(math.MaxInt64))
	f.Add([]byte{1, 40, 0xff, 0xff, 0x7f, 1, 5, 1}, []byte{1, 59, 15, 1, 5, 1}, int64(-1))
	f.Fuzz(func(t *testing.T, x, y []byte, at int64) {
		var a, b Timeline
		restA, err := a.Decode(x)
		restB, errB := b.Decode(y)
		if err != nil || errB != nil {
			if err != nil && (a.Total() != 0 || restA != nil) || errB != nil && (b.Total() != 0 || restB != nil) {
				t.Fatal("what is refused leaves something")
			}
			return
		}
		again := func(line *Timeline) *Timeline {
			inOrder(t, line)
			written := line.AppendBinary(nil)
			var read Timeline
			if left, err := read.Decode(written); err != nil || len(left) > 0 || !bytes.Equal(read.AppendBinary(nil), written) {
				t.Fatalf("%v is not read as it was written: rest %v, %v", written, left, err)
			}
			return &read
		}
		if a.Total() > math.MaxInt64/2 || b.Total() > math.MaxInt64/2-1 {
			return // more than one holds
		}
		early, late := again(&a), a.Clone()
		early.Merge(again(&b))
		late.Merge(&b)
		early.Add(7, at)
		late.Add(7, at)
		if !bytes.Equal(again(early).AppendBinary(nil), again(&late).AppendBinary(nil)) || late.Total() != a.Total()+b.Total()+1 {
			t.Fatalf("%d and %d became %d", a.Total(), b.Total(), late.Total())
		}
		for _, s := range late.Spans() {
			if m := s.Quantile(0.5); s.Total > 0 && !(m >= 0 && m <= math.MaxInt64) {
				t.Fatalf("a median is %v", m)
			}
		}
	})
}
