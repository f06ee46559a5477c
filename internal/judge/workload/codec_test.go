package workload_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// randomLoad returns a load of several programs, hosts and devices.
func randomLoad(rng *rand.Rand) *workload.Load {
	l := workload.New()
	for _, e := range randomEvents(rng) {
		e.lane.Program, e.work.Program = trace.Program(e.lane.Rank%2), trace.Program(e.lane.Rank%2)
		lane := l.Lane(e.lane)
		lane.Host, lane.Device = []string{"", "a", "host 2"}[e.lane.Rank%3], e.lane.Thread == 1
		if lane.Gaps = e.lane.Rank%2 == 1; lane.Device {
			lane.GPU = uint64(e.lane.Rank % 3)
		}
		add(l, &e)
	}
	return l
}

func decode(t *testing.T, b []byte) *workload.Load {
	t.Helper()
	l, err := workload.Decode(b, math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDecodedLoadsAreEqual(t *testing.T) {
	for seed := range tracetest.Cases(uint64(30), 6) {
		rng := rand.New(rand.NewPCG(seed, 4))
		one, other := randomLoad(rng), randomLoad(rng)
		first, second := decode(t, one.AppendDense(nil)), decode(t, other.AppendBinary([]byte("x"))[1:])
		if !maps.Equal(content(first), content(one)) {
			t.Fatalf("seed %d: content changed", seed)
		}
		one.Merge(other, same)
		second.Merge(first, same)
		if !maps.Equal(content(second), content(one)) || !bytes.Equal(second.AppendBinary(nil), one.AppendBinary(nil)) {
			t.Fatalf("seed %d: merged loads differ", seed)
		}
	}
}

func TestDecodeRejectsDamage(t *testing.T) {
	l := randomLoad(rand.New(rand.NewPCG(1, 4)))
	for _, b := range [][]byte{l.AppendBinary(nil), l.AppendDense(nil)} {
		for n := range min(len(b), tracetest.Cases(3000, 600)) {
			if _, err := workload.Decode(b[:n], math.MaxUint64); !errors.Is(err, stats.ErrEncoding) {
				t.Fatalf("%d of %d bytes: got %v", n, len(b), err)
			}
		}
		if _, err := workload.Decode(append(b, 0), math.MaxUint64); !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("trailing byte: got %v", err)
		}
	}
	// A load with two kinds of work, a host and a lane with a window of two cells.
	valid := []byte{16, 0, 0, 20, 2, 0, 2, 0, 4, 1, 1, 'h', 1, 0, 0, 0, 0, 1, 0, 9, 0, 5, 3, 4, 1, 7, 33, 7}
	dense := append(bytes.Clone(valid[:23]), 2, 1, 33, 14, 14)
	dense[0] |= 1 << 7
	for _, b := range [][]byte{valid, dense} {
		if l, err := workload.Decode(b, 7); err != nil || !maps.Equal(content(l), content(decode(t, valid))) {
			t.Errorf("valid load: got %v", err)
		}
		if _, err := workload.Decode(b, 6); !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("sum too large: got %v", err)
		}
	}
	for at, value := range map[int]byte{23: 3, 25: 63, 27: 13} {
		b := bytes.Clone(dense)
		b[at] = value
		if _, err := workload.Decode(b, 1<<40); !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("byte %d of a dense load is %d: got %v", at, value, err)
		}
	}
	for name, change := range map[string]map[int]byte{
		"narrow windows":           {0: 15},
		"wide windows":             {0: 60},
		"choice of paths":          {1: 65},
		"time overflows":           {3: 0x80},
		"unsorted work":            {8: 2},
		"unknown work":             {26: 65},
		"duplicate work in window": {26: 1},
		"too many calls":           {26: 63},
		"work of another program":  {7: 1},
		"unknown host":             {16: 4},
		"rank too large":           {14: 0xff},
		"thread too large":         {15: 32},
		"lane ends after the load": {19: 21},
		"window after the end":     {20: 1},
		"more sync than wait":      {22: 6},
		"list too long":            {23: 100},
		"cell exceeds its window":  {23: 3},
	} {
		b := bytes.Clone(valid)
		for i, v := range change {
			b[i] = v
		}
		if _, err := workload.Decode(b, math.MaxUint64); !errors.Is(err, stats.ErrEncoding) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCloneIsIndependent(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 4))
	l, more := randomLoad(rng), randomLoad(rng)
	before := content(l)
	clone := l.Clone()
	l.Merge(more, same)
	if after := content(l); !maps.Equal(content(clone), before) || maps.Equal(after, before) {
		t.Error("adding to a load changes its clone")
	} else if clone.Merge(more, same); !maps.Equal(content(clone), after) || !maps.Equal(content(l), after) {
		t.Error("a clone merges otherwise")
	}
}

func FuzzDecode(f *testing.F) {
	small := workload.New()
	for i, e := range randomEvents(rand.New(rand.NewPCG(3, 4)))[:12] {
		e.lane.Rank, e.work.Path = trace.Rank(i%3), callpath.Hash(i%4)
		add(small, &e)
	}
	f.Add(small.AppendBinary(nil))
	f.Add(small.AppendDense(nil))
	f.Add(workload.New().AppendBinary(nil))
	f.Add([]byte{16, 0, 0, 20, 2, 0, 2, 0, 4, 1, 1, 'h', 1, 0, 0, 0, 0, 1, 0, 9, 0, 5, 3, 4, 1, 7, 33, 7})
	f.Add([]byte{57, 64, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 1, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := workload.Decode(data, 1<<40)
		if err != nil {
			if !errors.Is(err, stats.ErrEncoding) {
				t.Fatal(err)
			}
			return
		}
		again := decode(t, l.AppendDense(nil))
		if !maps.Equal(content(again), content(l)) {
			t.Fatal("content changed")
		}
		sum := small.Clone()
		sum.Merge(l, same)
		again.Merge(small, same)
		if !maps.Equal(content(again), content(sum)) {
			t.Fatal("merging depends on the order")
		}
		decode(t, sum.AppendBinary(nil))
	})
}
