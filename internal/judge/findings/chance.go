package findings

import (
	"math"
	"slices"
)

// quantile returns a quantile of values; 0 without values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// lowerMedian returns the median, and of an even number of values the lower one.
func lowerMedian(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// moments returns mean and standard deviation, independent of the order of values.
func moments(values []float64) (mean, deviation float64) {
	sorted := slices.Sorted(slices.Values(values))
	for _, v := range sorted {
		mean += v / float64(len(sorted))
	}
	var squares float64
	for _, v := range sorted {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / max(1, float64(len(sorted)-1)))
}

// binomialTail returns the probability of at least k hits among n, each with probability p. It
// returns 1 if k is not more than expected.
func binomialTail(k, n int64, p float64) float64 {
	if float64(k) <= float64(n)*p {
		return 1
	}
	if p <= 0 {
		return 0
	}
	choose := func(n, k int64) float64 {
		return lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
	}
	term := math.Exp(choose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-min(p, 1-1e-15)))
	return decreasing(term, func(i int64) float64 { return float64(n-k-i) / float64(k+i+1) * p / (1 - p) })
}

// evidence returns the logarithm of the likelihood of k hits among n relative to that if each has the
// probability p; 0 if k is not more than expected. The probability of so many is at most its negative
// exponential (Chernoff).
func evidence(k, n int, p float64) float64 {
	if float64(k) <= float64(n)*p {
		return 0
	}
	e := float64(k) * math.Log(float64(k)/(float64(n)*p))
	if k < n {
		e += float64(n-k) * math.Log(float64(n-k)/(float64(n)*(1-p)))
	}
	return e
}

// poissonTail returns the probability of at least k events with the given mean. It returns 1 if
// k is not more than expected.
func poissonTail(k int64, mean float64) float64 {
	if float64(k) <= mean {
		return 1
	}
	term := math.Exp(float64(k)*math.Log(mean) - mean - lgamma(float64(k+1)))
	return decreasing(term, func(i int64) float64 { return mean / float64(k+i+1) })
}

// decreasing sums terms, each of which is the last times ratio.
func decreasing(term float64, ratio func(i int64) float64) (sum float64) {
	for i := int64(0); term > sum*1e-12; i++ {
		sum += term
		term *= ratio(i)
	}
	return min(1, sum)
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// expectedOccupancy returns how many of the parts n random hits would hit.
func expectedOccupancy(n int, parts float64) float64 {
	return parts * (1 - math.Pow(1-1/parts, float64(n)))
}

// evenChance returns the probability that equal rates give counts that differ as much.
func evenChance(counts []int64) float64 {
	return shareChance(counts, slices.Repeat([]float64{1}, len(counts)))
}

// shareChance returns the probability that counts differ as much from equal shares of others: Pearson's
// test, with the approximation of Wilson and Hilferty.
func shareChance(counts []int64, others []float64) float64 {
	if len(counts) < 2 {
		return 1
	}
	var total, all, squares float64
	for i, n := range counts {
		total += float64(n)
		all += others[i]
		squares += float64(n) * float64(n) / others[i]
	}
	k := float64(len(counts) - 1)
	x := squares*all/total - total
	z := (math.Cbrt(x/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
	return math.Erfc(z/math.Sqrt2) / 2
}
