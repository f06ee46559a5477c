package provenance

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Text returns s as documents and databases can hold it: bytes that are no
// UTF-8, and zero bytes, are written \xNN. Other text is returned as it is, so
// doing it twice changes nothing.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r == 0 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Grouped writes a number without a fraction, and commas between thousands.
func Grouped(v float64) string {
	if math.Abs(v) >= 1e15 || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return Commas(strconv.FormatFloat(math.Abs(v), 'f', 0, 64), v <= -0.5)
}

// Commas puts commas between thousands of a whole number.
func Commas(digits string, negative bool) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if negative {
		return "-" + digits
	}
	return digits
}

// ThreeDigits writes a number with three digits, or all before the point.
func ThreeDigits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95 || math.IsNaN(v):
		return Grouped(v)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Duration writes a length of time in a unit that suits it, with three digits.
func Duration(us float64) string {
	switch a := math.Abs(us); {
	case a < 999.5 && us == math.Trunc(us):
		return Grouped(us) + " us"
	case a < 999.5:
		return ThreeDigits(us) + " us"
	case a < 999.5e3:
		return ThreeDigits(us/1e3) + " ms"
	case a < 1e15:
		return ThreeDigits(us/1e6) + " s"
	}
	return strconv.FormatFloat(us/1e6, 'g', 3, 64) + " s"
}

// ShortName is a function's name for a sentence: without the place in the source that
// TAU adds, without empty brackets, and in one line.
func ShortName(name string) string {
	if i := strings.LastIndex(name, " [{"); i > 0 && strings.HasSuffix(name, "}]") {
		name = name[:i]
	}
	return OneLine(strings.TrimSuffix(name, "()"))
}

// maxOneLine is how many characters of a text a sentence has.
const maxOneLine = 70

// OneLine is a text that does not break a sentence: no control characters, and the
// middle left out where it is long.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	r := []rune(text)
	if len(r) <= maxOneLine {
		return text
	}
	return string(r[:maxOneLine/2]) + "…" + string(r[len(r)-(maxOneLine-1-maxOneLine/2):])
}

// RankList writes ranks as 0-3,7; of many only the first.
func RankList(ranks []trace.Rank) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		part := strconv.Itoa(int(ranks[i]))
		if j > i {
			part += "-" + strconv.Itoa(int(ranks[j]))
		}
		if parts = append(parts, part); len(parts) == 8 && j+1 < len(ranks) {
			parts = append(parts, fmt.Sprintf("... (%d)", len(ranks)))
			break
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
