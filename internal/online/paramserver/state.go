// Package paramserver merges the models of all analyzers, so that each judges with the calls of
// all, and keeps the statistics of the run. State holds the data, Server serves it to analyzers.
// Package paramclient is their client.
//
// Run, analyzer, session and number identify an exchange. It lists the steps that it covers, so it
// counts once however often it is sent. Analyzers keep exchanges until they are durable and send
// them again after a crash of the server. Models and statistics merge exactly: the order of
// exchanges does not matter.
package paramserver

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Config configures a State.
type Config struct {
	Run    string
	Shard  int // 0 also assigns ids to functions and keeps the statistics
	Shards int
	// Frozen keeps the models as in InitialModels.
	Frozen bool
	// InitialModels are the models to start with.
	InitialModels []InitialModel
	// Ranks is the expected number of ranks; 0 if unknown.
	Ranks int
	// Linger is how long to wait for more analyzers after all ranks have ended, if
	// Ranks is 0.
	Linger time.Duration
	// Refresh is the minimum time between versions of the models.
	Refresh time.Duration
}

// InitialModel has the models of a function.
type InitialModel struct {
	trace.FuncKey
	summary.Learned
}

// State is the state of a parameter server, or of one of its shards, for a run. It
// is safe for concurrent use.
type State struct {
	cfg   Config
	epoch uint64 // of this process

	mu          sync.Mutex
	names       []trace.FuncKey          // of functions, by id; append-only, only in shard 0
	ids         map[trace.FuncKey]uint32 // the reverse
	named       uint64                   // value of changes at the newest name
	models      map[uint32]*entry        // of functions with all their paths
	byVersion   *list.List               // of *entry, the newest last
	changed     []*entry                 // since the last version
	version     uint64                   // of the models
	versionTime time.Time                // when the version was made
	stale       bool                     // an exchange was merged since then
	replies     map[uint64][]byte        // encoded models since older versions

	ranks     map[trace.RankKey]*rankState
	nodes     map[string]*node
	live      *summary.Live
	liveSize  int                                 // capacity for its next encoding
	loadSize  int                                 // the same for its load
	outcomes  map[string]*protocol.OutcomeRequest // by node
	delays    map[string]*protocol.DelaysRequest  // by node
	promoted  map[string][]uint32                 // delays that explain waits, by node; nil until all are received
	phase     protocol.Phase
	announced protocol.Phase // the newest durable one
	stopping  time.Time      // of the request to stop; zero without
	ended     time.Time      // when the last analyzer reported that its ranks have ended
	counts    api.Shard      // of exchanges
	checked   uint64         // exchanges, to detect ranks that appear twice in one
	changes   uint64         // of the content of snapshots
	saved     uint64         // changes in the last snapshot
}

// rankState is the progress of a rank.
type rankState struct {
	trace.RankKey
	next   uint32 // first unknown step
	loaded uint32 // first step whose load is unknown
	ended  bool
	host   string
	node   string // analyzer that reads it
	seen   uint64 // the last check of an exchange that contained the rank
	// streams is the progress of the sessions that read its live stream.
	streams []*protocol.StreamProgress
}

// node is an analyzer.
type node struct {
	*protocol.NodeState
	included    uint64 // the newest exchange in the models
	durable     uint64 // the newest exchange in a snapshot
	since       time.Time
	lastContact time.Time
	collectives *breakdown.Collectives // the latest that it reported; nil without
}

// NewState returns the state of a run that has not begun. The epoch must not be 0 and must differ
// for each process of the server.
func NewState(cfg Config, epoch uint64) (*State, error) {
	if cfg.Shards < 1 || cfg.Shard < 0 || cfg.Shard >= cfg.Shards {
		return nil, fmt.Errorf("invalid shard %d of %d", cfg.Shard, cfg.Shards)
	}
	s := &State{
		cfg: cfg, epoch: epoch, ids: make(map[trace.FuncKey]uint32), models: make(map[uint32]*entry), byVersion: list.New(),
		replies: make(map[uint64][]byte), ranks: make(map[trace.RankKey]*rankState), nodes: make(map[string]*node),
		live: summary.NewLive(), outcomes: make(map[string]*protocol.OutcomeRequest),
		delays: make(map[string]*protocol.DelaysRequest),
	}
	for i := range cfg.InitialModels { // with the same ids in all shards
		l := &cfg.InitialModels[i]
		if cfg.Shard == 0 {
			s.id(l.FuncKey)
		}
		if paramwire.ShardOf(l.FuncKey, cfg.Shards) == cfg.Shard {
			s.learn(uint32(i), &l.Learned)
		}
	}
	return s, nil
}

// id returns the id of a function, and assigns one if it is new: 0, 1, … for all
// programs together. A snapshot must contain a new id before an analyzer gets it.
func (s *State) id(name trace.FuncKey) uint32 {
	id, ok := s.ids[name]
	if !ok {
		id = uint32(len(s.names))
		s.ids[name] = id
		s.names = append(s.names, name)
		s.changes++
		s.named = s.changes
	}
	return id
}

// checkIDs returns an error if a delta has functions without a name.
func checkIDs(d *summary.Delta, names []trace.FuncKey) error {
	if id := d.MaxID(); id >= len(names) {
		return fmt.Errorf("no function has the id %d", id)
	}
	return nil
}

// Summary calls f with the run-level statistics. f must not keep them.
func (s *State) Summary(f func(l *summary.Live)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.live)
}
