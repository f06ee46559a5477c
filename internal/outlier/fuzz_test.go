package outlier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/stats"
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

// readable reads a model and asks judges made from it about v and others.
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
