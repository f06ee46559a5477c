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

// mostFlow is what a client with limited access may send in a second. One that waits
// for each confirmation, as Publish does, stays far below; large messages are sent in
// parts, and the largest is half of these bytes.
var mostFlow = flow{20_000, 2 * MaxMessage}

// floods reports whether what came since before is more than most for each second.
func (f flow) floods(before, most flow, took time.Duration) bool {
	perSecond := func(n int64) float64 { return float64(n) / took.Seconds() }
	return perSecond(f.messages-before.messages) > float64(most.messages) || perSecond(f.bytes-before.bytes) > float64(most.bytes)
}

// floodWatch disconnects clients with limited access that flood. They would fill
// streams, and have others wait.
type floodWatch struct {
	nats *server.Server
	door *doorkeeper
	log  *serverLog
	most flow

	total  flow
	looked time.Time
	each   map[uint64]flow // clients, since looked; nil: not known, as nobody can flood
}

// look is called again and again. All clients are only looked at when there is so much
// traffic that one of them may flood.
func (w *floodWatch) look(now time.Time) error {
	all, err := w.nats.Varz(nil)
	if err != nil {
		return err
	}
	total, took := flow{all.InMsgs, all.InBytes}, now.Sub(w.looked)
	before, each := w.total, w.each
	w.total, w.looked, w.each = total, now, nil
	if took <= 0 || !total.floods(before, w.most, took) {
		return nil
	}
	clients, err := w.nats.Connz(&server.ConnzOptions{Username: true, Limit: maxClients})
	if err != nil {
		return err
	}
	w.each = make(map[uint64]flow)
	for _, c := range clients.Conns {
		if !w.door.limited(c.AuthorizedUser) {
			continue
		}
		now, before := flow{c.InMsgs, c.InBytes}, each[c.Cid]
		// Of a client that was not seen before all that came is new, in this time
		// or a longer one.
		if each == nil && time.Since(c.Start) > took || !now.floods(before, w.most, took) {
			w.each[c.Cid] = now
			continue
		}
		w.expel(c, now.messages-before.messages, now.bytes-before.bytes, took)
	}
	return nil
}

func (w *floodWatch) expel(c *server.ConnInfo, messages, bytes int64, took time.Duration) {
	w.door.ban(c.IP, time.Now())
	w.log.warn("flood "+c.IP, "a client sends too much and is disconnected; others of its address may not come for a while", "address", c.IP, "as", c.AuthorizedUser,
		"name", c.Name, "messages", messages, "bytes", bytes, "seconds", took.Seconds(), "wait", w.door.banTime)
	_ = w.nats.DisconnectClientByID(c.Cid) // it may be gone by itself
}
