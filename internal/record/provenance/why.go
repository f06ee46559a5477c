package provenance

import (
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// AnomalyKind classifies anomalies.
type AnomalyKind string

// The kinds of anomalies.
const (
	Slow     AnomalyKind = "slow"      // slower than typical
	Fast     AnomalyKind = "fast"      // faster than typical
	CommWait AnomalyKind = "comm-wait" // a function that waits for other ranks or a GPU
	OnGPU    AnomalyKind = "gpu"       // on a GPU
)

// AnomalyKinds returns all kinds of anomalies.
func AnomalyKinds() []AnomalyKind { return []AnomalyKind{Slow, Fast, CommWait, OnGPU} }

// statusWords end the sentence of an anomaly.
var statusWords = map[Status]string{
	Provisional: "flagged so far, the run continues",
	Confirmed:   "flagged at the time and confirmed at the end",
	Promoted:    "found only at the end, with all that was learned",
	Withdrawn:   "flagged at the time, but withdrawn at the end with all that was learned",
}

// Words returns the words for the status in Why, "" for an unknown status.
func (s Status) Words() string { return statusWords[s] }

// Explain sets status, kind and why of an anomaly. d describes the judged time.
func (r *Record) Explain(d *outlier.Description, s Status) {
	r.Status = s
	switch {
	case r.IsGPUEvent:
		r.Kind = OnGPU
	case WaitOf(r.Func) != NoWait:
		r.Kind = CommWait
	case d.Time < d.Median:
		r.Kind = Fast
	default:
		r.Kind = Slow
	}
	parts := []string{r.tookWords(d) + ", usually " + usualWords(d), rareWords(d), s.Words()}
	if parts[2] == "" {
		parts = parts[:2]
	}
	r.Why = strings.Join(parts, "; ")
}

// tookWords returns the time in words, and which one it is if there are two.
func (r *Record) tookWords(d *outlier.Description) string {
	text := "took " + text.Duration(float64(d.Time))
	switch {
	case r.RuntimeExclusive == r.RuntimeTotal:
		return text
	case trace.Micros(d.Time) == r.RuntimeExclusive:
		return text + " of its own"
	}
	return text + " with the calls inside it"
}

func usualWords(d *outlier.Description) string {
	words := make([]string, 0, len(d.Usual)+1)
	for _, r := range d.Usual {
		low, high := text.Duration(float64(r.Low)), text.Duration(float64(r.High))
		if low != high {
			low += " to " + high
		}
		words = append(words, low)
	}
	if d.Others > 0 {
		words = append(words, fmt.Sprintf("in %d other ranges", d.Others))
	}
	calls := text.Number(float64(d.Count)) + " calls"
	if d.Count == 1 {
		calls = "1 call"
	}
	return fmt.Sprintf("%s (median %s over %s)", strings.Join(words, " or "), text.Duration(float64(d.Median)), calls)
}

// likeWords describe the calls that are counted as alike.
var likeWords = map[outlier.Side]string{
	outlier.Amid: " took about as long", outlier.Above: " took as long or longer", outlier.Below: " took as short or shorter",
}

// rareWords returns the share of similar calls, and the expected share if it is smaller.
func rareWords(d *outlier.Description) string {
	words := "none" + likeWords[d.Side]
	if d.Alike > 0 {
		words = oneIn(d.Count, d.Alike) + likeWords[d.Side]
	}
	expected := math.Pow10(d.Decades)
	if d.Decades > 0 && float64(d.Alike)*expected > float64(d.Count) {
		words += " (expected: rarer than 1 in " + text.Number(expected) + ")"
	}
	return words
}

// oneIn returns a share in words, rounded to two digits if it is not exact.
func oneIn(all, some uint64) string {
	n := all / some
	if n < 2 {
		return "most"
	}
	if all%some != 0 {
		unit := uint64(1)
		for n/unit >= 100 {
			unit *= 10
		}
		n = (all + some*unit/2) / (some * unit) * unit
	}
	return "1 in " + text.Number(float64(n))
}
