package explain

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// escape escapes what is not printable, and bytes that are not UTF-8, like Go.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

func width(s string) int { return utf8.RuneCountInString(s) }

// functionName returns the escaped name of a function.
func functionName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return escape(name)
}

// short returns that name in at most n characters, with file and line if there is room, if necessary
// without its middle.
func short(name string, n int) string {
	full := text.WithPlace(functionName(name))
	if width(full) > n {
		full = text.WithoutSource(functionName(name))
	}
	return text.Shorten(full, n)
}

// wrap breaks words into lines of at most n characters.
func wrap(words string, n int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(words) {
		word = text.Shorten(word, n)
		if used > 0 && used+1+width(word) > n {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+width(word)
	}
	return append(lines, line)
}

// left and right fill s with spaces to n characters.
func left(s string, n int) string  { return s + blank(n-width(s)) }
func right(s string, n int) string { return blank(n-width(s)) + s }

func blank(n int) string { return strings.Repeat(" ", max(0, n)) }

// widest returns the width of the widest text of the items.
func widest[T any](items []T, f func(*T) string) int {
	n := 0
	for i := range items {
		n = max(n, width(f(&items[i])))
	}
	return n
}

// seconds formats a time within a run.
func seconds(us float64) string {
	if math.Abs(us) >= 1e15 {
		return text.Duration(us)
	}
	return strconv.FormatFloat(us/1e6, 'f', 3, 64) + " s"
}

// offsets returns a formatter of offsets to the microsecond, or the nanosecond, as words that suit the greatest.
func offsets(tick trace.Unit, greatest float64) func(us float64) string {
	unit, by, decimals := " s", 1e6, 3
	switch {
	case greatest < 1e4:
		unit, by, decimals = " us", 1, 0
	case greatest < 1e7:
		unit, by, decimals = " ms", 1e3, 3
	case greatest >= 1e15:
		return text.Offset
	}
	if tick.Nanos() < trace.Microsecond.Nanos() {
		decimals += 3
	}
	return func(us float64) string {
		whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(us)/by, 'f', decimals, 64), ".")
		words := text.Commas(whole, us < 0)
		if us > 0 {
			words = "+" + words
		}
		if fraction != "" {
			words += "." + fraction
		}
		return words + unit
	}
}

// bar draws a share of n cells in eighths of a cell. Every positive share is visible.
func bar(share float64, n int) string {
	if !(share > 0) {
		return ""
	}
	eighths := max(1, int(math.Round(min(share, 1)*float64(n)*8)))
	return blocks(eighths)
}

func blocks(eighths int) string {
	words := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		words += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return words
}
