package outlier

import "math"

// tail is one side of a mode. At a distance of flat from the peak the logarithm of
// the density has fallen by little; from there on it falls with the distance to the
// power of shape, by level at edge: 1 is the shape of a heavy tail, 2 that of a normal
// distribution. Most modes have a peak, not a plateau, so that flat and little are 0.
type tail struct{ flat, little, edge, level, shape float64 }

// decay is by how much the logarithm of the density has fallen at a distance.
func (t *tail) decay(distance float64) float64 {
	if distance < t.flat {
		return t.little * distance / t.flat
	}
	return t.little + t.level*math.Pow((distance-t.flat)/t.edge, t.shape)
}

// reach is the distance at which it has fallen so far.
func (t *tail) reach(decay float64) float64 {
	return t.flat + t.edge*math.Pow(max((decay-t.little)/t.level, 1), 1/t.shape)
}

// upTail is the upper tail of a mode that ends at a density of edge. Where the mode
// is a plateau, how the density falls behind it tells more than how it falls from the
// peak on.
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
	t := f.tail(end, outermost(math.Sqrt(peak.density*edge)), level)
	flat := outermost(peak.density / 2)
	if flat <= plateau*end || level < 1+math.Ln2 || f.n < 2*shrinkage {
		return t
	}
	behind := f.tail(end-flat, outermost(math.Sqrt(peak.density/2*edge))-flat, level-math.Ln2)
	behind.flat, behind.little = flat, math.Ln2
	if behind.reach(f.target) < t.reach(f.target) {
		return behind
	}
	return t
}

// downTail is the lower tail of a mode, in the given measure of times. In that of the
// logarithm times of a wide normal distribution are further out than they look.
func (f *finder) downTail(r *region, edge float64, measure func(*point) float64) tail {
	p, peak := f.points, &f.points[r.peak]
	half, density := r.first, math.Sqrt(peak.density*edge)
	for p[half].density < density {
		half++
	}
	top := measure(peak)
	return f.tail(top-measure(&p[r.first]), top-measure(&p[half]), math.Log(peak.density/edge))
}

// tail is a side of a mode whose density has fallen by level at edge, and by half
// of that at half.
func (f *finder) tail(edge, half, level float64) tail {
	edge = max(edge, f.width)
	half = min(max(half, f.width/2), edge)
	shape := math.Ln2 / math.Log(max(edge/half, 1.0001))
	shape = min(max(shape, 0.5), 2)
	return tail{edge: edge, level: max(level, 0.7), shape: 1 + (shape-1)*f.n/(f.n+shrinkage)}
}
