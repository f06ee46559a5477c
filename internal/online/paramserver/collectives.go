package paramserver

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
)

// takeCollectives decodes the collective operations of a status and removes them from it: snapshots do not need them,
// because analyzers report them again.
func (r *request) takeCollectives() {
	r.collectives = nil
	text := r.GetStatus().GetCollectives()
	if len(text) == 0 {
		return
	}
	r.Status.Collectives = nil
	if c, err := breakdown.DecodeCollectives(text); err == nil {
		r.collectives = c
	}
}

// noteCollectives replaces the collective operations of an analyzer, unless it has read fewer than its previous
// process.
func (n *node) noteCollectives(c *breakdown.Collectives) {
	if c != nil && (n.collectives == nil || c.Logged >= n.collectives.Logged) {
		n.collectives = c
	}
}

// Collectives returns the collective operations that the analyzers have compared so far, by program, and the
// number of operations on ranks that they have read. Operations of the same group that several analyzers read are
// compared only among the ranks of each.
func (s *State) Collectives() (all []breakdown.ProgramComparison, logged int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		if n.collectives != nil {
			logged += n.collectives.Logged
		}
	}
	return s.collectivesNow(), logged
}

// collectivesNow returns the operations of the outcomes of analyzers, and the latest of those without.
func (s *State) collectivesNow() (all []breakdown.ProgramComparison) {
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		of := s.nodes[name].collectives
		if o := s.outcomes[name]; o != nil {
			of = nil
			if text := o.GetCollectives(); len(text) > 0 {
				of, _ = breakdown.DecodeCollectives(text) // SetOutcome has checked it
			}
		}
		if of != nil {
			all = append(all, of.Programs...)
		}
	}
	slices.SortStableFunc(all, func(a, b breakdown.ProgramComparison) int { return cmp.Compare(a.Program, b.Program) })
	return all
}
