package outlier

import "math"

// tail is one side of a mode. At the distance flat from the peak the logarithm of the
// density has decreased by little; from there it decreases with the distance to the
// power of shape, by level at edge. The shape is 1 for a heavy tail and 2 for a normal
// distribution. Most modes have a peak instead of a plateau, so that flat and little are
// 0.
type tail struct{ flat, little, edge, level, shape float64 }

// decay returns the decrease of the logarithm of the density at a distance.
func (t *tail) decay(distance float64) float64 {
	if distance < t.flat {
		return t.little * distance / t.flat
	}
	return t.little + t.level*math.Pow((distance-t.flat)/t.edge, t.shape)
}

// reach returns the distance at which the logarithm of the density has decreased by
// decay.
func (t *tail) reach(decay float64) float64 {
	return t.flat + t.edge*math.Pow(max((decay-t.little)/t.level, 1), 1/t.shape)
}

// upTail returns the upper tail of a mode that ends at the density edge. If the mode is a
// plateau, the decrease behind it is more significant than the decrease from the peak.
func (f *finder) upTail(r *region, edge float64) tail {
	p, peak := f.points, &f.points[r.peak]
	level := math.Log(peak.density / edge)
	outermost := func(density float64) float64 {
		i := r.last
		for p[i].density < density {
			i--
		}
		return p[i].x - peak.x
	}
	end := p[r.last].x - peak.x
	t := f.tail(r, end, outermost(math.Sqrt(peak.density*edge)), level, f.fit(r, 1))
	flat := outermost(peak.density / 2)
	if flat <= plateau*end || level < 1+math.Ln2 || r.n < wellKnown {
		return t
	}
	behind := f.tail(r, end-flat, outermost(math.Sqrt(peak.density/2*edge))-flat, level-math.Ln2, unknown)
	behind.flat, behind.little = flat, math.Ln2
	if behind.reach(f.target) < t.reach(f.target) {
		return behind
	}
	return t
}

// downTail returns the lower tail of a mode in the given measure of times, with a shape
// that is not lighter than fitted. The logarithm exaggerates the distance of low times of
// a wide normal distribution.
func (f *finder) downTail(r *region, edge float64, measure func(*point) float64, fitted float64) tail {
	p, peak := f.points, &f.points[r.peak]
	half, density := r.first, math.Sqrt(peak.density*edge)
	for p[half].density < density {
		half++
	}
	top := measure(peak)
	return f.tail(r, top-measure(&p[r.first]), top-measure(&p[half]), math.Log(peak.density/edge), fitted)
}

// tail returns a side of a mode whose density has decreased by level at edge, and by half
// of that at half. The shape from these two distances is based on the few times at the
// edge; fitted is the shape from all times of the side. The heavier one counts.
func (f *finder) tail(r *region, edge, half, level, fitted float64) tail {
	edge = max(edge, f.width)
	half = min(max(half, f.width/2), edge)
	shape := min(math.Ln2/math.Log(max(edge/half, 1.0001)), fitted)
	shape = min(max(shape, 0.5), 2)
	return tail{edge: edge, level: max(level, 0.7), shape: 1 + (shape-1)*r.n/(r.n+shrinkage)}
}

// unknown is the shape of a side with too few bins, lighter than any tail.
var unknown = math.Inf(1)

// fit returns the shape of the upper (1) or lower (-1) side of a mode from all its times:
// the power of the distance from the peak with which the logarithm of the density
// decreases. It is the slope of a line through cells of equal length, in logarithms of
// both, weighted by their significance. It is at least 1, because a narrow peak on a wide
// hill has no shape.
func (f *finder) fit(r *region, side int) float64 {
	peak, last := &f.points[r.peak], r.last
	if side < 0 {
		last = r.first
	}
	cells := min(fitCells, (last-r.peak)*side/2)
	if cells < 3 || f.waits {
		return unknown
	}
	// Distances from the peak, of a time and of the bounds of a bin.
	distance := func(v float64) float64 { return float64(side) * (position(v) - peak.x) }
	near := func(p *point) float64 { return min(distance(p.low-0.5), distance(p.high+0.5)) }
	away := func(p *point) float64 { return max(distance(p.low-0.5), distance(p.high+0.5)) }

	begin, end := away(peak), away(&f.points[last])
	from, top := begin, math.Log(peak.density*f.n)
	var sum, sumX, sumY, sumXX, sumXY float64
	for cell, i := 1, r.peak+side; cell <= cells; cell++ {
		to, n := begin+(end-begin)*float64(cell)/float64(cells), 0.5
		for ; (last-i)*side >= 0 && float64(side)*(f.points[i].x-peak.x) <= to; i += side {
			n += f.points[i].n
		}
		if (last-i)*side >= 0 { // a bin belongs to one cell
			to = max(min(to, near(&f.points[i])), away(&f.points[i-side]))
		} else {
			to = end
		}
		length, middle := to-from, (to+from)/2
		from = to
		if length <= 0 {
			continue
		}
		fall := top - math.Log(n/length)
		if fall < leastFall {
			continue
		}
		x, y, weight := math.Log(middle), math.Log(fall), float64(n*fall)*fall
		sum += weight
		sumX += float64(weight * x)
		sumY += float64(weight * y)
		sumXX += float64(weight*x) * x
		sumXY += float64(weight*x) * y
	}
	spread := float64(sum*sumXX) - float64(sumX*sumX)
	if spread <= 1e-9*float64(sum*sum) {
		return unknown
	}
	return max((float64(sum*sumXY)-float64(sumX*sumY))/spread, 1)
}
