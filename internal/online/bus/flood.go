package bus

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	floodCheck = 500 * time.Millisecond
	banTime    = 10 * time.Second
)

// flow is an amount of data that a client sends.
type flow struct{ messages, bytes int64 }

// rateLimit is a leaky bucket for a client with limited access: it may send each per second
// indefinitely, and more at once. A client that waits for each confirmation, as Publish does, stays
// below each; the largest request fits into more.
type rateLimit struct{ each, more flow }

var defaultLimit = rateLimit{each: flow{10_000, 32 << 20}, more: flow{20_000, MaxMessage + 64<<20}}

// drain returns the level of the bucket after a time.
func (f rateLimit) drain(level flow, took time.Duration) flow {
	drained := func(level, each int64) int64 { return max(0, level-int64(float64(each)*took.Seconds())) }
	return flow{drained(level.messages, f.each.messages), drained(level.bytes, f.each.bytes)}
}

func (f rateLimit) overflows(level flow) bool {
	return level.messages > f.more.messages || level.bytes > f.more.bytes
}

// floodWatch disconnects clients with limited access that send too much: they would
// fill streams and delay others.
type floodWatch struct {
	nats  *server.Server
	door  *doorkeeper
	log   *serverLog
	limit rateLimit

	total   flow
	checked time.Time
	clients map[uint64]client
	since   time.Time // when clients was made
}

// client holds the counters of a client.
type client struct {
	sent  flow // in total
	level flow // of its bucket
}

// check must be called repeatedly. It inspects single clients only when the traffic is
// so high that one of them may exceed its limit.
func (w *floodWatch) check(now time.Time) error {
	all, err := w.nats.Varz(nil)
	if err != nil {
		return err
	}
	total := flow{all.InMsgs, all.InBytes}
	sent := flow{total.messages - w.total.messages, total.bytes - w.total.bytes}
	quiet := w.limit.drain(sent, now.Sub(w.checked)) == flow{}
	w.total, w.checked = total, now
	if quiet {
		return nil
	}
	clients, err := w.nats.Connz(&server.ConnzOptions{Username: true, Limit: maxClients})
	if err != nil {
		return err
	}
	seen := make(map[uint64]client)
	for _, c := range clients.Conns {
		if !w.door.isLimited(c.AuthorizedUser) {
			continue
		}
		sent, took := flow{c.InMsgs, c.InBytes}, now.Sub(c.Start)
		before, known := w.clients[c.Cid]
		if known {
			took = now.Sub(w.since)
		}
		added := flow{sent.messages - before.sent.messages, sent.bytes - before.sent.bytes}
		level := w.limit.drain(flow{before.level.messages + added.messages, before.level.bytes + added.bytes}, took)
		if !w.limit.overflows(level) {
			seen[c.Cid] = client{sent, level}
			continue
		}
		w.door.ban(c.IP, now)
		w.log.warn("flood "+c.IP, "disconnecting a client that sends too much; address banned", "address", c.IP, "as", c.AuthorizedUser,
			"name", c.Name, "messages", added.messages, "bytes", added.bytes, "seconds", took.Seconds(), "ban", w.door.banTime)
		_ = w.nats.DisconnectClientByID(c.Cid) // it may be gone by itself
	}
	w.clients, w.since = seen, now
	return nil
}
