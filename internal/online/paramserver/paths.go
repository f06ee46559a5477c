package paramserver

import "github.com/chimbuko/chimbuko/internal/online/summary"

// addPathsTo adds the call paths of all programs to the outcome of the run.
func (s *State) addPathsTo(o *summary.Outcome) {
	names := s.index.all()
	s.live.AddPathsTo(o, func(id uint32) string { return names[id].Name })
}

// Paths returns all calls so far by call path, by program and names. Only the first
// shard has them.
func (s *State) Paths() []summary.Path {
	var o summary.Outcome
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		s.addPathsTo(&o)
	}
	return o.Paths
}
