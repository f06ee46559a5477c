package callpath_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/calls/callpath"
)

func TestHashDistinguishesPaths(t *testing.T) {
	var empty callpath.Hash
	all := map[callpath.Hash]string{0: "nothing"}
	for _, path := range [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", ""}, {"", "a"}, {""}, {"", ""}, {"a", "a"}} {
		h := empty
		for _, name := range path {
			h = h.Then(name)
		}
		if other, twice := all[h]; twice {
			t.Errorf("%q has the hash of %s", path, other)
		}
		all[h] = fmt.Sprintf("%q", path)
	}
}

func TestSampleDependsOnlyOnSetOfPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, callpath.MaxSample, callpath.MaxSample + 1, 5000} {
		paths := make([]callpath.Hash, n)
		for i := range paths {
			paths[i] = callpath.Hash(0).Then(fmt.Sprint(i))
		}
		var want []callpath.Hash
		for range 5 {
			var s callpath.Sample[callpath.Hash]
			dropped := make(map[callpath.Hash]bool)
			for _, p := range paths {
				if !s.Put(p, p, func(p, v callpath.Hash) { dropped[p] = p == v }) {
					dropped[p] = true
				}
			}
			var got []callpath.Hash
			for p, v := range s.Sorted() {
				if got = append(got, p); p != v || !s.Keeps(p) || dropped[p] {
					t.Fatalf("path %x has the value %x, dropped: %v", p, v, dropped[p])
				}
			}
			if len(got) > callpath.MaxSample || len(got) != s.Len() || len(got)+len(dropped) != n || n <= callpath.MaxSample && s.Level() > 0 {
				t.Fatalf("%d of %d paths at level %d, %d dropped", len(got), n, s.Level(), len(dropped))
			}
			if want != nil && !slices.Equal(got, want) {
				t.Errorf("the sample of %d paths depends on their order", n)
			}
			want = got
			rng.Shuffle(n, func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		}
	}
}

func TestRaisedSampleDropsPaths(t *testing.T) {
	var s callpath.Sample[int]
	for i := range 16 {
		s.Put(callpath.Hash(16+i), i, nil)
	}
	left := make(map[callpath.Hash]int)
	s.Raise(2, func(p callpath.Hash, v int) { left[p] = v })
	s.Raise(1, nil)
	if len(left) != 12 || !slices.Equal(slices.Sorted(s.Values()), []int{0, 4, 8, 12}) || s.Level() != 2 {
		t.Errorf("level %d, %d values, dropped %v", s.Level(), s.Len(), slices.Sorted(maps.Keys(left)))
	}
}
