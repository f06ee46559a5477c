package paramserver

import (
	"fmt"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// checkSender rejects requests for another version or run.
func (s *State) checkSender(from *protocol.Sender) error {
	switch {
	case from.GetVersion() != protocol.Version:
		return paramwire.Refuse("the request has version %d, this server %d (use the same chimbuko for both)",
			from.GetVersion(), protocol.Version)
	case from.GetRun() != s.cfg.Run:
		return paramwire.Refuse("the request is for run %q, this server has %q", from.GetRun(), s.cfg.Run)
	}
	return nil
}

func alsoRead(r *rankState) string {
	return fmt.Sprintf("rank %d of program %d is also read by analyzer %q (if they read different programs, number these with --program)",
		r.Rank, r.Program, r.node)
}

// rankKey returns the rank that a message names.
func rankKey(m interface {
	GetProgram() uint32
	GetRank() uint32
},
) trace.RankKey {
	return trace.RankKey{Program: trace.Program(m.GetProgram()), Rank: trace.Rank(m.GetRank())}
}

// Register claims ranks for a session of an analyzer and assigns ids to functions. A snapshot must
// contain both before the reply is sent: see requiredChanges. A refused request changes nothing.
// The phase of the reply is FINISHED if the analyzer has no work left.
func (s *State) Register(req *protocol.RegisterRequest, now time.Time) (*protocol.RegisterReply, error) {
	from := req.GetSender()
	if err := s.checkSender(from); err != nil {
		return nil, err
	}
	if req.GetShards() != uint32(s.cfg.Shards) {
		return &protocol.RegisterReply{Shards: uint32(s.cfg.Shards)}, nil
	}
	if len(req.GetNames()) > 0 && s.cfg.Shard != 0 {
		return nil, paramwire.Refuse("shard %d assigns no ids to functions", s.cfg.Shard)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[from.GetNode()]; n != nil && n.Session > from.GetSession() {
		return &protocol.RegisterReply{Newer: n.Session}, nil
	}
	if err := s.checkClaims(from, req.GetRanks()); err != nil {
		return nil, err
	}
	reply := &protocol.RegisterReply{Frozen: s.cfg.Frozen}
	for _, f := range req.GetNames() {
		reply.Ids = append(reply.Ids, s.id(trace.FuncKey{Program: trace.Program(f.GetProgram()), Name: string(f.GetName())}))
	}
	if s.cfg.Frozen && req.GetAllNames() {
		for _, name := range s.names {
			reply.Names = append(reply.Names, &protocol.FunctionName{Program: uint32(name.Program), Name: []byte(name.Name)})
		}
	}
	if s.handedOver(from) {
		for _, r := range req.GetRanks() {
			reply.Next = append(reply.Next, s.ranks[rankKey(r)].next)
		}
		reply.Phase = protocol.Phase_PHASE_FINISHED
		return reply, nil
	}
	n := s.session(from, now)
	n.Settings, n.Command, n.Lost = req.GetSettings(), req.GetCommand(), false
	for _, r := range req.GetRanks() {
		state := s.ranks[rankKey(r)]
		if state == nil {
			state = &rankState{RankKey: rankKey(r)}
			s.ranks[state.RankKey] = state
		}
		state.node, n.Claimed = n.Name, true
		if state.next > 0 {
			s.versionTime = time.Time{} // so that the next models include its steps
		}
		reply.Next, reply.Loaded = append(reply.Next, state.next), append(reply.Loaded, state.loaded)
	}
	s.changes++
	s.phase = max(s.phase, protocol.Phase_PHASE_RUNNING)
	reply.Phase = min(s.publicPhase(), protocol.Phase_PHASE_REVIEWING)
	return reply, nil
}

// requiredChanges returns the changes that a snapshot must contain before the reply to a request:
// claims of ranks, or else the ids of functions.
func (s *State) requiredChanges(req *protocol.RegisterRequest) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(req.GetRanks()) > 0 {
		return s.changes
	}
	return s.named
}

// handedOver reports whether a restarted analyzer has no work left: all ranks have ended, and an
// earlier session sent the results of its ranks, after all its records. Otherwise records could
// arrive after the end of the run.
func (s *State) handedOver(from *protocol.Sender) bool {
	n := s.nodes[from.GetNode()]
	return n != nil && n.Session < from.GetSession() && s.phase >= protocol.Phase_PHASE_REVIEWING && s.outcomes[n.Name] != nil
}

// checkClaims rejects claims of new ranks after all ranks have ended.
func (s *State) checkClaims(from *protocol.Sender, ranks []*protocol.Rank) error {
	if s.phase < protocol.Phase_PHASE_REVIEWING {
		return nil
	}
	for _, r := range ranks {
		state := s.ranks[rankKey(r)]
		switch {
		case state == nil:
			return paramwire.Refuse("rank %d of program %d comes too late: all ranks of the run have ended (set --ranks)",
				r.GetRank(), r.GetProgram())
		case state.node != from.GetNode():
			return paramwire.Refuse("rank %d of program %d was read by analyzer %q, and all ranks have ended (use that name)",
				r.GetRank(), r.GetProgram(), state.node)
		}
	}
	return nil
}

// session returns the analyzer of a request. A new session resets it.
func (s *State) session(from *protocol.Sender, now time.Time) *node {
	n := s.nodes[from.GetNode()]
	if n == nil || n.Session < from.GetSession() {
		earlier := n
		n = &node{NodeState: &protocol.NodeState{Name: from.GetNode(), Session: from.GetSession()}, since: now}
		if earlier != nil {
			n.collectives = earlier.collectives // until it has read more
		}
		s.nodes[n.Name] = n
		delete(s.outcomes, n.Name)
		s.forgetDelays(n.Name)
	}
	n.lastContact = now
	return n
}
