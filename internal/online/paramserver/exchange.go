package paramserver

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
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

// request is a protocol.ExchangeRequest with its delta, which is decoded into memory
// that is used again: exchanges are most of what a server does.
type request struct {
	*protocol.ExchangeRequest
	delta summary.Delta
}

var requests = sync.Pool{New: func() any { return new(request) }}

// Exchange takes what an analyzer learned, once, and answers with the models that
// changed. What it carries becomes durable with a later snapshot. data is an
// encoded protocol.ExchangeRequest and may be used again when Exchange returns. An
// exchange that is malformed or refused changes nothing.
func (s *State) Exchange(data []byte, now time.Time) (*Answer, error) {
	req := requests.Get().(*request)
	defer requests.Put(req)
	req.ExchangeRequest = new(protocol.ExchangeRequest)
	if err := proto.Unmarshal(data, req.ExchangeRequest); err != nil {
		return nil, fmt.Errorf("malformed request: %w", err)
	}
	if err := s.checkSender(req.GetSender()); err != nil {
		return nil, err
	}
	refused := req.delta.Decode(req.GetDelta())
	if refused == nil {
		refused = s.checkShard(&req.delta)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, models := s.exchange(req, refused, now)
	return &Answer{reply, req.GetFlush(), models, s.changes}, nil
}

// checkShard returns why this shard cannot use a delta, and fills in names.
func (s *State) checkShard(d *summary.Delta) error {
	if s.index == nil {
		if d.Summarizes() {
			return fmt.Errorf("shard %d keeps no summary", s.cfg.Shard)
		}
		return nil
	}
	names := s.index.all()
	err := d.EachFunction(func(id int) error {
		if id >= len(names) {
			return fmt.Errorf("no function has the number %d", id)
		}
		return nil
	})
	for i := range d.Functions {
		if f := &d.Functions[i]; err == nil {
			f.FuncKey = names[f.ID]
		}
	}
	return err
}

func (s *State) exchange(req *request, refused error, now time.Time) (reply *protocol.ExchangeReply, models []byte) {
	reply = &protocol.ExchangeReply{
		Epoch: s.epoch, Frozen: s.cfg.Frozen, Phase: s.told(),
		Stop: !s.stopping.IsZero(), KnownSteps: s.knownSteps(req.GetSender().GetNode()),
	}
	n := s.nodes[req.GetSender().GetNode()]
	switch {
	case n != nil && n.session > req.GetSender().GetSession():
		s.counts.Refused++
		reply.Refused = paramwire.StartedLater(n.name)
		return reply, nil
	case n == nil || n.session < req.GetSender().GetSession():
		if reply.Unknown = true; req.GetNumber() > 0 {
			return reply, nil
		}
		n = nil
	case req.GetNumber() == n.last+1:
		if refused == nil {
			refused = s.check(n, req)
		}
		if refused != nil {
			s.counts.Refused++
			reply.Refused = refused.Error()
			return reply, nil
		}
		s.take(n, req)
	case req.GetNumber() > 0 && req.GetNumber() <= n.last:
		s.counts.Repeated++
	}
	s.refresh(now, req.GetFlush())
	if n != nil {
		s.hear(n, req.GetStatus(), now)
		reply.Last, reply.Included, reply.Durable = n.last, n.included, n.durable
	}
	known := req.GetKnown()
	if req.GetEpoch() != s.epoch {
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
	for _, st := range req.GetSteps() {
		key, from, to := stepsKey(st), st.GetFrom(), st.GetTo()
		r := s.ranks[key]
		switch {
		case r == nil:
			return fmt.Errorf("rank %d of program %d was not claimed", key.Rank, key.Program)
		case r.node != n.name:
			return errors.New(alsoRead(r))
		case r.next != from || to < from || r.seen == s.checked:
			return fmt.Errorf("rank %d of program %d: steps from %d to %d do not follow on step %d", key.Rank, key.Program, from, to, r.next)
		case s.phase >= protocol.Phase_PHASE_REVIEWING && from < to:
			return fmt.Errorf("rank %d of program %d: step %d comes too late, the run was ended without it", key.Rank, key.Program, from)
		}
		r.seen = s.checked
	}
	if s.phase >= protocol.Phase_PHASE_REVIEWING && (len(req.delta.Models) > 0 || req.delta.Summarizes()) {
		return errors.New("the run was ended, nothing more is learned")
	}
	return nil
}

func stepsKey(s *protocol.Steps) trace.RankKey {
	return trace.RankKey{Program: trace.Program(s.GetProgram()), Rank: trace.Rank(s.GetRank())}
}

// take merges an exchange.
func (s *State) take(n *node, req *request) {
	n.last = req.GetNumber()
	s.stale = true
	s.changes++
	s.counts.Exchanges++
	for _, st := range req.GetSteps() {
		r := s.ranks[stepsKey(st)]
		s.counts.Steps += int64(st.GetTo() - r.next)
		r.next = st.GetTo()
		r.ended = r.ended || st.GetEnded()
		r.host = cmp.Or(st.GetHost(), r.host)
	}
	if !s.cfg.Frozen {
		for i := range req.delta.Models {
			m := &req.delta.Models[i]
			e := s.entry(uint32(m.ID))
			e.model.Merge(&m.Model)
			s.touch(e)
		}
	}
	s.live.Add(&req.delta)
}
