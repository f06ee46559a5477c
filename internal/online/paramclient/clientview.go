package paramclient

import "time"

// settled reports whether the server knows all, for ever.
func (c *Client) settled() bool {
	if !c.ended || !c.inbox.empty() {
		return false
	}
	for _, l := range c.links {
		if !l.settled() {
			return false
		}
	}
	return true
}

// Progress is how far a client has come.
type Progress struct {
	Ended   bool   // all that was added is durable
	Final   bool   // the final models have come
	Broken  bool   // nothing is shared any more
	Apart   int    // functions of steps that wait one by one for the server
	Sent    int    // exchanges with the first shard that are not durable
	Version uint64 // of the models of the first shard
	Models  int    // that came from the first shard
}

// Progress returns how far the client has come.
func (c *Client) Progress() Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.links[0]
	return Progress{c.settled(), c.final, c.broken != nil, c.inbox.size, len(l.sent), l.version, len(l.base)}
}

// Err is why the last talk with the server failed, or why there are to be no
// more; nil if it did not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	return c.trouble
}

// Exchanges sums up the exchanges of a client with all shards.
type Exchanges struct {
	Count          int64
	Last, Sum, Max time.Duration // from request to answer
	Sent, Received int64         // bytes
}

// Exchanges sums up what was exchanged.
func (c *Client) Exchanges() Exchanges {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchanged
}

// Lag tells how many steps the server does not know.
func (c *Client) Lag() (steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		steps = max(steps, l.unsent())
	}
	return steps + c.inbox.steps()
}
