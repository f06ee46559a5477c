package quality

import (
	"bytes"
	_ "embed" // original.csv
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

//go:embed original.csv
var originalText []byte

// original is the result of the original Chimbuko on a data set.
type original struct {
	Result
	settings string // empty for the usual ones
}

// originals are in the order of original.csv.
var originals = mustOriginals(originalText)

// mustOriginals parses original.csv, which tests cover.
func mustOriginals(text []byte) []original {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		panic(err)
	}
	var all []original
	for i, cells := range lines[1:] {
		number := func(name string) int {
			cell := cells[slices.Index(lines[0], name)]
			if cell == "" {
				return -1
			}
			n, err := strconv.Atoi(cell)
			if err != nil {
				panic(fmt.Errorf("original.csv: line %d of figures: %w", i+1, err))
			}
			return n
		}
		o := original{settings: cells[2], Result: Result{
			Data: cells[0], Detector: outlier.Algorithm(cells[1]), Runs: 1,
			Planted: number("planted"), Found: number("found"), Other: number("other"),
			Withdrawn: -1, Calls: int64(number("calls")), FirstFlags: number("first_flags"), FirstCalls: int64(number("first_calls")),
		}}
		o.Normal = o.Calls - int64(o.Planted)
		if n := number("late_found"); n >= 0 {
			o.Late = &LateCounts{Found: n, Missed: number("late_missed"), Other: number("late_other")}
		}
		all = append(all, o)
	}
	return all
}

// hasLate reports whether the original has figures of later steps.
func hasLate(data string) bool {
	return slices.ContainsFunc(originals, func(o original) bool { return o.Data == data && o.Late != nil })
}

// originalOf returns the first result of the original for the data set and detector of r,
// or nil. If the original's number of calls is unknown, it has that of r, because both
// analyze the same traces.
func originalOf(r *Result) *original {
	i := slices.IndexFunc(originals, func(o original) bool { return o.Data == r.Data && o.Detector == r.Detector })
	if i < 0 {
		return nil
	}
	o := originals[i]
	if o.Calls < 0 && o.Other >= 0 {
		o.Calls, o.Normal = r.Calls, r.Calls-int64(o.Planted)
	}
	if o.FirstCalls < 0 && o.FirstFlags >= 0 {
		o.FirstCalls = r.FirstCalls
	}
	return &o
}
