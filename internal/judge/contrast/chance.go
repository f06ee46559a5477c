package contrast

import "math"

// binomialTail returns the probability of k or more hits among n, each with probability p.
func binomialTail(k, n int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0 || k > n:
		return 0
	}
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}

// fisherTail returns the probability that, of k+y executions with a value among n+m, k or more are among the n by chance.
func fisherTail(k, n, y, m int) float64 {
	with := k + y
	sum := 0.0
	for i := k; i <= min(n, with); i++ {
		if with-i > m {
			continue
		}
		sum += math.Exp(logChoose(n, i) + logChoose(m, with-i) - logChoose(n+m, with))
	}
	return min(1, sum)
}

func logChoose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
