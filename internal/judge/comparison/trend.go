package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// MaxTrend is the greatest number of runs in a trend. It has the newest ones.
const MaxTrend = 50

// LeftOut counts runs that are not in a trend.
type LeftOut struct {
	Unfinished int // running, failed or incomplete
	Older      int // older than the MaxTrend newest
}

// Sentences describes the runs that are left out.
func (l LeftOut) Sentences() (list []string) {
	if l.Older > 0 {
		list = append(list, fmt.Sprintf("Left out: %s older than the newest %d.", text.Count(l.Older, "run"), MaxTrend))
	}
	if l.Unfinished > 0 {
		list = append(list, fmt.Sprintf("Left out: %s, unfinished or incomplete, whose missing data would look like a change.",
			text.Count(l.Unfinished, "run")))
	}
	return list
}

// Choose returns the runs of a trend, ordered by start, and adds the others to left. Runs with the same name and start are the
// same run; Choose prefers the run itself to its baseline.
func Choose[T any](all []T, of func(T) api.Comparable, left *LeftOut) (runs []T) {
	type start struct {
		name string
		at   int64
	}
	seen := make(map[start]bool)
	var indices []int
	for _, baselines := range []bool{false, true} {
		for i, run := range all {
			c := of(run)
			key := start{c.Name, c.Started.UnixMicro()} // the resolution of stores
			switch {
			case c.Baseline != baselines || seen[key]:
			case c.State != string(api.Finished):
				left.Unfinished++
			default:
				seen[key] = true
				indices = append(indices, i)
			}
		}
	}
	slices.SortFunc(indices, func(x, y int) int { return cmp.Or(of(all[x]).Started.Compare(of(all[y]).Started), cmp.Compare(x, y)) })
	older := max(0, len(indices)-MaxTrend)
	left.Older += older
	for _, i := range indices[older:] {
		runs = append(runs, all[i])
	}
	return runs
}

// Sums is the data of a run for a trend. It is smaller than a Run and faster to query.
type Sums struct {
	api.Comparable
	Functions []Function

	index map[trace.FuncKey]int
}

// Add merges a function into the one with its name.
func (s *Sums) Add(f *Function) {
	if at, ok := s.index[f.Key()]; ok {
		s.Functions[at].Merge(f)
		return
	}
	if s.index == nil {
		s.index = make(map[trace.FuncKey]int)
	}
	s.index[f.Key()] = len(s.Functions)
	s.Functions = append(s.Functions, *f)
}

// Sums returns the sums of a baseline.
func (r *Run) Sums() *Sums {
	s := &Sums{Comparable: api.Comparable{Name: r.Name, State: r.State, Started: r.Started, Baseline: true}}
	for i := range r.Functions {
		s.Add(&r.Functions[i])
	}
	for i := range r.Paths {
		if p := &r.Paths[i]; p.Anomalies > 0 {
			s.Add(&Function{Program: p.Program, Name: p.Function, Anomalies: p.Anomalies, Lost: p.Lost})
		}
	}
	return s
}

// Over compares runs, ordered by start. It returns the sum of all functions and up to limit functions. only selects a program;
// nil selects all.
func Over(runs []*Sums, only *trace.Program, limit int) *api.Trend {
	t := &api.Trend{Notices: []api.Notice{}, Runs: make([]api.TrendRun, len(runs))}
	index := make(map[trace.FuncKey]int)
	times, lost := []series{newSeries(-1, "", len(runs))}, []series{newSeries(-1, "", len(runs))} // all functions
	for at, r := range runs {
		total := &t.Runs[at]
		total.Comparable = r.Comparable
		for i := range r.Functions {
			f := &r.Functions[i]
			if only != nil && f.Program != *only {
				continue
			}
			k, ok := index[f.Key()]
			if !ok {
				k = len(times)
				index[f.Key()] = k
				times = append(times, newSeries(int64(f.Program), f.Name, len(runs)))
				lost = append(lost, newSeries(int64(f.Program), f.Name, len(runs)))
			}
			for _, k := range []int{0, k} {
				times[k].add(at, f.Exclusive, f.Calls)
				lost[k].add(at, f.Lost, f.Anomalies)
			}
			total.Calls += f.Calls
			total.Exclusive += f.Exclusive
			total.Lost += f.Lost
			total.Anomalies += f.Anomalies
		}
		total.LostPercent = lostPercent(total.Lost, total.Exclusive)
	}
	for at := range t.Runs {
		if t.Runs[at].Exclusive <= 0 {
			for k := range times {
				times[k].Values[at] = nil
			}
		}
	}
	t.Notices = append(t.Notices, strangers(runs, only)...)
	timeFunctions, lostFunctions := changing(times[1:]), changing(lost[1:])
	timeTurns, lostTurns := turns(t, timeFunctions, watchTime), turns(t, lostFunctions, watchPoints)
	t.Verdict = trendVerdict(t, timeTurns, lostTurns)
	t.Time, t.Lost = listed(times[0], timeFunctions, timeTurns, limit), listed(lost[0], lostFunctions, lostTurns, limit)
	return t
}

// strangers returns warnings about runs that seem to be of another program than the newest run: they share less than half of
// their functions with it, not counting those of libraries that all programs call.
func strangers(runs []*Sums, only *trace.Program) (notices []api.Notice) {
	if len(runs) == 0 {
		return nil
	}
	newest := ownFunctions(runs[len(runs)-1], only)
	for _, r := range runs[:len(runs)-1] {
		names, common := ownFunctions(r, only), 0
		for name := range names {
			if newest[name] {
				common++
			}
		}
		if fewer := min(len(names), len(newest)); 2*common < fewer {
			notices = append(notices, api.Notice{Level: api.LevelWatch, Topic: "another-program", Sentence: fmt.Sprintf(
				"%s seems to be a run of another program: %d of its %s occur in %s", text.OneLine(r.Name), common,
				text.Count(len(names), "function"), text.OneLine(runs[len(runs)-1].Name))})
		}
	}
	return notices
}

// OtherProgram returns a warning if two runs seem to be of different programs.
func OtherProgram(two [2]*Run) []api.Notice {
	a, b := two[0].Sums(), two[1].Sums()
	a.Name, b.Name = "A", "B"
	return strangers([]*Sums{a, b}, nil)
}

// ownFunctions returns the names of the functions of a run except those of MPI and TAU.
func ownFunctions(r *Sums, only *trace.Program) map[string]bool {
	names := make(map[string]bool)
	for i := range r.Functions {
		f := &r.Functions[i]
		if (only == nil || f.Program == *only) && f.Calls > 0 && f.Name != "main" &&
			!strings.HasPrefix(f.Name, "MPI") && !strings.HasPrefix(f.Name, ".TAU") {
			names[f.Name] = true
		}
	}
	return names
}

// series is a TrendSeries under construction.
type series struct {
	api.TrendSeries
	swing float64 // difference of the highest and the lowest value
}

func newSeries(program int64, function string, runs int) series {
	s := series{TrendSeries: api.TrendSeries{
		Program: program, Function: function, Values: make([]*float64, runs), Counts: make([]int64, runs),
	}}
	values := make([]float64, runs)
	for i := range values {
		s.Values[i] = &values[i]
	}
	return s
}

func (s *series) add(at int, value float64, count int64) {
	*s.Values[at] += value
	s.Counts[at] += count
}

// changing returns the series whose values differ, in descending order of their difference, and sets since when they do.
func changing(all []series) (list []series) {
	for i := range all {
		if s := &all[i]; s.locate() && s.swing > 0 {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(x, y series) int {
		return cmp.Or(cmp.Compare(y.swing, x.swing), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function))
	})
	return list
}

// listed returns the sum of all functions and up to limit functions: the one of the verdict, then those that differ most.
func listed(sum series, all []series, turns []*series, limit int) []api.TrendSeries {
	sum.locate()
	list := []api.TrendSeries{sum.TrendSeries}
	for _, s := range turns[:min(1, len(turns))] {
		list = append(list, s.TrendSeries)
	}
	for i := range all {
		if len(turns) == 0 || &all[i] != turns[0] {
			list = append(list, all[i].TrendSeries)
		}
	}
	return list[:min(limit+1, len(list))]
}

// locate sets Since and swing. It returns false if there are no values.
func (s *series) locate() bool {
	low, high := -1, -1 // the latest of equal values
	for i, v := range s.Values {
		if v == nil {
			continue
		}
		if low < 0 || *v <= *s.Values[low] {
			low = i
		}
		if high < 0 || *v >= *s.Values[high] {
			high = i
		}
	}
	if low < 0 {
		return false
	}
	s.Since, s.swing = s.since(low, high), *s.Values[high]-*s.Values[low]
	return true
}

// change returns the kind of change from one run to another.
func (s *series) change(from, to int) string {
	in := [2]bool{s.Counts[from] > 0, s.Counts[to] > 0}
	if !in[0] && !in[1] {
		return Same
	}
	return kind(in, [2]float64{*s.Values[from], *s.Values[to]})
}

// since returns the start of the lasting change relative to the run in which the function was lowest, or else highest. It is
// nil if there are no values, or if the newest run is like those before. A function that became worse counts as worse even if
// it was still worse before.
func (s *series) since(low, high int) *api.TrendSince {
	newest := len(s.Values) - 1
	if s.Values[newest] == nil {
		return nil
	}
	for _, before := range []int{low, high} {
		change := s.change(before, newest)
		if before == newest || change == Same {
			continue
		}
		up, first := *s.Values[newest] > *s.Values[before], newest
		for i := newest - 1; i > before; i-- {
			if s.Values[i] == nil {
				continue
			}
			if s.change(before, i) == Same || (*s.Values[i] > *s.Values[before]) != up {
				break
			}
			first = i
		}
		return &api.TrendSince{Run: first, Before: before, Change: change}
	}
	return nil
}

// trendVerdict names the largest lasting changes of time and of lost time, the larger first.
func trendVerdict(t *api.Trend, times, lost []*series) api.Verdict {
	if len(t.Runs) < 2 {
		return api.Verdict{Level: api.LevelUnknown, Sentence: "At least two finished runs are needed to see a change."}
	}
	parts := []string{turnText(t, times, timeText), turnText(t, lost, lostText)}
	if len(times) == 0 || len(lost) > 0 && lost[0].step() > times[0].step() {
		times, parts = lost, []string{parts[1], parts[0]}
	}
	if len(times) == 0 {
		return api.Verdict{Level: api.LevelGood, Sentence: fmt.Sprintf("The newest of %s runs is like those before it: no function differs "+
			"by %v %% of all time, or by %v %% in the time it lost to anomalies.", text.Int(len(t.Runs)), watchTime, watchPoints)}
	}
	a, b := &t.Runs[times[0].Since.Before], &t.Runs[len(t.Runs)-1]
	d := &api.Difference{
		Calls: [2]int64{a.Calls, b.Calls}, Exclusive: [2]float64{a.Exclusive, b.Exclusive},
		LostPercent: [2]float64{a.LostPercent, b.LostPercent},
	}
	return api.Verdict{Level: level(d), Sentence: strings.TrimSpace(strings.Join(parts, " "))}
}

// turns returns the series with a lasting change of at least percent of all time: those that became worse, or else those that
// became better, in descending order of the change.
func turns(t *api.Trend, list []series, percent float64) (matches []*series) {
	if len(list) == 0 {
		return nil
	}
	least := percent * t.Runs[len(t.Runs)-1].Exclusive / 100
	for _, worse := range []bool{true, false} {
		for i := range list {
			if s := &list[i]; s.Since != nil && s.worse() == worse && s.step() >= least {
				matches = append(matches, s)
			}
		}
		if len(matches) > 0 {
			break
		}
	}
	slices.SortStableFunc(matches, func(x, y *series) int { return cmp.Compare(y.step(), x.step()) })
	return matches
}

// step returns the difference between the newest run and the one before the change.
func (s *series) step() float64 {
	return distance([2]float64{*s.Values[s.Since.Before], *s.Values[len(s.Values)-1]})
}

// worse reports whether the newest run takes longer than the one before the change.
func (s *series) worse() bool { return s.Since.Change == New || s.Since.Change == Worse }

// turnText describes the first turn and names others since the same run.
func turnText(t *api.Trend, turns []*series, describe func(t *api.Trend, s *series) string) string {
	if len(turns) == 0 {
		return ""
	}
	var others []string
	for _, s := range turns[1:] {
		if s.Since.Run == turns[0].Since.Run {
			others = append(others, text.ShortName(s.Function))
		}
	}
	if n := len(others); n > 3 {
		others = append(others[:2], text.Int(n-2)+" more functions")
	}
	words := describe(t, turns[0])
	if len(others) > 0 {
		words += " Since then also: " + strings.Join(others, ", ") + "."
	}
	return words
}

// RunName returns the name of a run of a trend, with its place if other runs have the same name.
func RunName(t *api.Trend, run int) string {
	r, same := &t.Runs[run], 0
	for i := range t.Runs {
		if t.Runs[i].Name == r.Name {
			same++
		}
	}
	if same > 1 && r.Where != "" {
		return text.OneLine(r.Name + " (" + r.Where + ")")
	}
	return text.OneLine(r.Name)
}

// timeText describes since when, and how, the time of the calls of a function differs.
func timeText(t *api.Trend, s *series) string {
	at, newest := s.Since.Before, len(s.Values)-1
	name, since := text.ShortName(s.Function), RunName(t, s.Since.Run)
	before, now := *s.Values[at], *s.Values[newest]
	calls := [2]int64{s.Counts[at], s.Counts[newest]}
	switch {
	case s.Since.Change == New:
		return fmt.Sprintf("%s is new since %s and takes %s.", name, since, text.Duration(now))
	case s.Since.Change == Gone:
		return fmt.Sprintf("%s is gone since %s and took %s in %s.", name, since, text.Duration(before), RunName(t, at))
	case !similar(calls) || min(before, now) <= 0:
		return fmt.Sprintf("%s takes %s since %s instead of %s, in %s calls instead of %s.", name, text.Duration(now), since,
			text.Duration(before), text.Int(calls[1]), text.Int(calls[0]))
	}
	word, factor := "slower", now/before
	if s.Since.Change == Better {
		word, factor = "faster", before/now
	}
	digits := 0
	if factor < 10 {
		digits = 1
	}
	return fmt.Sprintf("%s is %.*f × %s since %s: %s per call instead of %s.", name, digits, factor, word, since,
		text.Duration(now/float64(calls[1])), text.Duration(before/float64(calls[0])))
}

// lostText describes since when, and how, the time that a function loses to anomalies differs.
func lostText(t *api.Trend, s *series) string {
	at, newest := s.Since.Before, len(s.Values)-1
	name, since := text.ShortName(s.Function), RunName(t, s.Since.Run)
	before, now := text.Duration(*s.Values[at]), text.Duration(*s.Values[newest])
	switch s.Since.Change {
	case New:
		return fmt.Sprintf("%s loses %s to anomalies since %s, and nothing in %s.", name, now, since, RunName(t, at))
	case Gone:
		return fmt.Sprintf("%s loses nothing to anomalies since %s, and %s in %s.", name, since, before, RunName(t, at))
	}
	return fmt.Sprintf("%s loses %s to anomalies since %s instead of %s.", name, now, since, before)
}
