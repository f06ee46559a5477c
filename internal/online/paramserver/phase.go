package paramserver

import (
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Tick moves the run on: from one phase to the next when all that is needed for
// it has come. Analyzers are told of the end when it is in a snapshot.
func (s *State) Tick(now time.Time) protocol.Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase < protocol.Phase_PHASE_REVIEWING && s.allEnded(now) {
		s.phase = protocol.Phase_PHASE_REVIEWING
		s.changes++
	}
	return s.phase
}

// silence is how long an analyzer may say nothing before the end of the run does
// not wait for it any more, once the run is to be stopped.
const silence = 15 * time.Second

// allEnded reports whether nothing more is to be learned.
func (s *State) allEnded(now time.Time) bool {
	if len(s.nodes) == 0 {
		return !s.stopping.IsZero()
	}
	owners := s.owners()
	for _, n := range s.nodes {
		if n.status.GetState() < protocol.Status_STATE_ENDED && !s.givenUp(n, now) && !replaced(n, owners) {
			return false
		}
	}
	if !s.stopping.IsZero() {
		return true
	}
	for _, r := range s.ranks {
		if !r.ended {
			return false
		}
	}
	if s.cfg.Ranks > 0 {
		return len(s.ranks) >= s.cfg.Ranks
	}
	if s.ended.IsZero() { // the server was started again since
		s.ended = now
	}
	return now.Sub(s.ended) >= s.cfg.Linger
}

// givenUp reports whether the run does not wait for an analyzer: it is silent,
// and the run is to be stopped.
func (s *State) givenUp(n *node, now time.Time) bool {
	return n.lost || !s.stopping.IsZero() && now.Sub(s.stopping) > silence && now.Sub(n.heard) > silence
}

// Stop has the run end with what is known.
func (s *State) Stop(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.IsZero() {
		s.stopping = now
		s.changes++
	}
}

// Reopen has a run that was cut go on to its end: what analyzers have not handed over
// is read and reviewed once more, however far that had come, but for those of lost
// analyzers, which will not come back.
func (s *State) Reopen(lost []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = time.Time{}
	s.phase = min(s.phase, protocol.Phase_PHASE_RUNNING)
	s.announced = min(s.announced, s.phase)
	for name, n := range s.nodes {
		n.lost = slices.Contains(lost, name)
		if s.outcomes[name] == nil && !n.lost {
			n.status = nil
		}
	}
	for _, r := range s.ranks {
		r.ended = r.ended && s.outcomes[r.node] != nil || slices.Contains(lost, r.node)
	}
	s.changes++
}

// Phase tells how far the run has come.
func (s *State) Phase() protocol.Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// told is the phase that analyzers get to know: never one that a crash of the
// server could undo.
func (s *State) told() protocol.Phase {
	if s.phase >= protocol.Phase_PHASE_REVIEWING && s.announced < s.phase {
		return max(s.announced, protocol.Phase_PHASE_RUNNING)
	}
	return s.phase
}

// Finish says that the run has ended.
func (s *State) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = protocol.Phase_PHASE_FINISHED
	s.changes++
}

// Reviewed reports whether all analyzers have sent what came of their ranks.
func (s *State) Reviewed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != protocol.Phase_PHASE_REVIEWING {
		return false
	}
	owners := s.owners()
	for name, n := range s.nodes {
		if s.outcomes[name] == nil && !s.givenUp(n, now) && !replaced(n, owners) {
			return false
		}
	}
	return true
}

// owners are the analyzers that read the ranks.
func (s *State) owners() map[string]bool {
	names := make(map[string]bool)
	for _, r := range s.ranks {
		names[r.node] = true
	}
	return names
}

// replaced reports whether others read all ranks that an analyzer had. The run
// does not wait for it.
func replaced(n *node, owners map[string]bool) bool { return n.claimed && !owners[n.name] }
