package paramclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// register claims ranks and asks for numbers, where there are new ones, and
// registers again where a server does not know the session.
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
	c.inbox.drain(c.isClaimed, func(key trace.RankKey, w *waiting) {
		err = cmp.Or(err, c.release(key, w))
	})
	return c.lasting(err)
}

// isClaimed reports whether all shards have said how far they know a rank.
func (c *Client) isClaimed(key trace.RankKey) bool {
	for _, l := range c.links {
		if _, claimed := l.next[key]; !claimed {
			return false
		}
	}
	return true
}

// release hands what waited of a rank to the links.
func (c *Client) release(key trace.RankKey, w *waiting) error {
	c.claimed[key] = true
	for _, step := range w.apart {
		for i := range step.Functions {
			c.touch(step.Functions[i].FuncKey)
		}
		c.share(key, step)
	}
	if w.joined == nil {
		return nil
	}
	for _, l := range c.links {
		for name := range w.joined[l.shard].models {
			c.touch(name)
		}
		if err := l.shareJoined(key, w); err != nil {
			return err
		}
	}
	return nil
}

// registerWith registers with one shard. It reports whether all is to be done
// again because there are more or fewer shards than it knew.
func (c *Client) registerWith(ctx context.Context, l *link) (again bool, err error) {
	ranks, names, needed := c.unregistered(l)
	if !needed {
		return false, nil
	}
	req := &protocol.RegisterRequest{Sender: c.sender(), Settings: c.cfg.Settings, Command: c.cfg.Command, Shards: uint32(len(c.links))}
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
	if err := c.ask(ctx, l.shard, "register", b, reply); err != nil {
		return false, err
	}
	if n := reply.GetShards(); n != 0 {
		return true, c.reshard(int(n))
	}
	if newer := reply.GetNewer(); newer != 0 {
		return true, c.succeed(newer)
	}
	if len(reply.GetNext()) != len(ranks) || len(reply.GetIds()) != len(names) {
		return false, fmt.Errorf("register: %d ranks and %d names were answered with %d and %d",
			len(ranks), len(names), len(reply.GetNext()), len(reply.GetIds()))
	}
	if l.shard == 0 && reply.GetPhase() == protocol.Phase_PHASE_FINISHED {
		return false, final{ErrReviewed}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.registered, c.known = true, true
	for i, key := range ranks {
		l.claim(key, reply.GetNext()[i])
	}
	c.number(names, reply.GetIds())
	c.frozen = reply.GetFrozen()
	if l.shard == 0 {
		c.phase = reply.GetPhase()
	}
	return false, nil
}

// succeed makes this the session after one that the server knows, unless it was known
// itself before: then the other one was started later. A clock that was put back makes
// sessions smaller than those before them.
func (c *Client) succeed(newer uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known {
		return final{errors.New(paramwire.StartedLater(c.cfg.Node))}
	}
	c.session.Store(newer + 1)
	return nil
}

// reshard prepares for n shards, before anything was shared with any.
func (c *Client) reshard(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		if l.registered || len(l.next) > 0 {
			return final{fmt.Errorf("the parameter server has %d shards now, not %d; start this analyzer again", n, len(c.links))}
		}
	}
	c.links = c.newLinks(n)
	c.inbox.reshard(n)
	return nil
}

// unregistered returns what a shard is to be told and asked, and whether it is
// needed.
func (c *Client) unregistered(l *link) (ranks []trace.RankKey, names []trace.FuncKey, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.inbox.ranks {
		if _, claimed := l.next[key]; !claimed {
			ranks = append(ranks, key)
		}
	}
	if !l.registered {
		for key := range l.next {
			ranks = append(ranks, key)
		}
	}
	if l.shard == 0 {
		for name := range c.unnamed {
			names = append(names, name)
		}
	}
	return ranks, names, !l.registered || len(ranks)+len(names) > 0
}

// number notes the numbers of functions.
func (c *Client) number(names []trace.FuncKey, ids []uint32) {
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		c.ids[name], c.names[ids[i]] = ids[i], name
		delete(c.unnamed, name)
		for _, l := range c.links {
			if l.adopt(ids[i], name) {
				c.changed[name] = true
			}
		}
	}
	close(c.numbered)
	c.numbered = make(chan struct{})
}

// exchange sends what a shard does not have, and takes what it knows. It does so
// again until the shard has all.
func (c *Client) exchange(ctx context.Context, l *link) error {
	for {
		req, err := c.compose(l)
		if err != nil {
			return err
		}
		reply := new(protocol.ExchangeReply)
		if err := c.ask(ctx, l.shard, "exchange", req, reply); err != nil {
			return err
		}
		more, err := c.receive(l, reply)
		if err != nil || !more {
			return err
		}
	}
}

// compose returns the next exchange with a shard, encoded. One that was sent
// before is the same but for its head.
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
	if len(c.unnamed) == 0 { // all that is fresh can be named
		if err := l.pack(func(n trace.FuncKey) int { return int(c.ids[n]) }); err != nil {
			return nil, err
		}
	}
	head.Epoch, head.Known, head.Flush = l.epoch, l.version, c.ended
	if s := head.Status; s != nil {
		if c.settled() {
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

// receive takes in the answer of a shard, and reports whether it is to get more.
func (c *Client) receive(l *link, reply *protocol.ExchangeReply) (more bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = l.take(reply, func(id uint32) (trace.FuncKey, bool) {
		name, ok := c.names[id]
		return name, ok
	}, func(name trace.FuncKey) { c.changed[name] = true })
	if err != nil {
		return false, c.lasting(err)
	}
	if !l.registered {
		return false, nil // it is with the next talk
	}
	if l.shard == 0 {
		c.phase, c.stopped, c.knownSteps = reply.GetPhase(), reply.GetStop(), reply.GetKnownSteps()
	}
	return l.due() != nil, nil
}
