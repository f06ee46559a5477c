package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// MaxTrend is how many runs a trend has at most, the newest.
const MaxTrend = 50

// Candidate is a run that may be in a trend.
type Candidate struct {
	Name     string
	State    string
	Started  time.Time
	Baseline bool // what is kept of a run
}

// LeftOut counts runs that are not in a trend.
type LeftOut struct {
	Unfinished int // they continue, or did not end as they should
	Older      int // than MaxTrend others
}

// Sentences say which runs are left out, for people.
func (l LeftOut) Sentences() (list []string) {
	if l.Older > 0 {
		list = append(list, fmt.Sprintf("These are the newest %d runs; older ones are left out: %s.", MaxTrend, number(int64(l.Older))))
	}
	if l.Unfinished > 0 {
		list = append(list, fmt.Sprintf("Left out: %s unfinished or incomplete runs, whose missing data would look like a change.",
			number(int64(l.Unfinished))))
	}
	return list
}

// Choose returns the places of the runs that are in a trend, in the order in which they
// were started. Runs of one name that were started at the same time are one, and a baseline
// of a run that is there itself is that run.
func Choose(all []Candidate) (chosen []int, left LeftOut) {
	type start struct {
		name string
		at   int64
	}
	seen := make(map[start]bool)
	for _, baselines := range []bool{false, true} {
		for i, c := range all {
			key := start{c.Name, c.Started.UnixMicro()} // stores keep microseconds
			switch {
			case c.Baseline != baselines || seen[key]:
			case c.State != "finished":
				left.Unfinished++
			default:
				seen[key] = true
				chosen = append(chosen, i)
			}
		}
	}
	slices.SortStableFunc(chosen, func(x, y int) int { return cmp.Or(all[x].Started.Compare(all[y].Started), cmp.Compare(x, y)) })
	left.Older = max(0, len(chosen)-MaxTrend)
	return chosen[left.Older:], left
}

// Sums are what a trend needs of a run: less than a Run, so that those of many runs are
// quickly had.
type Sums struct {
	Name      string
	Where     string // where it is, for people; distinguishes runs of one name
	Started   time.Time
	Functions []FunctionSums

	places map[trace.FuncKey]int
}

// FunctionSums are the calls of a function, and its anomalies that were not withdrawn.
type FunctionSums struct {
	Calls     int64
	Exclusive float64 // in microseconds, as Lost
	Anomalies int64
	Lost      int64

	key trace.FuncKey
}

// Function returns the sums of a function, which is made if it is not there. They move
// when another is made.
func (s *Sums) Function(program trace.Program, name string) *FunctionSums {
	key := trace.FuncKey{Program: program, Name: name}
	at, ok := s.places[key]
	if !ok {
		if s.places == nil {
			s.places = make(map[trace.FuncKey]int)
		}
		at = len(s.Functions)
		s.places[key] = at
		s.Functions = append(s.Functions, FunctionSums{key: key})
	}
	return &s.Functions[at]
}

// Sums are those of the run.
func (r *Run) Sums() *Sums {
	s := &Sums{Name: r.Name, Started: r.Started}
	for i := range r.Functions {
		f := &r.Functions[i]
		sum := s.Function(f.Program, f.Name)
		sum.Calls, sum.Exclusive = f.Calls, f.Exclusive
	}
	for i := range r.Paths {
		if p := &r.Paths[i]; p.Anomalies > 0 {
			sum := s.Function(p.Program, p.Function)
			sum.Anomalies += p.Anomalies
			sum.Lost += p.Lost
		}
	}
	return s
}

// Trend is how the functions of a program went from run to run, the oldest first.
type Trend struct {
	Verdict Verdict    `json:"verdict"` // since when the newest run is as it is
	Runs    []TrendRun `json:"runs"`
	// Time and Lost are all functions together, and then those whose time of all calls, and
	// whose lost time, differs most between any two runs: first the one that Verdict names,
	// then the one with the largest difference.
	Time []Series `json:"time"`
	Lost []Series `json:"lost"`
}

// TrendRun is all that a run did.
type TrendRun struct {
	Name      string    `json:"name"`
	Where     string    `json:"where,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	Calls     int64     `json:"calls"`
	Exclusive float64   `json:"exclusive_us"` // 0: not known
	Lost      int64     `json:"lost_us"`
	// LostPercent is the share of all time that was lost to anomalies.
	LostPercent float64 `json:"lost_percent"`
	Anomalies   int64   `json:"anomalies"`
}

// Series is a function in all runs of a trend, or all functions together.
type Series struct {
	Program  int64      `json:"program"` // -1: all functions
	Function string     `json:"function"`
	Values   []*float64 `json:"values_us"` // nil where the times of a run are not known
	Counts   []int64    `json:"counts"`    // calls, or of lost time anomalies
	Since    *Since     `json:"since,omitempty"`

	swing float64 // between the lowest and the highest value
}

// Since records that the newest run differs from an earlier one by the rule of a Change, and
// so do all runs from one on. A function that became worse is compared with the run in
// which it was best, another against the one in which it was worst.
type Since struct {
	Run    int    `json:"run"`    // the first of them: a place in Runs
	Before int    `json:"before"` // the earlier one
	Change string `json:"change"` // from Before to the newest; never Same
}

// Over holds runs, in the order in which they were started, against each other, and lists
// at most so many functions besides all together. only chooses a program of all, nil is all.
func Over(runs []*Sums, only *trace.Program, most int) *Trend {
	t := &Trend{Runs: make([]TrendRun, len(runs))}
	places := make(map[trace.FuncKey]int)
	var times, lost []Series
	for at, r := range runs {
		total := &t.Runs[at]
		total.Name, total.Where, total.Started = r.Name, r.Where, r.Started
		for i := range r.Functions {
			f := &r.Functions[i]
			if only != nil && f.key.Program != *only {
				continue
			}
			k, ok := places[f.key]
			if !ok {
				k = len(times)
				places[f.key] = k
				times, lost = append(times, newSeries(f.key, len(runs))), append(lost, newSeries(f.key, len(runs)))
			}
			*times[k].Values[at], times[k].Counts[at] = f.Exclusive, f.Calls
			*lost[k].Values[at], lost[k].Counts[at] = float64(f.Lost), f.Anomalies
			total.Calls += f.Calls
			total.Exclusive += f.Exclusive
			total.Lost += f.Lost
			total.Anomalies += f.Anomalies
		}
		if total.Exclusive > 0 {
			total.LostPercent = 100 * float64(total.Lost) / total.Exclusive
		}
	}
	for k := range times {
		for at := range t.Runs {
			if t.Runs[at].Exclusive <= 0 {
				times[k].Values[at] = nil
			}
		}
	}
	times, lost = turning(times), turning(lost)
	timeTurns, lostTurns := t.turns(times, watchTime), t.turns(lost, watchPoints)
	t.Verdict = t.verdict(timeTurns, lostTurns)
	allTime, allLost := t.totals()
	t.Time, t.Lost = append(allTime, listed(times, timeTurns, most)...), append(allLost, listed(lost, lostTurns, most)...)
	return t
}

// totals are all functions together, by time and by lost time.
func (t *Trend) totals() (times, lost []Series) {
	times, lost = []Series{newSeries(trace.FuncKey{}, len(t.Runs))}, []Series{newSeries(trace.FuncKey{}, len(t.Runs))}
	times[0].Program, lost[0].Program = -1, -1
	for i := range t.Runs {
		r := &t.Runs[i]
		*lost[0].Values[i], lost[0].Counts[i] = float64(r.Lost), r.Anomalies
		if *times[0].Values[i], times[0].Counts[i] = r.Exclusive, r.Calls; r.Exclusive <= 0 {
			times[0].Values[i] = nil
		}
	}
	for _, s := range []*Series{&times[0], &lost[0]} {
		if low, high := s.ends(); low >= 0 {
			s.Since = s.since(low, high)
		}
	}
	return times, lost
}

func newSeries(key trace.FuncKey, runs int) Series {
	s := Series{Program: int64(key.Program), Function: key.Name, Values: make([]*float64, runs), Counts: make([]int64, runs)}
	values := make([]float64, runs)
	for i := range values {
		s.Values[i] = &values[i]
	}
	return s
}

// turning are the series whose values differ, most first, with since when they do.
func turning(all []Series) (list []Series) {
	for i := range all {
		s := &all[i]
		low, high := s.ends()
		if low < 0 || *s.Values[low] == *s.Values[high] {
			continue
		}
		s.Since, s.swing = s.since(low, high), *s.Values[high]-*s.Values[low]
		list = append(list, *s)
	}
	slices.SortFunc(list, func(x, y Series) int {
		return cmp.Or(cmp.Compare(y.swing, x.swing), cmp.Compare(x.Program, y.Program), cmp.Compare(x.Function, y.Function))
	})
	return list
}

// listed are at most so many series: the one that the verdict names, and then those whose
// values differ most.
func listed(all []Series, turns []*Series, most int) (list []Series) {
	for _, s := range turns[:min(1, len(turns))] {
		list = append(list, *s)
	}
	for i := range all {
		if len(turns) == 0 || &all[i] != turns[0] {
			list = append(list, all[i])
		}
	}
	return list[:min(most, len(list))]
}

// ends are the places of the lowest and the highest value, of equal ones the latest; -1 if
// none is known.
func (s *Series) ends() (low, high int) {
	low, high = -1, -1
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
	return low, high
}

// change is what became of the function from one run to another.
func (s *Series) change(from, to int) string {
	in := [2]bool{s.Counts[from] > 0, s.Counts[to] > 0}
	if !in[0] && !in[1] {
		return Same
	}
	return kind(in, [2]float64{*s.Values[from], *s.Values[to]})
}

// since returns the run from which on the function is as it is in the newest, compared with the
// run in which it was lowest, or else highest; nil if it is as it
// always was, or the newest is not known. That it became worse counts more than that it
// was even worse before.
func (s *Series) since(low, high int) *Since {
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
		return &Since{Run: first, Before: before, Change: change}
	}
	return nil
}

// verdict names the largest lasting change of a function's time and that of its lost time;
// what matters more comes first.
func (t *Trend) verdict(times, lost []*Series) Verdict {
	if len(t.Runs) < 2 {
		return Verdict{LevelUnknown, "At least two finished runs are needed to see a change."}
	}
	parts := []string{turnText(times, t.timeText), turnText(lost, t.lostText)}
	if len(times) == 0 || len(lost) > 0 && lost[0].by() > times[0].by() {
		times, parts = lost, []string{parts[1], parts[0]}
	}
	if len(times) == 0 {
		return Verdict{LevelGood, fmt.Sprintf("The newest of %s runs is as those before it: no function differs by %v %% of all time from "+
			"any of them, nor by %v %% in what it lost to anomalies.", number(int64(len(t.Runs))), watchTime, watchPoints)}
	}
	a, b := &t.Runs[times[0].Since.Before], &t.Runs[len(t.Runs)-1]
	d := Difference{
		Calls: [2]int64{a.Calls, b.Calls}, Exclusive: [2]float64{a.Exclusive, b.Exclusive},
		LostPercent: [2]float64{a.LostPercent, b.LostPercent},
	}
	return Verdict{d.level(), strings.TrimSpace(strings.Join(parts, " "))}
}

// turns are the series with a lasting change of at least so many percent of all time: those
// that became worse, or else those that became better, the largest change first.
func (t *Trend) turns(list []Series, percent float64) (found []*Series) {
	if len(list) == 0 {
		return nil
	}
	least := percent * t.Runs[len(t.Runs)-1].Exclusive / 100
	for _, worse := range []bool{true, false} {
		for i := range list {
			if s := &list[i]; s.Since != nil && s.worse() == worse && s.by() >= least {
				found = append(found, s)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	slices.SortStableFunc(found, func(x, y *Series) int { return cmp.Compare(y.by(), x.by()) })
	return found
}

// by is how far the newest run is from the one before the change.
func (s *Series) by() float64 {
	return apart([2]float64{*s.Values[s.Since.Before], *s.Values[len(s.Values)-1]})
}

// worse reports whether it takes more now than before.
func (s *Series) worse() bool { return s.Since.Change == New || s.Since.Change == Worse }

// turnText tells of the first turn, and which others there are since the same run.
func turnText(turns []*Series, tell func(s *Series) string) string {
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
		others = append(others[:2], number(int64(n-2))+" more functions")
	}
	text := tell(turns[0])
	if len(others) > 0 {
		text += " Since then also: " + strings.Join(others, ", ") + "."
	}
	return text
}

// Name is what a run is called: by where it is, too, if others have its name.
func (t *Trend) Name(run int) string {
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

// timeText tells since when the calls of a function take another time.
func (t *Trend) timeText(s *Series) string {
	at, newest := s.Since.Before, len(s.Values)-1
	name, since := text.ShortName(s.Function), t.Name(s.Since.Run)
	before, now := *s.Values[at], *s.Values[newest]
	calls := [2]float64{float64(s.Counts[at]), float64(s.Counts[newest])}
	switch {
	case s.Since.Change == New:
		return fmt.Sprintf("%s is new since %s and takes %s.", name, since, text.Duration(now))
	case s.Since.Change == Gone:
		return fmt.Sprintf("%s is gone since %s and took %s in %s.", name, since, text.Duration(before), t.Name(at))
	case apart(calls) > SameShare*max(calls[0], calls[1]) || min(before, now) <= 0:
		return fmt.Sprintf("%s takes %s since %s instead of %s, in %s calls instead of %s.", name, text.Duration(now), since,
			text.Duration(before), number(s.Counts[newest]), number(s.Counts[at]))
	}
	word, times := "slower", now/before
	if s.Since.Change == Better {
		word, times = "faster", before/now
	}
	return fmt.Sprintf("%s is %s × %s since %s: %s a call instead of %s.", name, timesText(times), word, since,
		text.Duration(now/calls[1]), text.Duration(before/calls[0]))
}

// lostText tells since when a function loses another time to anomalies.
func (t *Trend) lostText(s *Series) string {
	at, newest := s.Since.Before, len(s.Values)-1
	name, since := text.ShortName(s.Function), t.Name(s.Since.Run)
	before, now := text.Duration(*s.Values[at]), text.Duration(*s.Values[newest])
	switch s.Since.Change {
	case New:
		return fmt.Sprintf("%s loses %s to anomalies since %s, and nothing in %s.", name, now, since, t.Name(at))
	case Gone:
		return fmt.Sprintf("%s loses nothing to anomalies since %s, and %s in %s.", name, since, before, t.Name(at))
	}
	return fmt.Sprintf("%s loses %s to anomalies since %s instead of %s.", name, now, since, before)
}

// timesText writes how many times as much something is.
func timesText(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return text.Number(v)
}
