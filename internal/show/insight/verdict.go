package insight

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/ranks"
)

// A loss of badPercent of core time or more is bad, and one below smallPercent is good. Runs
// of the same program usually differ by less than badPercent.
const badPercent, smallPercent = 1, 0.1

// withdrawnPercent is the percentage of core time above which withdrawn flags may hide a problem.
const withdrawnPercent = 0.5

// verdict sums up the health of the run in a sentence. A run that is not efficient or has many
// withdrawn flags is not healthy.
func (v *view) verdict(o *api.Overview) api.Verdict {
	open := v.openFindings()
	loss := v.loss(open)
	verdict := v.judge(o, open, loss)
	if loss != nil {
		if len(open) == 0 {
			verdict.Sentence = loss.String() + ". " + verdict.Sentence
		}
		if loss.Efficiency < ranks.FairEfficiency && (verdict.Level == api.LevelGood || verdict.Level == api.LevelUnknown) {
			verdict.Level = api.LevelWatch
		}
	}
	percent := 100 * share(o, o.Figures.WithdrawnLost)
	if percent <= withdrawnPercent {
		return verdict
	}
	if verdict.Level == api.LevelGood || verdict.Level == api.LevelUnknown {
		verdict.Level = api.LevelWatch
	}
	verdict.Sentence += fmt.Sprintf(". Flags worth %s of core time were withdrawn: see findings --withdrawn", text.Percent(percent))
	return verdict
}

// share returns lost time as a share of the time of all ranks; 0 if that is unknown.
func share(o *api.Overview, lost float64) float64 {
	core := o.Length * float64(o.Figures.Ranks)
	if core <= 0 {
		return 0
	}
	return lost / 1e6 / core
}

func (v *view) judge(o *api.Overview, open []int, loss *ranks.Loss) api.Verdict {
	f := &o.Figures
	unknown := func(sentence string) api.Verdict { return api.Verdict{Level: api.LevelUnknown, Sentence: sentence} }
	switch {
	case len(open) > 0:
		return v.costs(o, open, loss)
	case v.unread && o.State != api.Waiting:
		return unknown("The store cannot be read now")
	case o.State == api.Failed && f.Kept == 0:
		sentence := "The analysis failed and stored nothing"
		if v.data != nil && v.data.info.Error != "" {
			sentence += ": " + text.Reason(v.data.info.Error)
		}
		return api.Verdict{Level: api.LevelBad, Sentence: sentence}
	case (o.State == api.Finished || o.State == api.Incomplete) && f.Calls == nil && f.Kept == 0:
		return unknown("The run has ended without data: no call was read")
	case o.State == api.Waiting || f.Calls == nil && f.Kept == 0:
		return unknown(waitingText(o))
	case v.data != nil && v.data.err != nil:
		return unknown(text.Count(f.Anomalies, "anomalous call") + "; they could not be grouped into findings")
	case f.FindingsMuted > 0:
		return api.Verdict{Level: api.LevelGood, Sentence: fmt.Sprintf("No open findings: %s, which cost %s", mutedText(f.FindingsMuted),
			text.CoreTime(f.MutedLost))}
	case f.FindingsMinor > 0:
		return api.Verdict{Level: api.LevelGood, Sentence: fmt.Sprintf("Little time was lost: no finding costs more than 0.01 %% of "+
			"core time, and all together %s%s", text.Percent(100*share(o, f.MinorLost)), notesText(o))}
	case f.FindingsNotes > 0:
		return api.Verdict{Level: api.LevelGood, Sentence: "No findings" + notesText(o)}
	case f.Anomalies > 0: // not stored yet, or not in a finding
		return api.Verdict{Level: api.LevelWatch, Sentence: text.Count(f.Anomalies, "anomalous call") + ", not yet grouped into findings"}
	}
	sentence := "0 anomalies"
	if f.Calls != nil {
		sentence += " in " + text.About(*f.Calls) + " calls"
	}
	if len(o.Slowest) > 0 {
		x := o.Slowest[0]
		sentence += fmt.Sprintf("; slowest: %s %s, on average %s", text.ShortName(x.Function), text.Duration(x.Longest),
			text.Duration(x.Mean))
	}
	return api.Verdict{Level: api.LevelGood, Sentence: sentence}
}

// waitingText lists the ranks that reported before any data was stored.
func waitingText(o *api.Overview) string {
	words := "No data yet"
	if n := o.Figures.RanksExpected; n != nil {
		words += fmt.Sprintf(": %s of %s have been seen", text.Int(o.Figures.Ranks), text.Count(*n, "rank"))
	} else if o.Figures.Ranks > 0 {
		words += fmt.Sprintf(": %s been seen", countVerb(o.Figures.Ranks, "rank", "has", "have"))
	}
	return words + ". Start the analyzers with chimbuko ad --run-dir DIRECTORY TRACE…"
}

// notesText counts the notes at the end of a sentence.
func notesText(o *api.Overview) string {
	n := o.Figures.FindingsNotes
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s about normal behavior, %s of core time", text.Count(n, "note"), text.Percent(100*share(o, o.Figures.NotesLost)))
}

func mutedText(n int64) string {
	if n == 1 {
		return "1 is muted or expected"
	}
	return text.Int(n) + " are muted or expected"
}

// costs sums up the open findings and names the worst.
func (v *view) costs(o *api.Overview, open []int, loss *ranks.Loss) api.Verdict {
	f := &o.Figures
	var lost, slow float64
	n := len(open) // without slow peers, if the loss names them
	for _, i := range open {
		x := &v.data.findings[i]
		lost += v.data.micros(x.Lost)
		if x.OfPeers() && loss != nil {
			slow, n = slow+v.data.micros(x.Lost), n-1
		}
	}
	worst := &v.data.findings[open[0]]
	for _, i := range open { // a wait is not a cause
		if x := &v.data.findings[i]; !isWait(x) {
			worst = x
			break
		}
	}
	verdict := api.Verdict{Level: api.LevelWatch, Finding: worst.Number}
	percent := 100 * share(o, lost)
	switch {
	case percent >= badPercent:
		verdict.Level = api.LevelBad
	case percent > 0 && percent < smallPercent:
		verdict.Level = api.LevelGood
	}
	cost := costText(n, lost-slow, 100*share(o, lost-slow))
	switch {
	case loss != nil:
		verdict.Sentence = loss.String()
		if n > 0 && !loss.HasFindings(share(o, lost-slow)) { // too little to be named, or more than waits
			verdict.Sentence += ". " + cost
		}
	case verdict.Level == api.LevelGood:
		verdict.Sentence = "Little time was lost: " + cost
	default:
		verdict.Sentence = cost
	}
	verdict.Sentence += ". Worst: " + v.worstText(worst, o.Length)
	if f.FindingsMuted > 0 {
		verdict.Sentence += ". " + mutedText(f.FindingsMuted)
	}
	return verdict
}

// costText returns the cost of findings.
func costText(n int, lost, percent float64) string {
	words := text.Count(n, "finding") + " cost"
	if n == 1 {
		words += "s"
	}
	if percent > 0 {
		return words + fmt.Sprintf(" %s of core time (%s)", text.Percent(percent), text.CoreTime(lost))
	}
	return words + " " + text.CoreTime(lost)
}

// isWait reports whether a finding consists of waits for others, whose cause is not known.
func isWait(x *provenance.Finding) bool {
	return x.Role == provenance.Victim || x.Kind == provenance.Waiting
}

// worstText names a finding.
func (v *view) worstText(x *provenance.Finding, length float64) string {
	if isWait(x) {
		cause := "cause unknown"
		if !v.hasEnded() {
			cause = "cause not known yet"
		}
		return fmt.Sprintf("waits in %s since %s, %s", text.ShortName(x.Func), text.Clock(v.data.seconds(x.First), length), cause)
	}
	if x.OfPeers() {
		words := x.Summary
		if x.Func != "" && x.Kind == provenance.SlowPlace {
			words += ", above all in " + text.ShortName(x.Func)
		}
		return words
	}
	words := cmp.Or(text.ShortName(x.Func), string(x.Kind))
	if host := v.hostOf(x); host != "" {
		words += " on " + host
	}
	if x.Form == provenance.Temporary {
		return words + " from " + text.Clock(v.data.seconds(x.First), length) + " to " + text.Clock(v.data.seconds(x.Last), length)
	}
	return words + " since " + text.Clock(v.data.seconds(x.First), length)
}

// hostOf names the hosts of a finding, beginning with that of the rank that lost most.
func (v *view) hostOf(x *provenance.Finding) string {
	hosts := slices.Clone(x.Hosts)
	if len(hosts) > 3 && !x.IsChange() {
		for _, r := range v.data.ranks {
			if r.RankKey == (trace.RankKey{Program: x.PID, Rank: x.WorstRank}) && r.Host != "" {
				hosts = append([]string{r.Host}, slices.DeleteFunc(hosts, func(h string) bool { return h == r.Host })...)
				break
			}
		}
	}
	return text.Hosts(hosts)
}
