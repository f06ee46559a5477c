package paramclient

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// link is what a client has to do with one shard. The client's lock guards it.
type link struct {
	shard, shards int
	next          map[trace.RankKey]uint32           // claimed ranks: the first step that is not in fresh or sent
	fresh         *bundle                            // not sent yet
	spare         []map[trace.FuncKey]*outlier.Model // memory for models
	sent          []sentBundle                       // not durable, or not in the models that came; without gaps to number
	most          int                                // that may be sent
	number        uint64                             // of the newest exchange
	confirmed     uint64                             // of the newest that the server has
	included      uint64
	durable       uint64
	epoch         uint64
	version       uint64
	base          map[trace.FuncKey]*outlier.Model // what came
	strangers     map[uint32][]byte                // models of functions whose names are not known
	registered    bool                             // in this epoch of the server
	behind        bool                             // ranks were claimed since the last reply, so base may lack what the shard knew of them
	doubtful      map[trace.FuncKey]bool           // functions of which base may lack something
}

// sentBundle is an exchange that was sent at least once.
type sentBundle struct {
	number  uint64
	message []byte // without what changes when it is sent again
	models  map[trace.FuncKey]*outlier.Model
	steps   int64
}

const startAgain = "start this analyzer again, it reads its traces from the beginning"

// final is an error that nothing but another start of the analyzer mends.
type final struct{ error }

func newLink(shard, shards, most int) *link {
	return &link{
		shard: shard, shards: shards, most: most, next: make(map[trace.RankKey]uint32), fresh: newBundle(),
		base: make(map[trace.FuncKey]*outlier.Model), strangers: make(map[uint32][]byte), doubtful: make(map[trace.FuncKey]bool),
	}
}

// share takes what a claimed rank learned, but for what the shard knows from an
// earlier session, and reports whether it does. That a rank has ended may be told
// after its last step.
func (l *link) share(key trace.RankKey, step *analyzer.Contribution) (known bool) {
	next := l.next[key]
	switch {
	case uint32(step.Step) >= next:
		l.fresh.add(step, next, l.shard, l.shards)
		l.next[key] = uint32(step.Step) + 1
		return false
	case step.Ended:
		l.fresh.end(key, next, step.Host)
	}
	return true
}

// shareJoined takes what a rank learned in several steps, which cannot be told
// apart any more. The shard must know all of them or none.
func (l *link) shareJoined(key trace.RankKey, w *waiting) error {
	next, part := l.next[key], w.joined[l.shard]
	steps := part.covers[key]
	switch {
	case next <= w.first:
		steps.From = next
		l.next[key] = steps.GetTo()
		l.fresh.merge(part)
	case next < steps.GetTo():
		return final{fmt.Errorf("the parameter server was away for so long that steps of rank %d were joined, of which it knows some; %s",
			key.Rank, startAgain)}
	case steps.GetEnded():
		l.fresh.end(key, next, steps.GetHost())
	}
	return nil
}

// claim notes from which step on the shard is to be told of a rank.
func (l *link) claim(key trace.RankKey, next uint32) {
	if _, claimed := l.next[key]; !claimed {
		l.next[key] = next
		l.behind = true
	}
}

// pack makes what is fresh an exchange.
func (l *link) pack(number func(trace.FuncKey) int) error {
	if l.fresh.empty() || len(l.sent) >= l.most {
		return nil
	}
	req := &protocol.ExchangeRequest{Number: l.number + 1}
	l.fresh.message(req, l.shard == 0, number)
	b, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	l.number++
	l.sent = append(l.sent, sentBundle{l.number, b, l.fresh.models, l.fresh.steps()})
	models := make(map[trace.FuncKey]*outlier.Model)
	if n := len(l.spare); n > 0 {
		models, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	l.fresh = l.fresh.emptied(models)
	return nil
}

// due returns the exchange that the server is to get next; nil if it has all.
func (l *link) due() *sentBundle {
	if i := l.position(l.confirmed + 1); i < len(l.sent) && l.sent[i].number == l.confirmed+1 {
		return &l.sent[i]
	}
	return nil
}

// position is where the first exchange from the given number on is kept.
func (l *link) position(number uint64) int {
	first := l.number - uint64(len(l.sent)) + 1
	return int(min(max(number, first)-first, uint64(len(l.sent))))
}

// settled reports whether all that was learned is durable and in the models.
func (l *link) settled() bool {
	return l.registered && l.fresh.empty() && l.durable == l.number && l.included == l.number
}

// unsent is how many steps the server does not know.
func (l *link) unsent() int64 {
	n := l.fresh.steps()
	for _, b := range l.sent[l.position(l.confirmed+1):] {
		n += b.steps
	}
	return n
}

// take takes in a reply, and calls changed for functions whose models did.
func (l *link) take(reply *protocol.ExchangeReply, name func(uint32) (trace.FuncKey, bool), changed func(trace.FuncKey)) error {
	switch {
	case reply.GetRefused() != "":
		return final{fmt.Errorf("the parameter server refuses what was learned: %s", reply.GetRefused())}
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
	if reply.GetEpoch() != l.epoch { // another server, which may know less
		l.epoch = reply.GetEpoch()
		for n := range l.base {
			changed(n)
		}
		clear(l.base)
		clear(l.strangers)
	}
	l.confirmed, l.included, l.durable = reply.GetLast(), reply.GetIncluded(), reply.GetDurable()
	l.version = reply.GetVersion()
	for i, m := range reply.GetModels() {
		n, ok := name(m.GetId())
		if !ok {
			l.strangers[m.GetId()] = m.GetModel()
			continue
		}
		l.base[n] = &models[i]
		changed(n)
	}
	l.behind = false
	clear(l.doubtful)
	kept := l.number - uint64(len(l.sent))
	switch {
	case l.confirmed > l.number:
		return final{errors.New("another analyzer has the same name and session; give each a name with --node")}
	case l.confirmed < kept:
		return final{fmt.Errorf("the parameter server lost what it had stored (it knows exchange %d of %d, those after %d are kept here); %s",
			l.confirmed, l.number, kept, startAgain)}
	}
	for len(l.sent) > 0 && l.sent[0].number <= min(l.durable, l.included) {
		if len(l.spare) < l.most {
			l.spare = append(l.spare, l.sent[0].models)
		}
		l.sent = l.sent[1:]
	}
	return nil
}

// adopt makes the model of a function that got its name what came of it, and
// reports whether there is one.
func (l *link) adopt(id uint32, n trace.FuncKey) bool {
	b, ok := l.strangers[id]
	if !ok {
		return false
	}
	delete(l.strangers, id)
	var m outlier.Model
	if _, err := m.Decode(b); err != nil {
		return false // it was decoded before
	}
	l.base[n] = &m
	return true
}

// known returns all that is known of a function: what came, and what is not in
// it yet.
func (l *link) known(n trace.FuncKey, frozen bool) outlier.Model {
	var m outlier.Model
	if b := l.base[n]; b != nil {
		m.Merge(b)
	}
	if frozen {
		return m
	}
	for _, b := range l.sent[l.position(l.included+1):] {
		if own := b.models[n]; own != nil {
			m.Merge(own)
		}
	}
	if own := l.fresh.models[n]; own != nil {
		m.Merge(own)
	}
	return m
}
