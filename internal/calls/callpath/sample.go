package callpath

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Hash identifies a path by the names of its functions, so that it is the same on all ranks. The hash of the empty path is 0,
// and no other path has this hash.
type Hash uint64

// Then returns the hash of the path that extends a path by a function: the 64-bit FNV-1a hash, mixed so that all bits depend
// on all names.
func (h Hash) Then(name string) Hash {
	x := uint64(h) ^ 14695981039346656037
	for i := range len(name) {
		x = (x ^ uint64(name[i])) * 1099511628211
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return Hash(max(x^x>>31, 1))
}

// WorkClass is a class of the work that a call does: the number of bits of the number of calls that it makes.
type WorkClass uint8

// AnyClass stands for all calls of a path.
const AnyClass WorkClass = 63

// ClassOf returns the class of a call that makes calls calls.
func ClassOf(calls uint32) WorkClass { return WorkClass(bits.Len32(calls)) }

// pathBits is the number of bits of a Hash for the path if the Hash includes a class.
const pathBits = 58

// With returns the hash of the calls of a path that do work of class c.
func (h Hash) With(c WorkClass) Hash { return h&(1<<pathBits-1) | Hash(c)<<pathBits }

// Path returns the part of the hash that is the same for all work on a path.
func (h Hash) Path() Hash { return h & (1<<pathBits - 1) }

// Hashes returns the hashes without work that a path may have: With replaces some of the bits.
func (h Hash) Hashes() (all [1 << (64 - pathBits)]Hash) {
	for i := range all {
		all[i] = h.Path() | Hash(i)<<pathBits
	}
	return all
}

// Context is a function with a call path. If Path is 0, it is the function with all its paths.
type Context struct {
	trace.FuncKey
	Path Hash
}

// MaxSample is the greatest number of paths in a Sample.
const MaxSample = 256

// Sample contains values by path for up to MaxSample paths. If there are more paths, it keeps those whose hashes end in a
// zero bit, in two zero bits, and so on: the least number of bits that suffices. The choice therefore depends only on the set
// of all paths, not on their order. The zero value is empty.
type Sample[V any] struct {
	level  uint8 // number of zero bits at the end of all hashes
	values map[Hash]V
}

// Len returns the number of paths.
func (s *Sample[V]) Len() int { return len(s.values) }

// Level returns the number of zero bits at the end of all hashes.
func (s *Sample[V]) Level() uint8 { return s.level }

// Get returns the value of a path.
func (s *Sample[V]) Get(path Hash) (v V, ok bool) {
	v, ok = s.values[path]
	return v, ok
}

// Put sets the value of a path, and reports whether the sample keeps the path. It calls drop with the values of other paths
// that the sample no longer keeps.
func (s *Sample[V]) Put(path Hash, v V, drop func(Hash, V)) bool {
	if !s.Keeps(path) {
		return false
	}
	if s.values == nil {
		s.values = make(map[Hash]V)
	}
	s.values[path] = v
	for len(s.values) > MaxSample {
		s.Raise(s.level+1, func(h Hash, v V) {
			if h != path {
				drop(h, v)
			}
		})
	}
	return s.Keeps(path)
}

// Keeps reports whether the sample keeps a path if the path is added.
func (s *Sample[V]) Keeps(path Hash) bool { return path&(1<<s.level-1) == 0 }

// Raise raises the level to that of a sample of more paths, and calls drop with the values of paths that the sample no longer
// keeps.
func (s *Sample[V]) Raise(level uint8, drop func(Hash, V)) {
	if level <= s.level {
		return
	}
	s.level = level
	for path, v := range s.values {
		if !s.Keeps(path) {
			delete(s.values, path)
			drop(path, v)
		}
	}
}

// Values yields all values in no particular order.
func (s *Sample[V]) Values() iter.Seq[V] { return maps.Values(s.values) }

// Sorted yields the paths and their values in order of the hashes.
func (s *Sample[V]) Sorted() iter.Seq2[Hash, V] {
	return func(yield func(Hash, V) bool) {
		for _, path := range slices.Sorted(maps.Keys(s.values)) {
			if !yield(path, s.values[path]) {
				return
			}
		}
	}
}
