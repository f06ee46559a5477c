package paramserver

import (
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Tick enters the review when all ranks have ended, and returns the phase.
// Analyzers receive the phase once a snapshot contains it.
func (s *State) Tick(now time.Time) protocol.Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase < protocol.Phase_PHASE_REVIEWING && s.allEnded(now) {
		s.phase = protocol.Phase_PHASE_REVIEWING
		s.changes++
	}
	return s.phase
}

// silence is the time without messages after which a run that is being stopped no
// longer waits for an analyzer.
const silence = 15 * time.Second

// allEnded reports whether all ranks of the run have ended.
func (s *State) allEnded(now time.Time) bool {
	if len(s.nodes) == 0 {
		return !s.stopping.IsZero()
	}
	waiting := s.waitsFor(now, func(n *node) bool { return n.GetStatus().GetState() >= protocol.Status_STATE_ENDED })
	if waiting || !s.stopping.IsZero() {
		return !waiting
	}
	for _, r := range s.ranks {
		if !r.ended {
			return false
		}
	}
	if s.cfg.Ranks > 0 {
		return len(s.ranks) >= s.cfg.Ranks
	}
	if s.ended.IsZero() { // the server was restarted since
		s.ended = now
	}
	return now.Sub(s.ended) >= s.cfg.Linger
}

// waitsFor reports whether the run waits for an analyzer that is not done. It does not wait for
// lost analyzers, for silent ones while it is being stopped, or for those whose ranks others read
// now.
func (s *State) waitsFor(now time.Time, done func(*node) bool) bool {
	owners := make(map[string]bool)
	for _, r := range s.ranks {
		owners[r.node] = true
	}
	for name, n := range s.nodes {
		silent := !s.stopping.IsZero() && now.Sub(s.stopping) > silence && now.Sub(n.lastContact) > silence
		if !done(n) && !n.Lost && !silent && (!n.Claimed || owners[name]) {
			return true
		}
	}
	return false
}

// Stop ends the run with the current results.
func (s *State) Stop(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.IsZero() {
		s.stopping = now
		s.changes++
	}
}

// Reopen resumes an interrupted run. Analyzers without results read and review
// their ranks again, except for the lost ones, which will not return.
func (s *State) Reopen(lost []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = time.Time{}
	s.phase = min(s.phase, protocol.Phase_PHASE_RUNNING)
	s.announced = min(s.announced, s.phase)
	for name, n := range s.nodes {
		n.Lost = slices.Contains(lost, name)
		if s.outcomes[name] == nil {
			s.forgetDelays(name)
			if !n.Lost {
				n.Status = nil
			}
		}
	}
	for _, r := range s.ranks {
		r.ended = r.ended && s.outcomes[r.node] != nil || slices.Contains(lost, r.node)
	}
	s.changes++
}

// Phase returns the phase of the run.
func (s *State) Phase() protocol.Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// publicPhase returns the phase for analyzers: one that a crash of the server
// cannot undo.
func (s *State) publicPhase() protocol.Phase {
	if s.phase >= protocol.Phase_PHASE_REVIEWING && s.announced < s.phase {
		return max(s.announced, protocol.Phase_PHASE_RUNNING)
	}
	return s.phase
}

// Finish marks the run as finished.
func (s *State) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = protocol.Phase_PHASE_FINISHED
	s.changes++
}

// Reviewed reports whether all analyzers have sent their results.
func (s *State) Reviewed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == protocol.Phase_PHASE_REVIEWING && !s.waitsFor(now, func(n *node) bool { return s.outcomes[n.Name] != nil })
}
