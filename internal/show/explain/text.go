package explain

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/text"
)

// escaped returns s fit for a terminal: what is not printable, and bytes that
// are no UTF-8, in the notation of Go.
func escaped(s string) string {
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

// cut shortens s to n characters by leaving out its middle.
func cut(s string, n int) string {
	if len(s) <= n || width(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	r := []rune(s)
	head := n / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// bare is a function's name without the place in the source that TAU adds.
func bare(name string) string {
	if i := strings.LastIndex(name, " [{"); i > 0 && strings.HasSuffix(name, "}]") {
		return name[:i]
	}
	return name
}

// named is the name of a function, fit for a terminal.
func named(name string) string {
	if name == "" {
		return "(no name)"
	}
	return escaped(name)
}

// short is that name in at most n characters: without its
// place in the source where that does not fit, else without its middle.
func short(name string, n int) string {
	name = named(name)
	if width(name) > n {
		name = bare(name)
	}
	return cut(name, n)
}

// wrap breaks words into lines of at most n characters.
func wrap(words string, n int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(words) {
		word = cut(word, n)
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

// widest is the width of the widest text that f gives for the items.
func widest[T any](items []T, f func(*T) string) int {
	n := 0
	for i := range items {
		n = max(n, width(f(&items[i])))
	}
	return n
}

// Numbers and times are written as in the sentences of records.
func grouped(v float64) string     { return text.Number(v) }
func threeDigits(v float64) string { return text.ThreeDigits(v) }
func span(us float64) string       { return text.Duration(us) }

func plural(n float64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// seconds writes a time within a run.
func seconds(us float64) string {
	if math.Abs(us) >= 1e15 {
		return span(us)
	}
	return strconv.FormatFloat(us/1e6, 'f', 3, 64) + " s"
}

// offset writes how long after the entry of the execution something was.
func offset(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us > 0:
		return "+" + span(us)
	}
	return span(us)
}

// offsets writes such times so that they can be compared: to the microsecond, in
// a unit that suits the greatest.
func offsets(greatest float64) func(us float64) string {
	unit, by, decimals := " s", 1e6, 3
	switch {
	case greatest < 1e4:
		unit, by, decimals = " us", 1, 0
	case greatest < 1e7:
		unit, by, decimals = " ms", 1e3, 3
	case greatest >= 1e15:
		return offset
	}
	return func(us float64) string {
		whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(us)/by, 'f', decimals, 64), ".")
		text := text.Commas(whole, us < 0)
		if us > 0 {
			text = "+" + text
		}
		if fraction != "" {
			text += "." + fraction
		}
		return text + unit
	}
}

// size writes a number of bytes.
func size(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	v, i := float64(n), 0
	for v >= 999.5 && i+1 < len(units) {
		v, i = v/1e3, i+1
	}
	text := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " " + units[i]
}

// bar draws from 0 to share of n cells, to the eighth of a cell; what is more
// than nothing is seen.
func bar(share float64, n int) string {
	if !(share > 0) {
		return ""
	}
	eighths := max(1, int(math.Round(min(share, 1)*float64(n)*8)))
	return blocks(eighths)
}

func blocks(eighths int) string {
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text
}
