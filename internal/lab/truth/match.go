package truth

import (
	"cmp"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Flag is what is needed of a call that an analysis flagged.
type Flag struct {
	Program     trace.Program
	Rank        trace.Rank
	Event       string // id of its entry, as trace.EventID prints it
	Function    string
	Entry, Exit trace.Micros
	// Found is when the call was flagged, such as its exit if it was during the run,
	// or AtEnd.
	Found trace.Micros
	// Launched says that the call is a kernel of a GPU whose launch is known; the
	// exit of the launch is 0 if it did not end.
	Launched                bool
	LaunchEntry, LaunchExit trace.Micros
}

// AtEnd is when a call was flagged that only a look back at the whole run found.
// The run is taken to have ended with the last of all flagged calls.
const AtEnd trace.Micros = math.MaxInt64

// Score is how well flags agree with what was planted.
type Score struct {
	// Planted are the causes of troubles of which each is to be found, and all of
	// the text formats. Of these, Found are flagged and Missed are not.
	Planted int `json:"planted"`
	Found   int `json:"found"`
	Missed  int `json:"missed"`
	// Flagged is the number of flags: those of what was Found, those Excused, as
	// they are neither wrong nor demanded, and Other ones, where nothing was planted.
	Flagged         int            `json:"flagged"`
	Excused         int            `json:"excused"`
	Other           int            `json:"other"`
	Recall          float64        `json:"recall"`    // Found of Planted; 1 if none was
	Precision       float64        `json:"precision"` // Found of Found and Other; 1 if there are none
	F1              float64        `json:"f1"`        // harmonic mean of the two
	OtherPerMillion float64        `json:"other_per_million_calls"`
	MissedList      []Missed       `json:"missed_list"` // by rank and entry
	Troubles        []TroubleScore `json:"troubles"`    // as in Truth
}

// Missed is a planted anomaly that was not found.
type Missed struct {
	Rank     trace.Rank   `json:"rank"`
	Function string       `json:"function"`
	Entry    trace.Micros `json:"entry_us"`
	Injected trace.Micros `json:"injected_us"`       // 0 where the truth does not tell
	Trouble  string       `json:"trouble,omitempty"` // empty in the text formats
}

// TroubleScore is how well one trouble was found.
type TroubleScore struct {
	Trouble
	Planted int `json:"planted"` // its causes
	// Found are the flags on its causes. Unless each is to be found, flags in its
	// region count as well, from its first cause on, if the truth lists their calls
	// nowhere.
	Found          int `json:"found"`
	Victims        int `json:"victims"`
	VictimsFlagged int `json:"victims_flagged"`
	// Seen says that there is any flag in Found, and After how long the first of
	// them came after From, or after the entry of the first cause if that is later.
	Seen  bool         `json:"seen"`
	After trace.Micros `json:"after_us"`
}

// Matcher compares flags with a Truth. It takes any number of them, in any order,
// and holds only those that are where an anomaly of the text formats was planted.
// It must not be shared.
type Matcher struct {
	truth   *Truth
	flagged []bool // of each listed call
	seen    []seen // of each trouble
	flags   int
	found   int // of listed calls
	excused int
	end     trace.Micros // of the last flagged call
	near    map[place][]candidate
}

// seen is what flags tell of a trouble.
type seen struct {
	found, victims int
	first          trace.Micros
}

// Matcher returns one without flags.
func (t *Truth) Matcher() *Matcher {
	m := &Matcher{
		truth: t, flagged: make([]bool, len(t.listed)), seen: make([]seen, len(t.Troubles)),
		end: math.MinInt64, near: make(map[place][]candidate),
	}
	for i := range t.timed {
		m.near[t.timed[i].place()] = nil
	}
	return m
}

// Flags is how many were added.
func (m *Matcher) Flags() int { return m.flags }

// Add takes a flag and keeps nothing of it but what text formats need.
func (m *Matcher) Add(f *Flag) {
	m.flags++
	m.end = max(m.end, f.Exit)
	listed, demanded := m.addListed(f)
	if demanded {
		m.found++
		return
	}
	excused := listed
	for _, i := range m.truth.regions[trace.RankKey{Program: f.Program, Rank: f.Rank}] {
		if !m.truth.Troubles[i].Covers(f) {
			continue
		}
		excused = true
		if !listed && m.truth.extent[i].begin <= f.Exit {
			m.seen[i].add(f)
		}
	}
	if excused {
		m.excused++
	}
	m.addNear(f, excused)
}

// AddChange takes a lasting change of what is usual for a function, reported at a
// time or AtEnd: that is how troubles that last are found best.
func (m *Matcher) AddChange(program trace.Program, function string, since, found trace.Micros) {
	m.end = max(m.end, since)
	for i := range m.truth.Troubles {
		t := &m.truth.Troubles[i]
		if t.Program == program && slices.Contains(t.Functions, function) && slices.Contains(lasting, t.Kind) {
			m.seen[i].add(&Flag{Found: found})
		}
	}
}

// lasting are the kinds of trouble that change what is usual.
var lasting = []string{"level-shift", "drift"}

// addListed marks the call of a flag, if the truth lists it; demanded says that it
// is one that was to be found and was not found before.
func (m *Matcher) addListed(f *Flag) (listed, demanded bool) {
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
		switch {
		case c.victim:
			m.seen[c.trouble].victims++
		case !c.minor:
			m.seen[c.trouble].add(f)
			demanded = demanded || m.truth.demands(c)
		}
		if i = c.next; i == 0 {
			return true, demanded
		}
	}
}

// demands reports whether a listed call is to be found.
func (t *Truth) demands(c *listedCall) bool {
	return !c.victim && !c.minor && t.Troubles[c.trouble].Each
}

func (s *seen) add(f *Flag) {
	if s.found == 0 || f.Found < s.first {
		s.first = f.Found
	}
	s.found++
}

// Score compares what was added with the truth. calls is how many calls the
// analysis saw; 0 means that it is not known. More flags may follow.
func (m *Matcher) Score(calls float64) *Score {
	s := &Score{
		Flagged: m.flags, Found: m.found, Excused: m.excused,
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
	slices.SortStableFunc(s.MissedList, func(a, b Missed) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Entry, b.Entry))
	})
	for i := range m.truth.Troubles {
		s.Troubles = append(s.Troubles, m.scoreTrouble(i))
	}
	return s
}

// scoreListed counts the listed calls that were to be found.
func (m *Matcher) scoreListed(s *Score) {
	t := m.truth
	for i := range t.listed {
		if t.listed[i].further {
			continue
		}
		for c := &t.listed[i]; ; c = &t.listed[c.next] {
			if t.demands(c) {
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
	e, found := &m.truth.extent[i], &m.seen[i]
	s := TroubleScore{
		Trouble: m.truth.Troubles[i], Planted: e.causes, Found: found.found,
		Victims: e.victims, VictimsFlagged: found.victims, Seen: found.found > 0,
	}
	if s.Seen {
		first := found.first
		if first == AtEnd {
			first = m.end
		}
		s.After = max(0, first-e.begin)
	}
	return s
}
