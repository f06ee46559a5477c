package findings

import (
	"math"
	"slices"
)

// quantile returns a quantile of values, or 0 if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// lowerMedian returns the median; of an even number of values, the lower of the two in the middle.
func lowerMedian(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

// moments returns the mean and the standard deviation. They do not depend on the order of values.
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

// binomialTail returns the probability of at least k hits among n, each with probability p. It returns 1 if k is not above
// the mean.
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

// drawTail returns the probability of at least k hits among n draws without replacement from all, of which hits are hits. It
// returns 1 if k is not above the mean.
func drawTail(k, n, hits, all int) float64 {
	if float64(k)*float64(all) <= float64(n)*float64(hits) {
		return 1
	}
	choose := func(n, k int) float64 {
		return lgamma(float64(n+1)) - lgamma(float64(k+1)) - lgamma(float64(n-k+1))
	}
	term := math.Exp(choose(hits, k) + choose(all-hits, n-k) - choose(all, n))
	return decreasing(term, func(i int64) float64 {
		k := float64(k) + float64(i)
		return (float64(hits) - k) * (float64(n) - k) / ((k + 1) * (float64(all-hits-n) + k + 1))
	})
}

// evidence returns the log-likelihood ratio of k hits among n against n hits with probability p each, or 0 if k is not above
// the mean. The probability of at least k hits is at most exp(-evidence) (Chernoff).
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

// poissonTail returns the probability of at least k events with the given mean. It returns 1 if k is not above the mean.
func poissonTail(k int64, mean float64) float64 {
	if float64(k) <= mean {
		return 1
	}
	term := math.Exp(float64(k)*math.Log(mean) - mean - lgamma(float64(k+1)))
	return decreasing(term, func(i int64) float64 { return mean / float64(k+i+1) })
}

// decreasing sums a series in which the ratio of term i+1 to term i is ratio(i).
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

// expectedOccupancy returns the expected number of parts that n random hits hit.
func expectedOccupancy(n int, parts float64) float64 {
	return parts * (1 - math.Pow(1-1/parts, float64(n)))
}

// evenChance returns the probability that counts with equal rates differ at least as much as these.
func evenChance(counts []int64) float64 {
	return shareChance(counts, slices.Repeat([]float64{1}, len(counts)))
}

// shareChance returns the probability that counts differ as much from equal shares of others, by Pearson's test with the
// approximation of Wilson and Hilferty.
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
