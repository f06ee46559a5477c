package paramserver

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Answer is what an exchange is answered with.
type Answer struct {
	*protocol.ExchangeReply      // without models
	Flush                   bool // all that is known is to be durable first
	models                  []byte
	changes                 uint64 // of the state, with the exchange
}

// Encode returns the encoded protocol.ExchangeReply.
func (a *Answer) Encode() ([]byte, error) {
	b := make([]byte, 0, proto.Size(a.ExchangeReply)+len(a.models))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, a.ExchangeReply)
	return append(b, a.models...), err
}

// Exchange takes what an analyzer learned, once, and answers with the models that
// changed. What it carries becomes durable with a later snapshot. data is an
// encoded protocol.ExchangeRequest and may be used again when Exchange returns. An
// exchange that is malformed or refused changes nothing.
func (s *State) Exchange(data []byte, now time.Time) (*Answer, error) {
	req := requests.Get().(*request)
	defer requests.Put(req)
	refused, err := req.read(data)
	if err != nil {
		return nil, err
	}
	if err := s.checkSender(req.sender); err != nil {
		return nil, err
	}
	if refused == nil {
		refused = s.checkShard(req)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, models := s.exchange(req, refused, now)
	return &Answer{reply, req.flush, models, s.changes}, nil
}

// checkShard says what this shard has no use for, and looks up names.
func (s *State) checkShard(req *request) error {
	if s.index != nil {
		return req.name(s.index)
	}
	if req.summarizes() {
		return fmt.Errorf("shard %d keeps no summary", s.cfg.Shard)
	}
	return nil
}

func (s *State) exchange(req *request, refused error, now time.Time) (reply *protocol.ExchangeReply, models []byte) {
	reply = &protocol.ExchangeReply{Epoch: s.epoch, Frozen: s.cfg.Frozen, Phase: s.told(), Stop: !s.stopping.IsZero(), KnownSteps: s.knownSteps(req.sender.GetNode())}
	n := s.nodes[req.sender.GetNode()]
	switch {
	case n != nil && n.session > req.sender.GetSession():
		s.counts.Refused++
		reply.Refused = startedLater(n.name)
		return reply, nil
	case n == nil || n.session < req.sender.GetSession():
		if reply.Unknown = true; req.number > 0 {
			return reply, nil
		}
		n = nil
	case req.number == n.last+1:
		if refused == nil {
			refused = s.check(n, req)
		}
		if refused != nil {
			s.counts.Refused++
			reply.Refused = refused.Error()
			return reply, nil
		}
		s.take(n, req)
	case req.number > 0 && req.number <= n.last:
		s.counts.Repeated++
	}
	s.refresh(now, req.flush)
	if n != nil {
		s.hear(n, req.status, now)
		reply.Last, reply.Included, reply.Durable = n.last, n.included, n.durable
	}
	known := req.known
	if req.epoch != s.epoch {
		known = 0
	}
	reply.Version = s.version
	return reply, s.since(known)
}

// knownSteps is how many steps are known of the ranks that an analyzer reads, which is
// of interest when the run is to be stopped.
func (s *State) knownSteps(node string) (n int64) {
	if s.stopping.IsZero() {
		return 0
	}
	for _, r := range s.ranks {
		if r.node == node {
			n += int64(r.next)
		}
	}
	return n
}

// hear takes note of how an analyzer fares.
func (s *State) hear(n *node, status *protocol.Status, now time.Time) {
	n.heard = now
	if status == nil {
		return
	}
	if status.GetState() >= protocol.Status_STATE_ENDED && n.status.GetState() < protocol.Status_STATE_ENDED {
		s.ended = now
	}
	n.status = status
}

// check says why an exchange cannot be taken.
func (s *State) check(n *node, req *request) error {
	s.checked++
	for i := range req.steps {
		st := &req.steps[i]
		r := s.ranks[st.RankKey]
		switch {
		case r == nil:
			return fmt.Errorf("rank %d of program %d was not claimed", st.Rank, st.Program)
		case r.node != n.name:
			return errors.New(alsoRead(r))
		case r.next != st.from || st.to < st.from || r.seen == s.checked:
			return fmt.Errorf("rank %d of program %d: steps from %d to %d do not follow on step %d", st.Rank, st.Program, st.from, st.to, r.next)
		case s.phase >= protocol.Phase_PHASE_REVIEWING && st.from < st.to:
			return fmt.Errorf("rank %d of program %d: step %d comes too late, the run was ended without it", st.Rank, st.Program, st.from)
		}
		r.seen = s.checked
	}
	if s.phase >= protocol.Phase_PHASE_REVIEWING && (len(req.models) > 0 || req.summarizes()) {
		return errors.New("the run was ended, nothing more is learned")
	}
	return nil
}

// summarizes reports whether an exchange has anything for the summary.
func (x *request) summarizes() bool {
	return len(x.profiles)+len(x.ranks)+len(x.found)+len(x.counters)+len(x.paths) > 0
}

// take merges an exchange.
func (s *State) take(n *node, req *request) {
	n.last = req.number
	s.stale = true
	s.changes++
	s.counts.Exchanges++
	for i := range req.steps {
		st := &req.steps[i]
		r := s.ranks[st.RankKey]
		s.counts.Steps += int64(st.to - r.next)
		r.next = st.to
		r.ended = r.ended || st.ended
		if len(st.host) > 0 && r.host != string(st.host) {
			r.host = string(st.host)
		}
	}
	if !s.cfg.Frozen {
		for i := range req.models {
			m := &req.models[i]
			e := s.entry(m.id)
			e.model.Merge(&m.model)
			s.touch(e)
		}
	}
	for i := range req.profiles {
		p := &req.profiles[i]
		s.live.AddFunction(&p.Function, &p.anomalies)
	}
	for i := range req.ranks {
		k := &req.ranks[i]
		s.live.AddRank(k.Program, k.Rank, &k.anomalies)
	}
	for _, step := range req.found {
		s.live.AddStep(step)
	}
	for i := range req.counters {
		c := &req.counters[i]
		s.live.AddCounter(c.program, string(c.name), &c.values)
	}
	for i := range req.paths {
		s.addPaths(&req.paths[i])
	}
}
