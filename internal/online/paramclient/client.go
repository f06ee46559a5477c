// Package paramclient is the analyzer's client of the parameter server. A Client
// sends the contributions of an analyzer exactly once and receives the models of
// all. It keeps exchanges until they are durable and sends them again after a crash
// of the server.
package paramclient

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/online/deltas"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Requester sends a request to a service and returns its reply. An error of the
// service itself is a bus.RemoteError.
type Requester interface {
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// Config configures a Client.
type Config struct {
	Run      string
	Node     string            // name of the analyzer: unique in the run, and the same when it is restarted
	Session  uint64            // greater for each start, unless a clock was set back
	Shards   int               // of the server
	Period   time.Duration     // between exchanges
	Timeout  time.Duration     // of a request
	Settings string            // of the detector, as JSON
	Command  *protocol.Command // that starts the analyzer again; nil without
	// Status, if not nil, returns the status of the analyzer, which the client may
	// change: it reports ENDED only when the server has everything. Status may call
	// the client.
	Status func() *protocol.Status
	Log    *slog.Logger // nil discards
	// MaxSeparate limits the functions of steps that are kept apart until the server has
	// replied which steps it has; by default 65536, of about two kilobytes each.
	MaxSeparate int
	// MaxPending limits the exchanges that are not durable, by default 64. At the limit,
	// contributions gather until the server has stored some exchanges.
	MaxPending int
}

// Client is an analyzer.ModelSync. Run communicates with the server in the
// background. While the server is unavailable, contributions gather in memory, which
// does not grow with time. Client is safe for concurrent use.
type Client struct {
	cfg     Config
	bus     Requester
	session atomic.Uint64

	mu         sync.Mutex
	hasSession bool // the server has registered this session
	ids        map[trace.FuncKey]uint32
	names      map[uint32]trace.FuncKey
	functions  []trace.FuncKey        // by the analyzer's numbers
	withoutID  map[trace.FuncKey]bool // functions without an id
	links      []*link
	claimed    map[trace.RankKey]bool   // by all links, so that they are not in the inbox
	earlier    map[trace.RankKey]uint32 // the first step that earlier sessions have not shared
	inbox      inbox
	changed    map[callpath.Context]bool // models since Merged
	frozen     bool
	stopped    bool
	knownSteps int64 // of this analyzer's ranks at the server
	added      int64 // steps
	phase      protocol.Phase
	ended      bool
	confirming bool // the final models were requested
	final      bool // the final models were received
	started    time.Time
	syncing    bool          // a Sync is in progress
	synced     bool          // the server has sent its models
	failure    error         // why the client has given up
	lastErr    error         // of the last Sync
	wait       time.Duration // until the next Sync while other analyzers run
	exchanged  Exchanges
	newIDs     chan struct{} // closed when functions get ids

	wake   chan struct{}
	finish chan struct{} // closed when final or broken
}

// New returns a client. It sends nothing before Run.
func New(cfg Config, bus Requester) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		cfg: cfg, bus: bus, started: time.Now(), ids: make(map[trace.FuncKey]uint32), names: make(map[uint32]trace.FuncKey),
		withoutID: make(map[trace.FuncKey]bool), changed: make(map[callpath.Context]bool), claimed: make(map[trace.RankKey]bool),
		earlier: make(map[trace.RankKey]uint32),
		inbox:   newInbox(cmp.Or(cfg.MaxSeparate, 1<<16)),
		wake:    make(chan struct{}, 1), finish: make(chan struct{}), newIDs: make(chan struct{}),
	}
	c.session.Store(cfg.Session)
	c.links = c.newLinks(cfg.Shards)
	return c
}

func (c *Client) newLinks(n int) (links []*link) {
	for i := range n {
		links = append(links, newLink(i, n, cmp.Or(c.cfg.MaxPending, 64)))
	}
	return links
}

// Add adds the contribution of a step. Steps of a rank come in order. The last one may be repeated,
// empty, to report the end of the rank.
func (c *Client) Add(step *deltas.Contribution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return
	}
	switch {
	case len(step.Joined) > 0:
		c.added += int64(len(step.Joined))
	case !step.Ended:
		c.added++
	}
	if len(step.Names) > len(c.functions) {
		c.functions = step.Names
	}
	for i := range step.Functions {
		c.requestID(step.Functions[i].FuncKey)
	}
	for i := range step.Paths {
		if name := step.Paths[i].Name; name != callpath.OtherName {
			c.requestID(trace.FuncKey{Program: step.Program, Name: name})
		}
	}
	if len(step.Joined) == 0 && !c.claimed[step.RankKey] {
		c.inbox.add(step)
		return
	}
	c.share(step)
}

// Joins reports whether a step may be part of a contribution of several ranks: the rank is claimed, and no shard has the step
// from an earlier session.
func (c *Client) Joins(key trace.StepKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.claimed[key.RankKey] {
		return false
	}
	for _, l := range c.links {
		if uint32(key.Step) < max(l.next[key.RankKey], l.loaded[key.RankKey]) {
			return false
		}
	}
	return true
}

// share adds the contribution of a claimed rank to the links. If the server has the step, the
// received models include it and the caller has added it twice, so Merged yields these models
// again.
func (c *Client) share(step *deltas.Contribution) {
	duplicate := false
	for _, l := range c.links {
		if len(step.Joined) > 0 {
			l.shareJoint(step)
			continue
		}
		duplicate = l.share(step) || duplicate
	}
	if !duplicate {
		return
	}
	for context := range models(step) {
		c.touch(context)
	}
}

// touch makes Merged yield a model as soon as it includes the steps of earlier sessions.
func (c *Client) touch(context callpath.Context) {
	c.changed[context] = true
	if l := c.linkOf(context.FuncKey); l.behind {
		l.doubtful[context] = true
	}
}

// linkOf returns the link to the shard that owns the model of a function.
func (c *Client) linkOf(name trace.FuncKey) *link {
	return c.links[paramwire.ShardOf(name, len(c.links))]
}

// requestID requests the id of a function if it has none.
func (c *Client) requestID(name trace.FuncKey) {
	if _, ok := c.ids[name]; !ok {
		c.withoutID[name] = true
	}
}

// Merged yields the models that changed, complete with the contributions of all
// analyzers.
func (c *Client) Merged() iter.Seq[analyzer.MergedModel] {
	return func(yield func(analyzer.MergedModel) bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failure != nil {
			return // the caller's models are newer
		}
		for context := range c.changed {
			l := c.linkOf(context.FuncKey)
			id, ok := c.ids[context.FuncKey]
			if !ok || l.doubtful[context] {
				continue
			}
			delete(c.changed, context)
			m := l.model(context, id, c.frozen)
			if own := c.inbox.models[context]; own != nil && !c.frozen {
				m.Model.Merge(own)
			}
			if !yield(m) {
				return
			}
		}
	}
}

// firstContact bounds the time by which a server that does not respond delays the analysis.
const firstContact = 10 * time.Second

// Ready reports whether the analysis may begin: the server has reported whether models are frozen
// and has sent frozen ones, or it has not responded for some time.
func (c *Client) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced || c.failure != nil || !c.frozen && !c.syncing && time.Since(c.started) > firstContact
}

// Frozen reports whether the models must not change.
func (c *Client) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// Earlier returns the number of steps of a rank that earlier sessions have shared. known is false
// until the server has replied.
func (c *Client) Earlier(key trace.RankKey) (steps int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, known := c.earlier[key]
	return int(next), known
}

// Stopped reports whether all traces count as ended. A restarted analyzer first
// reads the steps that the server has, because it must review them.
func (c *Client) Stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped && c.added >= c.knownSteps || errors.Is(c.failure, ErrReviewed)
}

// Number returns the id of a function if the server has assigned it, and requests it
// otherwise.
func (c *Client) Number(program trace.Program, name string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := trace.FuncKey{Program: program, Name: name}
	id, ok := c.ids[key]
	if !ok {
		c.requestID(key)
	}
	return int(id), ok
}

// NewIDs returns a channel that is closed when functions get ids. To wait for an
// id, call it before Number.
func (c *Client) NewIDs() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.withoutID) > 0 {
		c.syncNow()
	}
	return c.newIDs
}

// End marks the end: all contributions were added.
func (c *Client) End() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.syncNow()
}

// Finish waits until all analyzers have added their contributions. The error is the cause of ctx
// joined with Err, ErrReviewed, or the reason why this analyzer must be restarted.
func (c *Client) Finish(ctx context.Context) error {
	c.End()
	select {
	case <-c.finish:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.failure
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.Err())
	}
}

// isSettled reports whether everything is durable.
func (c *Client) isSettled() bool {
	if !c.ended || len(c.inbox.ranks) > 0 {
		return false
	}
	for _, l := range c.links {
		if !l.isSettled() {
			return false
		}
	}
	return true
}

// Progress is the progress of a client.
type Progress struct {
	Ended    bool   // everything is durable
	Final    bool   // the final models were received
	Failed   bool   // the client has given up
	Separate int    // functions of steps that are kept apart
	Pending  int    // exchanges with the first shard that are not durable
	Version  uint64 // of the models of the first shard
	Models   int    // received from the first shard
}

// Progress returns the progress of the client.
func (c *Client) Progress() Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.links[0]
	return Progress{c.isSettled(), c.final, c.failure != nil, c.inbox.size, len(l.sent), l.version, len(l.received)}
}

// Err returns the reason why the client has given up, or why the last attempt to reach the server
// failed.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.failure, c.lastErr)
}

// Exchanges sums up the exchanges with all shards.
type Exchanges struct {
	api.Latency
	Sent, Received int64 // bytes
}

// Exchanges returns the sums so far.
func (c *Client) Exchanges() Exchanges {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchanged
}

// Lag returns the number of steps that the server does not have.
func (c *Client) Lag() (steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		steps = max(steps, l.unsent())
	}
	return steps + c.inbox.steps()
}
