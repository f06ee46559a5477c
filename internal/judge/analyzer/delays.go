package analyzer

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/base/workers"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/spool"
)

// A delay is a call that lost much time although its time is not unusual. It becomes an anomaly if it explains waits of other
// ranks, or is such a wait.
const (
	// delayShare is the least time that a delay loses, as a share of the time of its rank so far: if all ranks waited for it, it
	// would not be a minor finding. A thread has at most 1/delayShare delays in each period in which that time grows by a factor of e.
	delayShare = 1e-4
	// During the run, delays may lose less by the factor delaySlack and be among the longest longCallsSoFar, because
	// models change. At the end, they must be among the longest outlier.LongCalls.
	delaySlack     = 0.9
	longCallsSoFar = 0.2
	// maxDelays is the number of delays of a rank to consider at the end: those that lost most.
	maxDelays = 1 << 10
)

// leastDelay returns part of the least time that a delay at a time loses.
func (r *rank) leastDelay(at trace.Ticks, part float64) int64 {
	if !r.byPath || !r.cfg.Review {
		return math.MaxInt64 / 2
	}
	return int64(part * max(float64(r.cfg.Outlier.LeastLoss), delayShare*float64(at-r.firstEvent)))
}

// mayBeDelay reports whether a call is likely to be a delay at the end of the run.
func (r *rank) mayBeDelay(j *outlier.Judge, time, lost int64, exit trace.Ticks) bool {
	return lost >= r.leastDelay(exit, delaySlack) && j.ShareFrom(time) <= longCallsSoFar
}

// callKey identifies a call of a rank.
type callKey struct {
	step int32
	row  uint32
}

func keyOf(c *provenance.Capture) callKey { return callKey{c.Call().Step, c.Call().Row} }

// delays contains the anomalies and delays of ranks, and the call of each.
type delays struct {
	blame.Run
	calls []delayedCall
}

// delayedCall is the call of an element of Run.Anomalies.
type delayedCall struct {
	rank   *rank
	spool  *spool.Spool
	number int // index in the spool
	sends  int // number of its elements of Run.Sends, which are in the same order
	callKey
}

func (d *delays) add(o *delays) {
	d.Anomalies, d.Sends, d.calls = append(d.Anomalies, o.Anomalies...), append(d.Sends, o.Sends...), append(d.calls, o.calls...)
}

// promote finds the delays that become anomalies, for the review.
func (a *Analyzer) promote(ctx context.Context) error {
	if !a.cfg.Outlier.ByPath() || !a.cfg.Review {
		return nil
	}
	var all delays
	parts := make(map[*source]*delays)
	for _, s := range a.sources {
		parts[s] = new(delays)
	}
	err := workers.InOrder(ctx, a.cfg.Workers, a.sources, func(_ context.Context, s *source) error {
		for _, r := range s.ranks {
			own, err := r.findDelays()
			if err != nil {
				return err
			}
			parts[s].add(own)
		}
		return nil
	}, func(s *source) { all.add(parts[s]) })
	if err != nil {
		return err
	}
	var promoted []int
	if a.online == nil {
		all.CountRanks(a.rankKeys())
		promoted = blame.Promote(&all.Run)
	} else if promoted, err = a.online.Sync.Promote(ctx, &all.Run); err != nil {
		return err
	}
	for _, i := range promoted {
		c := &all.calls[i]
		if c.rank.promoted == nil {
			c.rank.promoted = make(map[callKey]bool)
		}
		c.rank.promoted[c.callKey] = true
		c.spool.Unneeded[c.number] = false
	}
	return nil
}

// rankKeys returns the keys of the ranks.
func (a *Analyzer) rankKeys() iter.Seq[trace.RankKey] {
	return func(yield func(trace.RankKey) bool) {
		for _, s := range a.sources {
			for _, r := range s.ranks {
				if !yield(r.key) {
					return
				}
			}
		}
	}
}

// findDelays returns the anomalies and delays of a rank by the final models.
func (r *rank) findDelays() (*delays, error) {
	r.online = false // create no more provisional records
	if err := r.settle(); err != nil {
		return nil, err
	}
	r.findUnrecorded()
	var d delays
	for _, s := range []*spool.Spool{r.spool, r.late} {
		unneeded := make([]bool, 0, s.Count())
		err := s.Each(func(c *provenance.Capture) error {
			unneeded = append(unneeded, r.addDelay(&d, c, delayedCall{rank: r, spool: s, number: len(unneeded), callKey: keyOf(c)}))
			return nil
		})
		if err != nil {
			return nil, err
		}
		s.Unneeded = unneeded
	}
	d.limit()
	return &d, nil
}

// limit removes all but maxDelays delays, and those that lost no more than one of the removed delays, with their messages.
func (d *delays) limit() {
	var lost []trace.Ticks
	for i := range d.Anomalies {
		if d.Anomalies[i].Candidate {
			lost = append(lost, d.Anomalies[i].Lost)
		}
	}
	if len(lost) <= maxDelays {
		return
	}
	slices.Sort(lost)
	most := lost[len(lost)-maxDelays-1] // greatest lost time to remove
	n, sends, next := 0, d.Sends[:0], d.Sends
	for i := range d.Anomalies {
		own := next[:d.calls[i].sends]
		next = next[len(own):]
		if a := &d.Anomalies[i]; !a.Candidate || a.Lost > most {
			d.Anomalies[n], d.calls[n], sends = *a, d.calls[i], append(sends, own...)
			n++
		}
	}
	d.Anomalies, d.calls, d.Sends = d.Anomalies[:n], d.calls[:n], sends
}

// addDelay adds a capture if it is an anomaly or a delay. It returns true if the review does not need the capture unless it
// is promoted.
func (r *rank) addDelay(d *delays, c *provenance.Capture, of delayedCall) (unneeded bool) {
	f := r.all[c.Context]
	j, rare := r.judgeOf(f, c)
	if c.Kind == provenance.Typical || j == nil || c.Kind == provenance.First && rare == nil {
		return false
	}
	call, time := c.Call(), r.timeOf(c)
	work := r.capturedWork(f, c)
	_, verdict := j.JudgeCall(time, work)
	if verdict == outlier.NotJudged {
		return false
	}
	lost := r.lost(f, j, c)
	if rare != nil {
		lost = time
	}
	candidate := verdict < outlier.Recurring
	unneeded = candidate && c.Kind != provenance.Anomaly || !candidate && !c.Sent && !r.keeps(j, verdict, of.callKey)
	share := 0.
	if candidate {
		least := r.leastDelay(call.Exit, 1)
		if time < least || j.ShareFrom(time) > outlier.LongCalls {
			return unneeded
		}
		if lost = time - f.model.by.model.UsualTime(verdict); lost < least {
			return unneeded
		}
		share = j.Chance(time)
	}
	_, name := r.Func(call.Func)
	_, onDevice := r.GPU(c.Thread)
	x := blame.Anomaly{
		Event: c.ID(r.key.Rank).String(), Program: r.key.Program, Rank: r.key.Rank, Thread: c.Thread, Func: name, Wait: d.WaitOf(name),
		OnDevice: onDevice, Calls: c.Exclusive != call.Exit-call.Entry, Entry: call.Entry, Exit: call.Exit, Exclusive: c.Exclusive,
		Lost: trace.Ticks(max(0, lost)), Candidate: candidate, Share: share,
	}
	until, before := call.Exit, len(d.Sends)
	for i := range c.Window {
		w := &c.Window[i]
		until = max(until, w.Entry)
		if w.Exit > 0 && (w.Step != call.Step || w.Row != call.Row) {
			if _, name := r.Func(w.Func); d.WaitOf(name) == blame.Group {
				x.LeftStep(name, w.Exit)
			}
		}
	}
	for i := range c.Comms {
		m := &c.Comms[i]
		sent := m.Kind == trace.Send
		if sent {
			d.Sends = append(d.Sends, blame.Send{
				Program: r.key.Program, From: r.key.Rank, To: m.Partner(), Tag: m.Tag, Time: m.Time, Until: until,
			})
		}
		if m.Step == call.Step && m.Row == call.Row {
			x.Message(blame.Message{Partner: m.Partner(), Sent: sent, Tag: m.Tag, Time: m.Time})
		}
	}
	of.sends = len(d.Sends) - before
	d.Anomalies, d.calls = append(d.Anomalies, x), append(d.calls, of)
	return unneeded
}
