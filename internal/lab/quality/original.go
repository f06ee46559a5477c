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

// original is what the original Chimbuko found on a data set.
type original struct {
	Result
	settings string // if they are not the usual ones
}

// originals are in the order of original.csv.
var originals = mustOriginals(originalText)

// mustOriginals reads original.csv, which a test has read before.
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
		if found := number("late_found"); found >= 0 {
			o.Late = &Late{Found: found, Missed: number("late_missed"), Other: number("late_other")}
		}
		all = append(all, o)
	}
	return all
}

// hasLate reports whether it is known of the original what it found in later steps.
func hasLate(data string) bool {
	return slices.ContainsFunc(originals, func(o original) bool { return o.Data == data && o.Late != nil })
}

// originalOf returns what the original found, with its usual settings if that is
// known, as far as it can be compared with r; nil: nothing is known.
func originalOf(r *Result) *original {
	i := slices.IndexFunc(originals, func(o original) bool { return o.Data == r.Data && o.Detector == r.Detector })
	if i < 0 {
		return nil
	}
	return originals[i].on(r)
}

// on returns o with the number of calls that r has, where its own is not known: these
// are of the same traces.
func (o original) on(r *Result) *original {
	if o.Calls < 0 && o.Other >= 0 {
		o.Calls, o.Normal = r.Calls, r.Calls-int64(o.Planted)
	}
	if o.FirstCalls < 0 && o.FirstFlags >= 0 {
		o.FirstCalls = r.FirstCalls
	}
	return &o
}
