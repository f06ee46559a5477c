package paramserver

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
