package blame

import (
	"cmp"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// resolve finds the cause of a wait. It does nothing if it is already resolving the wait.
func (f *finder) resolve(i int32) {
	if f.state[i] != fresh {
		return
	}
	f.state[i] = busy
	defer func() { f.state[i] = done }()
	w := &f.all[i]
	switch w.Wait {
	case Ranks:
		if w.Last != nil {
			f.blamePartner(i)
			return
		}
		f.blame(i, f.explain(f.others(i, f.programs[w.Program]), w.span(), f.since[i], nil))
	case Group:
		if f.heldBack(i) {
			f.links[i].Role, f.links[i].Own = provenance.Culprit, true
			return
		}
		g := f.gathered[i]
		f.blame(i, g.reasons(f))
		if since := f.since[i]; f.links[i].Role == "" && since < g.since { // fewer ranks than assumed may take part in the call
			f.blame(i, f.explain(g.late(f, f.programs[w.Program].during(since, w.Exit)), w.span(), since, g.arrival))
		}
		if f.links[i].Role == "" && g.nobodyLate(f.numRanks[w.Program]) {
			f.links[i].Role, f.links[i].Own = provenance.Culprit, true
		}
	case Device, Threads:
		f.blame(i, f.explain(f.own(i), w.span(), f.since[i], nil))
	case Program:
		var why []reasons
		for _, p := range f.numbers {
			if p != w.Program {
				why = append(why, f.explain(f.others(i, f.programs[p]), w.span(), f.since[i], nil)...)
			}
		}
		f.blame(i, largest(why))
	}
}

// heldBack reports whether a rank stayed in a collective call after others had left it: it did not wait for them, but was
// late itself.
func (f *finder) heldBack(i int32) bool {
	w := &f.all[i]
	exits := f.exits[w.funcKey()]
	k, _ := slices.BinarySearchFunc(exits, w.Entry+1, func(e exit, at trace.Ticks) int { return cmp.Compare(e.at, at) })
	last := w.Exit - trace.Ticks(explainedShare*float64(w.Lost))
	for ; k < len(exits) && exits[k].at <= last; k++ {
		if exits[k].rank != w.Rank {
			return true
		}
	}
	return false
}

// others returns the anomalies on other ranks during a wait and before it.
func (f *finder) others(i int32, t *timeline) []int32 {
	w := &f.all[i]
	return f.byThread(slices.DeleteFunc(t.during(f.since[i], w.Exit), func(j int32) bool {
		return f.all[j].Rank == w.Rank && f.all[j].Program == w.Program
	}))
}

// own returns the anomalies on other threads of the rank, or on its GPU.
func (f *finder) own(i int32) []int32 {
	w := &f.all[i]
	return f.byThread(slices.DeleteFunc(f.ranks[w.rankKey()].during(f.since[i], w.Exit), func(j int32) bool {
		return f.all[j].OnDevice != (w.Wait == Device) || f.all[j].Thread == w.Thread
	}))
}

// byThread sorts anomalies by rank and thread and keeps their order of entry.
func (f *finder) byThread(all []int32) []int32 {
	slices.SortStableFunc(all, func(x, y int32) int {
		return cmp.Or(cmp.Compare(f.all[x].Rank, f.all[y].Rank), cmp.Compare(f.all[x].Thread, f.all[y].Thread))
	})
	return all
}

// blamePartner follows the last message to its sender or receiver.
func (f *finder) blamePartner(i int32) {
	w, l := &f.all[i], &f.links[i]
	l.Role, l.Late, l.Known, l.Hops = provenance.Victim, w.Last.Partner, true, 1
	until, end := f.waitedForPartner(w)
	if float64(end-max(until, w.Entry)) >= transitShare*float64(w.Lost) {
		l.Role, l.Hops, l.Own = provenance.Culprit, 0, true
		return
	}
	if t := f.ranks[trace.RankKey{Program: w.Program, Rank: w.Last.Partner}]; t != nil {
		all := slices.DeleteFunc(t.during(f.since[i], until), func(j int32) bool {
			return w.before(&f.all[j]) || f.all[j].Exit <= w.Entry && f.all[j].receivedFrom(w.Rank)
		})
		for _, j := range all {
			if a := &f.all[j]; a.before(w) {
				until = max(until, a.Exit)
			}
		}
		f.blame(i, largest(f.late(nil, f.byThread(all), w.span(), f.since[i], until)))
	}
}

// waitedForPartner returns when a wait ended, or received its last message, and until when its partner can have made it
// wait: until the partner's call that sent the message returned, or until the partner received the message.
func (f *finder) waitedForPartner(w *Anomaly) (until, end trace.Ticks) {
	end = w.Exit
	until, sent := end, w.Last.Time
	if !w.Last.Sent {
		end = w.Last.Time
		at, ok := f.sent(w)
		if !ok {
			return end, end
		}
		until, sent = at, at
	}
	if a := f.otherSide(w, sent); a != nil && a.Last.Sent {
		until = max(until, a.Exit)
	} else if a != nil {
		until = a.Last.Time
	}
	return min(until, end), end
}

// otherSide returns the anomaly of the partner that sent or received the last message of a wait, which was sent at a time;
// nil if it is not an anomaly.
func (f *finder) otherSide(w *Anomaly, sent trace.Ticks) *Anomaly {
	t := f.ranks[trace.RankKey{Program: w.Program, Rank: w.Last.Partner}]
	if t == nil {
		return nil
	}
	for _, j := range t.during(sent, w.Exit) {
		a := &f.all[j]
		if a.Wait != Ranks || a.Last == nil || a.Last.Sent == w.Last.Sent || a.Last.Partner != w.Rank || a.Last.Tag != w.Last.Tag {
			continue
		}
		at, ok := a.Last.Time, true
		if !a.Last.Sent {
			at, ok = f.sent(a)
		}
		if ok && at == sent {
			return a
		}
	}
	return nil
}

// before reports whether two ranks that wait for each other, and leave together, began with a. That rank was late: the
// other one had to wait for it.
func (a *Anomaly) before(o *Anomaly) bool {
	apart := max(a.Exit-o.Exit, o.Exit-a.Exit)
	return o.Wait == Ranks && float64(apart) <= sameEnd*float64(a.Exit-a.Entry) && a.Entry < o.Entry
}

// receivedFrom reports whether the anomaly waited for a message from a rank. That rank was late as well, so something else
// made it wait for this one later.
func (a *Anomaly) receivedFrom(rank trace.Rank) bool {
	return a.Wait == Ranks && a.Last != nil && !a.Last.Sent && a.Last.Partner == rank
}

// span is the time of a wait.
type span struct{ entry, exit trace.Ticks }

func (a *Anomaly) span() span { return span{a.Entry, a.Exit} }

func (s span) half() trace.Ticks   { return s.entry + (s.exit-s.entry)/2 }
func (s span) length() trace.Ticks { return s.exit - s.entry }

// reason is an anomaly that made its rank late, with the time that it lost. The time is reduced if the anomaly ended long
// before the wait.
type reason struct {
	of   int32
	lost float64
}

// reasons are the reasons of one thread, the largest first, and their sums.
type reasons struct {
	all   []reason
	of    span // the wait
	lost  float64
	total float64 // of the times before their reduction
	until trace.Ticks
}

// explain returns the reasons why ranks were late for a wait. of are the anomalies since a time, by rank and thread, and
// arrival has the times at which ranks began to wait as well.
func (f *finder) explain(of []int32, w span, since trace.Ticks, arrival map[trace.Rank]trace.Ticks) (why []reasons) {
	for len(of) > 0 {
		rank := f.all[of[0]].Rank
		n := slices.IndexFunc(of, func(j int32) bool { return f.all[j].Rank != rank })
		if n < 0 {
			n = len(of)
		}
		until, ok := arrival[rank]
		if !ok {
			until = w.exit
		}
		why = f.late(why, of[:n], w, since, until)
		of = of[n:]
	}
	return largest(why)
}

// largest sorts reasons in descending order.
func largest(why []reasons) []reasons {
	slices.SortStableFunc(why, func(a, b reasons) int { return cmp.Compare(b.lost, a.lost) })
	return why
}

// late appends the reasons why the threads of a rank were late between two times. of are its anomalies by thread. The last
// wait of the rank for others absorbed earlier delays.
func (f *finder) late(why []reasons, of []int32, w span, since, until trace.Ticks) []reasons {
	step := int32(-1)
	for _, j := range of {
		if a := &f.all[j]; a.waitsForOthers() && a.Lost > 0 && a.Exit <= until && (step < 0 || a.Exit >= f.all[step].Exit) {
			step = j
		}
	}
	from := since
	if step >= 0 {
		from = max(from, f.all[step].Exit)
	}
	for len(of) > 0 {
		thread := f.all[of[0]].Thread
		r := reasons{of: w, until: until}
		for ; len(of) > 0 && f.all[of[0]].Thread == thread; of = of[1:] {
			j := of[0]
			switch a := &f.all[j]; {
			case j == step:
				r.add(a, j, since)
			case a.waitsForOthers(), a.Exit > until && (a.Wait != Nothing || !a.Calls):
			default:
				r.add(a, j, from)
			}
		}
		if len(r.all) > 0 {
			slices.SortStableFunc(r.all, func(a, b reason) int { return cmp.Compare(b.lost, a.lost) })
			why = append(why, r)
		}
	}
	return why
}

func (a *Anomaly) waitsForOthers() bool {
	return a.Wait == Ranks || a.Wait == Group || a.Wait == Program
}

// add adds the time that an anomaly lost after from.
func (r *reasons) add(a *Anomaly, i int32, from trace.Ticks) {
	in := min(a.Exit, r.until) - max(a.Entry, from)
	if in <= 0 || a.Lost <= 0 {
		return
	}
	lost := float64(a.Lost) * float64(in) / float64(a.Exit-a.Entry)
	r.total += lost
	if a.Exit < r.of.entry {
		lost /= 1 + float64(r.of.entry-a.Exit)/float64(max(1, r.of.length()))
	}
	r.lost += lost
	r.all = append(r.all, reason{i, lost})
}

// explains reports whether the reasons are large enough for a wait and do not end too long before its end.
func (r *reasons) explains(w *Anomaly) bool {
	return r.total >= explainedShare*float64(w.Lost) && (r.until > w.span().half() || w.Wait == Ranks)
}

// blame links a wait to the culprit of its largest reasons that have one.
func (f *finder) blame(i int32, why []reasons) {
	w := &f.all[i]
	for k := range why {
		if !why[k].explains(w) {
			continue
		}
		culprit, hops := f.follow(why[k].all)
		if culprit < 0 {
			continue
		}
		f.links[i] = Link{Role: provenance.Victim, Culprit: int(culprit), Late: f.all[culprit].Rank, Known: true, Hops: hops}
		if g := f.gathered[i]; g != nil && g.blamed {
			return
		} else if g != nil {
			g.blamed = true
		}
		for k := range why {
			if why[k].explains(w) {
				f.accuse(&why[k], culprit)
			}
		}
		return
	}
}

// follow returns the execution that caused the largest reason with a known cause, or -1, and the number of waits that lead
// to it.
func (f *finder) follow(all []reason) (culprit int32, hops int) {
	for _, r := range all {
		a := &f.all[r.of]
		if a.Wait == Nothing {
			return r.of, 1
		}
		if f.state[r.of] == busy {
			continue
		}
		f.resolve(r.of)
		l := &f.links[r.of]
		if l.Role == provenance.Victim && l.Culprit >= 0 {
			return int32(l.Culprit), 1 + l.Hops
		}
		if a.Wait == Ranks || a.Wait == Group || l.Role == provenance.Culprit { // its own cause
			return r.of, 1
		}
	}
	return -1, 0
}

// accuse marks the reasons that ended during a wait or shortly before it as culprits.
func (f *finder) accuse(why *reasons, culprit int32) {
	for _, r := range why.all {
		a, l := &f.all[r.of], &f.links[r.of]
		flagged := a.Wait == Nothing && !a.Candidate
		if flagged && r.of != culprit && l.Role == "" && a.Exit <= why.of.exit && a.Exit >= why.of.entry-why.of.length() {
			l.Role, l.Culprit = provenance.Culprit, int(culprit)
		}
	}
}
