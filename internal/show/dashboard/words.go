package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Texts of sentences. Fields of answers have names as they are stored; sentences have
// them short and in one line.

// shortName is a function's name without the place in the source that TAU adds, and
// without empty brackets.
func shortName(name string) string { return provenance.ShortName(name) }

// oneLine is a text that does not break a sentence.
func oneLine(text string) string { return provenance.OneLine(text) }

// reason is an error in one line. Its end often says what to do, and its middle what is
// wrong: much more of it is kept than of a name.
func reason(text string) string {
	const most = 600
	words := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if letters := []rune(words); len(letters) > most {
		return string(letters[:most/2]) + " … " + string(letters[len(letters)-most/2:])
	}
	return words
}

// counted is a number of things.
func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

func grouped(n int64) string { return provenance.Grouped(float64(n)) }

// about is a large number in short: 41 M.
func about(n int64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}} {
		if v := float64(n) / unit.size; v >= 1 {
			return strconv.FormatFloat(v, 'f', max(0, 1-int(math.Log10(v))), 64) + unit.name
		}
	}
	return grouped(n)
}

// clock is a time since the begin of the run: 00:14:20, or seconds of a run that is
// shorter than a minute.
func clock(seconds, length float64) string {
	if length < 60 && seconds < 60 {
		return strconv.FormatFloat(seconds, 'f', 2, 64) + " s"
	}
	s := int64(max(0, seconds))
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// percentText is a percentage with as many digits as say something.
func percentText(v float64) string {
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

// coreText is an amount of core time: core-hours, or the time itself where that is
// little.
func coreText(us int64) string {
	switch hours := float64(us) / 3.6e9; {
	case hours >= 100:
		return grouped(int64(math.Round(hours))) + " core-h"
	case hours >= 0.1:
		return strconv.FormatFloat(hours, 'f', 1, 64) + " core-h"
	}
	return provenance.Duration(float64(us))
}

// hostText names hosts: the first few.
func hostText(hosts []string) string {
	var named []string
	for _, h := range hosts {
		if h != "" && h != "Unknown" {
			named = append(named, oneLine(h))
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

// maxListed is how many ranks a sentence lists.
const maxListed = 8

// rankText lists ranks: 17, 18 ….
func rankText(ranks []trace.RankKey, programs bool) string {
	var parts []string
	for i, p := range ranks {
		if i == maxListed {
			parts = append(parts, "…")
			break
		}
		text := strconv.Itoa(int(p.Rank))
		if programs {
			text += fmt.Sprintf(" of program %d", p.Program)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
