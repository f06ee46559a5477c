package provenance

import (
	"fmt"
	"math"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/sample"
)

// AnomalyKind classifies anomalies.
type AnomalyKind string

// The kinds of anomalies.
const (
	Slow     AnomalyKind = "slow"      // longer than typical
	Fast     AnomalyKind = "fast"      // shorter than typical
	CommWait AnomalyKind = "comm-wait" // of a function that waits for other ranks or for a GPU
	OnGPU    AnomalyKind = "gpu"       // on a GPU
	// Recurring is of a slow mode: many calls of the function take as long.
	Recurring AnomalyKind = "recurring"
	// TooManyCalls is of executions that made far more calls than usual.
	TooManyCalls AnomalyKind = "excess-work"
	// RarelyCalled is of executions of a function that its caller usually does without.
	RarelyCalled AnomalyKind = "rare"
)

// AnomalyKinds returns all kinds of anomalies.
func AnomalyKinds() []AnomalyKind {
	return []AnomalyKind{Slow, Fast, CommWait, OnGPU, Recurring, TooManyCalls, RarelyCalled}
}

// statusWords end the sentence of an anomaly.
var statusWords = map[Status]string{
	Provisional: "flagged so far, the run continues",
	Confirmed:   "flagged during the run and confirmed at the end",
	Promoted:    "found only at the end, by the final model",
	Withdrawn:   "flagged during the run, but withdrawn at the end by the final model",
}

// Words returns the end of Why for a status, or "".
func (s Status) Words() string { return statusWords[s] }

// Explain sets status, kind and why of an anomaly. d describes the time by which it was judged.
func (r *Record) Explain(d *outlier.Description, s Status) {
	r.Status = s
	switch {
	case r.UsualChildren > 0:
		r.Kind = TooManyCalls
	case r.IsGPUEvent:
		r.Kind = OnGPU
	case WaitOf(r.Func) != NoWait:
		r.Kind = CommWait
	case d.Time < d.Median:
		r.Kind = Fast
	default:
		r.Kind = Slow
	}
	parts := []string{r.tookWords(d) + ", usually " + r.usualWords(d), rareWords(d)}
	if r.Kind == TooManyCalls {
		parts = append([]string{r.madeWords()}, parts[0])
	}
	if words := s.Words(); words != "" {
		parts = append(parts, words)
	}
	r.Why = strings.Join(parts, "; ")
}

// ExplainCall sets status, kind and why of an anomaly that took a time and made other calls, and how many calls are usual if it
// made too many.
func (r *Record) ExplainCall(j *outlier.Judge, time int64, work outlier.Work, onPath bool, s Status) {
	if lost, usual := j.Excess(work); lost > 0 {
		r.UsualChildren, r.LostTime = usual, max(r.LostTime, trace.Ticks(lost))
	}
	d := j.Describe(time)
	d.OnPath = onPath
	r.Explain(&d, s)
}

// StandsFor states in Why of a provisional anomaly that it is in a sample of calls that are alike, if it is.
func (r *Record) StandsFor(like sample.Sum) {
	if like.Calls > sample.Few {
		r.Why += fmt.Sprintf("; stands for %s of this rank that lost about as much, %s in total; "+
			"until the run ends, the store has a sample of them", text.Count(uint64(like.Calls), "call"), r.duration(like.Lost))
	}
}

// ExplainRare is Explain for a call that its caller usually does not make, given the number of calls of the caller on
// its rank. Without a caller these are steps of the trace.
func (r *Record) ExplainRare(d *outlier.Description, caller string, calls uint64, s Status) {
	r.Explain(d, s)
	of := text.Count(calls, "step") + " of the trace"
	if caller != "" {
		of = text.Count(calls, "call") + " of " + caller
	}
	r.Kind, r.Why = RarelyCalled, r.tookWords(d)+", and is rarely called: the rank had "+of
	if words := s.Words(); words != "" {
		r.Why += "; " + words
	}
}

// madeWords returns how many calls the execution made, and which.
func (r *Record) madeWords() string {
	words := fmt.Sprintf("made %s", text.Count(uint64(r.Children), "call"))
	count, most := make(map[string]int), ""
	for i := range r.EventWindow.Execs {
		e := &r.EventWindow.Execs[i]
		if e.ParentID != r.EventID {
			continue
		}
		if count[e.Func]++; count[e.Func] > count[most] {
			most = e.Func
		}
	}
	if most != "" {
		words += ", such as " + most
	}
	return fmt.Sprintf("%s, usually %d; these took %s", words, r.UsualChildren, r.duration(int64(r.RuntimeTotal-r.RuntimeExclusive)))
}

// ExplainsWaits states in Why of an anomaly that its own time is not the reason.
func (r *Record) ExplainsWaits() {
	r.Why = strings.TrimSuffix(r.Why, r.Status.Words()) + NotRare + "made other ranks wait or waited for an anomaly"
}

// NotRare is a part of Why of anomalies whose own time is not rare. Version 1.0 wrote other words after it.
const NotRare = "not rare, but it "

// OnlyExplainsWaits reports whether the own time of an anomaly is not rare.
func (r *Record) OnlyExplainsWaits() bool { return strings.Contains(r.Why, NotRare) }

// tookWords returns the judged time and which of the two times it is.
func (r *Record) tookWords(d *outlier.Description) string {
	took := "took " + r.duration(d.Time)
	switch {
	case r.RuntimeExclusive == r.RuntimeTotal:
		return took
	case trace.Ticks(d.Time) == r.RuntimeExclusive:
		return took + " of own time"
	}
	return took + " with the calls inside it"
}

// duration formats a number of ticks.
func (r *Record) duration(ticks int64) string { return text.Duration(r.Unit.MicrosOf(float64(ticks))) }

func (r *Record) usualWords(d *outlier.Description) string {
	words := make([]string, 0, len(d.Usual)+1)
	for _, u := range d.Usual {
		low, high := r.duration(u.Low), r.duration(u.High)
		if low != high {
			low += " to " + high
		}
		words = append(words, low)
	}
	if d.Others > 0 {
		words = append(words, fmt.Sprintf("in %d other ranges", d.Others))
	}
	calls := text.Count(d.Count, "call")
	if d.OnPath {
		calls += " on this call path"
	}
	return fmt.Sprintf("%s (median %s over %s)", strings.Join(words, " or "), r.duration(d.Median), calls)
}

// likeWords describe one and several calls that are counted as alike.
var likeWords = map[outlier.Side][2]string{
	outlier.Amid: {"took about as long", "took about as long"}, outlier.Above: {"was this slow", "were this slow"},
	outlier.Below: {"was this fast", "were this fast"},
}

// rareWords returns the number of calls like this one and, if that is less, the number that
// normal variation would give.
func rareWords(d *outlier.Description) string {
	number, verbs := text.Int(d.Alike), likeWords[d.Side]
	verb := verbs[1]
	if d.Alike <= 1 {
		verb = verbs[0]
	}
	if d.Alike == 0 {
		number = "none"
	}
	words := fmt.Sprintf("%s of %s %s", number, text.Count(d.Count, "call"), verb)
	expected := float64(d.Count) / math.Pow10(d.Decades)
	switch {
	case d.Decades <= 0 || float64(d.Alike) <= expected:
	case expected < 1:
		words += "; normal variation would give none"
	default:
		words += "; normal variation would give at most " + text.Number(expected)
	}
	return words
}
