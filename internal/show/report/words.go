package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// optional formats a count, a time in microseconds, or a missing value.
func optional(v any) string {
	switch v := v.(type) {
	case *int64:
		if v != nil {
			return text.Int(*v)
		}
	case *float64:
		if v != nil {
			return text.Duration(*v)
		}
	}
	return "–"
}

// optionalValue formats a number that may be missing.
func optionalValue(v *float64) string {
	if v == nil {
		return "–"
	}
	return text.Value(*v)
}

// ranksText lists ranks, the first of count.
func ranksText(ranks []int64, count int64) string {
	return andMore(text.Ranges(ranks), count-int64(len(ranks)))
}

// hostsText lists hosts, the first of count.
func hostsText(hosts []string, count int64) string {
	return andMore(text.Hosts(hosts), count-int64(len(hosts)))
}

func andMore(words string, more int64) string {
	if more <= 0 {
		return words
	}
	return fmt.Sprintf("%s and %s more", words, text.Int(more))
}

var kinds = map[string]string{
	"slow": "slow", "fast": "too fast", "comm-wait": "wait", "gpu": "on a GPU", "recurring": "slow mode", "excess-work": "excess work",
	"rare": "rarely called", "burst": "burst", "shift": "lasting change", "drift": "drift", "temporary": "temporary change",
}

// kindWords returns the label of a kind of anomalies.
func kindWords(kind string) string {
	if w, ok := kinds[kind]; ok {
		return w
	}
	return kind
}

// gpuWords names the parts of a place on a GPU that are known.
func gpuWords(g *api.GPU) string {
	var parts []string
	for _, p := range []struct {
		name   string
		number int64
	}{{"device", g.Device}, {"context", g.Context}, {"stream", g.Stream}} {
		if p.number >= 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.number))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "unknown place")
}

// threadWords names rank and thread of an execution as its timeline does.
func threadWords(e *api.Evidence) string {
	if len(e.Lanes) > 0 {
		return text.OneLine(e.Lanes[0].Name)
	}
	return fmt.Sprintf("rank %d, thread %d", e.Rank, e.Thread)
}

// kindClass returns the CSS class of a kind.
func kindClass(kind string) string {
	if _, ok := kinds[kind]; ok {
		return "k-" + kind
	}
	return "k-other"
}

// levels name levels for readers who do not see colors.
var levels = map[api.Level]string{
	api.LevelGood: "Good", api.LevelWatch: "Watch", api.LevelBad: "Bad", api.LevelUnknown: "Unknown",
}

var states = map[api.State]string{
	api.Waiting: "waits for traces", api.Running: "is running", api.Reviewing: "is being reviewed", api.Finished: "finished",
	api.Failed: "failed", api.Incomplete: "is incomplete",
}

func stateWords(s api.State) string {
	if w, ok := states[s]; ok {
		return w
	}
	return string(s)
}
