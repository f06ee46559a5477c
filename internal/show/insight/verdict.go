package insight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// badPercent is the share of the core time from which on what was lost is bad: the
// next smaller allocation would have done, and it is more than runs of the same program
// usually differ by.
const badPercent = 1

// smallPercent is the share below which what was lost is nothing to worry about.
const smallPercent = 0.1

// verdict says in a sentence how the run is.
func (v *view) verdict(o *api.Overview) api.Verdict {
	f := &o.Figures
	open := v.open()
	switch {
	case len(open) > 0:
		return v.costs(o, open)
	case v.unread && o.State != api.Waiting:
		return api.Verdict{Level: api.LevelUnknown, Sentence: "What was kept cannot be read now, so it is not known what went wrong"}
	case o.State == api.Failed && f.Kept == 0:
		sentence := "The analysis failed, and nothing was kept"
		if v.known != nil && v.known.info.Error != "" {
			sentence += ": " + text.Reason(v.known.info.Error)
		}
		return api.Verdict{Level: api.LevelBad, Sentence: sentence}
	case (o.State == api.Finished || o.State == api.Incomplete) && f.Calls == nil && f.Kept == 0:
		return api.Verdict{Level: api.LevelUnknown, Sentence: "The run has ended and holds nothing: no call was read"}
	case o.State == api.Waiting || f.Calls == nil && f.Kept == 0:
		return api.Verdict{Level: api.LevelUnknown, Sentence: v.waiting(o)}
	case v.known != nil && v.known.wrong != nil:
		return api.Verdict{Level: api.LevelUnknown, Sentence: text.Count(f.Anomalies, "anomalous call") +
			"; what they have in common could not be found out"}
	case f.IssuesMuted > 0:
		return api.Verdict{Level: api.LevelGood, Sentence: fmt.Sprintf("No open issues: %s, which cost %s", mutedText(f.IssuesMuted),
			text.CoreTime(f.MutedLost))}
	case f.Anomalies > 0: // they are not in the store yet, or not in an issue
		return api.Verdict{Level: api.LevelWatch, Sentence: text.Count(f.Anomalies, "anomalous call") + ", which are not grouped yet"}
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

// waiting says that there is nothing yet.
func (v *view) waiting(o *api.Overview) string {
	words := "No data yet"
	if n := o.Figures.RanksExpected; n != nil {
		words += fmt.Sprintf(": %s of %s have been seen", text.Int(o.Figures.Ranks), text.Count(*n, "rank"))
	} else if o.Figures.Ranks > 0 {
		words += fmt.Sprintf(": %s been seen", hasHave(o.Figures.Ranks, "rank"))
	}
	return words + ". Start the analyzers with chimbuko ad --run-dir DIRECTORY TRACE…"
}

func hasHave(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return text.Count(n, what) + " have"
}

func mutedText(n int64) string {
	if n == 1 {
		return "1 is muted or expected"
	}
	return text.Int(n) + " are muted or expected"
}

// costs tells what the open issues cost, and which is the worst.
func (v *view) costs(o *api.Overview, open []int) api.Verdict {
	f := &o.Figures
	var lost int64
	for _, i := range open {
		lost += int64(costOf(&v.known.issues[i]))
	}
	worst := &v.known.issues[open[0]]
	verdict := api.Verdict{Level: api.LevelWatch, Issue: worst.Number}
	var b strings.Builder
	fmt.Fprintf(&b, "%s cost", text.Count(int64(len(open)), "issue"))
	if len(open) == 1 {
		b.WriteByte('s')
	}
	if core := o.Length * float64(f.Ranks); core > 0 {
		percent := 100 * float64(lost) / 1e6 / core
		fmt.Fprintf(&b, " %s of core time (%s)", text.Percent(percent), text.CoreTime(lost))
		switch {
		case percent >= badPercent:
			verdict.Level = api.LevelBad
		case percent < smallPercent:
			verdict.Level = api.LevelGood
		}
	} else {
		b.WriteString(" " + text.CoreTime(lost))
	}
	fmt.Fprintf(&b, ". Worst: %s", text.ShortName(worst.Func))
	if host := v.hostOf(worst); host != "" {
		b.WriteString(" on " + host)
	}
	b.WriteString(" since " + text.Clock(v.known.seconds(worst.First), o.Length))
	if f.IssuesMuted > 0 {
		fmt.Fprintf(&b, ". %s", mutedText(f.IssuesMuted))
	}
	verdict.Sentence = b.String()
	if verdict.Level == api.LevelGood {
		verdict.Sentence = "Hardly anything is lost: " + verdict.Sentence
	}
	return verdict
}

// hostOf names the hosts of an issue, first that of the rank that lost most.
func (v *view) hostOf(x *provenance.Issue) string {
	hosts := slices.Clone(x.Hosts)
	if len(hosts) > 3 && !x.IsChange() {
		for _, r := range v.known.ranks {
			if r.RankKey == (trace.RankKey{Program: x.PID, Rank: x.WorstRank}) && r.Host != "" {
				hosts = append([]string{r.Host}, slices.DeleteFunc(hosts, func(h string) bool { return h == r.Host })...)
				break
			}
		}
	}
	return text.Hosts(hosts)
}
