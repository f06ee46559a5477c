// Package words writes numbers, times and names for sentences: short and in one line.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Reason is an error in one line. Its end often says what to do, and its middle what is
// wrong: much more of it is kept than of a name.
func Reason(text string) string {
	const most = 600
	words := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if letters := []rune(words); len(letters) > most {
		return string(letters[:most/2]) + " … " + string(letters[len(letters)-most/2:])
	}
	return words
}

// Counted is a number of things.
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Grouped(n) + " " + what + "s"
}

// Grouped is a number with its digits in groups of three.
func Grouped(n int64) string { return provenance.Grouped(float64(n)) }

// About is a large number in short: 41 M.
func About(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}} {
		if v := float64(n) / unit.size; v >= 1 {
			return strconv.FormatFloat(v, 'f', max(0, 1-int(math.Log10(v))), 64) + unit.name
		}
	}
	return Grouped(n)
}

// Clock is a time since the start of a run: 00:14:20, or seconds of a run that is
// shorter than a minute.
func Clock(seconds, length float64) string {
	if length < 60 && seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 2, 64) + " s"
	}
	s := int64(max(0, seconds))
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Percent is a percentage with as many digits as say something.
func Percent(v float64) string {
	switch {
	case v == 0:
		return "0 %"
	case v < 0.01:
		return "< 0.01 %"
	case v < 1:
		return strconv.FormatFloat(v, 'f', 2, 64) + " %"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " %"
}

// CoreTime is an amount of core time: core-hours, or the time itself where that is
// little.
func CoreTime(us int64) string {
	switch hours := float64(us) / 3.6e9; {
	case hours >= 100:
		return Grouped(int64(math.Round(hours))) + " core-h"
	case hours >= 0.1:
		return strconv.FormatFloat(hours, 'f', 1, 64) + " core-h"
	}
	return provenance.Duration(float64(us))
}

// Hosts names hosts: the first few.
func Hosts(hosts []string) string {
	var named []string
	for _, h := range hosts {
		if h != "" && h != "Unknown" {
			named = append(named, provenance.OneLine(h))
		}
	}
	switch {
	case len(named) == 0:
		return ""
	case len(named) <= 3:
		return strings.Join(named, ", ")
	}
	return fmt.Sprintf("%s and %d other hosts", named[0], len(named)-1)
}
