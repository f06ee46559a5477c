// Package paramclient is the analyzer's end of the parameter server. A Client
// hands over what an analyzer learns, exactly once, and takes what all have
// learned. It keeps what is not durable yet and sends it again after a crash of the
// server.
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
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/paramwire"
	"github.com/chimbuko/chimbuko/internal/online/protocol"
)

// Requester sends a request to a service and returns its answer. An error of the
// service itself is a bus.RemoteError.
type Requester interface {
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// Config says who an analyzer is.
type Config struct {
	Run      string
	Node     string            // name of the analyzer: another for each of a run, the same when it is started again
	Session  uint64            // greater each time it is started, unless a clock was put back
	Shards   int               // of the server
	Period   time.Duration     // between exchanges
	Timeout  time.Duration     // for an answer
	Settings string            // how it judges, as JSON
	Command  *protocol.Command // how to start it again; nil: it cannot be
	// Status tells how the analyzer fares, in a message that belongs to the client
	// then; nil tells nothing. It may call the client. That the traces have ended
	// is told to the server when it knows all that was learned, not before.
	Status func() *protocol.Status
	Log    *slog.Logger // nil discards it
	// MaxApart is how many functions of steps are kept one by one until the server
	// has said how far it knows their ranks; 0: 65536, of about two kilobytes each.
	MaxApart int
	// MaxSent is how many exchanges may wait to be durable; when there are more, what
	// is learned is gathered until the server can store again. 0: 64.
	MaxSent int
}

// Client is the analyzer's end of the parameter server: an analyzer.ModelSync.
// It talks to the server in the background, in Run; when the server is away it
// gathers what is learned, which does not grow with time, and goes on. Its
// methods may be called by several goroutines.
type Client struct {
	cfg     Config
	bus     Requester
	session atomic.Uint64

	mu      sync.Mutex
	known   bool // to the server, by its session
	ids     map[trace.FuncKey]uint32
	names   map[uint32]trace.FuncKey
	unnamed map[trace.FuncKey]bool // without number
	links   []*link
	claimed map[trace.RankKey]bool // by all links, so that the inbox has nothing of them
	inbox   inbox
	changed map[trace.FuncKey]bool // since Merged
	frozen  bool
	stopped bool
	// Steps that the server knows of the ranks that the analyzer of this name has, and
	// how many have been added.
	knownSteps, added int64
	phase             protocol.Phase
	ended             bool
	asked             bool          // for the final models
	final             bool          // which have come
	broken            error         // why nothing is shared any more
	trouble           error         // of the last talk
	wait              time.Duration // between talks while others have not ended
	exchanged         Exchanges
	numbered          chan struct{} // closed when there are new numbers

	wake   chan struct{}
	finish chan struct{} // closed when final or broken
}

// New returns a client; nothing happens before Run.
func New(cfg Config, bus Requester) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		cfg: cfg, bus: bus, ids: make(map[trace.FuncKey]uint32), names: make(map[uint32]trace.FuncKey),
		unnamed: make(map[trace.FuncKey]bool), changed: make(map[trace.FuncKey]bool), claimed: make(map[trace.RankKey]bool),
		inbox: newInbox(cfg.Shards, cmp.Or(cfg.MaxApart, 1<<16)),
		wake:  make(chan struct{}, 1), finish: make(chan struct{}), numbered: make(chan struct{}),
	}
	c.session.Store(cfg.Session)
	c.links = c.newLinks(cfg.Shards)
	return c
}

func (c *Client) newLinks(n int) (links []*link) {
	for i := range n {
		links = append(links, newLink(i, n, cmp.Or(c.cfg.MaxSent, 64)))
	}
	return links
}

// Add takes what a rank learned. Steps of a rank come in order; one that has
// nothing but its number may come once more to say that it was the last.
func (c *Client) Add(step *analyzer.Contribution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return
	}
	if !step.Ended {
		c.added++
	}
	for i := range step.Functions {
		c.want(step.Functions[i].FuncKey)
	}
	for i := range step.Paths {
		if name := step.Paths[i].Name; name != callpath.OtherName {
			c.want(trace.FuncKey{Program: step.Program, Name: name})
		}
	}
	key := step.RankKey
	if !c.claimed[key] {
		c.inbox.add(key, step)
		return
	}
	c.share(key, step)
}

// share hands what a claimed rank learned to the links. Where the server knew it
// before, it is in the models that came, and the caller has now added it again: so
// they are yielded once more.
func (c *Client) share(key trace.RankKey, step *analyzer.Contribution) {
	known := false
	for _, l := range c.links {
		known = l.share(key, step) || known
	}
	for i := range step.Functions {
		if known {
			c.touch(step.Functions[i].FuncKey)
		}
	}
}

// touch has the model of a function yielded, as soon as it holds what the server
// knew before.
func (c *Client) touch(name trace.FuncKey) {
	c.changed[name] = true
	if l := c.linkOf(name); l.behind {
		l.doubtful[name] = true
	}
}

// linkOf is the link to the shard that owns the model of a function.
func (c *Client) linkOf(name trace.FuncKey) *link {
	return c.links[paramwire.ShardOf(name, len(c.links))]
}

func (c *Client) want(name trace.FuncKey) {
	if _, ok := c.ids[name]; !ok {
		c.unnamed[name] = true
	}
}

// Merged yields the functions whose models changed, with all that is known.
func (c *Client) Merged() iter.Seq2[trace.FuncKey, outlier.Model] {
	return func(yield func(trace.FuncKey, outlier.Model) bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.broken != nil {
			return // the caller knows more
		}
		for name := range c.changed {
			l := c.linkOf(name)
			if _, numbered := c.ids[name]; !numbered || l.doubtful[name] {
				continue
			}
			delete(c.changed, name)
			m := l.known(name, c.frozen)
			if waits := c.inbox.models[name]; waits != nil && !c.frozen {
				m.Merge(waits)
			}
			if !yield(name, m) {
				return
			}
		}
	}
}

// Frozen reports whether nothing is to be learned.
func (c *Client) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// Stopped reports whether all traces are to be taken as ended. An analyzer that was
// started again reads first what the server knows: it has to review it.
func (c *Client) Stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped && c.added >= c.knownSteps || errors.Is(c.broken, ErrReviewed)
}

// Number returns the number of a function, which the server gives; it is asked
// for if it is not known.
func (c *Client) Number(program trace.Program, name string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := trace.FuncKey{Program: program, Name: name}
	id, ok := c.ids[key]
	if !ok {
		c.want(key)
	}
	return int(id), ok
}

// Numbered is closed when functions get numbers that had none. Who waits for a
// number asks for it after Numbered, not before.
func (c *Client) Numbered() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unnamed) > 0 {
		c.poke()
	}
	return c.numbered
}

// End says that nothing more will be added.
func (c *Client) End() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.poke()
}

// Finish waits until no analyzer has anything to add any more. The error is that
// of ctx, with what the server last said, ErrReviewed, or why this analyzer cannot
// share any more and must be started again.
func (c *Client) Finish(ctx context.Context) error {
	c.End()
	select {
	case <-c.finish:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.broken
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.Err())
	}
}
