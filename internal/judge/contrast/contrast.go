// Package contrast finds the fields in which a few executions differ from the rest. From
// columns of values of the selection and of its baseline it computes for each field the
// values that separate the two best, how well they do, on how much that rests, and whether
// it may be chance, and puts the result into words. It also has the fields of executions
// and the conditions on them that people write. It does not know where values come from,
// and a difference need not be the cause.
package contrast

import (
	"cmp"
	"math"
	"slices"
)

// Shape is what the values of a field are.
type Shape int

// The shapes.
const (
	// Labels have no order: hosts, call paths. A few of them can tell samples apart.
	Labels Shape = iota
	// Numbers are labels with an order: ranks, steps. A few, or all of a range.
	Numbers
	// Amounts are measured: bytes, memory. All up to one, or all from one on.
	Amounts
	// Spans are numbers of which only a range makes sense: times.
	Spans
)

// Role is what a field can be for a selection.
type Role int

// The roles, in the order in which fields of them are told.
const (
	Cause  Role = iota // where it was, what it did, in which state
	When               // all that happens has its time: it is told after what may be a cause
	Chosen             // the selection was made by it, so that it differs tells nothing
)

// Cell is a value of one execution. Cells of the same Unit count as one observation for
// chance: what happens on a rank within a step has mostly one reason.
type Cell struct {
	Label  string  // of Labels
	Number float64 // of Numbers and Amounts; neither NaN nor infinite
	Unit   uint64
}

// Share is how much of all there is has a value.
type Share struct {
	Label  string
	Number float64
	Weight float64 // not negative; shares of a field are divided by their sum
}

// Moments is what is known of all readings of an amount.
type Moments struct{ Mean, Deviation, Count float64 }

// Column is a field of the selection and of what it is held against.
type Column struct {
	Name  string
	Shape Shape
	Role  Role
	// Selection are the values of selected executions, of which there are Of; those
	// without a value have no cell, and count as having another.
	Selection []Cell
	Of        int
	// Baseline is a sample of the rest. Shares is used instead where they are known.
	Baseline []Cell
	Shares   []Share
	// Stale says that values are read now and then, so that those of some executions are
	// of before: the measure is a little low then.
	Stale bool
	// Moments bounds, for Amounts, how many of all can be as far out as the selection.
	Moments *Moments
}

// Finding is how a field differs.
type Finding struct {
	Column int // index of the columns
	Name   string
	Role   Role
	// The values that tell the selection from the rest. Range and Least or Most say how
	// From and To are meant; otherwise Labels or Numbers are listed.
	Labels   []string
	Numbers  []float64
	Range    bool // from From to To, both included
	Least    bool // From or more
	Most     bool // To or less
	From, To float64
	// With of Of selected executions have them, and BaselineWith of BaselineOf of the
	// rest, or this share of it if BaselineOf is 0.
	With, Of                 int
	BaselineWith, BaselineOf int
	Share, BaselineShare     float64
	// Bounded says that the share of the rest is at most this, by mean and deviation.
	Bounded bool
	// Units and BaselineUnits are the observations that count for chance; 0: all is known.
	Units, BaselineUnits int
	// Bits is the measure, from 0 to 1; see Gain.
	Bits float64
	// Chance is how likely it is to find such a difference in one of all fields if
	// there is none; at most 1.
	Chance float64
	// Own is the same for this field alone.
	Own float64
	// Notable says that the difference is neither small nor likely to be chance.
	Notable bool

	rest  float64 // share of the rest as it is measured
	order float64 // bits by which it is ordered
}

// Config are the rules. The zero value is not useful: see Default.
type Config struct {
	// Measure tells how far two shares are apart: how many of the selection and of
	// the rest have a value.
	Measure func(selection, rest float64) float64
	// A field is notable with so many bits, and a chance of at most MaxChance.
	LeastBits, MaxChance float64
	// MaxOwn is the chance by itself up to which a cause with as many bits comes before
	// a notable time, though it is not notable.
	MaxOwn float64
	// Tie is how many bits two fields may differ by and still be told as equal, if the
	// rest has no more than TieShare times as much of one as of the other: then fewer
	// values come first, and then the field that the caller named first.
	Tie, TieShare float64
	// Stale is how many bits more a stale field is taken to have in the order.
	Stale float64
	// Step is what one more value must add, MaxValues how many there are at most.
	Step      float64
	MaxValues int
}

// Default are the rules that are used everywhere; docs/adr/0021-rank-explanations-by-information.md says why.
func Default() Config {
	return Config{
		Measure: Gain, LeastBits: 0.1, MaxChance: 0.01, MaxOwn: 0.05, Tie: 0.03, TieShare: 1.5, Stale: 0.03, Step: 0.02,
		MaxValues: 4,
	}
}

// Gain is the information in bits that one look at an execution gives about whether it
// is one of the selection, if before both were as likely: how many of each have the
// value. 0: as many here as there; 1: all here, and none there. It is the
// Jensen-Shannon divergence of the two shares.
func Gain(selection, rest float64) float64 {
	return max(0, entropy((selection+rest)/2)-(entropy(selection)+entropy(rest))/2)
}

func entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log2(1-p)
}

// Compare returns a finding for each column in which the selection can differ, the
// fields that explain most first: causes, then times, then all that is small or may be
// chance, and what it was chosen by last. Of two that explain as much the simpler comes
// first.
func (cfg Config) Compare(columns []Column) []Finding {
	var found []Finding
	for i := range columns {
		if f, ok := cfg.field(&columns[i]); ok {
			f.Column, f.Name, f.Role, f.order = i, columns[i].Name, columns[i].Role, f.Bits
			if columns[i].Stale && f.Bits > 0 {
				f.order += cfg.Stale
			}
			found = append(found, f)
		}
	}
	looked := 0
	for i := range found {
		if found[i].Role != Chosen {
			looked++
		}
	}
	for i := range found {
		f := &found[i]
		f.Chance = min(1, f.Own*float64(max(1, looked)))
		f.Notable = f.Role != Chosen && f.Bits >= cfg.LeastBits && f.Chance <= cfg.MaxChance
	}
	return cfg.order(found)
}

// order sorts findings.
func (cfg Config) order(found []Finding) []Finding {
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
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(group(&a), group(&b)), cmp.Compare(b.order, a.order), cmp.Compare(a.Column, b.Column))
	})
	// What is as good as the best of those that are left comes before it if it is simpler.
	for first := range found {
		best, top := first, &found[first]
		for i := first + 1; i < len(found) && group(&found[i]) == group(top) && found[i].order >= top.order-cfg.Tie-1e-9; i++ {
			if found[i].rest <= cfg.TieShare*top.rest && cmp.Or(cmp.Compare(found[i].values(), found[best].values()),
				cmp.Compare(found[i].Column, found[best].Column)) < 0 {
				best = i
			}
		}
		f := found[best]
		copy(found[first+1:best+1], found[first:best])
		found[first] = f
	}
	return found
}

// values is how many values have to be named.
func (f *Finding) values() int {
	if f.Range || f.Least || f.Most {
		return 1
	}
	return max(len(f.Labels), len(f.Numbers))
}
