package insight

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/store/executions"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// maxBehind is the longest delay that is not reported.
const maxBehind = 10 * time.Second

// noticeList collects notices.
type noticeList []api.Notice

func (l *noticeList) add(level api.Level, topic, format string, args ...any) {
	*l = append(*l, api.Notice{Level: level, Topic: topic, Sentence: fmt.Sprintf(format, args...)})
}

// notices returns the limitations of the overview.
func (v *view) notices(o *api.Overview) []api.Notice {
	var list noticeList
	ended := o.State == api.Finished || o.State == api.Incomplete || o.State == api.Failed
	if o.Verdict.Level == api.LevelUnknown && (o.State == api.Waiting || o.Figures.Kept == 0 && !ended) {
		list.add(api.LevelUnknown, "no-data", "%s", o.Verdict.Sentence)
	}
	if s := v.status; s != nil {
		for _, h := range s.Health {
			if !h.OK {
				list.add(levelOf(h.Severity), "health", "%s: %s", h.Part, h.Sentence)
			}
		}
		if o.Live {
			v.addSilent(&list)
			addBacklog(s, &list)
		}
		addDrops(s, &list)
	}
	if v.hasEnded() {
		v.addMissing(&list)
	}
	if v.data != nil {
		v.data.addAge(time.Now(), &list)
		v.data.addWarming(o, &list)
		v.data.addLosses(o, &list)
		v.data.addReview(o.Review, &list)
	}
	return list
}

// maxUnreported is the largest age of the data of a live run that is not reported.
const maxUnreported = 2 * time.Minute

// addAge reports the age of the data of a live run, which is large if its anomalies are many or nobody requested it.
func (d *runData) addAge(now time.Time, list *noticeList) {
	if d.run.State != provdb.Running {
		return
	}
	for _, x := range []struct {
		what  string
		begun time.Time
	}{{"Figures", d.read}, {"Findings", d.begun}} {
		if age := now.Sub(x.begun); age >= maxUnreported {
			list.add(api.LevelUnknown, "age", "%s are of %d minutes ago; newer ones are being computed", x.what, int(age.Minutes()))
		}
	}
}

// addReview reports the flags that the review at the end withdrew and added. Many withdrawn
// flags on one of several hosts suggest that the host is slow rather than its calls normal.
func (d *runData) addReview(r *api.ReviewEnd, list *noticeList) {
	if r == nil {
		return
	}
	level, words := api.LevelGood, fmt.Sprintf("%s confirmed at the end", wasWere(r.Confirmed, "flag"))
	if r.Withdrawn > 0 {
		words = fmt.Sprintf("%s of %s withdrawn at the end", text.Int(r.Withdrawn), wasWere(r.Flagged, "flag"))
		several := slices.ContainsFunc(d.ranks, func(p executions.RankHost) bool { return p.Host != d.ranks[0].Host })
		if h := d.withdrawn; several && h.share >= 0.5 {
			words += fmt.Sprintf(", %s on %s", text.Percent(100*h.share), text.OneLine(h.host))
			if r.Withdrawn > r.Confirmed {
				level, words = api.LevelWatch, words+": review them"
			}
		}
	}
	if r.Promoted > 0 {
		words += fmt.Sprintf("; %s found only at the end", wasWere(r.Promoted, "anomalous call"))
	}
	list.add(level, "review", "%s", words)
}

func levelOf(severity string) api.Level {
	switch severity {
	case api.SeverityError:
		return api.LevelBad
	case api.SeverityWarning:
		return api.LevelWatch
	}
	return api.LevelUnknown
}

// silentRanks returns the ranks whose analyzer is silent, with their hosts, and the expected
// ranks that have never reported; for a run that has ended, the ranks without a trace.
func (v *view) silentRanks() (silent map[trace.RankKey]string, never []trace.RankKey) {
	silent = make(map[trace.RankKey]string)
	s := v.status
	if v.hasEnded() {
		return silent, gaps(v.ranks())
	}
	if s == nil {
		return silent, nil
	}
	silentNode := make(map[string]bool)
	for i := range s.Nodes {
		silentNode[s.Nodes[i].Name] = s.Nodes[i].State == api.NodeSilent
	}
	seen := make(map[trace.RankKey]bool)
	programs := make(map[trace.Program]bool)
	for i := range s.Ranks {
		r := &s.Ranks[i]
		p := trace.RankKey{Program: trace.Program(r.Program), Rank: trace.Rank(r.Rank)}
		seen[p], programs[p.Program] = true, true
		if silentNode[r.Node] && !r.Ended {
			silent[p] = r.Host
		}
	}
	// With several programs the number of ranks of each is unknown.
	if program := slices.Collect(maps.Keys(programs)); len(program) == 1 {
		for rank := int64(0); rank < s.Totals.RanksExpected && int64(len(never)) < s.Totals.RanksExpected-int64(len(seen)); rank++ {
			if p := (trace.RankKey{Program: program[0], Rank: trace.Rank(rank)}); !seen[p] {
				never = append(never, p)
			}
		}
	}
	return silent, never
}

// hasEnded reports whether the run has ended with data.
func (v *view) hasEnded() bool {
	state := v.state()
	return v.data != nil && (state == api.Finished || state == api.Incomplete || state == api.Failed)
}

// gaps returns the ranks that are missing between rank 0 and the last rank of each program. A program of which
// most ranks are missing was not traced on all of them.
func gaps(all []executions.RankHost) (missing []trace.RankKey) {
	seen := make(map[trace.RankKey]bool, len(all))
	last, count := make(map[trace.Program]trace.Rank), make(map[trace.Program]int)
	for _, r := range all {
		seen[r.RankKey] = true
		last[r.Program] = max(last[r.Program], r.Rank)
		count[r.Program]++
	}
	for _, program := range slices.Sorted(maps.Keys(last)) {
		if n := int(last[program]) + 1 - count[program]; n >= count[program] {
			continue
		}
		for rank := trace.Rank(0); rank < last[program]; rank++ {
			if key := (trace.RankKey{Program: program, Rank: rank}); !seen[key] {
				missing = append(missing, key)
			}
		}
	}
	return missing
}

// addMissing reports the ranks of a run that has ended without data of them.
func (v *view) addMissing(list *noticeList) {
	if _, never := v.silentRanks(); len(never) > 0 {
		sentence := "Rank %s is missing: it has no trace that could be read"
		if len(never) > 1 {
			sentence = "Ranks %s are missing: they have no traces that could be read"
		}
		list.add(api.LevelBad, "missing-ranks", sentence, rankText(never))
	}
}

// addSilent reports missing ranks.
func (v *view) addSilent(list *noticeList) {
	t := &v.status.Totals
	hosts, never := v.silentRanks()
	all := max(t.Ranks, t.RanksExpected)
	missing := int64(len(hosts)) + max(0, t.RanksExpected-t.Ranks)
	if missing == 0 || t.Ranks == 0 {
		return
	}
	silent := slices.SortedFunc(maps.Keys(hosts), func(a, b trace.RankKey) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Rank, b.Rank))
	})
	words := fmt.Sprintf("%s of %s ranks reporting", text.Int(all-missing), text.Int(all))
	if ranks := slices.Concat(silent, never); len(ranks) > 0 {
		words += "; missing: " + rankText(ranks)
	}
	if where := text.Hosts(slices.Compact(slices.Sorted(maps.Values(hosts)))); where != "" {
		words += " (host " + where + ")"
	}
	if len(silent) > 0 {
		words += ". Start their analyzers again with the same command"
	}
	list.add(api.LevelWatch, "silent-ranks", "%s", words)
}

// addBacklog reports stages that do not keep up.
func addBacklog(s *api.Status, list *noticeList) {
	worst, slow := 0, 0
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.State == api.NodeReading && n.Behind > maxBehind.Seconds() {
			if slow++; slow == 1 || n.Behind > s.Nodes[worst].Behind {
				worst = i
			}
		}
	}
	if slow > 0 {
		n := &s.Nodes[worst]
		list.add(api.LevelWatch, "backlog", "%s behind the traces, the worst (%s on %s) by %.0f s: give it more processors with --workers, "+
			"or start more analyzers with fewer ranks each",
			countVerb(int64(slow), "analyzer", "is", "are"), text.OneLine(n.Name), text.OneLine(n.Host), n.Behind)
	}
	if st := s.Store; st != nil && st.Lag > maxBehind.Seconds() {
		list.add(api.LevelWatch, "backlog", "%s for the store, the oldest for %.0f s: a larger --store-delay of chimbuko serve stores more "+
			"at once, a larger --stream-size lets more wait", countVerb(st.PendingMessages, "message", "waits", "wait"), st.Lag)
	}
}

// countVerb returns a number of things with a verb that agrees.
func countVerb(n int64, thing, one, many string) string {
	if n == 1 {
		many = one
	}
	return text.Count(n, thing) + " " + many
}

func wasWere(n int64, thing string) string { return countVerb(n, thing, "was", "were") }

// addDrops reports delayed records and lost trace data.
func addDrops(s *api.Status, list *noticeList) {
	var drops int64
	nodes := 0
	lost := make(map[string]api.Tally)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if drops += n.Drops; n.Drops > 0 {
			nodes++
		}
		for _, t := range n.Tallies {
			if t.Severity == "data loss" {
				t.Count += lost[t.Name].Count
				lost[t.Name] = t
			}
		}
	}
	if drops > 0 {
		list.add(api.LevelWatch, "drops", "%s found no room at %s and will be sent when the run ends: give chimbuko ad a larger --outbox",
			text.Count(drops, "record"), text.Count(nodes, "analyzer"))
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		list.add(api.LevelWatch, "drops", "%s %s", text.Int(lost[name].Count), lost[name].Sentence)
	}
}

// addWarming reports models with too few samples.
func (d *runData) addWarming(o *api.Overview, list *noticeList) {
	cold := int64(0)
	if warm := o.Figures.FunctionsWarm; warm != nil {
		cold = o.Figures.Functions - *warm
	}
	least := minSamples(d.info)
	switch {
	case o.State == api.Finished && cold > 0:
		list.add(api.LevelUnknown, "warming", "%s called fewer than %d times: their calls are not judged", wasWere(cold, "function"), least)
	case o.State == api.Finished:
	case cold > 0:
		list.add(api.LevelUnknown, "warming", "Models have < %d samples for %s; anomalies are provisional", least, text.Count(cold, "function"))
	case len(d.sparse) > 0:
		list.add(api.LevelUnknown, "warming", "Models have < %d samples for %s with anomalies; these are provisional", certainFactor*least,
			text.Count(len(d.sparse), "function"))
	}
}

// addLosses reports the missing parts of a run that has ended: unreadable traces, a failure,
// or findings that were not stored.
func (d *runData) addLosses(o *api.Overview, list *noticeList) {
	if d.run.State == provdb.Failed && d.counts.Executions > 0 { // otherwise the verdict reports it
		words := "The analysis failed; the run has the data stored before that"
		if d.info.Error != "" {
			words += ": " + text.Reason(d.info.Error)
		}
		list.add(api.LevelBad, "health", "%s", words)
	}
	for _, why := range d.info.Incomplete {
		list.add(api.LevelBad, "health", "The run is incomplete: %s", text.OneLine(why))
	}
	for i, broken := range d.info.Broken {
		if i == maxListed {
			list.add(api.LevelWatch, "store", "%d more traces are damaged", len(d.info.Broken)-i)
			break
		}
		list.add(api.LevelWatch, "store", "A trace is damaged and was read up to the damage: %s", broken)
	}
	for _, n := range d.info.Notes {
		if n.Severity == "data loss" {
			list.add(api.LevelWatch, "drops", "%s %s", text.Int(n.Count), n.Sentence)
		}
	}
	if o.State == api.Finished && !d.stored && d.counts.Anomalies > 0 && d.err == nil {
		list.add(api.LevelUnknown, "store", "The run has no stored findings: they were computed now")
	}
}

// maxListed bounds the ranks and traces that notices list.
const maxListed = 8

// rankText lists ranks, with programs if there are several: 17, 18 ….
func rankText(ranks []trace.RankKey) string {
	several := slices.ContainsFunc(ranks, func(p trace.RankKey) bool { return p.Program != ranks[0].Program })
	var parts []string
	for _, p := range ranks[:min(len(ranks), maxListed)] {
		words := strconv.Itoa(int(p.Rank))
		if several {
			words += fmt.Sprintf(" of program %d", p.Program)
		}
		parts = append(parts, words)
	}
	if len(ranks) > maxListed {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}
