package bus

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	floodLook = 500 * time.Millisecond // how often
	banTime   = 10 * time.Second
)

// flow is what a client sends.
type flow struct{ messages, bytes int64 }

// fill is how much a client with limited access may send: so much in a second for as
// long as it likes, and so much more at once. One that waits for each confirmation, as
// Publish does, stays below; the largest message is sent in parts.
type fill struct{ each, more flow }

var usualFill = fill{each: flow{10_000, 32 << 20}, more: flow{20_000, MaxMessage + 64<<20}}

// after is what is left of a level after a time.
func (f fill) after(level flow, took time.Duration) flow {
	drained := func(level, each int64) int64 { return max(0, level-int64(float64(each)*took.Seconds())) }
	return flow{drained(level.messages, f.each.messages), drained(level.bytes, f.each.bytes)}
}

func (f fill) overflows(level flow) bool {
	return level.messages > f.more.messages || level.bytes > f.more.bytes
}

// floodWatch disconnects clients with limited access that flood. They would fill
// streams, and have others wait.
type floodWatch struct {
	nats *server.Server
	door *doorkeeper
	log  *serverLog
	most fill

	total  flow
	looked time.Time
	known  map[uint64]client
	since  time.Time // when known was made
}

// client is what is known of one.
type client struct {
	sent  flow // in all
	level flow // what it sent too much, so far
}

// look is called again and again. All clients are only looked at when there is so much
// traffic that one of them may flood.
func (w *floodWatch) look(now time.Time) error {
	all, err := w.nats.Varz(nil)
	if err != nil {
		return err
	}
	total := flow{all.InMsgs, all.InBytes}
	sent := flow{total.messages - w.total.messages, total.bytes - w.total.bytes}
	quiet := w.most.after(sent, now.Sub(w.looked)) == flow{}
	w.total, w.looked = total, now
	if quiet {
		return nil
	}
	clients, err := w.nats.Connz(&server.ConnzOptions{Username: true, Limit: maxClients})
	if err != nil {
		return err
	}
	known := make(map[uint64]client)
	for _, c := range clients.Conns {
		if !w.door.limited(c.AuthorizedUser) {
			continue
		}
		sent, took := flow{c.InMsgs, c.InBytes}, now.Sub(c.Start)
		before, seen := w.known[c.Cid]
		if seen {
			took = now.Sub(w.since)
		}
		level := w.most.after(flow{before.level.messages + sent.messages - before.sent.messages, before.level.bytes + sent.bytes - before.sent.bytes}, took)
		if !w.most.overflows(level) {
			known[c.Cid] = client{sent, level}
			continue
		}
		w.door.ban(c.IP, now)
		w.log.warn("flood "+c.IP, "a client sends too much and is disconnected; others of its address may not come for a while", "address", c.IP, "as", c.AuthorizedUser,
			"name", c.Name, "messages", sent.messages-before.sent.messages, "bytes", sent.bytes-before.sent.bytes, "seconds", took.Seconds(), "wait", w.door.banTime)
		_ = w.nats.DisconnectClientByID(c.Cid) // it may be gone by itself
	}
	w.known, w.since = known, now
	return nil
}
