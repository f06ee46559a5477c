package paramclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// endPeriod is that between exchanges when all traces have ended, at first.
const endPeriod = 100 * time.Millisecond

// Run talks to the server until ctx ends, or there is nothing to talk about any
// more because the server refuses this analyzer.
func (c *Client) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		err := c.Talk(ctx)
		if ctx.Err() != nil {
			return
		}
		if broken := c.note(err, last); broken {
			return
		}
		last = err
		timer.Reset(c.period())
	}
}

// note logs the error of a talk if it is another than before. It reports whether it
// was the last talk.
func (c *Client) note(err, last error) (broken bool) {
	c.mu.Lock()
	broken = c.broken != nil
	c.mu.Unlock()
	switch {
	case errors.Is(err, ErrReviewed): // who waits for the end tells
	case broken:
		c.cfg.Log.Error("this analyzer shares nothing any more", "error", err)
	case err != nil && (last == nil || last.Error() != err.Error()):
		c.cfg.Log.Warn("the parameter server does not answer; this analyzer goes on alone", "error", err)
	case err == nil && last != nil:
		c.cfg.Log.Info("the parameter server answers")
	}
	return broken
}

// period is how long to wait until the next talk. When the traces have ended the
// end of others is asked for, first often and then less so.
func (c *Client) period() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended || c.final || c.trouble != nil {
		return c.cfg.Period
	}
	if !c.settled() {
		return min(endPeriod, c.cfg.Period)
	}
	c.wait = min(max(2*c.wait, endPeriod), c.cfg.Period)
	return c.wait
}

// poke has the next exchange come at once.
func (c *Client) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Talk registers what is new and has an exchange with each shard, as Run does time
// and again.
func (c *Client) Talk(ctx context.Context) error {
	c.mu.Lock()
	err := c.broken
	c.mu.Unlock()
	if err == nil {
		err = c.register(ctx)
	}
	if err == nil {
		errs := make([]error, len(c.links))
		var wg sync.WaitGroup
		for i, l := range c.links {
			wg.Go(func() { errs[i] = c.exchange(ctx, l) })
		}
		wg.Wait()
		err = errors.Join(errs...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.conclude()
	}
	c.trouble = err
	return c.lasting(err)
}

// lasting has the client give up if an error is final: nothing is shared any more.
// The client's lock is held.
func (c *Client) lasting(err error) error {
	if why, ok := errors.AsType[final](err); ok && c.broken == nil {
		if c.broken = why.error; !c.final {
			close(c.finish)
		}
	}
	return err
}

// conclude notes that the models are final when the server says so and all of
// them have come after that.
func (c *Client) conclude() {
	if c.final || c.broken != nil || !c.settled() || c.phase < protocol.Phase_PHASE_REVIEWING {
		return
	}
	if !c.asked { // once more: the other shards may have answered before
		c.asked = true
		c.poke()
		return
	}
	c.final = true
	close(c.finish)
}

func (c *Client) sender() *protocol.Sender {
	return &protocol.Sender{Version: protocol.Version, Run: c.cfg.Run, Node: c.cfg.Node, Session: c.session.Load()}
}

// ask sends an encoded message and reads the answer.
func (c *Client) ask(ctx context.Context, shard int, what string, req []byte, reply proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	b, err := c.bus.Request(ctx, paramwire.Subject(c.cfg.Run, shard, what), req)
	if why, refused := paramwire.RefusedBy(err); refused {
		return final{fmt.Errorf("the parameter server refuses this analyzer: %s", why)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := proto.Unmarshal(b, reply); err != nil {
		return fmt.Errorf("%s: malformed answer: %w", what, err)
	}
	if what == "exchange" {
		c.count(time.Since(start), len(req), len(b))
	}
	return nil
}

// count notes an exchange.
func (c *Client) count(took time.Duration, sent, received int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &c.exchanged
	x.Count++
	x.Last, x.Sum, x.Max = took, x.Sum+took, max(x.Max, took)
	x.Sent += int64(sent)
	x.Received += int64(received)
}

// ErrReviewed says that an earlier session of this analyzer has told what came of its
// ranks, so that nothing is left to do.
var ErrReviewed = errors.New("what came of these ranks is known already")

// ErrRefused says that the server will never take what came of the ranks.
var ErrRefused = errors.New("the parameter server refuses what came of the ranks")

// SendOutcome tells what came of the analyzer's ranks.
func (c *Client) SendOutcome(ctx context.Context, ranks []*summary.RankOutcome, o *summary.Outcome, traces []string, size int64) error {
	h := summary.Handover{Totals: o.Totals, Tally: o.Tally, Ranks: ranks}
	for _, b := range o.Broken {
		h.Broken = append(h.Broken, b.Error())
	}
	req := &protocol.OutcomeRequest{Sender: c.sender(), Handover: h.AppendBinary(nil), Traces: traces, TraceBytes: size}
	b, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	reply := new(protocol.OutcomeReply)
	if err := c.ask(ctx, 0, "outcome", b, reply); err != nil {
		return err
	}
	if reply.GetRefused() != "" {
		return fmt.Errorf("%w: %s", ErrRefused, reply.GetRefused())
	}
	return nil
}
