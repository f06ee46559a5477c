package blame

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Link relates an anomaly to others.
type Link struct {
	Role provenance.Role
	// Culprit is the index in Run.Anomalies of the execution that made a victim wait. For
	// a culprit it is the larger culprit of the same waits. It is -1 if unknown.
	Culprit int
	// Late is the rank for which a victim finally waited, if Known.
	Late  trace.Rank
	Known bool
	// Hops is the number of waits from a victim to its culprit, including its own.
	Hops int
	// Own is true if a wait is its own cause: no rank was late, but a message was in transit, a collective operation took long, or
	// the rank was held up.
	Own bool
}

// Settings, fitted to simulated runs.
const (
	// maxGap is the longest time between the end of a cause and a wait, in durations of the wait.
	maxGap = 100
	// explainedShare is the least time lost on the late rank that explains a wait, as a share of the time that the wait
	// lost.
	explainedShare = 0.25
	// transitShare is the least share of the lost time that a message must have been in transit for the transit to be
	// the cause.
	transitShare = 0.5
	// sameEnd is the greatest difference of the ends of two waits that end together, as a share of their time.
	sameEnd = 0.02
)

// Find returns the links of all anomalies in the order of Run.Anomalies. It does not modify run.
func Find(run *Run) []Link {
	f := newFinder(run)
	for _, i := range f.waits {
		f.resolve(i)
	}
	f.shareDevices()
	return f.finish()
}

// finder is the state of Find. It numbers anomalies in order of exit.
type finder struct {
	all      []Anomaly
	place    []int32 // index of each anomaly in Run.Anomalies
	ranks    map[trace.RankKey]*timeline
	programs map[trace.Program]*timeline
	numRanks map[trace.Program]int // 0 if unknown
	numbers  []trace.Program       // of programs, in order
	waits    []int32               // waits that lost time
	since    []trace.Ticks         // earliest end of the cause of each wait
	gathered []*gathering          // collective call of each wait for a group
	sends    map[route][]Send
	exits    map[trace.FuncKey][]exit // of collective calls, in order of time
	holdups  []holdup

	links []Link
	state []state
}

// exit is the time at which a rank left a collective call.
type exit struct {
	at   trace.Ticks
	rank trace.Rank
}

// state is the progress of a wait.
type state uint8

const (
	fresh state = iota
	busy
	done
)

func newFinder(run *Run) *finder {
	n := len(run.Anomalies)
	f := &finder{
		all: make([]Anomaly, n), place: run.Order(),
		ranks: make(map[trace.RankKey]*timeline), programs: make(map[trace.Program]*timeline), numRanks: run.Ranks,
		since: make([]trace.Ticks, n), gathered: make([]*gathering, n), sends: newSends(run.Sends),
		links: make([]Link, n), state: make([]state, n), exits: make(map[trace.FuncKey][]exit),
	}
	ofRank, ofProgram := make(map[trace.RankKey][]int32), make(map[trace.Program][]int32)
	for i := range f.all {
		a := &f.all[i]
		*a = run.Anomalies[f.place[i]]
		a.Exit = max(a.Exit, a.Entry)
		f.links[i].Culprit = -1
		p := a.rankKey()
		ofRank[p] = append(ofRank[p], int32(i))
		ofProgram[a.Program] = append(ofProgram[a.Program], int32(i))
		if a.Left != "" {
			k := trace.FuncKey{Program: a.Program, Name: a.Left}
			f.exits[k] = append(f.exits[k], exit{a.InStep, a.Rank})
		}
		if a.Wait != Nothing && a.Lost > 0 {
			f.waits = append(f.waits, int32(i))
		}
	}
	for p, items := range ofRank {
		f.ranks[p] = newTimeline(f.all, items)
	}
	for p, items := range ofProgram {
		f.programs[p] = newTimeline(f.all, items)
		f.numbers = append(f.numbers, p)
	}
	slices.Sort(f.numbers)
	for _, all := range f.exits {
		slices.SortFunc(all, func(a, b exit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
	}
	f.sequence()
	f.gather()
	f.holdups = f.heldUp()
	for _, h := range f.holdups {
		f.links[h.wait].Role, f.links[h.wait].Own, f.state[h.wait] = provenance.Culprit, true, done
		for _, i := range h.victims {
			f.links[i] = Link{Role: provenance.Victim, Culprit: int(h.wait), Late: f.all[h.wait].Rank, Known: true, Hops: 1}
			f.state[i] = done
		}
	}
	return f
}

// Order returns the indices of the anomalies in order of exit, with a defined order of ties.
func (r *Run) Order() []int32 {
	order := make([]int32, len(r.Anomalies))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int {
		a, b := &r.Anomalies[x], &r.Anomalies[y]
		if c := cmp.Compare(a.Exit, b.Exit); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Program, b.Program), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Event, b.Event))
	})
	return order
}

// sequence finds for each wait the last time at which its rank was synchronized with the ranks for which it waits, by
// earlier waits for all ranks or for the same partner.
func (f *finder) sequence() {
	type key struct {
		trace.RankKey
		wait    Wait
		partner trace.Rank
	}
	exits := make(map[key]trace.Ticks)
	for _, i := range f.waits {
		w := &f.all[i]
		since := w.Entry
		if w.Wait != Threads { // threads start with the wait
			since -= maxGap * (w.Exit - w.Entry)
		}
		after := func(k key) {
			if exit, ok := exits[k]; ok && exit <= w.Entry {
				since = max(since, exit)
			}
		}
		own := key{RankKey: w.rankKey(), wait: w.Wait}
		if w.Wait == Ranks || w.Wait == Group {
			since = max(since, min(w.InStep, w.Entry))
		}
		if w.Wait == Ranks {
			after(key{RankKey: own.RankKey, wait: Group})
			if w.Last != nil {
				own.partner = w.Last.Partner
			}
		}
		after(own)
		if w.Wait != Ranks || w.Last != nil {
			exits[own] = w.Exit
		}
		f.since[i] = since
	}
}

// finish sets the roles of culprits and returns the links in the order of Run.Anomalies.
func (f *finder) finish() []Link {
	for i := range f.links {
		if l := &f.links[i]; l.Role == provenance.Victim && l.Culprit >= 0 {
			c := &f.links[l.Culprit]
			c.Role, c.Culprit, c.Hops = provenance.Culprit, -1, 0
		}
	}
	links := make([]Link, len(f.links))
	for i, l := range f.links {
		if l.Culprit >= 0 {
			l.Culprit = int(f.place[l.Culprit])
		}
		links[f.place[i]] = l
	}
	return links
}
