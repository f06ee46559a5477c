package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// The percentages of core time from which on a loss is bad, and below which it is good. Runs
// of the same program usually differ by less than badPercent.
const badPercent, smallPercent = 1, 0.1

// withdrawnPercent is the percentage of core time above which withdrawn flags may hide a problem.
const withdrawnPercent = 0.5

// verdict sums up the health of the run in a sentence. A run with many withdrawn flags is not
// healthy.
func (v *view) verdict(o *api.Overview) api.Verdict {
	verdict := v.judge(o)
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
func share(o *api.Overview, lost int64) float64 {
	core := o.Length * float64(o.Figures.Ranks)
	if core <= 0 {
		return 0
	}
	return float64(lost) / 1e6 / core
}

func (v *view) judge(o *api.Overview) api.Verdict {
	f := &o.Figures
	unknown := func(sentence string) api.Verdict { return api.Verdict{Level: api.LevelUnknown, Sentence: sentence} }
	open := v.open()
	switch {
	case len(open) > 0:
		return v.costs(o, open)
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
			"core time, and all together %s", text.Percent(100*share(o, f.MinorLost)))}
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
		words += fmt.Sprintf(": %s been seen", counted(o.Figures.Ranks, "rank", "has", "have"))
	}
	return words + ". Start the analyzers with chimbuko ad --run-dir DIRECTORY TRACE…"
}

func mutedText(n int64) string {
	if n == 1 {
		return "1 is muted or expected"
	}
	return text.Int(n) + " are muted or expected"
}

// costs sums up the open findings and names the worst.
func (v *view) costs(o *api.Overview, open []int) api.Verdict {
	f := &o.Figures
	var lost, alarms int64
	for _, i := range open {
		x := &v.data.findings[i]
		lost += int64(x.Lost)
		if x.Severity == provenance.Alarm {
			alarms += int64(x.Lost)
		}
	}
	worst := &v.data.findings[open[0]]
	verdict := api.Verdict{Level: api.LevelWatch, Finding: worst.Number}
	var b strings.Builder
	fmt.Fprintf(&b, "%s cost", text.Count(int64(len(open)), "finding"))
	if len(open) == 1 {
		b.WriteByte('s')
	}
	if percent := 100 * share(o, lost); percent > 0 {
		fmt.Fprintf(&b, " %s of core time (%s)", text.Percent(percent), text.CoreTime(lost))
		switch {
		case 100*share(o, alarms) >= badPercent:
			verdict.Level = api.LevelBad
		case percent < smallPercent:
			verdict.Level = api.LevelGood
		}
	} else {
		b.WriteString(" " + text.CoreTime(lost))
	}
	fmt.Fprintf(&b, ". Worst: %s", cmp.Or(text.ShortName(worst.Func), string(worst.Kind)))
	if host := v.hostOf(worst); host != "" {
		b.WriteString(" on " + host)
	}
	b.WriteString(" since " + text.Clock(v.data.seconds(worst.First), o.Length))
	if f.FindingsMuted > 0 {
		fmt.Fprintf(&b, ". %s", mutedText(f.FindingsMuted))
	}
	verdict.Sentence = b.String()
	if verdict.Level == api.LevelGood {
		verdict.Sentence = "Little time was lost: " + verdict.Sentence
	}
	return verdict
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
