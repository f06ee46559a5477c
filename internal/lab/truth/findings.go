package truth

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Report is a finding of an analysis.
type Report struct {
	Number   int // from 1
	Kind     Finding
	Program  trace.Program
	Function string       // empty: whatever ran
	Ranks    []trace.Rank // empty: all
	From, To trace.Ticks
	// LostOwn is the time that all its calls lost, including calls that are not flagged.
	LostOwn trace.Ticks
	Share   float64 // of the time of the run that it cost
	Summary string
	// Cause is the number of the finding that made these wait; 0 if unknown.
	Cause int
	// Listed is set if the finding is listed by default. Others do not count.
	Listed bool
	// Informational is set if the finding is not a reason for an alarm.
	Informational bool
}

// FindingScore compares findings with troubles. A finding is about a trouble if its kind, function
// and ranks are right, at least half of its own lost time is on ranks of such troubles (of a stop: in calls that
// overlap one), and the times overlap.
type FindingScore struct {
	// Lost is the time that the troubles added, and Covered the part of it that findings about them have.
	Lost    trace.Ticks `json:"lost_us"`
	Covered trace.Ticks `json:"covered_us"`
	// Named counts the troubles whose costliest finding names the right ranks and function.
	Named    int              `json:"named"`
	Troubles []TroubleFinding `json:"troubles"`
	// Minor counts the troubles that do not count because they cost less than is listed.
	Minor int `json:"minor,omitempty"`
	// Others are the findings with less than half of their lost time in troubles, without interference,
	// and OthersShare is the share of the time of the run that they cost, except those that are only informational.
	Others      []OtherFinding `json:"others"`
	OthersShare float64        `json:"others_share"`
}

// TroubleFinding is the result of findings for a trouble.
type TroubleFinding struct {
	Name    string      `json:"trouble"`
	Kind    string      `json:"kind"`
	Lost    trace.Ticks `json:"lost_us"` // 0 if unknown
	Covered trace.Ticks `json:"covered_us"`
	// Finding is the number of the finding with the most lost time in the trouble, of its calls and of those
	// who waited for them; 0 for none.
	Finding     int     `json:"finding"`
	FindingKind Finding `json:"finding_kind,omitempty"`
	Summary     string  `json:"summary,omitempty"`
	Named       bool    `json:"named"` // it names the right ranks and function
}

// OtherFinding is a finding that belongs to no trouble.
type OtherFinding struct {
	Number        int     `json:"finding"`
	Kind          Finding `json:"kind"`
	Share         float64 `json:"share"`
	Summary       string  `json:"summary"`
	Informational bool    `json:"informational,omitempty"` // no reason for an alarm
}

// touch is a trouble that affects a flag, and the time that the flag lost because of it.
type touch struct {
	trouble int32
	victim  bool
	lost    trace.Ticks
}

// touch notes that a trouble affects the current flag.
func (m *Matcher) touch(trouble int32, lost trace.Ticks, victim bool) {
	m.touches = append(m.touches, touch{trouble, victim, lost})
}

// membership sums up the flags of a finding.
type membership struct {
	lost trace.Ticks
	in   trace.Ticks // lost by those that troubles affect
	// recorded is the time lost by calls that no trouble affects, but the scheduler's record explains.
	recorded trace.Ticks
	byRank   map[trace.Rank]trace.Ticks
	trouble  map[int32]*inTrouble
}

// inTrouble is the time that the flags of a finding lost in a trouble.
type inTrouble struct {
	covered trace.Ticks // by its causes, at most as much as it added
	all     trace.Ticks // by causes and victims
}

// addMember adds a flag, which the current touches affect, to the sums of its finding.
func (m *Matcher) addMember(f *Flag) {
	s := m.members[f.Finding]
	if s == nil {
		s = &membership{byRank: make(map[trace.Rank]trace.Ticks), trouble: make(map[int32]*inTrouble)}
		m.members[f.Finding] = s
	}
	s.lost += f.Lost
	s.byRank[f.Rank] += f.Lost
	switch {
	case len(m.touches) > 0:
		s.in += f.Lost
	case len(m.truth.delays) > 0 && m.truth.explains(f):
		s.recorded += f.Lost
	}
	for i := range m.touches {
		s.add(&m.touches[i], f.Lost)
	}
}

// add adds a flag that a trouble affects.
func (s *membership) add(t *touch, lost trace.Ticks) {
	in := s.trouble[t.trouble]
	if in == nil {
		in = new(inTrouble)
		s.trouble[t.trouble] = in
	}
	in.all += lost
	if !t.victim {
		in.covered += min(t.lost, lost)
	}
}

// target is a trouble with the required statements of findings about it.
type target struct {
	Trouble
	plain bool // function names are without arguments and location
	lost  trace.Ticks
}

// targets returns the troubles, and after them one for each rank and function of the text formats.
func (t *Truth) targets() []target {
	all := make([]target, 0, len(t.Troubles)+len(t.timedTroubles))
	for i := range t.Troubles {
		n := target{Trouble: t.Troubles[i], lost: t.Troubles[i].Lost}
		if n.lost <= 0 {
			n.lost = max(0, t.extent[i].injected)
		}
		all = append(all, n)
	}
	for i := range t.timedTroubles {
		all = append(all, target{Trouble: t.timedTroubles[i], plain: true, lost: max(0, t.timedTroubles[i].Lost)})
	}
	return all
}

func (t *target) hasFunction(name string) bool {
	if t.plain {
		name = plainName(name)
	}
	return name == "" || len(t.Functions) == 0 || slices.Contains(t.Functions, name)
}

// fits reports whether function and time of a finding are those of the trouble.
func (t *target) fits(f *Report) bool {
	return t.Program == f.Program && t.hasFunction(f.Function) && t.From <= f.To && (t.To == 0 || f.From <= t.To)
}

// hasKind reports whether the kind of a finding is right. Long calls of a function that waits for others are waits of unknown
// cause unless something shows that they are not.
func (t *target) hasKind(f *Report) bool {
	return len(t.Findings) == 0 || slices.Contains(t.Findings, f.Kind) ||
		f.Kind == Wait && f.Cause == 0 && slices.Contains(t.Findings, Outlier) && slices.Contains(t.Functions, f.Function)
}

// findingScorer is the state of Findings.
type findingScorer struct {
	*Matcher
	ranks   map[trace.Program]int
	targets []target
	reports map[int]*Report
	order   []int
	placed  map[int]bool // findings with at least half of their time on ranks of troubles that fit
}

// Findings compares the findings of the run, whose flags were all added, with the truth. ranks is the
// number of ranks of each program.
func (m *Matcher) Findings(all []Report, ranks map[trace.Program]int) *FindingScore {
	m.matchNear()
	s := &findingScorer{Matcher: m, ranks: ranks, targets: m.truth.targets(), reports: make(map[int]*Report), placed: make(map[int]bool)}
	for i := range all {
		s.reports[all[i].Number] = &all[i]
	}
	s.order = slices.Sorted(maps.Keys(s.reports))
	for _, n := range s.order {
		s.placed[n] = s.isPlaced(s.reports[n])
	}
	score := &FindingScore{Troubles: []TroubleFinding{}, Others: []OtherFinding{}}
	for i := range s.targets {
		switch {
		case m.isBelow(i):
			continue
		case m.isMinor(i, s.targets[i].lost):
			score.Minor++
			continue
		}
		if t := s.score(int32(i)); t.Lost > 0 || m.causes(i) > 0 {
			score.Troubles = append(score.Troubles, t)
			score.Lost += t.Lost
			score.Covered += t.Covered
			if t.Named {
				score.Named++
			}
		}
	}
	for _, n := range s.order {
		if f := s.reports[n]; f.Listed && f.Kind != Interference && !s.belongs(f) {
			score.Others = append(score.Others, OtherFinding{n, f.Kind, f.Share, f.Summary, f.Informational})
			if !f.Informational {
				score.OthersShare += f.Share
			}
		}
	}
	return score
}

// causes returns the number of calls that a target lists.
func (m *Matcher) causes(i int) int {
	if n := len(m.truth.Troubles); i >= n {
		return 1
	}
	return m.truth.extent[i].causes
}

// isBelow reports whether all calls of a target lost too little to be flagged.
func (m *Matcher) isBelow(i int) bool {
	if i >= len(m.truth.Troubles) {
		return false
	}
	e := &m.truth.extent[i]
	return 0 < e.most && e.most < m.LeastLoss
}

// isMinor reports whether a target, which lost a time that is 0 if unknown, costs too little to be listed.
func (m *Matcher) isMinor(i int, lost trace.Ticks) bool {
	var waited trace.Ticks
	if i < len(m.truth.Troubles) {
		waited = m.truth.extent[i].waited
	}
	return 0 < lost && lost+waited < m.LeastCost
}

// onRanks returns the share of the time of a finding that is on these ranks.
func (s *findingScorer) onRanks(f *Report, ranks map[trace.Rank]bool) float64 {
	switch m := s.members[f.Number]; {
	case m != nil && m.lost > 0:
		var on trace.Ticks
		for rank, lost := range m.byRank {
			if ranks[rank] {
				on += lost
			}
		}
		return float64(on) / float64(m.lost)
	case len(f.Ranks) > 0:
		n := 0
		for _, rank := range f.Ranks {
			if ranks[rank] {
				n++
			}
		}
		return float64(n) / float64(len(f.Ranks))
	}
	return min(1, float64(len(ranks))/float64(max(1, s.ranks[f.Program])))
}

// isPlaced reports whether at least half of the time of a finding is on ranks of troubles that fit or, of a rank
// that was stopped, in calls that overlap a stop. Interference may also be in calls that waited for a processor by the
// scheduler's record: no trace shows which of the two it was.
func (s *findingScorer) isPlaced(f *Report) bool {
	ranks, inStops := make(map[trace.Rank]bool), 0.
	if m := s.members[f.Number]; m != nil && f.Kind == Interference {
		inStops = float64(m.recorded) / max(1, float64(m.lost))
	}
	for i := range s.targets {
		t := &s.targets[i]
		switch {
		case !t.fits(f):
		case t.Kind == Stall:
			if m := s.members[f.Number]; m != nil && m.trouble[int32(i)] != nil {
				inStops += float64(m.trouble[int32(i)].covered) / float64(m.lost)
			}
		default:
			for _, r := range t.Ranks {
				ranks[r] = true
			}
		}
	}
	return inStops+s.onRanks(f, ranks) >= 0.5
}

// names reports whether a finding names function and ranks of a trouble. Interference does not name the function of a
// trouble that is of another kind.
func (s *findingScorer) names(f *Report, t *target) bool {
	if f.Function == "" && len(t.Functions) > 0 && !t.hasKind(f) {
		return false
	}
	return t.fits(f) && s.placed[f.Number] &&
		(len(f.Ranks) == 0 || slices.ContainsFunc(t.Ranks, func(r trace.Rank) bool { return slices.Contains(f.Ranks, r) }))
}

// belongs reports whether at least half of the lost time of a finding is in troubles.
func (s *findingScorer) belongs(f *Report) bool {
	if m := s.members[f.Number]; m != nil && m.lost > 0 {
		return 2*m.in >= m.lost
	}
	return slices.ContainsFunc(s.targets, func(t target) bool { return s.names(f, &t) })
}

// within returns the time of a finding in a trouble: of the causes, and with victims. If the finding has more
// calls than flags, the others are as the flags. Without flags, it is spread evenly over ranks and time; the causes
// of a finding about all calls of a place or function at least so, because its flags are exceptions.
func (s *findingScorer) within(f *Report, i int32) (covered, all float64) {
	m := s.members[f.Number]
	flags := m != nil && m.lost > 0
	if flags && m.trouble[i] != nil {
		scale := float64(f.LostOwn) / float64(m.lost)
		covered, all = scale*float64(m.trouble[i].covered), scale*float64(m.trouble[i].all)
	}
	if !flags || f.Kind == SlowPeer || f.Kind == Change {
		covered = max(covered, s.spread(f, &s.targets[i]))
	}
	if !flags {
		all = covered
	}
	return covered, all
}

// spread returns the part of the time of a finding that is on the ranks and in the time of a trouble.
func (s *findingScorer) spread(f *Report, t *target) float64 {
	if !s.names(f, t) {
		return 0
	}
	ranks := make(map[trace.Rank]bool)
	for _, r := range t.Ranks {
		ranks[r] = true
	}
	part := s.onRanks(f, ranks)
	if to := cmp.Or(t.To, f.To); f.To > f.From {
		part *= float64(min(to, f.To)-max(t.From, f.From)) / float64(f.To-f.From)
	}
	return part * float64(f.LostOwn)
}

// score returns how findings describe a trouble.
func (s *findingScorer) score(i int32) TroubleFinding {
	t := &s.targets[i]
	out := TroubleFinding{Name: t.Name, Kind: t.Kind, Lost: t.lost}
	weight, covered := make(map[int]float64), 0.
	for _, n := range s.order {
		f := s.reports[n]
		own, all := s.within(f, i)
		if f.Listed && t.hasKind(f) && s.names(f, t) {
			covered += own
		}
		if f.Cause != 0 {
			n = f.Cause
		}
		if of := s.reports[n]; all > 0 && of != nil && of.Listed {
			if weight[n] += all; out.Finding == 0 || weight[n] > weight[out.Finding] {
				out.Finding = n
			}
		}
	}
	out.Covered = min(trace.Ticks(max(0, covered)), t.lost)
	if f := s.reports[out.Finding]; f != nil {
		out.FindingKind, out.Summary, out.Named = f.Kind, f.Summary, s.names(f, t)
	}
	return out
}
