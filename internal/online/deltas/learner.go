package deltas

import "sync"

// Learner collects what a worker learns from steps of any ranks, in a delta for each model.
type Learner[Model comparable] struct {
	deltas  map[Model]*Delta // kept for later rounds
	touched []Model          // with deltas of this round
}

// Delta returns what the worker learned about the calls of a model.
func (l *Learner[Model]) Delta(m Model) *Delta {
	d := l.deltas[m]
	if d == nil {
		d = new(Delta)
		l.deltas[m] = d
	}
	if !d.used {
		d.used = true
		l.touched = append(l.touched, m)
	}
	return d
}

// Learners has a learner for each worker. Ranks of the same function learn the same model, so the deltas of all ranks in a
// round are merged before the models learn them: the cost of a model depends on the number of rounds, not on the number of
// ranks.
type Learners[Model comparable] struct {
	mu        sync.Mutex
	all, free []*Learner[Model]
}

// Take returns a learner that no other worker uses. It is safe for concurrent use.
func (l *Learners[Model]) Take() *Learner[Model] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free) - 1; n >= 0 {
		last := l.free[n]
		l.free = l.free[:n]
		return last
	}
	l.all = append(l.all, &Learner[Model]{deltas: make(map[Model]*Delta)})
	return l.all[len(l.all)-1]
}

// Put returns a learner. It is safe for concurrent use.
func (l *Learners[Model]) Put(of *Learner[Model]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, of)
}

// Collect calls add with each delta of the round. add may keep the delta if it returns another one, which is empty, in exchange.
func (l *Learners[Model]) Collect(add func(Model, *Delta) (spare *Delta)) {
	for _, of := range l.all {
		for _, m := range of.touched {
			d := of.deltas[m]
			d.AddShort()
			d.used = false
			of.deltas[m] = add(m, d)
		}
	}
}

// EndRound empties the deltas that Collect has passed. It keeps the memory of those for which keep returns true.
func (l *Learners[Model]) EndRound(keep func(Model, *Delta) bool) {
	for _, of := range l.all {
		for _, m := range of.touched {
			d := of.deltas[m]
			if d.Reset(); !keep(m, d) {
				delete(of.deltas, m)
			}
		}
		clear(of.touched)
		of.touched = of.touched[:0]
	}
}
