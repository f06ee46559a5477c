package analyzer

import "sync"

// Ranks of the same function learn the same model, so the deltas of all ranks in a round are merged before the models learn
// them: the cost of a model depends on the number of rounds, not on the number of ranks.

// learner collects what a worker learns from steps of any ranks in a round.
type learner struct {
	deltas  map[*scoped]*delta // kept for later rounds
	touched []*scoped          // with deltas of this round
}

// learners has a learner for each worker.
type learners struct {
	mu        sync.Mutex
	all, free []*learner
}

// take returns a learner that no other worker uses.
func (l *learners) take() *learner {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free) - 1; n >= 0 {
		last := l.free[n]
		l.free = l.free[:n]
		return last
	}
	l.all = append(l.all, &learner{deltas: make(map[*scoped]*delta)})
	return l.all[len(l.all)-1]
}

// put returns a learner.
func (l *learners) put(of *learner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, of)
}

// delta returns what a worker learned about the calls of a model.
func (l *learner) delta(s *scoped) *delta {
	d := l.deltas[s]
	if d == nil {
		d = new(delta)
		l.deltas[s] = d
	}
	if !d.used {
		d.used = true
		l.touched = append(l.touched, s)
	}
	return d
}

// touch makes the delta of a function part of the step.
func (r *rank) touch(f *localFunc) {
	f.touched = true
	r.touched = append(r.touched, f)
	if r.learner == nil || f.common == nil {
		return
	}
	if f.pending != nil { // left by an earlier step, and empty
		f.release()
	}
	f.pending, f.shared = r.learner.delta(f.common), true
}

// round returns what ranks learned about the calls of a model in this round.
func (m *Models) round(s *scoped) *delta {
	if s.delta == nil {
		s.delta = new(delta)
	}
	if !s.inRound {
		s.inRound = true
		m.learned = append(m.learned, s)
	}
	return s.delta
}

// learn adds what ranks learned in this round to the models.
func (m *Models) learn(frozen, profile bool) {
	for _, l := range m.learners.all {
		for _, s := range l.touched {
			d := l.deltas[s]
			d.addShort()
			if d.used = false; s.inRound {
				m.round(s).merge(d)
			} else {
				m.round(s)
				s.delta, l.deltas[s] = d, s.delta
			}
		}
	}
	for i := 0; i < len(m.learned); i++ { // round adds groups
		if s := m.learned[i]; s != &s.group.allCalls {
			m.round(&s.group.allCalls).merge(s.delta)
		}
	}
	for _, s := range m.learned {
		g := s.group
		if s == &g.allCalls && profile {
			g.function.Exclusive.Merge(&s.delta.Exclusive)
			g.function.Inclusive.Merge(&s.delta.Inclusive)
		}
		if !frozen && !s.dropped {
			s.model.Merge(&s.delta.model)
			s.changed = true
			m.touch(g)
		}
	}
	for _, l := range m.learners.all {
		for _, s := range l.touched {
			if s.dropped {
				delete(l.deltas, s)
				continue
			}
			l.deltas[s].reset()
			l.deltas[s].model.Times.Follow(&s.model.Times)
		}
		l.touched = l.touched[:0]
	}
}

// endRound drops what ranks learned in this round.
func (m *Models) endRound() {
	for _, s := range m.learned {
		s.inRound = false
		s.delta.reset()
		s.delta.model.Times.Follow(&s.model.Times)
	}
	clear(m.learned)
	m.learned = m.learned[:0]
}
