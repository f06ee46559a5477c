// Package contrast finds the fields in which a few executions differ from the rest. From columns of values of a selection and
// its baseline it computes for each field the values that separate the two best, how well they separate them, the counts behind
// that, and whether it may be chance, and describes the result in words. It also defines the fields of executions and the
// conditions on them that users write. The package does not read data, and a difference need not be the cause.
package contrast

import (
	"cmp"
	"math"
	"slices"
)

// Shape is the type of the values of a field.
type Shape int

// The shapes.
// The shapes.
const (
	// Labels have no order, such as hosts and call paths. A few of them can separate samples.
	Labels Shape = iota
	// Numbers are labels with an order, such as ranks and steps. A few of them, or a range, can separate samples.
	Numbers
	// Amounts are measured, such as bytes and memory. A lower or upper bound can separate samples.
	Amounts
	// Spans are numbers that only a range can separate, such as times.
	Spans
)

// Role is the role of a field in an explanation.
type Role int

// The roles, in the order of presentation.
const (
	Cause  Role = iota // place, activity or state
	When               // time, which follows possible causes
	Chosen             // the selection depends on it, so a difference means nothing
)

// Cell is a value of one execution. Cells with the same Unit count as one observation in significance tests, because events on
// a rank within a step mostly share a cause.
type Cell struct {
	Label  string  // for Labels
	Number float64 // for other shapes; neither NaN nor infinite
	Unit   uint64
}

// Share is the known share of a value in the baseline.
type Share struct {
	Label  string
	Number float64
	Weight float64 // ≥ 0; shares of a field are divided by their sum
}

// Moments are the moments of all readings of an amount.
type Moments struct{ Mean, Deviation, Count float64 }

// Column is a field of the selection and of its baseline.
type Column struct {
	Name  string
	Shape Shape
	Role  Role
	// Selection has the values of the Of selected executions. Executions without a value have no cell and count as having
	// another value.
	Selection []Cell
	Of        int
	// Baseline is a sample. If Shares is not empty, it is used instead.
	Baseline []Cell
	Shares   []Share
	// Stale marks values that are read periodically, so that some are older than the execution. That lowers the measure a
	// little.
	Stale bool
	// Moments, for Amounts, bounds the share of all readings that are as extreme as the selection.
	Moments *Moments
}

// Finding is the difference in a field.
type Finding struct {
	Column int // index of the column
	Name   string
	Role   Role
	// The values that separate the selection from the baseline: Labels, Numbers, or From and To with one of Range, Least
	// and Most.
	Labels   []string
	Numbers  []float64
	Range    bool // from From to To, inclusive
	Least    bool // From or more
	Most     bool // To or less
	From, To float64
	// With of the Of selected executions have these values, and BaselineWith of the BaselineOf executions of the baseline,
	// or BaselineShare if BaselineOf is 0.
	With, Of                 int
	BaselineWith, BaselineOf int
	Share, BaselineShare     float64
	// Bounded is true if BaselineShare is an upper bound by mean and deviation.
	Bounded bool
	// Units and BaselineUnits are the numbers of observations in significance tests; 0 if shares are known.
	Units, BaselineUnits int
	// Bits is the measure, from 0 to 1; see Gain.
	Bits float64
	// Chance is the probability of such a difference in any of the fields by chance.
	Chance float64
	// Own is that probability for this field alone.
	Own float64
	// Notable is true if the difference is neither small nor likely to be chance.
	Notable bool

	rest  float64 // smoothed share of the rest
	order float64 // bits for sorting
}

// Config contains the rules. Use Default: the zero value is not valid.
type Config struct {
	// Measure returns the distance of the shares of the selection and the rest with a value.
	Measure func(selection, rest float64) float64
	// A field is notable with at least LeastBits and a chance of at most MaxChance.
	LeastBits, MaxChance float64
	// MaxOwn is the largest Own of a cause that is not notable but precedes notable times with as many bits.
	MaxOwn float64
	// Tie is the difference in bits up to which two fields count as equal, if their shares of the rest differ by at most a
	// factor of TieShare. The field with fewer values, or else the first column, then comes first.
	Tie, TieShare float64
	// Stale is added to the bits of stale fields for sorting.
	Stale float64
	// Step is the least gain of another value, and MaxValues the largest number of values.
	Step      float64
	MaxValues int
}

// Default returns the usual rules. docs/adr/0021-rank-explanations-by-information.md has the reasons.
func Default() Config {
	return Config{
		Measure: Gain, LeastBits: 0.1, MaxChance: 0.01, MaxOwn: 0.05, Tie: 0.03, TieShare: 1.5, Stale: 0.03, Step: 0.02,
		MaxValues: 4,
	}
}

// Gain returns the information in bits that the value of an execution gives about whether the execution is in the selection, if
// both were equally likely before: 0 for equal shares, 1 for all and none. It is the Jensen-Shannon divergence of the two
// shares.
func Gain(selection, rest float64) float64 {
	return max(0, entropy((selection+rest)/2)-(entropy(selection)+entropy(rest))/2)
}

func entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}

// Compare returns a finding for each column in which the selection can differ: first notable causes, then notable times, then
// differences that are small or may be chance, then the fields that define the selection, each in descending order of bits. Of
// two findings with equal bits, the simpler comes first.
func (cfg Config) Compare(columns []Column) []Finding {
	var findings []Finding
	for i := range columns {
		if f, ok := cfg.field(&columns[i]); ok {
			f.Column, f.Name, f.Role, f.order = i, columns[i].Name, columns[i].Role, f.Bits
			if columns[i].Stale && f.Bits > 0 {
				f.order += cfg.Stale
			}
			findings = append(findings, f)
		}
	}
	tests := 0
	for i := range findings {
		if findings[i].Role != Chosen {
			tests++
		}
	}
	for i := range findings {
		f := &findings[i]
		f.Chance = min(1, f.Own*float64(max(1, tests)))
		f.Notable = f.Role != Chosen && f.Bits >= cfg.LeastBits && f.Chance <= cfg.MaxChance
	}
	return cfg.order(findings)
}

// order sorts findings.
func (cfg Config) order(findings []Finding) []Finding {
	group := func(f *Finding) int {
		switch {
		case f.Role == Chosen:
			return 5
		case f.Notable:
			return 2 * int(f.Role)
		case f.Role == Cause && f.Bits >= cfg.LeastBits && f.Own <= cfg.MaxOwn:
			return 1
		}
		return 3 + int(f.Role)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(group(&a), group(&b)), cmp.Compare(b.order, a.order), cmp.Compare(a.Column, b.Column))
	})
	// A simpler finding that is as good precedes the best of the rest.
	for first := range findings {
		best, top := first, &findings[first]
		for i := first + 1; i < len(findings) && group(&findings[i]) == group(top) && findings[i].order >= top.order-cfg.Tie-1e-9; i++ {
			if findings[i].rest <= cfg.TieShare*top.rest && cmp.Or(cmp.Compare(findings[i].values(), findings[best].values()),
				cmp.Compare(findings[i].Column, findings[best].Column)) < 0 {
				best = i
			}
		}
		f := findings[best]
		copy(findings[first+1:best+1], findings[first:best])
		findings[first] = f
	}
	return findings
}

// values returns the number of values to name.
func (f *Finding) values() int {
	if f.Range || f.Least || f.Most {
		return 1
	}
	return max(len(f.Labels), len(f.Numbers))
}
