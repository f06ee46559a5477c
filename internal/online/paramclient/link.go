package paramclient

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/judge/workload"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// link is the state of a client towards one shard. The client's lock guards it.
type link struct {
	shard, shards int
	next          map[trace.RankKey]uint32 // claimed ranks: the first step that is not in news or sent
	news          *bundle                  // not sent yet
	held          heldLoad                 // of the first shard
	loaded        map[trace.RankKey]uint32 // the first step whose load is not in held, news or sent
	sent          []sentBundle             // not durable, or not in the models received; consecutive up to number
	maxSent       int
	number        uint64 // of the newest exchange
	confirmed     uint64 // the newest that the server has
	included      uint64 // the newest in the models received
	durable       uint64 // the newest that the server has stored
	epoch         uint64
	version       uint64
	received      map[uint32]*shardModels   // by id of the function
	registered    bool                      // in this epoch of the server
	behind        bool                      // ranks were claimed since the last reply, so received may lack their steps
	doubtful      map[callpath.Context]bool // models for which received may lack steps
}

// sentBundle is an exchange that was sent at least once.
type sentBundle struct {
	number  uint64
	message []byte // without the head, which differs when it is sent again
	models  map[callpath.Context]*outlier.Model
	steps   int64
}

// shardModels has the models of a function that a shard has sent.
type shardModels struct {
	allCalls *outlier.Model // nil without
	paths    callpath.Sample[*outlier.Model]
}

func (r *shardModels) set(m *protocol.Model, model *outlier.Model) {
	drop := func(callpath.Hash, *outlier.Model) {}
	if m.GetPath() != 0 {
		r.paths.Put(callpath.Hash(m.GetPath()), model, drop)
		return
	}
	r.allCalls = model
	r.paths.Raise(uint8(min(m.GetLevel(), 64)), drop)
}

func (r *shardModels) model(path callpath.Hash) *outlier.Model {
	if path == 0 {
		return r.allCalls
	}
	m, _ := r.paths.Get(path)
	return m
}

// contexts yields the paths with models, 0 for the function itself.
func (r *shardModels) contexts(yield func(path callpath.Hash) bool) {
	if r.allCalls != nil && !yield(0) {
		return
	}
	for path := range r.paths.Sorted() {
		if !yield(path) {
			return
		}
	}
}

const restartHint = "start this analyzer again, it reads its traces from the beginning"

// fatalError is an error that only a restart of the analyzer resolves.
type fatalError struct{ error }

func newLink(shard, shards, maxSent int) *link {
	return &link{
		shard: shard, shards: shards, maxSent: maxSent, next: make(map[trace.RankKey]uint32), news: newBundle(),
		held: heldLoad{Load: workload.New()}, loaded: make(map[trace.RankKey]uint32),
		received: make(map[uint32]*shardModels), doubtful: make(map[callpath.Context]bool),
	}
}

// share adds the contribution of a claimed rank, unless the shard has the step from an earlier
// session. It reports whether the shard has it. The end of a rank may be reported after its last
// step.
func (l *link) share(step *deltas.Contribution) (duplicate bool) {
	next := l.next[step.RankKey]
	l.hold(step)
	switch {
	case uint32(step.Step) >= next:
		l.news.add(step, next, l.shard, l.shards)
		l.next[step.RankKey] = uint32(step.Step) + 1
		return false
	case step.Ended:
		l.news.end(step.RankKey, next, step.Host)
	}
	return true
}

// shareJoint adds the contribution of several claimed ranks, of which the shard has no step.
func (l *link) shareJoint(c *deltas.Contribution) {
	if c.Load != nil && l.shard == 0 {
		l.held.Merge(c.Load, nil)
	}
	for i := range c.Joined {
		step := &c.Joined[i]
		next := uint32(step.Step) + 1
		l.news.addStep(step, l.next[step.RankKey], l.shard)
		l.next[step.RankKey] = next
		if l.shard == 0 {
			l.loaded[step.RankKey] = next
		}
	}
	l.news.addDeltas(c, l.shard, l.shards)
}

// shareJoined adds the joined steps of a rank. The shard must have all of them or
// none.
func (l *link) shareJoined(key trace.RankKey, w *backlog) error {
	next, steps := l.next[key], w.joined.covers[key]
	switch {
	case next <= w.first:
		l.next[key] = steps.GetTo()
		l.news.merge(w.joined, l.shard, l.shards)
		l.news.covers[key].From = next
		l.loaded[key] = max(l.loaded[key], steps.GetLoaded())
	case next < steps.GetTo() || l.shard == 0 && l.loaded[key] < steps.GetLoaded():
		return fatalError{fmt.Errorf("the parameter server was unavailable for so long that steps of rank %d were joined, "+
			"and it has some of them; %s", key.Rank, restartHint)}
	case steps.GetEnded():
		l.news.end(key, next, steps.GetHost())
	}
	return nil
}

// claim sets the first step of a rank that the shard does not have.
func (l *link) claim(key trace.RankKey, next uint32) {
	if _, claimed := l.next[key]; !claimed {
		l.next[key] = next
		l.behind = true
	}
}

// pack turns the bundle that was not sent into an exchange. id returns the ids of functions, and names
// are those by the analyzer's numbers.
func (l *link) pack(id func(trace.FuncKey) int, names []trace.FuncKey) error {
	if len(l.news.covers) == 0 || len(l.sent) >= l.maxSent {
		return nil
	}
	req := &protocol.ExchangeRequest{Number: l.number + 1}
	load := l.news.message(req, id, names)
	b, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	l.held.count(load, len(b)-load)
	l.number++
	steps := l.news.steps()
	l.sent = append(l.sent, sentBundle{l.number, b, l.news.takeModels(), steps})
	return nil
}

// due returns the next exchange for the server, or nil.
func (l *link) due() *sentBundle {
	if i := l.position(l.confirmed + 1); i < len(l.sent) && l.sent[i].number == l.confirmed+1 {
		return &l.sent[i]
	}
	return nil
}

// position returns the index in sent of the first exchange with at least the given number.
func (l *link) position(number uint64) int {
	first := l.number - uint64(len(l.sent)) + 1
	return int(min(max(number, first)-first, uint64(len(l.sent))))
}

// isSettled reports whether everything is durable and in the received models.
func (l *link) isSettled() bool {
	return l.registered && len(l.news.covers) == 0 && l.held.Empty() && l.durable == l.number && l.included == l.number
}

// unsent returns the number of steps that the server does not have.
func (l *link) unsent() int64 {
	n := l.news.steps()
	for _, b := range l.sent[l.position(l.confirmed+1):] {
		n += b.steps
	}
	return n
}

// receive takes a reply and calls changed with the ids and paths of models that changed.
func (l *link) receive(reply *protocol.ExchangeReply, changed func(id uint32, path callpath.Hash)) error {
	switch {
	case reply.GetRefused() != "":
		return fatalError{fmt.Errorf("the parameter server refuses an exchange: %s", reply.GetRefused())}
	case reply.GetUnknown():
		l.registered = false
		l.confirmed = 0
		return nil
	}
	models := make([]outlier.Model, len(reply.GetModels()))
	for i, m := range reply.GetModels() {
		if rest, err := models[i].Decode(m.GetModel()); err != nil || len(rest) > 0 {
			return fmt.Errorf("model of function %d: %w", m.GetId(), stats.ErrEncoding)
		}
	}
	if reply.GetEpoch() != l.epoch { // another server, which may have less data
		l.epoch = reply.GetEpoch()
		for id, f := range l.received {
			for path := range f.contexts {
				changed(id, path)
			}
		}
		clear(l.received)
	}
	l.confirmed, l.included, l.durable = reply.GetLast(), reply.GetIncluded(), reply.GetDurable()
	l.version = reply.GetVersion()
	for i, m := range reply.GetModels() {
		at(l.received, m.GetId()).set(m, &models[i])
		changed(m.GetId(), callpath.Hash(m.GetPath()))
	}
	l.behind = false
	clear(l.doubtful)
	kept := l.number - uint64(len(l.sent))
	switch {
	case l.confirmed > l.number:
		return fatalError{errors.New("another analyzer has the same name and session (give each its own --node)")}
	case l.confirmed < kept:
		return fatalError{fmt.Errorf("the parameter server lost what it had stored (it has exchange %d of %d, those after %d are kept here); %s",
			l.confirmed, l.number, kept, restartHint)}
	}
	for len(l.sent) > 0 && l.sent[0].number <= min(l.durable, l.included) {
		l.news.spare.reuse(l.sent[0].models)
		l.sent[0] = sentBundle{}
		l.sent = l.sent[1:]
	}
	return nil
}

// model returns the complete model of a function or one of its paths: the received model and,
// unless it is frozen, all contributions that it lacks.
func (l *link) model(context callpath.Context, id uint32, frozen bool) (m analyzer.MergedModel) {
	m.Context = context
	if f := l.received[id]; f != nil {
		m.Level = f.paths.Level()
		if b := f.model(context.Path); b != nil {
			m.Model.Merge(b)
		}
	}
	if frozen {
		return m
	}
	for _, b := range l.sent[l.position(l.included+1):] {
		if own := b.models[context]; own != nil {
			m.Model.Merge(own)
		}
	}
	if own := l.news.models[context]; own != nil {
		m.Model.Merge(own)
	}
	return m
}
