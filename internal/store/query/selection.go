package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// ErrNoFinding is returned if a run has no finding with the given number.
var ErrNoFinding = errors.New("no such finding")

// SelectFinding selects the anomalies of a finding by its number; 0 is the worst finding of the
// selected program. It uses the findings stored with the run, or else finds them now.
func (a *Queries) SelectFinding(ctx context.Context, s *Selection, number int) error {
	result, err := a.Findings(ctx)
	if err != nil {
		return err
	}
	if len(result.Findings) == 0 {
		return fmt.Errorf("run %s has no findings to explain", a.Run.Name)
	}
	i := slices.IndexFunc(result.Findings, func(x provenance.Finding) bool {
		return x.Number == number || number == 0 && (s.Filter.Program == nil || x.PID == *s.Filter.Program)
	})
	if i < 0 {
		return fmt.Errorf("finding %d: %w (chimbuko findings --all lists them)", number, ErrNoFinding)
	}
	s.ofFinding(&result.Findings[i], result.Links)
	return nil
}

// ofFinding selects the anomalies of a finding. links is nil if the store has them.
func (s *Selection) ofFinding(x *provenance.Finding, links []provenance.Link) {
	if s.Finding = x; links == nil {
		return
	}
	members := make(map[trace.EventKey]bool)
	for i := range links {
		if l := &links[i]; l.Finding == x.Number {
			members[trace.EventKey{Program: l.PID, ID: l.EventID}] = true
		}
	}
	s.Member = func(program trace.Program, event string) bool {
		return members[trace.EventKey{Program: program, ID: event}]
	}
}

// ParseTime parses a duration such as 20ms, or a number of units.
func ParseTime(text string, unit time.Duration) (time.Duration, error) {
	const most = math.MaxInt64 / 2
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n = math.Round(n * float64(unit)); !(math.Abs(n) <= most) { // also NaN
			return 0, fmt.Errorf("%.40q is not a time: out of range", text)
		}
		return time.Duration(n), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a time such as 90s, 20ms or a number", text)
	}
	return d, nil
}

// ParseRanks parses ranks and ranges of them, as in 0,4-7. It returns nil for an empty text.
func ParseRanks(text string) (ranges []trace.Range, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		r, ok := parseRange(first, last)
		if !ok {
			return nil, fmt.Errorf("%.40q is not a rank or a range such as 4-7", part)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// ParseSteps parses a step or a range first:last, of which one side may be missing. It returns nil
// for an empty text.
func ParseSteps(text string) (*trace.Range, error) {
	if text == "" {
		return nil, nil
	}
	first, last, isRange := strings.Cut(text, ":")
	switch {
	case !isRange:
		last = first
	case first == "":
		first = "0"
	case last == "":
		last = strconv.Itoa(math.MaxInt32)
	}
	r, ok := parseRange(first, last)
	if !ok {
		return nil, fmt.Errorf("%.40q is not a step or a range such as 10:20", text)
	}
	return &r, nil
}

// parseRange parses a range of numbers ≥ 0.
func parseRange(first, last string) (r trace.Range, ok bool) {
	var errFirst, errLast error
	r.First, errFirst = strconv.ParseInt(first, 10, 32)
	r.Last, errLast = strconv.ParseInt(last, 10, 32)
	return r, errFirst == nil && errLast == nil && 0 <= r.First && r.First <= r.Last
}
