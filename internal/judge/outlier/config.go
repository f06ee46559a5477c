// Package outlier decides which executions of a function took an unusual time. A Model describes the times of a function.
// Models merge exactly: merging the models of many ranks equals learning all of their calls. A Judge is created from a model
// and settings, is immutable, and returns a score and a verdict for each time. The package is pure.
package outlier

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Algorithm names a detector.
type Algorithm string

// The detectors.
const (
	SSTD  Algorithm = "sstd"  // too many standard deviations from the mean
	HBOS  Algorithm = "hbos"  // in a bin of the histogram that is too rare
	COPOD Algorithm = "copod" // too far out in a tail of the distribution
	Tail  Algorithm = "tail"  // beyond the tail that the bulk of the times predicts
)

// Algorithms returns the detectors, the default first.
func Algorithms() []Algorithm { return []Algorithm{Tail, HBOS, SSTD, COPOD} }

// Config configures the judges. Start from Default.
type Config struct {
	Unit       trace.Unit // unit of times
	Algorithm  Algorithm
	Sigma      float64 // sstd: normal number of standard deviations
	Threshold  float64 // hbos, copod: normal share of the range of scores; tail: decades of rarity; 0 means DefaultThreshold
	MinSamples int     // least number of executions of a function for judging it
	// LeastLoss is the least time beyond the median that makes a call an outlier, in ticks. Only tail uses it.
	LeastLoss int64
	// IncludeSelf leaves the judged execution in the model, as the original did. There it helps to hide itself.
	IncludeSelf bool
	// Thresholds replace Sigma or Threshold for matching functions. The first match counts.
	Thresholds []Override
	// Ignore lists patterns of functions that are never judged.
	// Ignore has patterns of functions that are never judged.
	Ignore []string
}

// Override is a threshold for functions whose name matches a pattern, in which * matches any text and ? any character.
type Override struct {
	Pattern string
	Value   float64
}

// Default returns the default settings for times in microseconds.
func Default() Config { return DefaultIn(trace.Microsecond) }

// DefaultIn returns the default settings for times in ticks of a unit.
func DefaultIn(unit trace.Unit) Config {
	return Config{Unit: unit, Algorithm: Tail, Sigma: 6, MinSamples: 30, LeastLoss: int64(unit.Ticks(200 * time.Microsecond))}
}

// DefaultThreshold returns the default threshold of an algorithm. With 0.99, copod would flag at most the most extreme time of a
// function.
func DefaultThreshold(a Algorithm) float64 {
	switch a {
	case SSTD, Tail:
		return 6
	case COPOD:
		return 0.72
	}
	return 0.99
}

// ByPath reports whether calls are judged among those with the same call path. The detectors of the original judge them among
// all calls of their function.
func (c *Config) ByPath() bool { return c.Algorithm == Default().Algorithm }

// Validate reports all errors in the settings.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Algorithms(), c.Algorithm) {
		names := make([]string, 0, len(Algorithms()))
		for _, a := range Algorithms() {
			names = append(names, string(a))
		}
		errs = append(errs, fmt.Errorf("unknown algorithm %q (want %s)", c.Algorithm, strings.Join(names, ", ")))
	}
	most := 1.0
	if c.Algorithm == Tail {
		most = maxDecades
	}
	check := func(what string, v float64) {
		switch invalid := v <= 0 || math.IsNaN(v); {
		case c.Algorithm == SSTD && invalid:
			errs = append(errs, fmt.Errorf("%s: %v standard deviations must be positive", what, v))
		case c.Algorithm != SSTD && (invalid || v > most):
			errs = append(errs, fmt.Errorf("%s: %v is not between 0 and %v", what, v, most))
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
	if c.LeastLoss < 0 {
		errs = append(errs, errors.New("least loss must not be negative"))
	}
	if c.MinSamples < 1 {
		errs = append(errs, fmt.Errorf("minimum of %d samples must be positive", c.MinSamples))
	}
	return errors.Join(errs...)
}

// Rules are the settings of functions by name.
type Rules struct {
	cfg      Config
	ignore   Globs
	override []*regexp.Regexp
}

// NewRules prepares cfg, which must be valid.
func NewRules(cfg Config) *Rules {
	r := &Rules{cfg: cfg, ignore: NewGlobs(cfg.Ignore)}
	for _, o := range cfg.Thresholds {
		r.override = append(r.override, Glob(o.Pattern))
	}
	return r
}

// Config returns the settings passed to NewRules.
func (r *Rules) Config() *Config { return &r.cfg }

// Ignored reports whether a function is never judged.
func (r *Rules) Ignored(name string) bool { return r.ignore.Match(name) }

// Threshold returns the threshold of a function in the unit of the algorithm.
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

// Glob compiles a pattern of function names. Only * and ? are special; they match any character, because function names often
// contain brackets and slashes. An invalid UTF-8 byte matches any such byte.
func Glob(pattern string) *regexp.Regexp {
	p := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(string([]rune(pattern))))
	return regexp.MustCompile(`(?s)^` + p + `$`)
}

// Globs are patterns of function names.
type Globs []*regexp.Regexp

// NewGlobs compiles patterns as Glob does.
func NewGlobs(patterns []string) (all Globs) {
	for _, p := range patterns {
		all = append(all, Glob(p))
	}
	return all
}

// Match reports whether a name matches any of the patterns.
func (g Globs) Match(name string) bool {
	return slices.ContainsFunc(g, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

// Matcher returns a function that reports whether a name matches a pattern as in Glob. An empty pattern matches all names.
func Matcher(pattern string) func(name string) bool { return Glob(cmp.Or(pattern, "*")).MatchString }
