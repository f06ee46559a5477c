package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// peerRatio is how many times as often a call path must be delayed on a slow peer as on its peers for the slow peer to explain it.
const peerRatio = 2

// A single function of a slow peer is slow if all others, with at least othersShare of the time, take less than sameTime times
// as long as on its peers.
const (
	othersShare = 0.1
	sameTime    = 1.05
)

// fewCalls is the share of the calls of a function below which delayed calls are the exception.
const fewCalls = 0.25

// slowPeer is a place that is slower than its peers, with the group of its finding.
type slowPeer struct {
	*provenance.SlowPeer
	key   *key
	group *group
	// from and to are the times between which it was slow. Its anomalies may be a window of the comparison (margin) apart.
	from, to, margin trace.Ticks
	byCalls          bool        // only calls show it, not the comparison
	byDelays         bool        // single delays make it slow, not the place
	useful           trace.Ticks // useful time of its ranks between from and to, if byCalls
}

// newPeer adds a slow peer with its group.
func (c *conclusion) newPeer(s *provenance.SlowPeer) *slowPeer {
	p := &slowPeer{SlowPeer: s, from: c.begin + c.run.Unit.FromSeconds(s.From), to: c.end}
	if s.To != nil {
		p.to = c.begin + c.run.Unit.FromSeconds(*s.To)
	}
	for _, w := range s.Windows {
		p.margin = max(p.margin, trace.Ticks(c.run.Unit.PerSecond()*(w.To-w.From)))
	}
	p.key = &key{kind: provenance.SlowPlace, program: s.PID, rank: allRanks, since: len(c.peers)}
	if s.Extra() {
		p.key.kind = provenance.ExcessWork
	}
	p.group = c.newGroup(p.key, c.run.Anomalies)
	if s.Extra() {
		p.group.Form = provenance.Lasting
	}
	p.group.peer = p
	c.peers = append(c.peers, p)
	return p
}

// newPlace adds the slow peer of an episode that anomalies show.
func (c *conclusion) newPlace(program trace.Program, e *episode, hits []int32) *slowPeer {
	at := peers.Place{Program: program, Ranks: slices.Sorted(slices.Values(e.ranks)), Device: true}
	first, last := c.end, c.begin
	for _, i := range hits {
		if a := &c.run.Anomalies[i]; slices.Contains(e.ranks, a.Rank) && e.includes(c.slot(a.Program, a.Entry)) {
			first, last = min(first, a.Entry), max(last, a.Exit)
			at.Device = at.Device && a.OnDevice
		}
	}
	at.Open = c.isProvisional() && float64(c.end-last) <= recentShare*float64(c.end-c.begin)
	at.From, at.To = c.seconds(first), c.seconds(last)
	s, useful, ok := peers.Judge(c.comparison, &at)
	if !ok {
		s = provenance.SlowPeer{
			PID: program, Pattern: provenance.Phase, Ranks: at.Ranks, Hosts: []string{}, TID: provenance.AllThreads, Device: at.Device,
			Peers: max(0, c.profile.ranks[program]-len(at.Ranks)), From: at.From, To: &at.To, Windows: []provenance.LoadWindow{},
		}
		if e.host != "" {
			s.Hosts = append(s.Hosts, e.host)
		}
		if len(at.Ranks) > 1 {
			s.Host = e.host
		}
		if at.Open {
			s.Pattern, s.To = provenance.Since, nil
		}
		useful = (last - first) * trace.Ticks(len(at.Ranks))
	}
	s.Confidence = 1 - blameChance
	p := c.newPeer(&s)
	p.byCalls, p.useful = true, useful
	return p
}

// addCalls completes a slow peer that only calls show with the times of these calls, which are part of its work.
func (p *slowPeer) addCalls(g *group) {
	p.LostOwn, p.LostCaused = max(p.LostOwn, g.LostOwn), max(p.LostCaused, g.LostCaused)
	p.Ratio = float64(p.useful) / float64(max(1, p.useful-p.LostOwn))
	functions := make(map[string]*provenance.SlowFunction)
	for _, i := range g.members {
		a := &g.all[i]
		f := functions[a.Func]
		if f == nil {
			f = &provenance.SlowFunction{Func: a.Func}
			functions[a.Func] = f
		}
		f.Calls++
		f.Mean += float64(judgedTime(a))
		f.Peers += float64(judgedTime(a) - a.Lost)
		f.Beyond += a.Lost
	}
	p.Functions = []provenance.SlowFunction{}
	for _, f := range functions {
		f.Mean, f.Peers = f.Mean/float64(f.Calls), f.Peers/float64(f.Calls)
		p.Functions = append(p.Functions, *f)
	}
	slices.SortFunc(p.Functions, func(a, b provenance.SlowFunction) int {
		return cmp.Or(cmp.Compare(b.Beyond, a.Beyond), cmp.Compare(a.Func, b.Func))
	})
	p.Functions = p.Functions[:min(peers.MaxFunctions, len(p.Functions))]
}

// blames reports whether the place is to blame, rather than the division of work.
func (p *slowPeer) blames() bool {
	return p.Pattern != provenance.ByRole && p.Pattern != provenance.Roaming
}

// oneFunction reports whether a single function of the place is slow, although others take a considerable time.
func (p *slowPeer) oneFunction() bool {
	if len(p.Functions) == 0 || p.Ratio <= 1 || p.Extra() {
		return false
	}
	f := &p.Functions[0]
	time := float64(p.LostOwn) * p.Ratio / (p.Ratio - 1)
	rest, expected := time-float64(f.Calls)*f.Mean, time-float64(p.LostOwn)-float64(f.Calls)*f.Peers
	return expected >= othersShare*(time-float64(p.LostOwn)) && rest < sameTime*expected
}

// isDelayed reports whether single delays make the place seem slow: in functions where less than fewCalls of the calls are
// delays, the delays lost at least half of the time that the place lost. If the place itself is slow, so are most calls.
func (p *slowPeer) isDelayed(c *conclusion) bool {
	var hits []int32
	for i := range c.run.Anomalies {
		a := &c.run.Anomalies[i]
		if p.includes(a) && a.OnDevice == p.Device && a.Lost > 0 && p.during(a.Entry) && c.delays(int32(i)) {
			hits = append(hits, int32(i))
		}
	}
	limit := c.limitOf(hits)
	type sum struct{ calls, lost float64 }
	delays := make(map[string]sum)
	for _, i := range hits {
		a := &c.run.Anomalies[i]
		calls, lost := c.represents(a)
		if d := delays[a.Func]; a.Lost <= limit {
			delays[a.Func] = sum{d.calls + calls, d.lost + lost}
		}
	}
	var delayed, all float64
	for _, f := range p.Functions {
		all += float64(f.Beyond)
		if d := delays[f.Func]; d.calls < fewCalls*float64(f.Calls) {
			delayed += min(d.lost, float64(f.Beyond))
		}
	}
	return 2*delayed >= all && all > 0
}

// toBlame reports whether the place is to blame for delays.
func (p *slowPeer) toBlame() bool { return p.blames() && !p.Extra() && !p.oneFunction() && !p.byDelays }

// isExtra reports whether the place calls a function at least twice as often as its peers do, so that most of its calls are
// extra work.
func (p *slowPeer) isExtra(function string) bool {
	return slices.ContainsFunc(p.Functions, func(f provenance.SlowFunction) bool {
		return f.Func == function && f.PeerCalls != nil && float64(f.Calls) >= 2**f.PeerCalls
	})
}

// during reports whether the place was slow at a time.
func (p *slowPeer) during(at trace.Ticks) bool {
	return p.from-p.margin <= at && at <= p.to+p.margin
}

// includes reports whether an anomaly is at the place.
func (p *slowPeer) includes(a *blame.Anomaly) bool {
	return a.Program == p.PID && slices.Contains(p.Ranks, a.Rank) && (p.TID < 0 || int64(a.Thread) == p.TID)
}

// slowPeers sets the keys of the delays that slow peers explain, and finds the waits of unknown cause that they caused. Delays
// that are as frequent elsewhere, or too long to be like the others, have other causes.
func (c *conclusion) slowPeers(order []int32, keys map[int32]*key) {
	for _, p := range c.peers {
		p.byDelays = !p.Extra() && p.isDelayed(c)
		switch {
		case p.Extra():
			p.claimExtra(c, order, keys)
		case p.toBlame() || p.oneFunction() && !p.byDelays:
			p.claim(c, order, keys)
		default:
			continue
		}
		if p.Pattern != provenance.Always { // otherwise waits are no longer than usual
			c.waitsMeanwhile(order, p.episode(c))
			if !p.Extra() {
				c.waitsWithin(order, p)
			}
		}
	}
}

// claim sets the keys of delays on call paths that are delayed far more often at the place than at its peers. If only one function
// is slow there, only its delays count.
func (p *slowPeer) claim(c *conclusion, order []int32, keys map[int32]*key) {
	type counts struct{ here, elsewhere float64 }
	one, paths := p.oneFunction(), make(map[string]counts)
	var hits []int32
	for _, i := range order {
		a := &c.run.Anomalies[i]
		if keys[i] != nil || a.Program != p.PID || a.OnDevice != p.Device || a.Lost <= 0 || !c.delays(i) || !p.during(a.Entry) ||
			one && a.Func != p.Functions[0].Func {
			continue
		}
		n := paths[c.names.stable(a.Path)]
		if p.includes(a) {
			n.here++
			hits = append(hits, i)
		} else {
			n.elsewhere++
		}
		paths[c.names.stable(a.Path)] = n
	}
	hits = slices.DeleteFunc(hits, func(i int32) bool {
		n := paths[c.names.stable(c.run.Anomalies[i].Path)]
		return n.here*float64(max(1, p.Peers)) <= peerRatio*n.elsewhere*float64(len(p.Ranks))
	})
	limit := c.limitOf(hits)
	for _, i := range hits {
		if c.run.Anomalies[i].Lost <= limit {
			keys[i] = p.key
		}
	}
}

// waitsWithin finds the waits of unknown cause that a slow peer explains by their length: while it is slow, another rank waits
// no longer for it in total than it loses. Longer waits have another cause.
func (c *conclusion) waitsWithin(order []int32, p *slowPeer) {
	var unknown []int32
	waited := make(map[trace.Rank]trace.Ticks)
	for _, i := range order {
		a, l := &c.run.Anomalies[i], &c.links[i]
		late := l.Late
		if l.Culprit >= 0 {
			late = c.run.Anomalies[l.Culprit].Rank
		}
		known := l.Known || l.Culprit >= 0
		if a.Program != p.PID || a.Wait != blame.Ranks && a.Wait != blame.Group || l.Own || !p.during(a.Entry) || !p.during(a.Exit) ||
			slices.Contains(p.Ranks, a.Rank) || known && !slices.Contains(p.Ranks, late) || c.causes[i] != nil && c.causes[i] != p.key {
			continue
		}
		waited[a.Rank] += a.Lost
		if l.Culprit < 0 && c.causes[i] == nil {
			unknown = append(unknown, i)
		}
	}
	for _, i := range unknown {
		if waited[c.run.Anomalies[i].Rank]*trace.Ticks(len(p.Ranks)) <= p.LostOwn {
			c.causes[i] = p.key
		}
	}
}

// claimExtra sets the keys of the anomalies of a place that has extra work.
func (p *slowPeer) claimExtra(c *conclusion, order []int32, keys map[int32]*key) {
	for _, i := range order {
		a := &c.run.Anomalies[i]
		isExtra := a.Kind == provenance.TooManyCalls || p.isExtra(a.Func)
		if isExtra && keys[i] == nil && p.includes(a) && a.OnDevice == p.Device && p.during(a.Entry) {
			keys[i] = p.key
		}
	}
}

// episode returns the time in which the place was slow as an interval of slots.
func (p *slowPeer) episode(c *conclusion) *episode {
	return &episode{
		place: &place{rank: allRanks, ranks: p.Ranks}, key: p.key, from: c.slot(p.PID, p.from), to: c.slot(p.PID, p.to) + 1,
	}
}

// peerOf returns the slow peer that explains an episode, or nil.
func (c *conclusion) peerOf(program trace.Program, e *episode) *slowPeer {
	for _, p := range c.peers {
		of := p.episode(c)
		if (p.toBlame() || len(p.HiddenWaits) > 0) && p.PID == program && of.from < e.to && e.from < of.to &&
			!slices.ContainsFunc(e.ranks, func(r trace.Rank) bool { return !slices.Contains(p.Ranks, r) }) {
			return p
		}
	}
	return nil
}

// waits reports whether a function waits for others, as its name or the comparison of peers shows.
func (c *conclusion) waits(program trace.Program, function string) bool {
	return c.run.WaitOf(function) != blame.Nothing || slices.ContainsFunc(c.peers, func(p *slowPeer) bool {
		return p.PID == program && slices.Contains(p.HiddenWaits, function)
	})
}

// peerExplains reports whether a slow peer explains most of a change of a function.
func (c *conclusion) peerExplains(change *group) bool {
	at := change.First
	if change.Form == provenance.Temporary {
		at += (change.Last - change.First) / 2
	}
	for _, p := range c.peers {
		if !p.blames() || p.PID != change.PID || !p.during(at) {
			continue
		}
		for _, f := range p.Functions {
			if f.Func == change.Func && 2*f.Beyond >= change.LostOwn && change.LostOwn > 0 {
				return true
			}
		}
	}
	return false
}

// dropPeers removes slow peers that are slow because of single delays.
func (c *conclusion) dropPeers() {
	c.all = slices.DeleteFunc(c.all, func(g *group) bool { return g.peer != nil && g.peer.blames() && g.peer.byDelays })
}

// describePeer sets the fields of a finding about a slow peer, after its members have been added up.
func (c *conclusion) describePeer(g *group) {
	p := g.peer
	if p.byCalls {
		p.addCalls(g)
	}
	g.Ranks, g.Hosts, g.WorstRank = p.Ranks, p.Hosts, p.Ranks[0]
	g.First, g.Last = p.from, p.to
	g.LostOwn, g.LostCaused = p.LostOwn, p.LostCaused
	g.WorstTime = p.LostOwn / trace.Ticks(len(p.Ranks))
	g.Calls, g.OfCalls, g.Expected, g.Actual = 0, 0, 0, 0
	for _, f := range p.Functions {
		g.Calls += f.Calls
		g.OfCalls += c.profile.calls(g.PID, "", f.Func)
	}
	if len(p.Functions) > 0 {
		f := &p.Functions[0]
		if g.Func, g.Actual = f.Func, f.Mean; p.blames() && !p.Extra() {
			g.Expected = f.Peers
		}
	}
	if !p.blames() {
		g.Severity = provenance.Note
	}
	if c.isProvisional() {
		g.Status = provenance.Provisional
	}
}

// withRolesOf returns the number of ranks with the roles of the ranks of a group, or all if roles are unknown.
func (c *conclusion) withRolesOf(g *group, all int) int {
	roles, sizes := make(map[int]bool), make(map[int]int)
	for i := range c.comparison.Loads {
		l := &c.comparison.Loads[i]
		if l.PID != g.PID || l.TID != provenance.AllThreads {
			continue
		}
		sizes[l.Role]++
		if _, ok := slices.BinarySearch(g.Ranks, l.RID); ok {
			roles[l.Role] = true
		}
	}
	n := 0
	for role := range roles {
		n += sizes[role]
	}
	if n < len(g.Ranks) {
		return all
	}
	return n
}

// spanOf returns the beginning and the end of a program, or those of the run if unknown.
func (c *conclusion) spanOf(program trace.Program) (begin, end trace.Ticks) {
	if span, ok := c.spans[program]; ok {
		return span[0], span[1]
	}
	return c.begin, c.end
}

// findSpans finds the beginnings and ends of programs. Programs that run to the end of the comparison end with the run, which
// may have continued since.
func (c *conclusion) findSpans() {
	c.spans = make(map[trace.Program][2]trace.Ticks)
	last := 0.0
	for i := range c.comparison.Efficiency {
		last = max(last, c.comparison.Efficiency[i].To)
	}
	for i := range c.comparison.Efficiency {
		e := &c.comparison.Efficiency[i]
		if !e.Entire || e.To <= e.From {
			continue
		}
		span := [2]trace.Ticks{e.Begin + trace.Ticks(c.run.Unit.PerSecond()*e.From), c.end}
		if e.To < last {
			span[1] = e.Begin + trace.Ticks(c.run.Unit.PerSecond()*e.To)
		}
		c.spans[e.PID] = span
	}
}

// isProvisional reports whether some anomalies have not been reviewed.
func (c *conclusion) isProvisional() bool {
	return slices.ContainsFunc(c.run.Anomalies, func(a blame.Anomaly) bool { return a.Status == provenance.Provisional })
}

// peerSummary describes a slow peer in a sentence.
func (c *conclusion) peerSummary(g *group) string {
	p := g.peer
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	ratio, it, others := text.ThreeDigits(p.Ratio)+"×", "it", "its "+text.Count(p.Peers, "peer")
	computes, takes, when := "computes", "takes", " throughout the run"
	if len(p.Ranks) > 1 && p.Host == "" {
		it, others, computes, takes = "that", "their "+text.Count(p.Peers, "peer"), "compute", "take"
	}
	switch p.Pattern {
	case provenance.Phase:
		computes, takes, when = "computed", "took", fmt.Sprintf(" from %s to %s", c.clock(p.from), c.clock(p.to))
	case provenance.Since:
		when = " since " + c.clock(p.from)
	}
	switch {
	case p.Extra():
		c.sayExtra(p, say)
	case p.Pattern == provenance.ByRole:
		say("%s takes %s as long as the %s: the work is uneven, and no single rank is responsible", p.name(), ratio,
			text.Count(p.Peers, "other"))
		it = "that"
	case p.Pattern == provenance.Roaming:
		say("Of %s, one after another computes %s slower than its peers", text.Count(len(p.Ranks), "rank"), ratio)
		it = "that"
	case p.oneFunction() && !p.byCalls:
		f := &p.Functions[0]
		say("%s %s %s× as long for %s as %s%s", p.name(), takes, text.ThreeDigits(f.Mean/f.Peers), text.ShortName(f.Func), others, when)
	default:
		say("%s %s %s slower than %s%s", p.name(), computes, ratio, others, when)
	}
	if p.Share >= provenance.MinorShare {
		say("; without %s the run would be %s shorter", it, text.Percent(100*p.Share))
	}
	if p.Weak {
		say(" (weak evidence: %s", text.Count(p.Peers, "peer"))
		if p.Pattern == provenance.Always {
			say(", and no past to compare with")
		}
		say("; %s by chance)", text.Percent(100*(1-p.Confidence)))
	}
	return b.String()
}

// sayExtra describes extra work.
func (c *conclusion) sayExtra(p *slowPeer, say func(format string, args ...any)) {
	does, their := "does", "its "
	if len(p.Ranks) > 1 {
		does, their = "do", "their "
	}
	f := &p.Functions[0]
	say("%s %s extra work", p.name(), does)
	if p.To == nil {
		say(" since %s", c.clock(p.from))
	} else {
		say(" from %s to %s", c.clock(p.from), c.clock(p.to))
	}
	first, steps := c.steps(p)
	if steps > 0 {
		say(", about step %d", first)
	}
	peers := their + text.Count(p.Peers, "peer")
	say(": %s of %s ", text.Count(f.Calls, "call"), text.ShortName(f.Func))
	if *f.PeerCalls < 1 {
		say("that %s do not make", peers)
	} else {
		say("instead of %s, as %s make", text.ThreeDigits(*f.PeerCalls), peers)
	}
	if n := len(p.Functions) - 1; n > 0 {
		say(", and more of %s", text.Count(n, "other function"))
	}
	say("; %s in all", c.duration(float64(p.LostOwn)))
	if steps > 0 {
		say(", %s a step", c.duration(float64(p.LostOwn)/float64(steps*len(p.Ranks))))
	}
}

// steps returns the number of the training step in which the place became slow, and the number of steps for which it was
// slow; 0 and 0 if unknown.
func (c *conclusion) steps(p *slowPeer) (first int64, n int) {
	for _, s := range c.comparison.Steps[trace.RankKey{Program: p.PID, Rank: p.Ranks[0]}] {
		if s.Start <= p.from {
			first, n = s.Number, 0
		}
		if s.Start <= p.to {
			n++
		}
	}
	return first, n
}

// name names the place at the beginning of a sentence, with its ranks or its host.
func (p *slowPeer) name() string {
	name := p.Place()
	switch {
	case p.Host != "" && name == text.OneLine(p.Host):
		return fmt.Sprintf("%s (ranks %s)", name, text.Ranges(p.Ranks))
	case len(p.Ranks) == 1 && len(p.Hosts) == 1:
		name += " (" + text.OneLine(p.Hosts[0]) + ")"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
