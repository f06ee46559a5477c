package trace

import "slices"

// Range is a range from First to Last, inclusive.
type Range struct{ First, Last int64 }

// Selects reports whether a number is in one of the ranges. Without ranges it selects all numbers.
func Selects(ranges []Range, n int64) bool {
	return len(ranges) == 0 || slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= n && n <= r.Last })
}
