package peers

import (
	"math"
	"math/bits"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// What-if divides the run into blocks of windows: at most mostBlocks, each longWaits times as long as the longest wait,
// because in a shorter block all units may be busy: the others before they wait.
const (
	mostBlocks = 16
	longWaits  = 4
)

// fixed returns the useful time of a unit in a window if it were not slow.
func (u *unit) fixed(w int) float64 {
	x := u.excess[w]
	switch {
	case u.slow == nil || !u.slow.includes(w):
		x = 0
	case math.IsNaN(x):
		x = u.slow.level
	}
	return u.useful[w] * math.Exp(-x)
}

// whatIf returns how much shorter the run would be if the useful time of some units were fixed, and how long the others
// waited for them. In each round of a block, the unit that is useful longest determines the duration.
func (c *comparison) whatIf(p *population, some []*unit, fixed func(*unit, int) float64) (saved, caused float64) {
	members, ranks := make(map[*unit]bool), make(map[trace.Rank]bool)
	for _, u := range some {
		members[u], ranks[u.Rank] = true, p.device
	}
	n, noise := c.block(p), c.noiseOf(p)
	before, after, meanwhile := make([]float64, len(p.units)), make([]float64, len(p.units)), make([]float64, len(p.units))
	for from := 0; from < c.windows; from += n {
		to := min(c.windows, from+n)
		clear(before)
		clear(after)
		clear(meanwhile)
		for w := from; w < to; w++ {
			differs := false
			for i, u := range p.units {
				useful := max(0, u.useful[w])
				before[i] += useful
				if members[u] {
					better := max(0, fixed(u, w))
					differs = differs || better != useful
					useful = better
				}
				after[i] += useful
			}
			for i, u := range p.units {
				if differs {
					meanwhile[i] += max(0, u.useful[w])
				}
			}
		}
		typical := noise * median(meanwhile)
		less := expectedMax(before, typical) - expectedMax(after, typical)
		if less <= 0 {
			continue
		}
		saved += less
		for _, u := range p.waiting {
			if !members[u] && !ranks[u.Rank] {
				caused += min(sum(u.wait[from:to])+sum(u.idle[from:to]), less)
			}
		}
	}
	return saved, caused
}

// block returns the number of windows of a block.
func (c *comparison) block(p *population) int {
	if p.perBlock > 0 {
		return p.perBlock
	}
	const all = 0.9 // least share of a window in which a unit only waits
	longest := 0.0  // longest wait, in windows
	for _, u := range p.units {
		length, most, useful := 0.0, 0.0, 0.0
		for w, v := range u.useful {
			useful += max(0, v)
			from, to := c.bounds(w)
			share := u.wait[w] / max(1, float64(to-from))
			length += share
			if most = max(most, length); share < all {
				length = share // part of a wait that may begin here
			}
		}
		if 4*useful > float64(u.Last-u.First) { // otherwise the unit mostly waits
			longest = max(longest, most)
		}
	}
	p.perBlock = max((c.windows+mostBlocks-1)/mostBlocks, int(math.Ceil(longWaits*longest)))
	return p.perBlock
}

// noiseOf returns how much the useful time of a unit varies from round to round, as a share of its time. In a window with n
// rounds it varies by √n times less, because rounds are independent. It is 0 if the number of rounds is unknown.
func (c *comparison) noiseOf(p *population) float64 {
	if p.noise == nil {
		var steps []float64 // differences from window to window, because lasting differences of units are not noise
		for _, u := range p.units {
			n := float64(u.peers + 1)
			for w := 1; w < c.windows && u.slow == nil; w++ {
				if step := u.raw[w] - u.raw[w-1]; !math.IsNaN(step) { // of a unit and the mean of n units, in two windows
					steps = append(steps, step/math.Sqrt(2*(1-1/n)))
				}
			}
		}
		p.noise = new(deviation(steps) * math.Sqrt(p.rounds))
	}
	return *p.noise
}

// sameNumber is the greatest factor between numbers of calls that count as equal.
const sameNumber = 1.02

// rounds returns the number of rounds of the run: the most frequent number of calls of a unit among the kinds of work in most
// blocks, because loops call most functions once. It is 0 if there are none.
func rounds(works []total, blocks []uint16) float64 {
	present := uint16(0)
	for _, b := range blocks {
		present |= b
	}
	var counts []float64
	for i := range works {
		if 2*bits.OnesCount16(blocks[i]) > bits.OnesCount16(present) {
			counts = append(counts, works[i].calls/float64(works[i].units))
		}
	}
	slices.Sort(counts)
	most, number := 0, 0.0
	for i, n := range counts {
		end, _ := slices.BinarySearch(counts, sameNumber*n)
		if end-i > most {
			most, number = end-i, n
		}
	}
	return number
}

// nodes is the number of values in the numerical integration of an expected maximum.
const nodes = 40

// expectedMax returns the expected maximum of normally distributed values with these means and this deviation.
func expectedMax(means []float64, deviation float64) float64 {
	top := slices.Max(means)
	if !(deviation > 0) {
		return top
	}
	// Only values near the maximum matter. They are counted in classes.
	const below, above, classes = 8., 6., 64 // in deviations
	var counts [classes + 1]float64
	for _, m := range means {
		if class := (top - m) / deviation / below * classes; class <= classes {
			counts[int(class+0.5)]++
		}
	}
	expected, step := top, (below/2+above)*deviation/nodes
	for i := range nodes {
		x := (float64(i)+0.5)*step/deviation - below/2 // distance from the maximum
		log := 0.0
		for class, n := range counts {
			if n > 0 {
				log += n * math.Log(math.Erfc(-(x+below*float64(class)/classes)/math.Sqrt2)/2)
			}
		}
		if all := math.Exp(log); x < 0 {
			expected -= all * step
		} else {
			expected += (1 - all) * step
		}
	}
	return expected
}
