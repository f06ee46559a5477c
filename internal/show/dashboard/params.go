package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/insight"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// params reads the parameters of a request. done returns the errors, and rejects parameters
// that were not read.
type params struct {
	r      *http.Request
	values url.Values
	names  map[string]bool // read so far
	errs   []error
}

func newParams(r *http.Request) *params {
	p := &params{r: r, names: map[string]bool{"token": true}}
	var err error
	if p.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		p.errs = append(p.errs, err)
	}
	return p
}

func (p *params) done() error {
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !p.names[name] {
			delete(p.names, "token")
			allowed := cmp.Or(strings.Join(slices.Sorted(maps.Keys(p.names)), ", "), "none")
			p.errs = append(p.errs, fmt.Errorf("unknown parameter %q (want %s)", name, allowed))
			break
		}
	}
	if len(p.errs) == 0 {
		return nil
	}
	return problem(http.StatusBadRequest, strings.ReplaceAll(errors.Join(p.errs...).Error(), "\n", "; "), api.ParamsHint)
}

// path returns a part of the path.
func (p *params) path(name string) string { return p.r.PathValue(name) }

func (p *params) fail(name, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("parameter %s: "+format, append([]any{name}, args...)...))
}

// text returns a parameter, or "".
func (p *params) text(name string) string {
	p.names[name] = true
	switch all := p.values[name]; len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	}
	p.fail(name, "is given more than once")
	return ""
}

// word returns a parameter, or its default.
func (p *params) word(name, usual string) string { return cmp.Or(p.text(name), usual) }

// integer returns a number from least to most.
func (p *params) integer(name string, usual, least, most int64) int64 {
	text := p.text(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.fail(name, "%.40q is not a number from %d to %d", text, least, most)
		return usual
	}
	return n
}

func (p *params) limit(usual, most int) int {
	return int(p.integer("limit", int64(usual), 0, int64(most)))
}

func (p *params) columns(usual int64) int {
	return int(p.integer("columns", usual, 1, insight.MaxColumns))
}

// program returns the program of a workflow, nil for all.
func (p *params) program() *trace.Program {
	n := p.integer("program", -1, -1, math.MaxInt32)
	if n < 0 {
		return nil
	}
	return new(trace.Program(n))
}

// parse returns the value of a parameter, or the zero value.
func parse[T any](p *params, name string, f func(text string) (T, error)) (value T) {
	text := p.text(name)
	if text == "" {
		return value
	}
	v, err := f(text)
	if err != nil {
		p.fail(name, "%w", err)
		return value
	}
	return v
}

func (p *params) boolean(name string) bool {
	return parse(p, name, func(text string) (bool, error) {
		b, err := strconv.ParseBool(text)
		if err != nil {
			err = fmt.Errorf("%.40q is neither true nor false", text)
		}
		return b, err
	})
}

func (p *params) number(name string) float64 {
	return parse(p, name, func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			err = fmt.Errorf("%.40q is not a number", text)
		}
		return x, err
	})
}

// duration returns a time with its unit or a number of units, or nil.
func (p *params) duration(name string, unit time.Duration) *time.Duration {
	return parse(p, name, func(text string) (*time.Duration, error) {
		t, err := query.ParseTime(text, unit)
		return &t, err
	})
}

// maxRanges bounds the statement made of a list of ranks.
const maxRanges = 1000

// ranks returns ranges such as 0,4-7.
func (p *params) ranks() []trace.Range {
	ranges := parse(p, "rank", query.ParseRanks)
	if len(ranges) > maxRanges {
		p.fail("rank", "has %d ranges (at most %d)", len(ranges), maxRanges)
	}
	return ranges
}

// words returns words separated by commas, or nil.
func (p *params) words(name string) []string {
	return parse(p, name, func(text string) ([]string, error) { return strings.Split(text, ","), nil })
}

// filter returns the selection of events. Its parameters are named as those of chimbuko anomalies.
func (p *params) filter() executions.Filter {
	f := executions.Filter{
		Normal: p.boolean("normal"), Withdrawn: p.boolean("withdrawn"), Function: p.text("func"), Kinds: p.words("kind"), Host: p.text("host"),
		Ranks: p.ranks(), Steps: parse(p, "step", query.ParseSteps),
		Since: p.duration("since", time.Second), Until: p.duration("until", time.Second),
		Score: p.number("min_score"), Program: p.program(), Order: p.word("order", "severity"),
	}
	if t := p.duration("min_severity", time.Microsecond); t != nil {
		f.Severity = *t
	}
	if t := p.duration("min_lost", time.Microsecond); t != nil {
		f.Lost = *t
	}
	return f
}
