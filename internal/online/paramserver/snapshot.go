package paramserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// snapshot is an immutable copy of the state.
type snapshot struct {
	message *protocol.Snapshot
	changes uint64
}

// snapshot copies the state. Equal states have equal snapshots.
func (s *State) snapshot() *snapshot {
	snap, load, size := s.copy()
	snap.message.Load = load.AppendStored(make([]byte, 0, size)) // without the lock, because it may be large
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loadSize = len(snap.message.Load) + len(snap.message.Load)/4
	return snap
}

// copy copies the state and its load, which is not encoded yet, and returns a capacity for the
// encoded load.
func (s *State) copy() (snap *snapshot, load *workload.Load, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live.AppendBinary(make([]byte, 0, s.liveSize))
	s.liveSize = len(live) + len(live)/4 // it grows
	m := &protocol.Snapshot{Version: protocol.Version, Run: s.cfg.Run, Live: live, Phase: s.phase, Frozen: s.cfg.Frozen}
	if !s.stopping.IsZero() {
		m.Stopping = s.stopping.UnixNano()
	}
	for _, name := range s.names {
		m.Names = append(m.Names, &protocol.FunctionName{Program: uint32(name.Program), Name: []byte(name.Name)})
	}
	for _, id := range slices.Sorted(maps.Keys(s.models)) {
		e := s.models[id]
		m.Models = append(m.Models, e.message())
		for _, path := range e.paths.Sorted() {
			m.Models = append(m.Models, path.message())
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.ranks), trace.RankKey.Compare) {
		r := s.ranks[key]
		m.Ranks = append(m.Ranks, &protocol.RankState{
			Program: uint32(r.Program), Rank: uint32(r.Rank), Next: r.next, Loaded: r.loaded, Ended: r.ended, Host: r.host, Node: r.node,
			Streams: slices.Clone(r.streams),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		m.Nodes = append(m.Nodes, proto.CloneOf(s.nodes[name].NodeState))
	}
	for _, name := range slices.Sorted(maps.Keys(s.outcomes)) {
		m.Outcomes = append(m.Outcomes, s.outcomes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.delays)) {
		m.Delays = append(m.Delays, s.delays[name])
	}
	return &snapshot{m, s.changes}, s.live.Load(), s.loadSize
}

// message returns the model in its current state.
func (e *entry) message() *protocol.Model {
	m := &protocol.Model{Id: e.id, Path: uint64(e.path), Level: uint32(e.paths.Level()), Model: e.encoded}
	if e.changed {
		m.Model = e.model.AppendBinary(nil)
	}
	return m
}

// markDurable records that a snapshot is on disk.
func (s *State) markDurable(snap *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = snap.changes
	s.announced = snap.message.GetPhase()
	for _, at := range snap.message.GetNodes() {
		if n := s.nodes[at.GetName()]; n != nil && n.Session == at.GetSession() {
			n.durable = at.GetLast()
		}
	}
}

// restore replaces a new state by a snapshot. After an error the state is invalid.
func (s *State) restore(m *protocol.Snapshot) error {
	if err := protocol.Format.Check(int(m.GetVersion())); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	switch {
	case m.GetRun() != s.cfg.Run:
		return fmt.Errorf("snapshot of run %q, want %q", m.GetRun(), s.cfg.Run)
	case m.GetFrozen() != s.cfg.Frozen:
		return fmt.Errorf("snapshot of a run whose models are frozen: %v, want %v", m.GetFrozen(), s.cfg.Frozen)
	case protocol.Phase_name[int32(m.GetPhase())] == "":
		return fmt.Errorf("snapshot of a run in the unknown phase %d", m.GetPhase())
	}
	live, err := summary.ReadLive(m.GetLive())
	if err != nil {
		return err
	}
	load, err := workload.ReadStored(m.GetLoad())
	if err != nil {
		return err
	}
	live.Add(&summary.Delta{Load: load})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.phase, s.announced = live, m.GetPhase(), m.GetPhase()
	if m.GetStopping() != 0 {
		s.stopping = time.Unix(0, m.GetStopping())
	}
	if err := s.restoreNames(m); err != nil {
		return err
	}
	for _, f := range m.GetModels() {
		e := s.entry(f.GetId(), callpath.Hash(f.GetPath()))
		model, rest, err := outlier.ReadModel(f.GetModel())
		if err != nil || len(rest) > 0 || e == nil {
			return fmt.Errorf("model of function %d is malformed", f.GetId())
		}
		e.paths.Raise(uint8(min(f.GetLevel(), 64)), s.drop)
		e.model = model
		s.touch(e)
	}
	for _, r := range m.GetRanks() {
		s.ranks[rankKey(r)] = &rankState{
			RankKey: rankKey(r), next: r.GetNext(), loaded: r.GetLoaded(), ended: r.GetEnded(), host: r.GetHost(), node: r.GetNode(),
			streams: r.GetStreams(),
		}
	}
	for _, n := range m.GetNodes() {
		s.nodes[n.GetName()] = &node{NodeState: n, durable: n.GetLast()}
	}
	for _, o := range m.GetOutcomes() {
		s.outcomes[o.GetSender().GetNode()] = o
	}
	for _, d := range m.GetDelays() {
		s.delays[d.GetSender().GetNode()] = d
	}
	s.stale = true
	return nil
}

// restoreNames restores the ids of functions, which must continue those of the
// loaded model.
func (s *State) restoreNames(m *protocol.Snapshot) error {
	if s.cfg.Shard != 0 {
		return nil
	}
	for i, f := range m.GetNames() {
		name := trace.FuncKey{Program: trace.Program(f.GetProgram()), Name: string(f.GetName())}
		if id := s.id(name); id != uint32(i) {
			return fmt.Errorf("function %q has the ids %d and %d (was another model loaded? begin a new run)", name.Name, id, i)
		}
	}
	s.changes, s.named = 0, 0
	all := summary.Delta{Paths: s.live.PathDeltas(), Load: s.live.Load()}
	for _, f := range m.GetModels() {
		all.Models = append(all.Models, summary.ModelDelta{ID: int(f.GetId())})
	}
	for _, f := range s.live.Functions() {
		all.Functions = append(all.Functions, *f)
	}
	return checkIDs(&all, s.names)
}

// Changes returns the number of changes of the content of snapshots.
func (s *State) Changes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// savedUpTo reports whether the last snapshot contains the given changes.
func (s *State) savedUpTo(changes uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved >= changes
}
