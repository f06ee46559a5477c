package truth

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Flag is a call that an analysis flagged.
type Flag struct {
	Program     trace.Program
	Rank        trace.Rank
	Event       string // id of its entry, formatted as a trace.EventID
	Function    string
	Entry, Exit trace.Ticks
	// Found is the time at which the call was flagged: its exit, or AtEnd.
	Found trace.Ticks
	// Launched is set if the call is a GPU kernel with a known launch. The exit of the
	// launch is 0 if it did not end.
	Launched                bool
	LaunchEntry, LaunchExit trace.Ticks
	// Lost is the time that it lost, Finding the number of its finding, or 0, and Culprit is set if
	// others waited for it.
	Lost    trace.Ticks
	Finding int
	Culprit bool
	// Induced is set if the call is a wait for an anomaly and not unusual by itself. It is a part of what that
	// anomaly costs, and not a wrong flag.
	Induced bool
	// Recurring is set if the call is an example of a slow mode, which is reported as a whole.
	// It is not a wrong flag.
	Recurring bool
}

// AtEnd is the time of flags that the review at the end of the run raised. The run ends
// with the last flagged call.
const AtEnd trace.Ticks = math.MaxInt64

// Score compares flags with planted anomalies.
type Score struct {
	// Planted counts the causes that must be found, and all anomalies of the text
	// formats: the sum of Found, which are flagged, and Missed.
	Planted int `json:"planted"`
	Found   int `json:"found"`
	Missed  int `json:"missed"`
	// Flagged is the number of flags: the sum of Found, of Excused, which are neither
	// wrong nor required, and of Other, where nothing was planted.
	Flagged         int            `json:"flagged"`
	Excused         int            `json:"excused"`
	Other           int            `json:"other"`
	Recall          float64        `json:"recall"`    // Found of Planted; 1 if none was
	Precision       float64        `json:"precision"` // Found of Found and Other; 1 without flags
	F1              float64        `json:"f1"`        // harmonic mean of the two
	OtherPerMillion float64        `json:"other_per_million_calls"`
	MissedList      []Missed       `json:"missed_list"` // by rank and entry
	Troubles        []TroubleScore `json:"troubles"`    // as in Truth
	// External is nil if the truth has neither trouble from outside nor the scheduler's record, and Findings
	// if the run has none.
	External *ExternalScore `json:"external,omitempty"`
	Findings *FindingScore  `json:"findings,omitempty"`
}

// Missed is a planted anomaly that was not found.
type Missed struct {
	Rank     trace.Rank  `json:"rank"`
	Function string      `json:"function"`
	Entry    trace.Ticks `json:"entry_us"`
	Injected trace.Ticks `json:"injected_us"`       // 0 if unknown
	Trouble  string      `json:"trouble,omitempty"` // empty in the text formats
}

// TroubleScore is the score of one trouble.
type TroubleScore struct {
	Trouble
	Planted int `json:"planted"` // its causes
	// Found counts the flags on its causes. Unless Each is set, it also counts flags in
	// its region, from its first cause on, on calls that the truth does not list.
	Found          int `json:"found"`
	Victims        int `json:"victims"`
	VictimsFlagged int `json:"victims_flagged"`
	// Seen is Found > 0. After is the time of the first of these flags since From, or
	// since the entry of the first cause if that is later.
	Seen  bool        `json:"seen"`
	After trace.Ticks `json:"after_us"`
}

// Matcher compares flags with a Truth, in any order. It keeps only flags near anomalies
// of the text formats. It must not be shared.
type Matcher struct {
	// LeastLoss is the least time that a call must lose to be flagged, by the settings of the analysis. Findings leaves out
	// troubles whose calls all lost less.
	LeastLoss trace.Ticks
	// LeastCost is the least time that a finding must cost to be listed. Findings leaves out troubles that cost less, with the
	// time that others waited because of them.
	LeastCost trace.Ticks

	truth   *Truth
	flagged []bool     // of each listed call
	seen    []sighting // of each trouble
	flags   int
	hits    int // of listed calls
	excused int
	end     trace.Ticks // of the last flagged call
	near    map[place][]candidate

	touches              []touch             // of the current flag
	members              map[int]*membership // by finding
	stops                []stopMatch         // of each trouble from outside
	outside, unexplained int
}

// sighting summarizes the flags of a trouble.
type sighting struct {
	hits, victims int
	first         trace.Ticks
}

// Matcher returns a Matcher without flags.
func (t *Truth) Matcher() *Matcher {
	m := &Matcher{
		truth: t, flagged: make([]bool, len(t.listed)), seen: make([]sighting, len(t.Troubles)),
		end: math.MinInt64, near: make(map[place][]candidate),
		members: make(map[int]*membership), stops: make([]stopMatch, len(t.external)),
	}
	for i := range t.timed {
		m.near[t.timed[i].place()] = nil
	}
	return m
}

// Flags returns the number of added flags.
func (m *Matcher) Flags() int { return m.flags }

// Add adds a flag. The caller may reuse it.
func (m *Matcher) Add(f *Flag) {
	m.flags++
	m.end = max(m.end, f.Exit)
	m.touches = m.touches[:0]
	listed, required := m.addListed(f)
	if required {
		m.hits++
	} else {
		m.addRegions(f, listed)
	}
	if f.Finding > 0 {
		m.addMember(f)
	}
}

// addRegions compares a flag with lasting troubles, those from outside and anomalies of the text
// formats.
func (m *Matcher) addRegions(f *Flag, listed bool) {
	excused := listed || f.Recurring || f.Induced
	if len(m.stops) > 0 || len(m.truth.delays) > 0 {
		excused = m.addExternal(f) || excused
	}
	for _, i := range m.truth.regions[trace.RankKey{Program: f.Program, Rank: f.Rank}] {
		if !m.truth.Troubles[i].Covers(f) {
			continue
		}
		excused = true
		if !listed {
			m.touch(i, min(f.Lost, m.truth.Troubles[i].overlap(f)), false)
			if m.truth.extent[i].begin <= f.Exit {
				m.seen[i].add(f)
			}
		}
	}
	if excused {
		m.excused++
	}
	m.addNear(f, excused)
}

// AddChange adds a lasting change of the usual time of a function, reported at a time or
// AtEnd. It counts as a flag of lasting troubles in that function.
func (m *Matcher) AddChange(program trace.Program, function string, since, at trace.Ticks) {
	m.end = max(m.end, since)
	for i := range m.truth.Troubles {
		t := &m.truth.Troubles[i]
		if t.Program == program && slices.Contains(t.Functions, function) && slices.Contains(lasting, t.Kind) {
			m.seen[i].add(&Flag{Found: at})
		}
	}
}

// lasting are the kinds of trouble that change the usual time of functions.
var lasting = []string{"level-shift", "drift"}

// addListed marks the call of a flag, if the truth lists it. It reports whether the call
// is required and was not flagged before.
func (m *Matcher) addListed(f *Flag) (listed, required bool) {
	id, ok := parseEvent(f.Program, f.Event)
	if !ok || id.rank != f.Rank {
		return false, false
	}
	i, ok := m.truth.byEvent[id]
	if !ok || m.flagged[i] {
		return ok, false
	}
	m.flagged[i] = true
	for {
		c := &m.truth.listed[i]
		m.touch(c.trouble, max(0, c.injected), c.victim)
		switch {
		case c.victim:
			m.seen[c.trouble].victims++
		case !c.minor:
			m.seen[c.trouble].add(f)
			required = required || m.truth.requires(c)
		}
		if i = c.next; i == 0 {
			return true, required
		}
	}
}

// requires reports whether a listed call must be found.
func (t *Truth) requires(c *listedCall) bool {
	return !c.victim && !c.minor && t.Troubles[c.trouble].Each
}

func (s *sighting) add(f *Flag) {
	if s.hits == 0 || f.Found < s.first {
		s.first = f.Found
	}
	s.hits++
}

// Score compares the flags so far with the truth. calls is the number of analyzed calls,
// or 0 if unknown.
func (m *Matcher) Score(calls float64) *Score {
	s := &Score{
		Flagged: m.flags, Found: m.hits, Excused: m.excused,
		Recall: 1, Precision: 1, F1: 1, MissedList: []Missed{}, Troubles: []TroubleScore{},
	}
	m.scoreListed(s)
	m.scoreNear(s)
	s.Missed = s.Planted - s.Found
	s.Other = s.Flagged - s.Found - s.Excused
	if s.Planted > 0 {
		s.Recall = float64(s.Found) / float64(s.Planted)
	}
	if s.Found+s.Other > 0 {
		s.Precision = float64(s.Found) / float64(s.Found+s.Other)
	}
	if all := 2*s.Found + s.Missed + s.Other; all > 0 {
		s.F1 = float64(2*s.Found) / float64(all)
	}
	if calls > 0 {
		s.OtherPerMillion = 1e6 * float64(s.Other) / calls
	}
	s.External = m.scoreExternal(calls)
	slices.SortStableFunc(s.MissedList, func(a, b Missed) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Entry, b.Entry))
	})
	for i := range m.truth.Troubles {
		s.Troubles = append(s.Troubles, m.scoreTrouble(i))
	}
	return s
}

// scoreListed counts the required listed calls.
func (m *Matcher) scoreListed(s *Score) {
	t := m.truth
	for i := range t.listed {
		if t.listed[i].further {
			continue
		}
		for c := &t.listed[i]; ; c = &t.listed[c.next] {
			if t.requires(c) {
				s.Planted++
				if !m.flagged[i] {
					s.MissedList = append(s.MissedList, Missed{c.rank, t.functions[c.function], c.entry, c.injected, t.Troubles[c.trouble].Name})
				}
				break
			}
			if c.next == 0 {
				break
			}
		}
	}
}

func (m *Matcher) scoreTrouble(i int) TroubleScore {
	e, sighting := &m.truth.extent[i], &m.seen[i]
	s := TroubleScore{
		Trouble: m.truth.Troubles[i], Planted: e.causes, Found: sighting.hits,
		Victims: e.victims, VictimsFlagged: sighting.victims, Seen: sighting.hits > 0,
	}
	if s.Seen {
		first := sighting.first
		if first == AtEnd {
			first = m.end
		}
		s.After = max(0, first-e.begin)
	}
	return s
}
