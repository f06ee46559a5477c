package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

func duration(us float64) string { return strings.Replace(text.Duration(us), " us", " µs", 1) }

// signed is a time relative to another.
func signed(us float64) string {
	if us > 0 {
		return "+" + duration(us)
	}
	return strings.Replace(duration(us), "-", "−", 1)
}

func grouped(n int64) string { return text.Number(float64(n)) }

// optional is a value that may not be known.
func optional(v any) string {
	switch v := v.(type) {
	case *int64:
		if v != nil {
			return grouped(*v)
		}
	case *float64:
		if v != nil {
			return duration(*v)
		}
	}
	return "–"
}

// value is a number that may be large or a fraction.
func value(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return text.Number(v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// plain is a number that may not be known.
func plain(v *float64) string {
	if v == nil {
		return "–"
	}
	return value(*v)
}

// ranksText lists ranks: 0–3, 7.
func ranksText(ranks []int64, count int64) string {
	const most = 6
	sorted := slices.Sorted(slices.Values(ranks))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		text := strconv.FormatInt(sorted[i], 10)
		if j > i {
			text += "–" + strconv.FormatInt(sorted[j], 10)
		}
		if len(parts) == most {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, text)
		i = j + 1
	}
	text := strings.Join(parts, ", ")
	if count > int64(len(ranks)) || len(parts) > most {
		text += fmt.Sprintf(" (%s)", grouped(count))
	}
	return text
}

// hostsText names the first hosts.
func hostsText(hosts []string, count int64) string {
	const most = 3
	var named []string
	for _, h := range hosts[:min(len(hosts), most)] {
		named = append(named, text.OneLine(h))
	}
	text := strings.Join(named, ", ")
	if count > int64(len(named)) {
		text += fmt.Sprintf(" and %s more", grouped(count-int64(len(named))))
	}
	return text
}

var kinds = map[string]string{
	"slow": "slow", "fast": "too fast", "comm-wait": "wait", "gpu": "on a GPU", "burst": "burst", "shift": "lasting change", "drift": "drift",
}

// kindWords is a kind of anomalies for people.
func kindWords(kind string) string {
	if w, ok := kinds[kind]; ok {
		return w
	}
	return kind
}

// kindClass is the class of the color of a kind.
func kindClass(kind string) string {
	if _, ok := kinds[kind]; ok {
		return "k-" + kind
	}
	return "k-other"
}

var levels = map[api.Level]string{
	api.LevelGood: "Good", api.LevelWatch: "Watch", api.LevelBad: "Bad", api.LevelUnknown: "Unknown",
}

// levelWords names a level, so that its color is not needed.
func levelWords(l api.Level) string { return levels[l] }

var states = map[api.State]string{
	api.Waiting: "waits for traces", api.Running: "goes on", api.Reviewing: "is being reviewed", api.Finished: "finished",
	api.Failed: "failed", api.Incomplete: "incomplete",
}

func stateWords(s api.State) string {
	if w, ok := states[s]; ok {
		return w
	}
	return string(s)
}

// countedText is a number of anomalies.
func countedText(n int64) string {
	if n == 1 {
		return "1 anomaly"
	}
	return grouped(n) + " anomalies"
}
