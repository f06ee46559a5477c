package paramclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/online/summary"
)

// The time between exchanges while the analysis waits for the first reply, and at first after all traces
// have ended.
const (
	startPeriod = 100 * time.Millisecond
	endPeriod   = 5 * time.Millisecond
)

// Run exchanges data with the server until ctx ends or the client gives up.
func (c *Client) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var outage wait.Outage
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		err := c.Sync(ctx)
		if ctx.Err() != nil {
			return
		}
		if c.logError(err, &outage) {
			return
		}
		timer.Reset(c.period())
	}
}

// logError logs the error of a Sync, unless it is repeated, and reports whether the client has
// given up.
func (c *Client) logError(err error, outage *wait.Outage) (broken bool) {
	c.mu.Lock()
	broken = c.failure != nil
	c.mu.Unlock()
	switch {
	case errors.Is(err, ErrReviewed): // Finish returns it
	case broken:
		c.cfg.Log.Error("this analyzer has lost the parameter server for good", "error", err)
	case err != nil:
		if lasted, log := outage.Failed(err.Error(), time.Now()); log {
			c.cfg.Log.Warn("the parameter server does not respond; this analyzer continues alone", "error", err, "for_seconds", lasted.Seconds())
		}
	default:
		if lasted, was := outage.End(time.Now()); was {
			c.cfg.Log.Info("the parameter server responds", "after_seconds", lasted.Seconds())
		}
	}
	return broken
}

// period returns the time until the next Sync. It is short while the analysis waits for the first
// reply. After the traces have ended it is short at first, to notice the end of the other
// analyzers, and then longer.
func (c *Client) period() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.synced && time.Since(c.started) < firstContact {
		return min(startPeriod, c.cfg.Period)
	}
	if !c.ended || c.final || c.lastErr != nil {
		return c.cfg.Period
	}
	c.wait = min(max(2*c.wait, endPeriod), c.cfg.Period)
	return c.wait
}

// syncNow makes Run call Sync immediately.
func (c *Client) syncNow() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Sync registers new ranks and functions and exchanges data with each shard. Run
// calls it periodically.
func (c *Client) Sync(ctx context.Context) error {
	c.mu.Lock()
	c.syncing = true
	err := c.failure
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
		c.synced = c.synced || !slices.ContainsFunc(c.links, func(l *link) bool { return !l.registered })
		c.conclude()
	}
	c.lastErr, c.syncing = err, false
	return c.giveUpOn(err)
}

// giveUpOn makes the client give up if err is fatal, and returns err. The caller
// holds the lock.
func (c *Client) giveUpOn(err error) error {
	if why, ok := errors.AsType[fatalError](err); ok && c.failure == nil {
		if c.failure = why.error; !c.final {
			close(c.finish)
		}
	}
	return err
}

// conclude detects the final models: those received after the server has announced
// the review.
func (c *Client) conclude() {
	if c.final || c.failure != nil || !c.isSettled() || c.phase < protocol.Phase_PHASE_REVIEWING {
		return
	}
	if !c.confirming { // the other shards may have replied before the announcement
		c.confirming = true
		c.syncNow()
		return
	}
	c.final = true
	close(c.finish)
}

func (c *Client) sender() *protocol.Sender {
	return &protocol.Sender{Version: protocol.Version, Run: c.cfg.Run, Node: c.cfg.Node, Session: c.session.Load()}
}

// request sends an encoded message and decodes the reply.
func (c *Client) request(ctx context.Context, shard int, what string, req []byte, reply proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	start := time.Now()
	b, err := c.bus.Request(ctx, paramwire.Subject(c.cfg.Run, shard, what), req)
	if why, refused := paramwire.RefusedBy(err); refused {
		return fatalError{fmt.Errorf("the parameter server refuses this analyzer: %s", why)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := proto.Unmarshal(b, reply); err != nil {
		return fmt.Errorf("%s: malformed reply: %w", what, err)
	}
	if what == "exchange" {
		c.count(time.Since(start), len(req), len(b))
	}
	return nil
}

func (c *Client) count(took time.Duration, sent, received int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &c.exchanged
	x.Count++
	x.Last = took.Seconds()
	x.Mean, x.Max = x.Mean+(x.Last-x.Mean)/float64(x.Count), max(x.Max, x.Last)
	x.Sent += int64(sent)
	x.Received += int64(received)
}

// ErrReviewed means that an earlier session of this analyzer has sent its results, so
// that nothing is left to do.
var ErrReviewed = errors.New("the results of these ranks are stored already")

// ErrRefused means that the server will never accept the results.
var ErrRefused = errors.New("the parameter server refuses the results")

// maxCollectives limits the bytes of the collective operations of an outcome.
const maxCollectives = 4 << 20

// SendOutcome sends the results of the analyzer.
func (c *Client) SendOutcome(ctx context.Context, ranks []*summary.RankOutcome, o *summary.Outcome, traces []string, size int64) error {
	h := summary.Handover{Totals: o.Totals, Tally: o.Tally, Ranks: ranks}
	for _, b := range o.Broken {
		h.Broken = append(h.Broken, b.Error())
	}
	req := &protocol.OutcomeRequest{Sender: c.sender(), Handover: h.AppendBinary(nil), Traces: traces, TraceBytes: size}
	var err error
	if o.Breakdown != nil {
		all := breakdown.Collectives{Logged: math.MaxInt64, Programs: o.Breakdown.Collectives}
		if req.Collectives, err = all.Encode(maxCollectives); err != nil {
			return err
		}
	}
	b, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	reply := new(protocol.OutcomeReply)
	if err := c.request(ctx, 0, "outcome", b, reply); err != nil {
		return err
	}
	if reply.GetRefused() != "" {
		return fmt.Errorf("%w: %s", ErrRefused, reply.GetRefused())
	}
	return nil
}
