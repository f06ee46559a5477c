package insight

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// What is behind by less is only on its way.
const maxBehind = 10 * time.Second

// notices are what limits how far the rest can be trusted.
func (v *view) notices(o *api.Overview) (list []api.Notice) {
	add := func(level api.Level, topic, format string, args ...any) {
		list = append(list, api.Notice{Level: level, Topic: topic, Sentence: fmt.Sprintf(format, args...)})
	}
	ended := o.State == api.Finished || o.State == api.Incomplete || o.State == api.Failed
	if o.Verdict.Level == api.LevelUnknown && (o.State == api.Waiting || o.Figures.Kept == 0 && !ended) {
		add(api.LevelUnknown, "no-data", "%s", o.Verdict.Sentence)
	}
	if s := v.status; s != nil {
		for _, h := range s.Health {
			if !h.OK {
				add(levelOf(h.Severity), "health", "%s: %s", h.Part, h.Sentence)
			}
		}
		if o.Live {
			list = append(list, v.silent()...)
			list = append(list, behind(s)...)
		}
		list = append(list, drops(s)...)
	}
	if v.known != nil {
		list = append(list, v.known.warming(o)...)
		list = append(list, v.known.salvaged(o)...)
	}
	if r := o.Review; r != nil {
		words := fmt.Sprintf("Final: %s of %s provisional anomalies kept", text.Int(r.Confirmed), text.Int(r.Flagged))
		if r.Promoted > 0 {
			words += fmt.Sprintf(", %s found only at the end", text.Int(r.Promoted))
		}
		add(api.LevelGood, "review", "%s", words)
	}
	return list
}

// levelOf is the level of a severity.
func levelOf(severity string) api.Level {
	switch severity {
	case api.SeverityError:
		return api.LevelBad
	case api.SeverityWarning:
		return api.LevelWatch
	}
	return api.LevelUnknown
}

// silentRanks are those that should report but do not: those whose analyzer is silent,
// and where it is known how many there should be, those that never came.
func (v *view) silentRanks() (silent map[trace.RankKey]string, never []trace.RankKey) {
	silent = make(map[trace.RankKey]string)
	s := v.status
	if s == nil {
		return silent, nil
	}
	quiet := make(map[string]bool)
	for i := range s.Nodes {
		quiet[s.Nodes[i].Name] = s.Nodes[i].State == api.NodeSilent
	}
	seen := make(map[trace.RankKey]bool)
	programs := make(map[trace.Program]bool)
	for i := range s.Ranks {
		r := &s.Ranks[i]
		p := trace.RankKey{Program: trace.Program(r.Program), Rank: trace.Rank(r.Rank)}
		seen[p], programs[p.Program] = true, true
		if quiet[r.Node] && !r.Ended {
			silent[p] = r.Host
		}
	}
	// Of several programs it is not known which has how many.
	if program := slices.Collect(maps.Keys(programs)); len(program) == 1 {
		for rank := int64(0); rank < s.Totals.RanksExpected && int64(len(never)) < s.Totals.RanksExpected-int64(len(seen)); rank++ {
			if p := (trace.RankKey{Program: program[0], Rank: trace.Rank(rank)}); !seen[p] {
				never = append(never, p)
			}
		}
	}
	return silent, never
}

// silent tells which ranks say nothing.
func (v *view) silent() []api.Notice {
	t := &v.status.Totals
	hosts, never := v.silentRanks()
	all := max(t.Ranks, t.RanksExpected)
	missing := int64(len(hosts)) + max(0, t.RanksExpected-t.Ranks)
	if missing == 0 || t.Ranks == 0 {
		return nil
	}
	quiet := slices.SortedFunc(maps.Keys(hosts), func(a, b trace.RankKey) int {
		if a.Program != b.Program {
			return int(a.Program) - int(b.Program)
		}
		return int(a.Rank) - int(b.Rank)
	})
	words := fmt.Sprintf("%s of %s ranks reporting", text.Int(all-missing), text.Int(all))
	if ranks := append(slices.Clone(quiet), never...); len(ranks) > 0 {
		programs := slices.ContainsFunc(ranks, func(p trace.RankKey) bool { return p.Program != ranks[0].Program })
		words += "; missing: " + rankText(ranks, programs)
	}
	if where := text.Hosts(slices.Compact(slices.Sorted(maps.Values(hosts)))); where != "" {
		words += " (host " + where + ")"
	}
	if len(quiet) > 0 {
		words += ". Start their analyzers again with the same command"
	}
	return []api.Notice{{Level: api.LevelWatch, Topic: "silent-ranks", Sentence: words}}
}

// behind tells which stage does not keep up.
func behind(s *api.Status) (list []api.Notice) {
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
		list = append(list, api.Notice{Level: api.LevelWatch, Topic: "backlog", Sentence: fmt.Sprintf(
			"%s behind the traces, the worst (%s on %s) by %.0f s: give it more processors with --workers, or start more analyzers with fewer "+
				"ranks each",
			isAre(int64(slow), "analyzer"), text.OneLine(n.Name), text.OneLine(n.Host), n.Behind)})
	}
	if st := s.Store; st != nil && st.Lag > maxBehind.Seconds() {
		list = append(list, api.Notice{Level: api.LevelWatch, Topic: "backlog", Sentence: fmt.Sprintf(
			"%s wait for the store, the oldest for %.0f s: a larger --store-delay of chimbuko serve stores more at once, a larger "+
				"--stream-size lets more wait",
			text.Count(st.PendingMessages, "message"), st.Lag)})
	}
	return list
}

func isAre(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return text.Count(n, what) + " are"
}

// drops tells what found no room, and what of traces was lost.
func drops(s *api.Status) (list []api.Notice) {
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
		list = append(list, api.Notice{Level: api.LevelWatch, Topic: "drops", Sentence: fmt.Sprintf(
			"%s found no room at %s and are sent when the run ends: give chimbuko ad a larger --outbox", text.Count(drops, "record"),
			text.Count(int64(nodes), "analyzer"))})
	}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		list = append(list, api.Notice{Level: api.LevelWatch, Topic: "drops", Sentence: text.Int(lost[name].Count) + " " +
			lost[name].Sentence})
	}
	return list
}

// warming tells of models that know too little.
func (k *known) warming(o *api.Overview) []api.Notice {
	f := &o.Figures
	cold := int64(0)
	if f.FunctionsWarm != nil {
		cold = f.Functions - *f.FunctionsWarm
	}
	min := k.info.minSamples()
	switch {
	case o.State == api.Finished && cold > 0:
		return []api.Notice{{Level: api.LevelUnknown, Topic: "warming", Sentence: fmt.Sprintf(
			"%s called fewer than %d times: their calls are not judged", wasWere(cold, "function"), min)}}
	case o.State == api.Finished:
		return nil
	case cold > 0:
		return []api.Notice{{Level: api.LevelUnknown, Topic: "warming", Sentence: fmt.Sprintf(
			"Models have < %d samples for %s; anomalies are provisional", min, text.Count(cold, "function"))}}
	case len(k.thin) > 0:
		return []api.Notice{{Level: api.LevelUnknown, Topic: "warming", Sentence: fmt.Sprintf(
			"Models have < %d samples for %s with anomalies; these are provisional", sureTimes*min, text.Count(int64(len(k.thin)), "function"))}}
	}
	return nil
}

func wasWere(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " was"
	}
	return text.Count(n, what) + " were"
}

// salvaged tells what is missing of a run that has ended: what of its traces could not
// be read, that it failed, or that it is from before issues were stored.
func (k *known) salvaged(o *api.Overview) (list []api.Notice) {
	add := func(level api.Level, topic, words string) {
		list = append(list, api.Notice{Level: level, Topic: topic, Sentence: words})
	}
	if k.run.State == provdb.Failed && k.kept.Executions > 0 { // else the verdict says it
		words := "The analysis failed, and the run holds what was stored until then"
		if k.info.Error != "" {
			words += ": " + text.Reason(k.info.Error)
		}
		add(api.LevelBad, "health", words)
	}
	for _, why := range k.info.Incomplete {
		add(api.LevelBad, "health", "The run is incomplete: "+text.OneLine(why))
	}
	for i, broken := range k.info.Broken {
		if i == maxListed {
			add(api.LevelWatch, "store", fmt.Sprintf("%d more traces are damaged", len(k.info.Broken)-i))
			break
		}
		add(api.LevelWatch, "store", "A trace is damaged and was read as far as it goes: "+broken)
	}
	for _, n := range k.info.Notes {
		if n.Severity == "data loss" {
			add(api.LevelWatch, "drops", text.Int(n.Count)+" "+n.Sentence)
		}
	}
	if o.State == api.Finished && !k.stored && k.kept.Anomalies > 0 && k.wrong == nil {
		add(api.LevelUnknown, "store", "The run is of an older chimbuko that did not store issues: they were found out now")
	}
	return list
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
