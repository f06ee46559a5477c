// Package paramserver merges what all analyzers learn, so that each judges by
// the knowledge of all, and keeps the running picture of the whole run. State is
// what it knows, Server gives analyzers access to it. Package paramclient is the
// analyzer's end.
//
// An exchange is named by run, analyzer, session and number and says which steps
// of which ranks it covers, so it counts once, however often it is sent. What is
// not durable yet is kept by the analyzer and sent again after a crash of the
// server. Models and profiles merge exactly: the order of exchanges leaves no
// trace in them.
package paramserver

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// Config says what a State is for.
type Config struct {
	Run    string
	Shard  int // 0 is the first, which also numbers functions and keeps the summary
	Shards int
	// Frozen models are those of Learned for ever.
	Frozen bool
	// Learned are the models to begin with.
	Learned []Learned
	// Ranks is how many are expected; 0 means those that come.
	Ranks int
	// Linger is how long to wait for further analyzers when all ranks that came
	// have ended, if no number is expected.
	Linger time.Duration
	// Refresh is how often at most the models that analyzers get are renewed.
	Refresh time.Duration
}

// Learned is the model of a function.
type Learned struct {
	trace.FuncKey
	Model outlier.Model
}

// State is what a parameter server, or one shard of it, knows of a run. Its
// methods may be called by several goroutines.
type State struct {
	cfg   Config
	index *Index // nil in all shards but the first
	epoch uint64 // of this process

	mu        sync.Mutex
	models    map[uint32]*entry
	byVersion *list.List // of *entry, the newest last
	changed   []*entry   // since the version was made
	version   uint64
	made      time.Time         // when the version was
	stale     bool              // something came since then
	replies   map[uint64][]byte // encoded models since older versions

	ranks     map[trace.RankKey]*rankState
	nodes     map[string]*node
	live      *summary.Live
	liveSize  int                                 // room for its next encoding
	outcomes  map[string]*protocol.OutcomeRequest // by node
	phase     protocol.Phase
	announced protocol.Phase // the newest that is durable
	stopping  time.Time      // when it was asked for; zero: not
	ended     time.Time      // when the last analyzer said that its ranks have ended
	counts    Counts
	checked   uint64 // exchanges, to find ranks that one names twice
	changes   uint64 // of what snapshots hold
	saved     uint64 // those in the last snapshot
}

// rankState is how far the server knows a rank.
type rankState struct {
	trace.RankKey
	next  uint32 // first step that is not known
	ended bool
	host  string
	node  string // that reads it
	seen  uint64 // the check of an exchange that met it last
}

// node is an analyzer.
type node struct {
	name     string
	session  uint64
	last     uint64 // exchange
	included uint64
	durable  uint64
	settings string
	claimed  bool // it had a rank
	lost     bool // the run does not wait for it
	command  *protocol.Command
	status   *protocol.Status
	since    time.Time
	heard    time.Time
}

// Counts are what came to the server.
type Counts struct {
	Exchanges int64 // taken
	Repeated  int64 // known already
	Refused   int64
	Steps     int64 // of ranks
}

// NewState returns the state of a run that has not begun. The index is nil in
// all shards but the first. The epoch is another for each process of the server
// and not 0.
func NewState(cfg Config, index *Index, epoch uint64) (*State, error) {
	if cfg.Shards < 1 || cfg.Shard < 0 || cfg.Shard >= cfg.Shards {
		return nil, fmt.Errorf("shard %d of %d cannot be", cfg.Shard, cfg.Shards)
	}
	if (cfg.Shard == 0) != (index != nil) {
		return nil, errors.New("the first shard and no other numbers functions")
	}
	s := &State{
		cfg: cfg, index: index, epoch: epoch, models: make(map[uint32]*entry), byVersion: list.New(),
		replies: make(map[uint64][]byte), ranks: make(map[trace.RankKey]*rankState), nodes: make(map[string]*node),
		live: summary.NewLive(), outcomes: make(map[string]*protocol.OutcomeRequest),
	}
	for i := range cfg.Learned {
		if err := s.learned(uint32(i), &cfg.Learned[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// learned adds a model to begin with; all shards number them in the same way.
func (s *State) learned(id uint32, l *Learned) error {
	if s.index != nil {
		ids, err := s.index.Numbers([]trace.FuncKey{l.FuncKey})
		if err != nil {
			return err
		}
		if ids[0] != id {
			return fmt.Errorf("function %q of the loaded model has the number %d in this run, not %d; begin a new run", l.Name, ids[0], id)
		}
	}
	if paramwire.ShardOf(l.FuncKey, s.cfg.Shards) == s.cfg.Shard {
		e := s.entry(id)
		e.model.Merge(&l.Model)
		s.touch(e)
	}
	return nil
}

// Summary calls f with the run-level statistics, which it must not keep.
func (s *State) Summary(f func(l *summary.Live)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.live)
}
