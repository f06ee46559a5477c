package outlier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// FuzzModel reads two models from any bytes. What can be read can be written
// and read again, merges alike before and after, and has judges that work.
func FuzzModel(f *testing.F) {
	f.Add([]byte{}, make([]byte, 60), int64(5))
	f.Add(learned(1, 2, 1000).AppendBinary(nil), learned(0, math.MaxInt64).AppendBinary(nil), int64(math.MaxInt64))
	f.Add(learned(times(40, 1000)...).AppendBinary(nil), learned(append(times(29, 7), 1e7)...).AppendBinary(nil), int64(-1))
	f.Fuzz(func(t *testing.T, x, y []byte, v int64) {
		a, ok := readable(t, x, v)
		b, okToo := readable(t, y, v)
		if !ok || !okToo || a.Count() > 1<<52 || b.Count() > 1<<52 {
			return // beyond that, moments do not count exactly
		}
		late := a.Clone()
		late.Merge(b)
		early, _, err := outlier.ReadModel(a.AppendBinary(nil))
		if err != nil {
			t.Fatalf("%+v was written and is not read: %v", a, err)
		}
		early.Merge(b)
		want := late.AppendBinary(nil)
		if got := early.AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("read and merged %x, merged and read %x", got, want)
		}
		if late.Count() != a.Count()+b.Count() || late.Stats.Count() != late.Count() {
			t.Fatalf("%d and %d values became %d and %v", a.Count(), b.Count(), late.Count(), late.Stats.Count())
		}
	})
}

// readable reads a model and has its judges judge v and other times.
func readable(t *testing.T, b []byte, v int64) (*outlier.Model, bool) {
	m, rest, err := outlier.ReadModel(b)
	if err != nil {
		if !errors.Is(err, stats.ErrEncoding) || m.Count() != 0 || rest != nil {
			t.Fatalf("refused with %v, %d values, rest %x", err, m.Count(), rest)
		}
		return nil, false
	}
	written := m.AppendBinary(nil)
	again, left, err := outlier.ReadModel(written)
	if err != nil || len(left) > 0 || again.Stats != m.Stats || !bytes.Equal(again.AppendBinary(nil), written) {
		t.Fatalf("%x became %x, rest %x, %v", written, again.AppendBinary(nil), left, err)
	}
	for _, a := range algorithms {
		j := judge(settings(a), &m)
		for _, v := range []int64{v, 0, 7, 1000, math.MaxInt64} {
			score, verdict := j.Judge(v)
			if math.IsNaN(score) || (verdict == outlier.NotJudged) == j.Enough() || math.IsNaN(j.Oddness(v)) {
				t.Fatalf("%s: %d has score %v, verdict %d, oddness %v", a, v, score, verdict, j.Oddness(v))
			}
			if !j.Suspect(v) && verdict != outlier.Normal {
				t.Fatalf("%s: %d is not suspect, but has score %v, verdict %d", a, v, score, verdict)
			}
		}
	}
	for _, a := range []outlier.Algorithm{outlier.HBOS, outlier.COPOD} {
		if _, err := json.Marshal(judge(settings(a), &m)); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
	}
	return &m, true
}

// FuzzTail makes a judge from any histogram, and any timeline. It does not panic, its
// scores are numbers, its limits are in order, and verdicts agree with them.
func FuzzTail(f *testing.F) {
	add := func(m *outlier.Model, least int64, decades float64, v int64) {
		f.Add(m.Hist.AppendBinary(nil), m.Times.AppendBinary(nil), least, decades, v)
	}
	add(learned(), 0, 5, 0)
	add(learned(append(times(40, 3), 1000)...), 0, 5, 24)
	add(learned(append(times(500, 1000), times(9, 9000)...)...), 200, 0.1, 1004)
	add(learned(0, 1, 127, 128, 1<<20, 1<<40, math.MaxInt64), 1, 100, math.MaxInt64)
	f.Fuzz(func(t *testing.T, hist, line []byte, least int64, decades float64, v int64) {
		cfg := outlier.Config{Algorithm: outlier.Tail, Threshold: decades, LeastLoss: least, MinSamples: 1}
		var m outlier.Model
		if _, err := m.Hist.Decode(hist); err != nil || m.Count() == 0 || cfg.Validate() != nil {
			return
		}
		if _, err := m.Times.Decode(line); err != nil || m.Times.Total() > m.Count() {
			m.Times.Reset()
		}
		m.Shift()
		j := judge(cfg, &m)
		if !j.Enough() {
			t.Fatalf("%d times are not enough", m.Count())
		}
		normal := limits(t, j)
		for _, span := range normal {
			if span[0] < 0 || span[0] > span[1] {
				t.Fatalf("normal from %d to %d", span[0], span[1])
			}
		}
		check := func(v int64) {
			score, verdict := j.Judge(v)
			if !(score >= 0 && score <= 100) || verdict == outlier.NotJudged || math.IsNaN(j.Oddness(v)) {
				t.Fatalf("%d has score %v, verdict %d, oddness %v", v, score, verdict, j.Oddness(v))
			}
			if !j.Suspect(v) && verdict != outlier.Normal {
				t.Fatalf("%d is not suspect, but has score %v, verdict %d; normal is %v", v, score, verdict, normal)
			}
			inside := len(normal) == 0
			for _, span := range normal {
				inside = inside || max(v, 0) >= span[0] && v <= span[1]
			}
			if inside == (verdict >= outlier.Recurring) {
				t.Fatalf("%d has verdict %d; normal is %v", v, verdict, normal)
			}
			d := j.Describe(v)
			if d.Count != m.Count() || len(d.Usual) == 0 || d.Alike > d.Count {
				t.Fatalf("%d is described as %+v", v, d)
			}
		}
		for _, v := range []int64{v, 0, -1, 7, 1000, math.MaxInt64} {
			check(v)
		}
		bins := 0
		for bin := range m.Hist.Bins() {
			low, high := stats.BinLow(bin), stats.BinLow(bin+1)-1
			for _, v := range []int64{low - 1, low, low + (high-low)/2, high, high + 1} {
				check(v)
			}
			if bins++; bins > 40 {
				break
			}
		}
		for _, span := range normal {
			for _, v := range []int64{span[0] - 1, span[0], span[1], span[1] + 1} {
				if v >= 0 { // beyond the longest time
					check(v)
				}
			}
		}
	})
}
