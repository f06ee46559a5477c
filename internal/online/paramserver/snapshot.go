package paramserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// snapshot is the state at a moment.
type snapshot struct {
	message *protocol.Snapshot
	changes uint64
	last    map[string]exchangeKey // of each analyzer
}

type exchangeKey struct{ session, number uint64 }

// snapshot returns the state as it is now. Nothing in it changes any more. Equal
// states give equal ones.
func (s *State) snapshot() *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live.AppendBinary(make([]byte, 0, s.liveSize))
	s.liveSize = len(live) + len(live)/4 // it grows
	m := &protocol.Snapshot{Version: protocol.Version, Run: s.cfg.Run, Live: live, Phase: s.phase, Frozen: s.cfg.Frozen}
	if !s.stopping.IsZero() {
		m.Stopping = s.stopping.UnixNano()
	}
	for _, id := range slices.Sorted(maps.Keys(s.models)) {
		e := s.models[id]
		b := e.encoded
		if e.changed {
			b = e.model.AppendBinary(nil)
		}
		m.Models = append(m.Models, &protocol.Model{Id: id, Model: b})
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.ranks), trace.RankKey.Compare) {
		r := s.ranks[key]
		m.Ranks = append(m.Ranks, &protocol.RankState{
			Program: uint32(r.Program), Rank: uint32(r.Rank), Next: r.next, Ended: r.ended, Host: r.host, Node: r.node,
		})
	}
	snap := &snapshot{message: m, changes: s.changes, last: make(map[string]exchangeKey)}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		m.Nodes = append(m.Nodes, &protocol.NodeState{
			Name: name, Session: n.session, Last: n.last, Settings: n.settings, Status: n.status,
			Claimed: n.claimed, Command: n.command, Lost: n.lost,
		})
		snap.last[name] = exchangeKey{n.session, n.last}
	}
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		m.Outcomes = append(m.Outcomes, s.outcomes[name])
	}
	return snap
}

// durable says that a snapshot is safe.
func (s *State) durable(snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = snap.changes
	s.announced = snap.message.GetPhase()
	for name, at := range snap.last {
		if n := s.nodes[name]; n != nil && n.session == at.session {
			n.durable = at.number
		}
	}
}

// restore puts the state back that a snapshot holds. After an error the state is
// of no use.
func (s *State) restore(m *protocol.Snapshot) error {
	switch {
	case m.GetVersion() != protocol.Version:
		return fmt.Errorf("a snapshot of version %d; this program knows %d", m.GetVersion(), protocol.Version)
	case m.GetRun() != s.cfg.Run:
		return fmt.Errorf("a snapshot of the run %q, not of %q", m.GetRun(), s.cfg.Run)
	case m.GetFrozen() != s.cfg.Frozen:
		return fmt.Errorf("a snapshot of a run whose models are frozen: %v, not %v", m.GetFrozen(), s.cfg.Frozen)
	case protocol.Phase_name[int32(m.GetPhase())] == "":
		return fmt.Errorf("a snapshot of a run in phase %d", m.GetPhase())
	}
	live, err := summary.ReadLive(m.GetLive())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.phase, s.announced = live, m.GetPhase(), m.GetPhase()
	if m.GetStopping() != 0 {
		s.stopping = time.Unix(0, m.GetStopping())
	}
	if err := s.checkNames(m); err != nil {
		return err
	}
	for _, f := range m.GetModels() {
		e := s.entry(f.GetId())
		model, rest, err := outlier.ReadModel(f.GetModel())
		if err != nil || len(rest) > 0 {
			return fmt.Errorf("model of function %d is malformed", f.GetId())
		}
		e.model = model
		s.touch(e)
	}
	for _, r := range m.GetRanks() {
		key := trace.RankKey{Program: trace.Program(r.GetProgram()), Rank: trace.Rank(r.GetRank())}
		s.ranks[key] = &rankState{RankKey: key, next: r.GetNext(), ended: r.GetEnded(), host: r.GetHost(), node: r.GetNode()}
	}
	for _, n := range m.GetNodes() {
		s.nodes[n.GetName()] = &node{
			name: n.GetName(), session: n.GetSession(), last: n.GetLast(), durable: n.GetLast(),
			settings: n.GetSettings(), status: n.GetStatus(), claimed: n.GetClaimed(), command: n.GetCommand(), lost: n.GetLost(),
		}
	}
	for _, o := range m.GetOutcomes() {
		s.outcomes[o.GetSender().GetNode()] = o
	}
	s.stale = true
	return nil
}

// checkNames says why a snapshot does not go with the index.
func (s *State) checkNames(m *protocol.Snapshot) error {
	if s.index == nil {
		return nil
	}
	names := s.index.all()
	for _, f := range m.GetModels() {
		if uint64(f.GetId()) >= uint64(len(names)) {
			return fmt.Errorf("function %d has a model, but no name in the index; restore the index", f.GetId())
		}
	}
	for _, p := range s.live.PathDeltas() {
		for _, e := range p.List {
			if e.Func != callpath.Other && uint64(e.Func) >= uint64(len(names)) {
				return fmt.Errorf("function %d has calls, but no name in the index; restore the index", e.Func)
			}
		}
	}
	for _, f := range s.live.Functions() {
		if f.ID >= len(names) || names[f.ID] != f.FuncKey {
			return fmt.Errorf("function %d, %q, has another name in the index; restore the index", f.ID, f.Name)
		}
	}
	return nil
}

// Changes is how often what snapshots hold has changed so far.
func (s *State) Changes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// savedUpTo reports whether the last snapshot holds all of the given changes.
func (s *State) savedUpTo(changes uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved >= changes
}
