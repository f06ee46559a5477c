package stats_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// FuzzHistogram reads two histograms from any bytes. What can be read is
// consistent, can be written and read again, and merges alike before and after.
func FuzzHistogram(f *testing.F) {
	f.Add([]byte{}, []byte{0})
	f.Add(histogramOf(1, 2, 1000).AppendBinary(nil), histogramOf(0, math.MaxInt64).AppendBinary(nil))
	f.Add([]byte{2, 5, 0, 0, 3, 'r'}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, []byte{1, 0x80, 0x80, 1, 1})
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, ok := readable(t, x)
		b, okToo := readable(t, y)
		if !ok || !okToo {
			return
		}
		again := func(h *stats.Histogram) *stats.Histogram {
			b := h.AppendBinary(nil)
			r, rest, err := readHistogram(b)
			if err != nil || len(rest) > 0 {
				t.Fatalf("%x was written and is not read: rest %x, %v", b, rest, err)
			}
			if !maps.Equal(contents(h), contents(&r)) || h.Total() != r.Total() {
				t.Fatalf("written %v, read %v", contents(h), contents(&r))
			}
			return &r
		}
		if a.Total() > math.MaxInt64-b.Total() {
			return // more than one histogram holds
		}
		early, late := again(a), a.Clone()
		early.Merge(again(b))
		late.Merge(b)
		if got, want := early.AppendBinary(nil), again(&late).AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("read and merged %x, merged and read %x", got, want)
		}
		want := contents(a)
		for low, n := range contents(b) {
			want[low] += n
		}
		if got := contents(&late); !maps.Equal(got, want) || late.Total() != a.Total()+b.Total() {
			t.Fatalf("merged: got %v, want %v", got, want)
		}
	})
}

// readable reads a histogram and calls all its methods.
func readable(t *testing.T, b []byte) (*stats.Histogram, bool) {
	h, rest, err := readHistogram(b)
	if err != nil {
		if !errors.Is(err, stats.ErrEncoding) || h.Total() != 0 || rest != nil {
			t.Fatalf("refused with %v, %d values, rest %x", err, h.Total(), rest)
		}
		return nil, false
	}
	if !bytes.HasSuffix(b, rest) {
		t.Fatalf("the rest %x is not that of %x", rest, b)
	}
	sum, last := uint64(0), -1
	for bin, n := range h.Bins() {
		if bin <= last || bin >= stats.NumBins || n == 0 || n != h.Count(bin) {
			t.Fatalf("bin %d after %d holds %d and %d", bin, last, n, h.Count(bin))
		}
		sum, last = sum+n, bin
	}
	if sum != h.Total() {
		t.Fatalf("the counts add up to %d, the total is %d", sum, h.Total())
	}
	for _, q := range []float64{0, 0.5, 1} {
		if v := h.Quantile(q); !(v >= 0 && v <= 1<<63) {
			t.Fatalf("quantile %v is %v", q, v)
		}
	}
	for _, v := range []any{h, h.Moments()} {
		if _, err := json.Marshal(v); err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
	}
	return &h, true
}
