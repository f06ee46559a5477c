package paramserver

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Reply is the reply to an exchange.
type Reply struct {
	*protocol.ExchangeReply      // without models
	Flush                   bool // make everything durable first
	models                  []byte
	changes                 uint64 // of the state, with the exchange
}

// Encode returns the encoded protocol.ExchangeReply.
func (a *Reply) Encode() ([]byte, error) {
	b := make([]byte, 0, proto.Size(a.ExchangeReply)+len(a.models))
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, a.ExchangeReply)
	return append(b, a.models...), err
}

// request is a protocol.ExchangeRequest with its delta. Its memory is reused, because exchanges are
// most of a server's work.
type request struct {
	*protocol.ExchangeRequest
	delta       summary.Delta
	collectives *breakdown.Collectives // of the status; nil without, and if they are malformed
}

var requests = sync.Pool{New: func() any { return new(request) }}

// Exchange merges the delta of an analyzer once, and returns the models that
// changed. A later snapshot makes it durable. data is an encoded
// protocol.ExchangeRequest, which the caller may reuse. A malformed or refused
// exchange changes nothing.
func (s *State) Exchange(data []byte, now time.Time) (*Reply, error) {
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
		refused = s.checkDelta(&req.delta)
	}
	req.takeCollectives()
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, models := s.exchange(req, refused, now)
	return &Reply{reply, req.GetFlush(), models, s.changes}, nil
}

// checkDelta rejects deltas that this shard cannot merge, and fills in names.
func (s *State) checkDelta(d *summary.Delta) error {
	if s.cfg.Shard != 0 {
		if d.Summarizes() {
			return fmt.Errorf("shard %d keeps no statistics", s.cfg.Shard)
		}
		return nil
	}
	s.mu.Lock()
	names := s.names
	s.mu.Unlock()
	if err := checkIDs(d, names); err != nil {
		return err
	}
	for i := range d.Functions {
		f := &d.Functions[i]
		f.FuncKey = names[f.ID]
	}
	return nil
}

func (s *State) exchange(req *request, refused error, now time.Time) (reply *protocol.ExchangeReply, models []byte) {
	from := req.GetSender()
	reply = &protocol.ExchangeReply{
		Epoch: s.epoch, Frozen: s.cfg.Frozen, Phase: s.publicPhase(),
		Stop: !s.stopping.IsZero(), KnownSteps: s.knownSteps(from.GetNode()),
	}
	n := s.nodes[from.GetNode()]
	switch {
	case n != nil && n.Session > from.GetSession():
		s.counts.Refused++
		reply.Refused = paramwire.StartedLater(n.Name)
		return reply, nil
	case n == nil || n.Session < from.GetSession():
		if reply.Unknown = true; req.GetNumber() > 0 {
			return reply, nil
		}
		n = nil
	case req.GetNumber() == n.Last+1:
		if refused == nil {
			refused = s.checkSteps(n, req)
		}
		if refused != nil {
			s.counts.Refused++
			reply.Refused = refused.Error()
			return reply, nil
		}
		s.merge(n, req)
	case req.GetNumber() > 0 && req.GetNumber() <= n.Last:
		s.counts.Repeated++
	}
	s.refresh(now, req.GetFlush())
	if n != nil {
		s.noteStatus(n, req.GetStatus(), now)
		n.noteCollectives(req.collectives)
		reply.Last, reply.Included, reply.Durable = n.Last, n.included, n.durable
	}
	version := req.GetKnown()
	if req.GetEpoch() != s.epoch {
		version = 0
	}
	reply.Version = s.version
	return reply, s.since(version)
}

// knownSteps returns the number of merged steps of an analyzer's ranks when the run
// is being stopped, otherwise 0.
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

func (s *State) noteStatus(n *node, status *protocol.Status, now time.Time) {
	n.lastContact = now
	if status == nil {
		return
	}
	if status.GetState() >= protocol.Status_STATE_ENDED && n.GetStatus().GetState() < protocol.Status_STATE_ENDED {
		s.ended = now
	}
	n.Status = status
}

// checkSteps rejects exchanges whose steps do not continue those of their ranks.
func (s *State) checkSteps(n *node, req *request) error {
	s.checked++
	for _, st := range req.GetSteps() {
		key, from, to := rankKey(st), st.GetFrom(), st.GetTo()
		r := s.ranks[key]
		switch {
		case r == nil:
			return fmt.Errorf("rank %d of program %d was not claimed", key.Rank, key.Program)
		case r.node != n.Name:
			return errors.New(alsoRead(r))
		case r.next != from || to < from || r.seen == s.checked:
			return fmt.Errorf("rank %d of program %d: steps %d to %d do not continue at step %d", key.Rank, key.Program, from, to, r.next)
		case st.GetLoaded() != 0 && (st.GetLoaded() < r.loaded || st.GetLoaded() > to):
			return fmt.Errorf("rank %d of program %d: the load up to step %d does not continue at step %d",
				key.Rank, key.Program, st.GetLoaded(), r.loaded)
		case s.phase >= protocol.Phase_PHASE_REVIEWING && from < to:
			return fmt.Errorf("rank %d of program %d: step %d comes too late, the run has ended without it", key.Rank, key.Program, from)
		}
		if st.Stream != nil {
			if _, err := summary.ReadHandover(st.Stream.GetHandover()); err != nil {
				return fmt.Errorf("rank %d of program %d: %w", key.Rank, key.Program, err)
			}
		}
		r.seen = s.checked
	}
	if s.phase >= protocol.Phase_PHASE_REVIEWING {
		req.delta.Load = nil // of steps that an analyzer held back before the run ended without it
	}
	if req.delta.Load != nil {
		for _, lane := range req.delta.Load.Lanes() {
			if r := s.ranks[lane.RankKey]; r == nil || r.seen != s.checked {
				return fmt.Errorf("rank %d of program %d has load but no steps", lane.Rank, lane.Program)
			}
		}
	}
	if s.phase >= protocol.Phase_PHASE_REVIEWING && (len(req.delta.Models) > 0 || req.delta.Summarizes()) {
		return errors.New("the run has ended: its models are final")
	}
	return nil
}

// note stores the progress of a session in a live stream.
func (r *rankState) note(session uint64, p *protocol.StreamProgress) {
	p.Session = session
	if last := len(r.streams) - 1; last >= 0 && r.streams[last].GetSession() == session {
		r.streams[last] = p
		return
	}
	r.streams = append(r.streams, p)
}

// merge merges an exchange.
func (s *State) merge(n *node, req *request) {
	n.Last = req.GetNumber()
	s.stale = true
	s.changes++
	s.counts.Exchanges++
	for _, st := range req.GetSteps() {
		r := s.ranks[rankKey(st)]
		r.next, r.loaded = st.GetTo(), max(r.loaded, st.GetLoaded())
		r.ended = r.ended || st.GetEnded()
		r.host = cmp.Or(st.GetHost(), r.host)
		if st.Stream != nil {
			r.note(n.Session, st.Stream)
		}
	}
	if !s.cfg.Frozen {
		for i := range req.delta.Models {
			m := &req.delta.Models[i]
			s.mergeModel(uint32(m.ID), m.Path, &m.Model)
		}
	}
	s.live.Add(&req.delta)
}
