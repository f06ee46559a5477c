package paramserver

import (
	"fmt"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// checkSender says why a request is not for this state.
func (s *State) checkSender(from *protocol.Sender) error {
	switch {
	case from.GetVersion() != protocol.Version:
		return paramwire.Refuse("the request is of version %d, this server knows %d: take the same chimbuko on both sides",
			from.GetVersion(), protocol.Version)
	case from.GetRun() != s.cfg.Run:
		return paramwire.Refuse("the request is for the run %q, this server keeps %q", from.GetRun(), s.cfg.Run)
	}
	return nil
}

func alsoRead(r *rankState) string {
	return fmt.Sprintf("rank %d of program %d is also read by the analyzer %q", r.Rank, r.Program, r.node)
}

// Register claims ranks for a session of an analyzer. It must be durable, by a
// snapshot, before it is answered. One that is refused changes nothing but the
// index. The phase is that the run has finished if the analyzer has nothing left to do.
func (s *State) Register(req *protocol.RegisterRequest, now time.Time) (*protocol.RegisterReply, error) {
	from := req.GetSender()
	if err := s.checkSender(from); err != nil {
		return nil, err
	}
	if req.GetShards() != uint32(s.cfg.Shards) {
		return &protocol.RegisterReply{Shards: uint32(s.cfg.Shards)}, nil
	}
	ids, err := s.numbers(req.GetNames())
	if err != nil {
		return nil, err
	}
	reply := &protocol.RegisterReply{Ids: ids, Frozen: s.cfg.Frozen}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[from.GetNode()]; n != nil && n.session > from.GetSession() {
		return &protocol.RegisterReply{Newer: n.session}, nil
	}
	if err := s.checkClaims(from, req.GetRanks()); err != nil {
		return nil, err
	}
	if s.handedOver(from) {
		for _, r := range req.GetRanks() {
			reply.Next = append(reply.Next, s.ranks[trace.RankKey{Program: trace.Program(r.GetProgram()), Rank: trace.Rank(r.GetRank())}].next)
		}
		reply.Phase = protocol.Phase_PHASE_FINISHED
		return reply, nil
	}
	n := s.session(from, now)
	n.settings, n.command, n.lost = req.GetSettings(), req.GetCommand(), false
	s.changes++
	for _, r := range req.GetRanks() {
		key := trace.RankKey{Program: trace.Program(r.GetProgram()), Rank: trace.Rank(r.GetRank())}
		state := s.ranks[key]
		if state == nil {
			state = &rankState{RankKey: key}
			s.ranks[key] = state
		}
		state.node, n.claimed = n.name, true
		if state.next > 0 {
			s.made = time.Time{} // the next models hold what is known of it
		}
		reply.Next = append(reply.Next, state.next)
	}
	s.phase = max(s.phase, protocol.Phase_PHASE_RUNNING)
	reply.Phase = min(s.told(), protocol.Phase_PHASE_REVIEWING)
	return reply, nil
}

// handedOver reports whether an analyzer that was started again has nothing left to
// do: all has ended, and an earlier session told what came of its ranks, which it does
// when all its records are in the stream. What it would send now could come after the
// end of the run.
func (s *State) handedOver(from *protocol.Sender) bool {
	n := s.nodes[from.GetNode()]
	return n != nil && n.session < from.GetSession() && s.phase >= protocol.Phase_PHASE_REVIEWING && s.outcomes[n.name] != nil
}

// numbers returns the numbers of functions.
func (s *State) numbers(asked []*protocol.FunctionName) ([]uint32, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	if s.index == nil {
		return nil, paramwire.Refuse("shard %d does not number functions", s.cfg.Shard)
	}
	names := make([]trace.FuncKey, len(asked))
	for i, n := range asked {
		names[i] = trace.FuncKey{Program: trace.Program(n.GetProgram()), Name: string(n.GetName())}
	}
	return s.index.Numbers(names)
}

// checkClaims says why an analyzer cannot have ranks.
func (s *State) checkClaims(from *protocol.Sender, ranks []*protocol.Rank) error {
	if s.phase < protocol.Phase_PHASE_REVIEWING {
		return nil
	}
	for _, r := range ranks {
		state := s.ranks[trace.RankKey{Program: trace.Program(r.GetProgram()), Rank: trace.Rank(r.GetRank())}]
		switch {
		case state == nil:
			return paramwire.Refuse("rank %d of program %d comes too late: all ranks of the run had ended; give their number with --ranks",
				r.GetRank(), r.GetProgram())
		case state.node != from.GetNode():
			return paramwire.Refuse("all ranks of the run had ended, and rank %d of program %d was read by the analyzer %q; start it by that name",
				r.GetRank(), r.GetProgram(), state.node)
		}
	}
	return nil
}

// session returns the analyzer of a request, which is made or begins anew if the
// session is new.
func (s *State) session(from *protocol.Sender, now time.Time) *node {
	n := s.nodes[from.GetNode()]
	switch {
	case n == nil:
		n = &node{name: from.GetNode(), session: from.GetSession(), since: now}
		s.nodes[n.name] = n
	case n.session < from.GetSession(): // it was started again
		*n = node{name: n.name, session: from.GetSession(), since: now}
		delete(s.outcomes, n.name)
	}
	n.heard = now
	return n
}
