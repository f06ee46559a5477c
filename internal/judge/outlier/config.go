// Package outlier decides which executions of a function took a time that does
// not fit. A Model is what was learned of a function; it merges exactly, so
// that the model of many ranks is that of all their calls. A Judge is made from
// a model and settings, does not change, and gives each time a score and a
// verdict. The package is pure.
package outlier

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Algorithm names a detector.
type Algorithm string

// The detectors.
const (
	SSTD  Algorithm = "sstd"  // too many standard deviations from the mean
	HBOS  Algorithm = "hbos"  // in a bin of the histogram that is too rare
	COPOD Algorithm = "copod" // too far out in a tail of the distribution
	Modal Algorithm = "modal" // in none of the function's usual times and their tails
)

// Algorithms returns the detectors, the default first.
func Algorithms() []Algorithm { return []Algorithm{Modal, HBOS, SSTD, COPOD} }

// Config says how to judge.
type Config struct {
	Algorithm  Algorithm
	Sigma      float64 // sstd: standard deviations that are still normal
	Threshold  float64 // hbos, copod: share of the range of scores that is still normal; modal: decades of rarity; 0: DefaultThreshold
	MinSamples int     // executions that must be known before any is judged
	// HalfLife is after how many microseconds of the run what was learned counts
	// half; 0: nothing is forgotten. Only modal forgets.
	HalfLife int64
	// SlowOnly tells functions, by name, of which only long times are outliers: a
	// short wait is nobody's trouble. nil: none. Only modal asks.
	SlowOnly func(name string) bool `json:"-"`
	// IncludeSelf leaves the judged execution's own contribution in the
	// model, as the original did, where it helps to hide itself.
	IncludeSelf bool
	// Thresholds replace Sigma or Threshold for functions that match; the
	// first that does counts.
	Thresholds []Override
	// Ignore holds patterns of functions that are never judged.
	Ignore []string
}

// Override is a threshold for functions whose name matches a pattern, in which
// * stands for any text and ? for any character.
type Override struct {
	Pattern string
	Value   float64
}

// Default returns the usual settings.
func Default() Config {
	return Config{Algorithm: Modal, Sigma: 6, MinSamples: 30, HalfLife: 600e6}
}

// DefaultThreshold is the threshold of an algorithm that is given none. With
// 0.99 copod could never flag more than the one most extreme time of a
// function.
func DefaultThreshold(a Algorithm) float64 {
	switch a {
	case SSTD:
		return 6
	case COPOD:
		return 0.72
	case Modal:
		return 6
	}
	return 0.99
}

// Validate says all that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Algorithms(), c.Algorithm) {
		names := make([]string, 0, len(Algorithms()))
		for _, a := range Algorithms() {
			names = append(names, string(a))
		}
		errs = append(errs, fmt.Errorf("unknown algorithm %q (want %s)", c.Algorithm, strings.Join(names, ", ")))
	}
	check := func(what string, v float64) {
		if c.Algorithm == SSTD && (v <= 0 || math.IsNaN(v)) {
			errs = append(errs, fmt.Errorf("%s: %v standard deviations are not positive", what, v))
		}
		switch most := 1.0; c.Algorithm {
		case SSTD:
		case Modal:
			most = maxDecades
			fallthrough
		default:
			if v <= 0 || v > most || math.IsNaN(v) {
				errs = append(errs, fmt.Errorf("%s: %v is not between 0 and %v", what, v, most))
			}
		}
	}
	if c.Algorithm == SSTD {
		check("sigma", c.Sigma)
	} else if c.Threshold != 0 {
		check("threshold", c.Threshold)
	}
	for _, o := range c.Thresholds {
		check(fmt.Sprintf("threshold of %q", o.Pattern), o.Value)
	}
	if c.HalfLife < 0 {
		errs = append(errs, errors.New("half-life is negative"))
	}
	if c.MinSamples < 1 {
		errs = append(errs, fmt.Errorf("minimum of %d samples is not positive", c.MinSamples))
	}
	return errors.Join(errs...)
}

// Rules are the settings for functions, found by their names.
type Rules struct {
	cfg      Config
	ignore   []*regexp.Regexp
	override []*regexp.Regexp
}

// NewRules prepares the settings, which must be valid.
func NewRules(cfg Config) *Rules {
	r := &Rules{cfg: cfg}
	for _, p := range cfg.Ignore {
		r.ignore = append(r.ignore, Glob(p))
	}
	for _, o := range cfg.Thresholds {
		r.override = append(r.override, Glob(o.Pattern))
	}
	return r
}

// Config returns the settings that the rules were made from.
func (r *Rules) Config() Config { return r.cfg }

// Ignored reports whether a function is never judged.
func (r *Rules) Ignored(name string) bool {
	return slices.ContainsFunc(r.ignore, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

// Threshold returns the threshold of a function, in the unit of the algorithm.
func (r *Rules) Threshold(name string) float64 {
	for i, p := range r.override {
		if p.MatchString(name) {
			return r.cfg.Thresholds[i].Value
		}
	}
	if r.cfg.Algorithm == SSTD {
		return r.cfg.Sigma
	}
	if r.cfg.Threshold == 0 {
		return DefaultThreshold(r.cfg.Algorithm)
	}
	return r.cfg.Threshold
}

// Glob translates a pattern of function names. Names of functions are full of
// brackets and slashes, so only * and ? are special, and they match those, too.
// Bytes that are no UTF-8 stand for any such byte.
func Glob(pattern string) *regexp.Regexp {
	p := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(string([]rune(pattern))))
	return regexp.MustCompile(`(?s)^` + p + `$`)
}
