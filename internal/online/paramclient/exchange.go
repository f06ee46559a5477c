package paramclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// register claims new ranks and requests ids of new functions. It registers again with a server
// that has lost the session.
func (c *Client) register(ctx context.Context) error {
	for i := 0; i < len(c.links); i++ {
		again, err := c.registerWith(ctx, c.links[i])
		if err != nil {
			return err
		}
		if again {
			i = -1
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	c.inbox.drain(c.isClaimed, func(key trace.RankKey, w *backlog) {
		err = cmp.Or(err, c.release(key, w))
	})
	return c.giveUpOn(err)
}

// isClaimed reports whether all shards have replied which steps of a rank they have.
func (c *Client) isClaimed(key trace.RankKey) bool {
	for _, l := range c.links {
		if _, claimed := l.next[key]; !claimed {
			return false
		}
	}
	return true
}

// release moves the backlog of a rank to the links.
func (c *Client) release(key trace.RankKey, w *backlog) error {
	c.claimed[key] = true
	for _, step := range w.apart {
		for context := range models(step) {
			c.touch(context)
		}
		c.share(step)
	}
	if w.joined == nil {
		return nil
	}
	for context := range w.joined.models {
		c.touch(context)
	}
	for _, l := range c.links {
		if err := l.shareJoined(key, w); err != nil {
			return err
		}
	}
	return nil
}

// registerWith registers with one shard. It reports whether to start over with
// another session or number of shards.
func (c *Client) registerWith(ctx context.Context, l *link) (again bool, err error) {
	ranks, names, needed := c.unregistered(l)
	if !needed {
		return false, nil
	}
	req := &protocol.RegisterRequest{Sender: c.sender(), Settings: c.cfg.Settings, Command: c.cfg.Command, Shards: uint32(len(c.links))}
	req.AllNames = l.shard == 0 && !l.registered
	for _, key := range ranks {
		req.Ranks = append(req.Ranks, &protocol.Rank{Program: uint32(key.Program), Rank: uint32(key.Rank)})
	}
	for _, name := range names {
		req.Names = append(req.Names, &protocol.FunctionName{Program: uint32(name.Program), Name: []byte(name.Name)})
	}
	b, err := proto.Marshal(req)
	if err != nil {
		return false, err
	}
	reply := new(protocol.RegisterReply)
	if err := c.request(ctx, l.shard, "register", b, reply); err != nil {
		return false, err
	}
	if n := reply.GetShards(); n != 0 {
		return true, c.reshard(int(n))
	}
	if newer := reply.GetNewer(); newer != 0 {
		return true, c.outbid(newer)
	}
	if len(reply.GetNext()) != len(ranks) || len(reply.GetIds()) != len(names) {
		return false, fmt.Errorf("register: got %[3]d ranks and %[4]d ids, want %[1]d and %[2]d",
			len(ranks), len(names), len(reply.GetNext()), len(reply.GetIds()))
	}
	if l.shard == 0 && reply.GetPhase() == protocol.Phase_PHASE_FINISHED {
		return false, fatalError{ErrReviewed}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.registered, c.hasSession = true, true
	for i, key := range ranks {
		l.claim(key, reply.GetNext()[i])
		if _, known := c.earlier[key]; !known && l.shard == 0 {
			c.earlier[key] = reply.GetNext()[i]
		}
		if i < len(reply.GetLoaded()) {
			l.loaded[key] = max(l.loaded[key], reply.GetLoaded()[i])
		}
	}
	ids := reply.GetIds()
	for id, f := range reply.GetNames() {
		names = append(names, trace.FuncKey{Program: trace.Program(f.GetProgram()), Name: string(f.GetName())})
		ids = append(ids, uint32(id))
	}
	c.number(names, ids)
	c.frozen = reply.GetFrozen()
	if l.shard == 0 {
		c.phase = reply.GetPhase()
	}
	return false, nil
}

// outbid makes this session newer than the server's current one, which is greater if a clock was
// set back. If the server had accepted this session before, another analyzer was started later.
func (c *Client) outbid(newer uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasSession {
		return fatalError{errors.New(paramwire.StartedLater(c.cfg.Node))}
	}
	c.session.Store(newer + 1)
	return nil
}

// reshard prepares for n shards. It fails if a shard has registered this client already.
func (c *Client) reshard(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		if l.registered || len(l.next) > 0 {
			return fatalError{fmt.Errorf("the parameter server has %d shards now, not %d; start this analyzer again", n, len(c.links))}
		}
	}
	c.links = c.newLinks(n)
	return nil
}

// unregistered returns the ranks and functions to register with a shard, and whether
// a request is needed.
func (c *Client) unregistered(l *link) (ranks []trace.RankKey, names []trace.FuncKey, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.inbox.ranks {
		if _, claimed := l.next[key]; !claimed {
			ranks = append(ranks, key)
		}
	}
	if !l.registered {
		ranks = slices.AppendSeq(ranks, maps.Keys(l.next))
	}
	if l.shard == 0 {
		names = slices.Collect(maps.Keys(c.withoutID))
	}
	return ranks, names, !l.registered || len(ranks)+len(names) > 0
}

// number stores the ids of functions.
func (c *Client) number(names []trace.FuncKey, ids []uint32) {
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		c.ids[name], c.names[ids[i]] = ids[i], name
		delete(c.withoutID, name)
		if f := c.linkOf(name).received[ids[i]]; f != nil {
			for path := range f.contexts {
				c.changed[callpath.Context{FuncKey: name, Path: path}] = true
			}
		}
	}
	close(c.newIDs)
	c.newIDs = make(chan struct{})
}

// exchange sends all due exchanges to a shard and receives its models.
func (c *Client) exchange(ctx context.Context, l *link) error {
	for {
		req, err := c.compose(l)
		if err != nil {
			return err
		}
		reply := new(protocol.ExchangeReply)
		if err := c.request(ctx, l.shard, "exchange", req, reply); err != nil {
			return err
		}
		more, err := c.receive(l, reply)
		if err != nil || !more {
			return err
		}
	}
}

// compose encodes the next exchange with a shard. When it is sent again, only its head differs.
func (c *Client) compose(l *link) ([]byte, error) {
	head := &protocol.ExchangeRequest{Sender: c.sender()}
	if l.shard == 0 {
		if c.cfg.Status != nil {
			head.Status = c.cfg.Status()
		}
		if head.Status == nil {
			head.Status = new(protocol.Status)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.withoutID) == 0 { // all functions have ids
		l.releaseLoad(c.ended)
		if err := l.pack(func(n trace.FuncKey) int { return int(c.ids[n]) }, c.functions); err != nil {
			return nil, err
		}
	}
	head.Epoch, head.Known, head.Flush = l.epoch, l.version, c.ended
	if s := head.Status; s != nil {
		if c.isSettled() {
			s.State = max(s.State, protocol.Status_STATE_ENDED)
		} else {
			s.State = min(s.State, protocol.Status_STATE_READING)
		}
	}
	b, err := proto.Marshal(head)
	if due := l.due(); due != nil {
		b = append(b, due.message...)
	}
	return b, err
}

// receive takes the reply of a shard and reports whether another exchange is due.
func (c *Client) receive(l *link, reply *protocol.ExchangeReply) (more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = l.receive(reply, func(id uint32, path callpath.Hash) {
		if name, ok := c.names[id]; ok {
			c.changed[callpath.Context{FuncKey: name, Path: path}] = true
		}
	})
	if err != nil {
		return false, c.giveUpOn(err)
	}
	if !l.registered {
		return false, nil // the next Sync registers
	}
	if l.shard == 0 {
		c.phase, c.stopped, c.knownSteps = reply.GetPhase(), reply.GetStop(), reply.GetKnownSteps()
	}
	return l.due() != nil, nil
}
