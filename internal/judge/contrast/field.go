package contrast

import (
	"cmp"
	"math"
	"slices"
)

// bin counts the executions of the selection and of the baseline with one value of a field.
type bin struct {
	label                string
	number               float64
	selected             int
	inBaseline           int     // if the baseline is a sample
	weight               float64 // if the baseline has shares
	share, baselineShare float64
}

// sides has the counts of a field by value.
type sides struct {
	bins []bin
	// Numbers of executions and observations on both sides; 0 for a baseline with shares.
	n, units, m, restUnits int
	hasShares              bool // shares of all calls, instead of a sample
	moments                *Moments
}

// field returns the values that best separate the selection from the baseline. It returns false if there is only one value, or
// if one side has no data.
func (cfg Config) field(c *Column) (f Finding, ok bool) {
	s := newSides(c)
	if s.units == 0 || s.restUnits == 0 && !s.hasShares && s.moments == nil || len(s.bins) < 2 && s.moments == nil {
		return f, false
	}
	switch c.Shape {
	case Labels:
		f = cfg.set(s, false)
	case Numbers:
		f = cfg.set(s, true)
		if r := cfg.span(s); r.Bits > f.Bits && f.values() > 1 || r.Bits >= f.Bits+cfg.Step {
			f = r
		}
	case Amounts:
		f = cfg.cut(s)
	case Spans:
		f = cfg.span(s)
	}
	return f, true
}

func newSides(c *Column) *sides {
	s := &sides{n: max(c.Of, len(c.Selection)), hasShares: len(c.Shares) > 0}
	if c.Shape == Amounts && c.Moments != nil && c.Moments.Count > 1 && c.Moments.Deviation > 0 {
		s.moments = c.Moments
	}
	at := make(map[bin]int)
	slot := func(label string, number float64) *bin {
		key := bin{label: label, number: number}
		i, ok := at[key]
		if !ok {
			i = len(s.bins)
			at[key] = i
			s.bins = append(s.bins, key)
		}
		return &s.bins[i]
	}
	units := make(map[uint64]bool)
	for _, cell := range c.Selection {
		slot(cell.Label, cell.Number).selected++
		units[cell.Unit] = true
	}
	s.units = len(units)
	sum := 0.0
	if s.hasShares {
		for _, share := range c.Shares {
			slot(share.Label, share.Number).weight += share.Weight
			sum += share.Weight
		}
	} else {
		rest := make(map[uint64]bool)
		for _, cell := range c.Baseline {
			slot(cell.Label, cell.Number).inBaseline++
			rest[cell.Unit] = true
		}
		s.m, s.restUnits = len(c.Baseline), len(rest)
	}
	slices.SortFunc(s.bins, func(a, b bin) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.label, b.label)) })
	for i := range s.bins {
		b := &s.bins[i]
		b.share = float64(b.selected) / float64(s.n)
		switch {
		case sum > 0:
			b.baselineShare = b.weight / sum
		case s.m > 0:
			b.baselineShare = float64(b.inBaseline) / float64(s.m)
		}
	}
	return s
}

// amount is the sum of some bins.
type amount struct {
	selected, inBaseline int
	baselineShare        float64
}

func (a *amount) add(b *bin) {
	a.selected += b.selected
	a.inBaseline += b.inBaseline
	a.baselineShare += b.baselineShare
}

// take returns the finding of some bins, without its chance. bound, if not nil, is an upper bound of the share of the baseline.
func (cfg Config) take(s *sides, a amount, bound *float64) Finding {
	f := Finding{
		With: a.selected, Of: s.n, BaselineWith: a.inBaseline, BaselineOf: s.m, Units: s.units, BaselineUnits: s.restUnits,
		Share: float64(a.selected) / float64(s.n), BaselineShare: min(1, a.baselineShare),
	}
	baseline := f.BaselineShare
	if !s.hasShares {
		baseline = 1
		if s.restUnits > 0 {
			baseline = smooth(f.BaselineShare, s.restUnits)
		}
		if bound != nil && *bound < baseline {
			baseline, f.BaselineShare, f.Bounded = *bound, *bound, true
		}
	}
	f.rest = baseline
	if selected := smooth(f.Share, s.units); selected > baseline {
		f.Bits = cfg.Measure(selected, baseline)
	}
	return f
}

// judge computes the chance of a finding that is the best of looks choices of values.
func (s *sides) judge(f *Finding, looks float64) {
	k := int(math.Round(f.Share * float64(s.units)))
	if s.hasShares || f.Bounded {
		f.Own = binomialTail(k, s.units, f.BaselineShare)
	} else {
		f.Own = fisherTail(k, s.units, int(math.Round(f.BaselineShare*float64(s.restUnits))), s.restUnits)
	}
	f.Own = min(1, f.Own*max(1, looks))
}

// smooth moves a share of n observations toward one half, as if there were one more observation and half of it had the value.
func smooth(share float64, n int) float64 { return (share*float64(n) + 0.5) / (float64(n) + 1) }

// set returns the values with the largest excess in the selection, as long as each adds enough bits.
func (cfg Config) set(s *sides, numbers bool) (best Finding) {
	sorted := slices.Clone(s.bins)
	slices.SortStableFunc(sorted, func(a, b bin) int { return cmp.Compare(b.share-b.baselineShare, a.share-a.baselineShare) })
	var sum amount
	taken := 0
	for n := 1; n <= min(cfg.MaxValues, len(sorted)) && (n == 1 || sorted[n-1].share > sorted[n-1].baselineShare); n++ {
		sum.add(&sorted[n-1])
		f := cfg.take(s, sum, nil)
		if n > 1 && f.Bits < best.Bits+cfg.Step {
			break
		}
		best, taken = f, n
	}
	for _, b := range sorted[:taken] {
		if numbers {
			best.Numbers = append(best.Numbers, b.number)
		} else {
			best.Labels = append(best.Labels, b.label)
		}
	}
	slices.Sort(best.Numbers)
	s.judge(&best, math.Exp(logChoose(len(sorted), taken)))
	return best
}

// span returns the range of values with the largest excess in the selection.
func (cfg Config) span(s *sides) Finding {
	first, last, most := 0, 0, math.Inf(-1)
	for begin, i, sum := 0, 0, 0.0; i < len(s.bins); i++ {
		if sum <= 0 {
			begin, sum = i, 0
		}
		if sum += s.bins[i].share - s.bins[i].baselineShare; sum > most {
			first, last, most = begin, i, sum
		}
	}
	var sum amount
	for i := first; i <= last; i++ {
		sum.add(&s.bins[i])
	}
	f := cfg.take(s, sum, nil)
	f.Range, f.From, f.To = true, s.bins[first].number, s.bins[last].number
	n := float64(len(s.bins))
	s.judge(&f, n*(n+1)/2)
	return f
}

// cut returns all values above or below a bound.
func (cfg Config) cut(s *sides) (best Finding) {
	try := func(i int, sum amount, large bool) {
		if s.bins[i].selected == 0 {
			return // a bound is a value of the selection
		}
		value := s.bins[i].number
		f := cfg.take(s, sum, s.beyond(value, large))
		if best.Of > 0 && f.Bits <= best.Bits {
			return
		}
		best = f
		if large {
			best.Least, best.From = true, value
		} else {
			best.Most, best.To = true, value
		}
	}
	var up, down amount
	for i := len(s.bins) - 1; i >= 0; i-- {
		up.add(&s.bins[i])
		try(i, up, true)
	}
	for i := range s.bins {
		down.add(&s.bins[i])
		try(i, down, false)
	}
	s.judge(&best, 2*float64(len(s.bins)))
	return best
}

// beyond returns an upper bound of the share of all readings that are as large, or as small, as a value, by Cantelli's
// inequality. It is nil if the value is on the other side of the mean.
func (s *sides) beyond(value float64, large bool) *float64 {
	if s.moments == nil {
		return nil
	}
	d := value - s.moments.Mean
	if !large {
		d = -d
	}
	if d <= 0 {
		return nil
	}
	v := s.moments.Deviation * s.moments.Deviation
	return new(v / (v + d*d))
}
