package paramserver

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// SetOutcome takes the results of an analyzer. A snapshot must contain them before
// the reply is sent.
func (s *State) SetOutcome(req *protocol.OutcomeRequest, now time.Time) (*protocol.OutcomeReply, error) {
	if err := s.checkSender(req.GetSender()); err != nil {
		return nil, err
	}
	handover, err := summary.ReadHandover(req.GetHandover())
	if err != nil {
		return &protocol.OutcomeReply{Refused: err.Error()}, nil
	}
	if text := req.GetCollectives(); len(text) > 0 {
		if _, err := breakdown.DecodeCollectives(text); err != nil {
			return &protocol.OutcomeReply{Refused: err.Error()}, nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[req.GetSender().GetNode()]
	if n == nil || n.Session != req.GetSender().GetSession() {
		return &protocol.OutcomeReply{Refused: paramwire.StartedLater(req.GetSender().GetNode())}, nil
	}
	for _, r := range handover.Ranks {
		state := s.ranks[r.RankKey]
		if state != nil && state.node != n.Name {
			return &protocol.OutcomeReply{Refused: alsoRead(state)}, nil
		}
	}
	n.lastContact = now
	s.outcomes[n.Name] = req
	s.changes++
	return &protocol.OutcomeReply{}, nil
}

// Outcome returns the result of the run, given the models of all shards. It may
// change until the run has ended.
func (s *State) Outcome(models map[uint32]summary.Learned) (*summary.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	functions := s.live.Functions()
	o := summary.NewOutcome(functions, func(i int) float64 {
		m := models[uint32(functions[i].ID)].Model
		return m.Hist.Quantile(0.5)
	})
	o.Counters = s.live.Counters()
	s.addPathsTo(o)
	o.Load = s.live.Load()
	var ranks []*summary.RankOutcome
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		part, err := summary.ReadHandover(s.outcomes[name].GetHandover())
		if err != nil {
			return nil, fmt.Errorf("analyzer %s: %w", name, err)
		}
		o.Totals.Merge(part.Totals)
		o.Tally.Merge(&part.Tally)
		for _, b := range part.Broken {
			o.Broken = append(o.Broken, errors.New(b))
		}
		ranks = append(ranks, part.Ranks...)
	}
	if err := s.addEarlier(o, ranks); err != nil {
		return nil, err
	}
	if of := s.collectivesNow(); len(of) > 0 {
		o.Breakdown = &breakdown.Run{Collectives: of}
	}
	slices.SortStableFunc(ranks, func(a, b *summary.RankOutcome) int { return a.Compare(b.RankKey) })
	for _, r := range ranks {
		o.Add(r)
	}
	return o, nil
}

// addEarlier adds the data that earlier sessions of analyzers have read from live streams. ranks
// are the results of the last sessions.
func (s *State) addEarlier(o *summary.Outcome, ranks []*summary.RankOutcome) error {
	for p, r := range s.earlierStreams() {
		part, err := summary.ReadHandover(p.GetHandover())
		if err != nil {
			return fmt.Errorf("rank %d of program %d: %w", r.Rank, r.Program, err)
		}
		read := slices.ContainsFunc(ranks, func(o *summary.RankOutcome) bool { return o.RankKey == r.RankKey })
		if s.outcomes[r.node] != nil && !read && p == r.streams[0] { // the last session received nothing of it
			part.Totals.Ranks = 1
		}
		o.Totals.Merge(part.Totals)
		o.Tally.Merge(&part.Tally)
	}
	return nil
}

// earlierStreams yields the progress in live streams of all sessions but the last one of each
// analyzer, and the ranks.
func (s *State) earlierStreams() iter.Seq2[*protocol.StreamProgress, *rankState] {
	return func(yield func(*protocol.StreamProgress, *rankState) bool) {
		for _, r := range s.ranks {
			for _, p := range r.streams {
				if n := s.nodes[r.node]; (n == nil || n.Session != p.GetSession()) && !yield(p, r) {
					return
				}
			}
		}
	}
}

// addPathsTo adds the call paths of all programs to an outcome.
func (s *State) addPathsTo(o *summary.Outcome) {
	s.live.AddPathsTo(o, func(id uint32) string { return s.names[id].Name })
}

// Paths returns all calls so far by call path, by program and names. Only the first
// shard has them.
func (s *State) Paths() []summary.Path {
	var o summary.Outcome
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPathsTo(&o)
	return o.Paths
}

// Load returns a copy of the load of all ranks so far, and the names of its functions. Only
// the first shard has it.
func (s *State) Load() (load *workload.Load, name func(trace.Program, uint32) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names // append-only
	return s.live.Load(), func(_ trace.Program, id uint32) string { return names[id].Name }
}

// LostAnalyzers returns the analyzers that sent no results, their ranks, and their last totals.
func (s *State) LostAnalyzers() (names []string, ranks []trace.RankKey, totals summary.Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(s.ranks), trace.RankKey.Compare) {
		name := s.ranks[key].node
		if s.outcomes[name] != nil {
			continue
		}
		ranks = append(ranks, key)
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		if n := s.nodes[name]; n != nil {
			st := n.GetStatus()
			totals.Steps += int(st.GetSteps())
			totals.Events += st.GetEvents()
			totals.Calls += st.GetCalls()
			totals.Flagged += st.GetFlagged()
		}
	}
	totals.Ranks = len(ranks)
	slices.Sort(names)
	return names, ranks, totals
}

// Traces returns the traces that were read, and their size.
func (s *State) Traces() (paths []string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outcomes {
		paths = append(paths, o.GetTraces()...)
		size += o.GetTraceBytes()
	}
	for p := range s.earlierStreams() {
		size += p.GetBytes()
	}
	slices.Sort(paths)
	return paths, size
}
