package outlier

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// finder finds modes.
type finder struct {
	points []point
	passed []float64 // excluded times of each point, of a phase of the run; may be nil
	line   *stats.Timeline
	waits  bool // the function only waits for others
	n      float64
	target float64
	width  float64 // half the window for estimating a density
	edge   float64 // density at which modes end, if based on enough times
	far    float64 // times above are candidates whatever the tails are
}

// shortestHalf returns the length of the shortest interval with half of all times.
func (f *finder) shortestHalf() float64 {
	shortest, sum, j := math.Inf(1), 0.0, 0
	for i := range f.points {
		for ; j < len(f.points) && sum < f.n/2; j++ {
			sum += f.points[j].n
		}
		if sum < f.n/2 {
			break
		}
		shortest = min(shortest, f.points[j-1].x-f.points[i].x)
		sum -= f.points[i].n
	}
	return shortest
}

// window returns half the window for estimating the density at v.
func (f *finder) window(v float64) float64 { return max(f.width, tick/(v+resolution)) }

// estimate computes the density at all points, and the density at which modes end.
func (f *finder) estimate() {
	lo, hi, sum, peak := 0, 0, 0.0, 0.0
	for i := range f.points {
		p := &f.points[i]
		w := f.window(p.v)
		for ; hi < len(f.points) && f.points[hi].x <= p.x+w; hi++ {
			sum += f.points[hi].n
		}
		for ; f.points[lo].x < p.x-w; lo++ {
			sum -= f.points[lo].n
		}
		for hi > i+1 && f.points[hi-1].x > p.x+w { // windows become shorter
			hi--
			sum -= f.points[hi].n
		}
		p.density = sum / (2 * w * f.n)
		peak = max(peak, p.density)
	}
	order := make([]int32, len(f.points))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(f.points[b].density, f.points[a].density), cmp.Compare(a, b))
	})
	covered := 0.0
	for _, i := range order {
		f.edge = f.points[i].density
		if covered += f.points[i].n; covered >= coverage*f.n {
			break
		}
	}
	f.edge = min(f.edge, edgeDensity*peak)
}

// least returns the lowest density around v that is based on enough times.
func (f *finder) least(v float64) float64 { return edgeTimes / (2 * f.window(v) * f.n) }

// edgeAt returns the density at which modes end around v.
func (f *finder) edgeAt(v float64) float64 { return max(f.edge, f.least(v)) }

// region is a range of points in which times are dense.
type region struct {
	first, last, peak int
	n                 float64 // number of times
	phase             bool    // belongs to a phase of the run and has few times
}

// modes returns the dense regions with enough times in order.
func (f *finder) modes() (modes []region) {
	for i := 0; i < len(f.points); {
		if !f.dense(i) {
			i++
			continue
		}
		r := f.region(i)
		if r.n < 2*maxPhase*f.n {
			r.phase = f.passing(coarseBin(f.points[r.first].low), coarseBin(f.points[r.last].high))
		}
		if r.n >= max(minMode*f.n, minTimes) && (r.n >= maxPhase*f.n || !r.phase) {
			modes = append(modes, r)
		}
		i = r.last + 1
	}
	return modes
}

// dense reports whether a point can be part of a mode.
func (f *finder) dense(i int) bool { return f.points[i].density >= f.edgeAt(f.points[i].v) }

// follows reports whether a point follows the previous one without a gap.
func (f *finder) follows(i int) bool {
	return f.points[i].x-f.points[i-1].x <= 2*f.window(f.points[i].v)
}

// region returns the dense region that begins at a point.
func (f *finder) region(first int) region {
	r := region{first: first, last: first, peak: first, n: f.points[first].n}
	for i := first + 1; i < len(f.points) && f.dense(i) && f.follows(i); i++ {
		r.last = i
		r.n += f.points[i].n
		if f.points[i].density > f.points[r.peak].density {
			r.peak = i
		}
	}
	return r
}
