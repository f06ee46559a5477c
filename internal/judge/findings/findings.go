// Package findings turns the anomalies of a run into findings for people to read. A finding groups anomalies, or describes
// a lasting change of a function: it says what, where, when, how often, and at what cost, with the waits that it caused.
// docs/findings.md has the rules.
//
// Its functions are pure, and their results do not depend on the order of the input.
package findings

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Result contains the findings of a run and the links between its anomalies.
type Result struct {
	// Findings are sorted: alarms, the costliest first, then notes, minor findings, waits with known causes, and withdrawn findings.
	Findings []provenance.Finding
	Links    []provenance.Link // of the anomalies, in the order of Run.Anomalies
	// Slow are the slow peers that only calls show, not the comparison of peers.
	Slow []provenance.SlowPeer
	Time trace.Ticks // sum over all ranks
}

// Conclude turns the anomalies of a run, with the links of blame.Find, a comparison of peers and lasting changes of
// functions, into findings. The profile and the comparison may be nil. Without a profile there are no findings of interference
// or recurring calls, and without a comparison only calls show slow peers.
func Conclude(run *blame.Run, links []blame.Link, changes []summary.Change, p *Profile, all *provenance.Peers) *Result {
	if p == nil {
		p = NewProfile(nil, nil, nil)
	}
	if all == nil {
		all = new(provenance.Peers)
	}
	c := &conclusion{
		run: run, links: links, profile: p, names: make(names), member: make([]*group, len(run.Anomalies)),
		causes: make(map[int32]*key), comparison: all,
	}
	c.begin, c.end = span(run)
	c.findSpans()
	c.countExamples()
	for i := range all.Slow {
		if len(all.Slow[i].Ranks) > 0 {
			c.newPeer(&all.Slow[i])
		}
	}
	c.collect()
	for _, g := range c.all {
		c.sumUp(g)
	}
	c.dropPeers()
	c.excuse()
	c.addChanges(changes)
	c.addWithdrawn()
	c.number()
	return c.result()
}

// span returns the beginning and the end of the run.
func span(r *blame.Run) (begin, end trace.Ticks) {
	begin, end = r.Begin, r.End
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		if r.Begin == 0 && (i == 0 || a.Entry < begin) {
			begin = a.Entry
		}
		end = max(end, a.Exit)
	}
	return begin, end
}

// seconds converts a time to seconds since the start of the run.
func (c *conclusion) seconds(at trace.Ticks) float64 { return c.run.Unit.Seconds(at - c.begin) }

// duration formats a number of ticks.
func (c *conclusion) duration(ticks float64) string { return text.Duration(c.run.Unit.MicrosOf(ticks)) }

// conclusion is the state of Conclude.
type conclusion struct {
	run        *blame.Run
	links      []blame.Link
	profile    *Profile
	names      names
	begin, end trace.Ticks
	all        []*group
	member     []*group       // group of each anomaly
	causes     map[int32]*key // keys of the slow places that caused waits without a culprit
	peers      []*slowPeer
	comparison *provenance.Peers
	spans      map[trace.Program][2]trace.Ticks // begin and end of programs
	examples   map[*summary.Mode]*sample
}

// key identifies a finding by the common properties of its anomalies.
type key struct {
	kind       provenance.FindingKind
	program    trace.Program
	name, path string
	fast       bool
	host       string     // interference only
	rank       trace.Rank // interference of one rank and its longest delays only
	since      int        // index of a slow peer
	recording  bool       // interference by writing the trace
	long       bool       // interference that is longer than other interference there
	victim     bool
	culprit    bool   // waits only: they are causes themselves
	cause      *group // of victims; nil if unknown
}

// group is a finding under construction.
type group struct {
	provenance.Finding
	cause   *group
	all     []blame.Anomaly // members are indices into all
	members []int32         // in order of entry
	lost    map[trace.Rank]trace.Ticks
	hosts   map[string]bool
	waiting map[trace.RankKey]bool
	// everywhere and always are true if recurring calls are on all ranks, or all with the roles of Ranks if ofRole is true,
	// and throughout the run.
	everywhere, always bool
	ofRole             bool
	byWorkOf           string     // function whose work changed when this function did
	start              bool       // only the first calls of a changed function took less time
	others             []*group   // temporary changes of other functions at the same time, which the group includes
	unrecorded         string     // function that a changed function calls and that is not recorded since the change
	madeCalls          [2]float64 // calls that a function with more work makes, before and after its change
	peer               *slowPeer
	placed             bool // about a rank, or the ranks of a host, rather than a call path
}

func (c *conclusion) newGroup(k *key, all []blame.Anomaly) *group {
	g := &group{
		Finding: provenance.Finding{
			PID: k.program, Func: k.name, Path: k.path, Kind: k.kind, Severity: provenance.Alarm, Status: provenance.Confirmed,
			OverTime: make([]int64, parts),
		},
		cause: k.cause, all: all, lost: make(map[trace.Rank]trace.Ticks), hosts: make(map[string]bool),
		waiting: make(map[trace.RankKey]bool),
	}
	c.all = append(c.all, g)
	return g
}

// collect creates the groups: first those of all anomalies except victims, then those of victims, which refer to the groups of
// their causes.
func (c *conclusion) collect() {
	order := c.run.Order()
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(c.run.Anomalies[x].Entry, c.run.Anomalies[y].Entry) })
	keys, groups := make(map[int32]*key), make(map[key]*group)
	c.recording(order, keys)
	c.slowPeers(order, keys)
	c.slowPlaces(order, keys)
	for _, p := range c.peers {
		groups[*p.key] = p.group
	}
	c.interference(order, keys)
	for _, victims := range []bool{false, true} {
		for _, i := range order {
			if l := &c.links[i]; (l.Role == provenance.Victim || c.causes[i] != nil) == victims {
				c.add(groups, keys[i], i, l)
			}
		}
		if !victims {
			c.splitLongest()
		}
		c.mergePaths() // groups of causes before victims refer to them, then groups of victims of unknown causes
	}
}

// splitLongest moves the calls that are too long to be like the others from findings of recurring calls to findings of their
// own.
func (c *conclusion) splitLongest() {
	for _, g := range slices.Clone(c.all) {
		g.OfCalls = c.profile.calls(g.PID, g.Path, g.Func)
		if g.Kind != provenance.Outlier && g.Kind != provenance.Waiting || !c.recurs(g) {
			continue
		}
		limit := c.limitOf(g.members)
		var longest []int32
		g.members = slices.DeleteFunc(g.members, func(i int32) bool {
			far := g.all[i].Lost > limit
			if far {
				longest = append(longest, i)
			}
			return far
		})
		if len(longest) == 0 {
			continue
		}
		own := c.newGroup(&key{kind: g.Kind, program: g.PID, name: g.Func, path: g.Path}, g.all)
		own.Role, own.members = g.Role, longest
		for _, i := range longest {
			c.member[i] = own
		}
	}
}

// add adds an anomaly to the group of key k; nil means the key of its call path.
func (c *conclusion) add(groups map[key]*group, k *key, i int32, l *blame.Link) {
	a := &c.run.Anomalies[i]
	if k == nil {
		k = c.keyOf(a)
		cause := c.causes[i]
		if cause == nil && l.Role == provenance.Victim && l.Culprit >= 0 { // the cause of the culprit's own wait
			cause = c.causes[int32(l.Culprit)]
		}
		switch {
		case cause != nil:
			k.victim, k.kind, k.cause = true, provenance.Waiting, groups[*cause]
			k.cause.Role = provenance.Culprit
		case l.Role == provenance.Victim:
			if k.victim = true; l.Culprit >= 0 {
				k.kind, k.cause = provenance.Waiting, c.member[l.Culprit]
			}
		case a.Wait != blame.Nothing:
			k.culprit = l.Role == provenance.Culprit
		}
	}
	g := groups[*k]
	if g == nil {
		g = c.newGroup(k, c.run.Anomalies)
		groups[*k] = g
		if k.rank == anyRank { // other groups have several functions
			g.Func = a.Func
		}
		g.placed = k.rank != anyRank
		switch {
		case k.recording:
			g.Form = provenance.Recording
		case k.long:
			g.Form = provenance.Long
		}
	}
	if l.Role != "" && g.Role != provenance.Culprit {
		g.Role = l.Role
	}
	c.member[i] = g
	g.members = append(g.members, i)
	if k.cause != nil {
		k.cause.Waits++
		k.cause.LostCaused += a.Lost
		k.cause.waiting[trace.RankKey{Program: a.Program, Rank: a.Rank}] = true
	}
}

// anyRank is the rank in keys of groups that are not split by rank.
const anyRank = -1

// keyOf returns the key of an anomaly by its call path.
func (c *conclusion) keyOf(a *blame.Anomaly) *key {
	k := &key{
		kind: provenance.Outlier, program: a.Program, name: c.names.stable(a.Func), path: c.names.stable(a.Path),
		fast: a.Kind == provenance.Fast, rank: anyRank,
	}
	switch {
	case a.Kind == provenance.TooManyCalls:
		k.kind = provenance.ExcessWork
	case a.Kind == provenance.Recurring:
		k.kind = provenance.RecurringMode
	case a.Wait != blame.Nothing:
		k.kind = provenance.Waiting
	}
	return k
}

// sumUp computes the totals of a group and decides whether outliers recur.
func (c *conclusion) sumUp(g *group) {
	var actual, expected []float64
	var n, own float64
	begins := make([]int64, parts)
	for _, i := range g.members {
		a := &g.all[i]
		calls, of := c.represents(a)
		n, own = n+calls, own+of
		g.lost[a.Rank] += trace.Ticks(of)
		g.hosts[a.Host] = true
		g.Longest = max(g.Longest, a.Exit-a.Entry)
		g.Last = max(g.Last, a.Exit)
		begins[c.part(a.Entry)]++
		for p := c.part(a.Entry); p <= c.part(max(a.Entry, a.Exit-1)); p++ {
			g.OverTime[p]++
		}
		if a.Status == provenance.Provisional {
			g.Status = provenance.Provisional
		}
		actual, expected = append(actual, float64(judgedTime(a))), append(expected, float64(judgedTime(a)-a.Lost))
	}
	g.Calls, g.LostOwn = int64(math.Round(n)), trace.Ticks(math.Round(own))
	g.Examples, g.WaitRanks, g.Trend = g.worst(), int64(len(g.waiting)), trendOf(begins)
	if g.peer != nil {
		c.describePeer(g)
		c.complete(g)
		return
	}
	g.First = g.all[g.members[0]].Entry
	g.Expected, g.Actual = quantile(expected, 0.5), quantile(actual, 0.5)
	g.Ranks, g.Hosts = slices.Sorted(maps.Keys(g.lost)), text.KnownHosts(slices.Sorted(maps.Keys(g.hosts)))
	g.WorstRank = g.Ranks[0]
	for _, r := range g.Ranks {
		if g.lost[r] > g.lost[g.WorstRank] {
			g.WorstRank = r
		}
	}
	g.WorstTime = g.lost[g.WorstRank]
	g.OfCalls = c.profile.calls(g.PID, g.Path, g.Func)
	switch g.Kind {
	case provenance.Interference:
		g.Expected, g.Actual, g.OfCalls = 0, quantile(g.losses(), 0.5), c.profile.computing(g.PID).calls
		if g.Form == provenance.Recording {
			if c.spread(g); g.everywhere {
				g.Severity = provenance.Note
			}
		} else {
			c.addHidden(g)
		}
	default:
		if g.functions() > 1 {
			g.OfCalls = c.profile.computing(g.PID).calls
		}
		c.classify(g)
	}
	c.complete(g)
}

// losses returns the time that each call of a group lost.
func (g *group) losses() []float64 {
	lost := make([]float64, len(g.members))
	for k, i := range g.members {
		lost[k] = float64(g.all[i].Lost)
	}
	return lost
}

// functions returns the number of functions of a group. It has several if delays too long to be interference hit whatever ran.
func (g *group) functions() int64 {
	names := make(map[string]bool)
	for _, i := range g.members {
		names[g.all[i].Func] = true
	}
	return int64(len(names))
}

// classify decides whether the calls of a group recur or come in bursts. A mode of the detector needs as many calls as any
// other recurring calls, because some may have been waits with a known cause.
func (c *conclusion) classify(g *group) {
	if g.Kind == provenance.RecurringMode && (len(g.members) < leastHits || !c.isSpread(g)) {
		if g.Kind = provenance.Outlier; g.all[g.members[0]].Wait != blame.Nothing {
			g.Kind = provenance.Waiting
		}
	}
	unexplained := g.Kind == provenance.Outlier || g.Kind == provenance.Waiting && g.Role != provenance.Victim
	switch {
	case g.Status == provenance.Withdrawn:
	case g.isRare():
		c.describeRare(g)
	case g.Kind == provenance.RecurringMode || unexplained && c.recurs(g):
		g.Kind = provenance.RecurringMode
		c.describeMode(g)
	case g.Kind == provenance.ExcessWork && len(g.members) >= leastHits:
		c.describeMode(g)
	case g.Kind == provenance.Outlier && c.isBurst(g):
		g.Form = provenance.Burst
	}
}

// judgedTime returns the time that the detector judged: the exclusive time, unless the anomaly lost more.
func judgedTime(a *blame.Anomaly) trace.Ticks {
	if a.Lost > a.Exclusive || a.Kind == provenance.TooManyCalls {
		return a.Exit - a.Entry
	}
	return a.Exclusive
}

// examples is the greatest number of examples of a finding.
const examples = 5

// worst returns the event IDs of the executions that lost most time.
func (g *group) worst() []string {
	order := slices.Clone(g.members)
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(g.all[y].Lost, g.all[x].Lost) })
	ids := []string{}
	for _, i := range order[:min(examples, len(order))] {
		ids = append(ids, g.all[i].Event)
	}
	return ids
}

// recentShare is the last part of the run so far that must include an anomaly of a provisional finding that continues.
const recentShare = 1. / parts

// time returns the time of the run summed over all ranks.
func (c *conclusion) time() trace.Ticks { return (c.end - c.begin) * trace.Ticks(c.profile.allRanks()) }

// complete sets the cost, the times and the confidence of a finding from its other fields.
func (c *conclusion) complete(g *group) {
	g.Lost = g.LostOwn + g.LostCaused
	if total := c.time(); total > 0 {
		g.Share = float64(g.Lost) / float64(total)
	}
	g.From = c.seconds(g.First)
	if g.peer != nil {
		g.To, g.Confidence = g.peer.To, g.peer.Confidence
		return
	}
	continues := g.IsChange() && g.Form != provenance.Temporary ||
		g.Status == provenance.Provisional && float64(c.end-g.Last) <= recentShare*float64(c.end-c.begin)
	if !continues {
		g.To = new(c.seconds(g.Last))
	}
	switch {
	case g.IsChange():
		g.Confidence = 1 - byChance
	case g.OfCalls > 0:
		g.Confidence = 1 - poissonTail(g.Calls, falseAlarms*float64(g.OfCalls))
	}
}

// addWithdrawn groups the withdrawn anomalies by call path.
func (c *conclusion) addWithdrawn() {
	first := len(c.all)
	old := &blame.Run{Anomalies: c.run.Withdrawn}
	order := old.Order()
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(old.Anomalies[x].Entry, old.Anomalies[y].Entry) })
	groups := make(map[key]*group)
	for _, i := range order {
		k := c.keyOf(&old.Anomalies[i])
		g := groups[*k]
		if g == nil {
			g = c.newGroup(k, old.Anomalies)
			g.Func = old.Anomalies[i].Func
			g.Status, g.Severity = provenance.Withdrawn, provenance.Note
			groups[*k] = g
		}
		g.members = append(g.members, i)
	}
	for _, g := range c.all[first:] {
		c.sumUp(g)
		g.Confidence, g.Reason = 0, reasonOf(&g.Finding)
	}
}

// number sorts and numbers the groups, and describes them in words.
func (c *conclusion) number() {
	class := func(g *group) int {
		switch {
		case g.Status == provenance.Withdrawn:
			return 4
		case g.cause != nil:
			return 3
		case g.Minor():
			return 2
		case g.Severity == provenance.Note:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(c.all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Calls, a.Calls),
			cmp.Compare(a.First, b.First), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Func, b.Func), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Ranks, b.Ranks), slices.Compare(a.Examples, b.Examples))
	})
	for i, g := range c.all {
		g.Number = i + 1
	}
	for _, g := range c.all {
		if g.cause != nil {
			g.Cause = g.cause.Number
		}
		g.Late, g.Summary = c.late(g), c.summary(g)
	}
}

func (c *conclusion) result() *Result {
	f := &Result{Findings: make([]provenance.Finding, 0, len(c.all)), Links: make([]provenance.Link, len(c.links)), Time: c.time()}
	for _, g := range c.all {
		f.Findings = append(f.Findings, g.Finding)
		if g.peer != nil && g.peer.byCalls {
			f.Slow = append(f.Slow, *g.peer.SlowPeer)
		}
	}
	waiting := make([]map[trace.RankKey]bool, len(c.links))
	for i := range c.links {
		l, a := &c.links[i], &c.run.Anomalies[i]
		out := &f.Links[i]
		out.PID, out.RID, out.EventID, out.Role, out.Hops = a.Program, a.Rank, a.Event, l.Role, l.Hops
		out.Finding = c.member[i].Number
		if l.Known {
			out.LateRank = &l.Late
		}
		if l.Culprit < 0 {
			continue
		}
		by := &c.run.Anomalies[l.Culprit]
		out.Culprit, out.CulpritPID = by.Event, by.Program
		if l.Role == provenance.Victim {
			if waiting[l.Culprit] == nil {
				waiting[l.Culprit] = make(map[trace.RankKey]bool)
			}
			waiting[l.Culprit][trace.RankKey{Program: a.Program, Rank: a.Rank}] = true
			of := &f.Links[l.Culprit]
			of.Waits++
			of.WaitTime += a.Lost
		}
	}
	for i, ranks := range waiting {
		f.Links[i].WaitRanks = int64(len(ranks))
	}
	return f
}
