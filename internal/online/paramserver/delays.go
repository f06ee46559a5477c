package paramserver

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/blame"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// AddDelays takes the delays of an analyzer. When all analyzers have sent theirs, it returns the
// delays that explain waits. A snapshot must contain the delays before the reply is sent.
func (s *State) AddDelays(req *protocol.DelaysRequest, now time.Time) (*protocol.DelaysReply, error) {
	if err := s.checkSender(req.GetSender()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[req.GetSender().GetNode()]
	if n == nil || n.Session != req.GetSender().GetSession() {
		return &protocol.DelaysReply{Refused: paramwire.StartedLater(req.GetSender().GetNode())}, nil
	}
	n.lastContact = now
	if s.delays[n.Name] == nil {
		if req.GetPoll() {
			return &protocol.DelaysReply{Unknown: true}, nil
		}
		s.delays[n.Name], s.promoted = req, nil
		s.changes++
	}
	waiting := s.waitsFor(now, func(n *node) bool { return s.delays[n.Name] != nil || s.outcomes[n.Name] != nil })
	if waiting || s.phase < protocol.Phase_PHASE_REVIEWING {
		return new(protocol.DelaysReply), nil
	}
	if s.promoted == nil {
		s.promoted = promote(s.delays, maps.Keys(s.ranks))
	}
	return &protocol.DelaysReply{Complete: true, Promoted: s.promoted[n.Name]}, nil
}

// promote returns the delays of each analyzer that explain waits of these ranks.
func promote(delays map[string]*protocol.DelaysRequest, ranks iter.Seq[trace.RankKey]) map[string][]uint32 {
	var run blame.Run
	run.CountRanks(ranks)
	var names []string
	var ends []int // of the delays of each analyzer
	for _, name := range slices.Sorted(maps.Keys(delays)) {
		paramwire.AddDelays(&run, delays[name])
		names, ends = append(names, name), append(ends, len(run.Anomalies))
	}
	promoted := make(map[string][]uint32)
	begin, k := 0, 0
	for _, i := range blame.Promote(&run) {
		for ; i >= ends[k]; k++ {
			begin = ends[k]
		}
		promoted[names[k]] = append(promoted[names[k]], uint32(i-begin))
	}
	return promoted
}

// forgetDelays drops the delays of an analyzer, which will send them again.
func (s *State) forgetDelays(name string) {
	delete(s.delays, name)
	s.promoted = nil
}
