// Package text formats numbers, durations, sizes and names for people. It is the only
// package that does, so that the terminal, the page and reports agree.
package text

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// integer is the constraint of numbers that count or number things.
type integer interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64
}

// Int formats an integer with commas between thousands.
func Int[T integer](n T) string {
	digits, negative := strings.CutPrefix(fmt.Sprint(n), "-")
	return Commas(digits, negative)
}

// Number formats v without a fraction and with commas between thousands.
func Number(v float64) string {
	if math.Abs(v) >= 1e15 || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return Commas(strconv.FormatFloat(math.Abs(v), 'f', 0, 64), v <= -0.5)
}

// Commas puts commas between the thousands of a string of digits.
func Commas(digits string, negative bool) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// ThreeDigits formats v with three significant digits, or with all digits before the point.
func ThreeDigits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95 || math.IsNaN(v):
		return Number(v)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// About formats a large count with two significant digits and a unit: 41 M.
func About(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}} {
		if v := float64(n) / unit.size; v >= 1 {
			return strconv.FormatFloat(v, 'f', max(0, 1-int(math.Log10(v))), 64) + unit.name
		}
	}
	return Int(n)
}

// Percent formats a percentage: 12.5 for 12.5 %.
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

// Whole formats a share as a whole percentage: 73 %.
func Whole(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }

// NoShare is the format of shares that are too small to show.
const NoShare = "0 %"

// Shares formats a share of a whole, and parts of the rest, as percentages that add up as they do:
// as whole numbers, or with one digit after the point if the first is above 90 %. The first is
// rounded to the nearest number, and the parts as little as possible.
func Shares(first float64, parts []float64) []string {
	unit, digits := 100.0, 0
	if first > 0.9 && first < 1 {
		unit, digits = 1000, 1
	}
	rounded := math.Round(first * unit)
	sum := first * unit
	whole, order := make([]float64, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		sum += p * unit
		whole[i], order[i] = math.Floor(p*unit+1e-9), i
	}
	left := math.Round(sum) - rounded
	for _, w := range whole {
		left -= w
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b]*unit-whole[b], parts[a]*unit-whole[a]) })
	if left < 0 {
		slices.Reverse(order)
	}
	for _, i := range order[:min(len(order), int(math.Abs(left)))] {
		whole[i] = max(0, whole[i]+math.Copysign(1, left))
	}
	texts := make([]string, 0, len(parts)+1)
	for _, w := range append([]float64{rounded}, whole...) {
		percent := NoShare
		if w > 0 {
			percent = strconv.FormatFloat(w*100/unit, 'f', digits, 64) + " %"
		}
		texts = append(texts, percent)
	}
	return texts
}

// Count formats a number of things. The plural of thing must end in s.
func Count[T integer](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeou") {
		return Int(n) + " " + stem + "ies"
	}
	return Int(n) + " " + thing + "s"
}

// Bytes formats a size in decimal units.
func Bytes[T integer](n T) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	v, i := float64(n), 0
	for math.Abs(v) >= 999.95 && i+1 < len(units) {
		v, i = v/1e3, i+1
	}
	if i == 0 {
		return fmt.Sprint(n) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[i]
}

// Duration formats microseconds with three significant digits, in ns, us, ms or s.
func Duration(us float64) string {
	switch a := math.Abs(us); {
	case a < 0.9995 && math.Round(a*1e3) != 0: // less than a nanosecond is 0 us, or a fraction of it
		return ThreeDigits(us*1e3) + " ns"
	case a < 999.5 && us == math.Trunc(us):
		return Number(us) + " us"
	case a < 999.5:
		return ThreeDigits(us) + " us"
	case a < 999.5e3:
		return ThreeDigits(us/1e3) + " ms"
	case a < 1e15:
		return ThreeDigits(us/1e6) + " s"
	}
	return strconv.FormatFloat(us/1e6, 'g', 3, 64) + " s"
}

// CoreTime formats microseconds of core time: in core-hours from 0.1 of them, else as
// Duration does.
func CoreTime(us float64) string {
	switch hours := us / 3.6e9; {
	case hours >= 100:
		return Number(hours) + " core-h"
	case hours >= 0.1:
		return strconv.FormatFloat(hours, 'f', 1, 64) + " core-h"
	}
	return Duration(us)
}

// UTC formats a time to the microsecond, or to the nanosecond if it has such digits.
func UTC(t time.Time) string {
	layout := "2006-01-02 15:04:05.000000 MST"
	if t.Nanosecond()%1000 != 0 {
		layout = "2006-01-02 15:04:05.000000000 MST"
	}
	return t.UTC().Format(layout)
}

// Clock formats a time since the start of a run of the given length, both in seconds:
// 00:14:20, or seconds if the run is shorter than a minute.
func Clock(seconds, length float64) string {
	if length < 60 && seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 2, 64) + " s"
	}
	s := int64(max(0, seconds))
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Ranges formats numbers as 0-3,7. Of more than eight ranges it lists eight and the
// count of numbers.
func Ranges[T integer](numbers []T) string {
	const most = 8
	numbers = slices.Sorted(slices.Values(numbers))
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := fmt.Sprint(numbers[i])
		if j > i {
			part += "-" + fmt.Sprint(numbers[j])
		}
		if parts = append(parts, part); len(parts) == most && j+1 < len(numbers) {
			parts = append(parts, fmt.Sprintf("... (%d)", len(numbers)))
			break
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Host returns the name of a host, or "" if records have it as Unknown.
func Host(name string) string {
	if name == "Unknown" {
		return ""
	}
	return name
}

// KnownHosts returns the hosts that have a name, never nil.
func KnownHosts(hosts []string) []string {
	known := []string{}
	for _, h := range hosts {
		if Host(h) != "" {
			known = append(known, h)
		}
	}
	return known
}

// Hosts lists up to three hosts; of more it names the first and counts the others.
// It leaves out hosts without a name.
func Hosts(hosts []string) string {
	named := KnownHosts(hosts)
	for i, h := range named {
		named[i] = OneLine(h)
	}
	switch {
	case len(named) == 0:
		return ""
	case len(named) <= 3:
		return strings.Join(named, ", ")
	}
	return fmt.Sprintf("%s and %d other hosts", named[0], len(named)-1)
}

// ShortName returns the name of a function for a sentence: without source location,
// without empty parentheses, in one line.
func ShortName(name string) string {
	return OneLine(strings.TrimSuffix(WithoutSource(name), "()"))
}

// WithoutSource removes the source location that TAU appends to the name of a function.
func WithoutSource(name string) string {
	if i := strings.LastIndex(name, " [{"); i > 0 && strings.HasSuffix(name, "}]") {
		return name[:i]
	}
	return name
}

// WithPlace returns the name of a function with the source location as people write it: f(int) heat2d.cpp:31.
func WithPlace(name string) string {
	function := WithoutSource(name)
	if function == name {
		return name
	}
	file, rest, _ := strings.Cut(strings.TrimPrefix(name[len(function):], " [{"), "}")
	file = file[strings.LastIndexByte(file, '/')+1:]
	_, rest, _ = strings.Cut(rest, "{")
	if line := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]; line != "" {
		file += ":" + line
	}
	return function + " " + file
}

var sources = regexp.MustCompile(` \[\{[^}\]]*\}[-{},0-9 ]*\]`)

// WithoutSources removes all source locations of TAU from a call path or a sentence.
func WithoutSources(s string) string { return sources.ReplaceAllString(s, "") }

// PathEnd returns the last three functions of a call path for a sentence: … > main > solve() > MPI_Wait.
func PathEnd(path string) string {
	const most, width = 3, 48
	names := strings.Split(SingleSpaced(WithoutSources(path)), " > ")
	end := ""
	if len(names) > most {
		names, end = names[len(names)-most:], "… > "
	}
	for i, name := range names {
		names[i] = Shorten(name, width)
	}
	return end + strings.Join(names, " > ")
}

// ShellWord quotes a word for a shell, if necessary.
func ShellWord(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// OneLine returns s in one line of at most 70 characters.
func OneLine(s string) string { return Shorten(SingleSpaced(s), 70) }

// Reason returns an error message in one line of at most 600 characters. It keeps more
// than OneLine, because the end of a message often has the hint.
func Reason(s string) string { return Shorten(SingleSpaced(s), 600) }

// SingleSpaced replaces each run of white space and control characters by one space,
// and removes them at both ends.
func SingleSpaced(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// Shorten cuts s to n characters by replacing its middle with an ellipsis.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	switch {
	case len(r) <= n:
		return s
	case n < 1:
		return ""
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-1-n/2):])
}

// Value formats whole numbers with commas between thousands, and others with three
// significant digits.
func Value(v float64) string {
	if v == math.Trunc(v) {
		return Number(v)
	}
	return ThreeDigits(v)
}

// Offset formats microseconds as Duration does, with a sign. Zero has neither sign nor unit.
func Offset(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us > 0:
		return "+" + Duration(us)
	}
	return Duration(us)
}
