package bus

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	leastBatch = 64       // messages that are asked for at once
	mostBatch  = 512      //
	batchBytes = 16 << 20 // far less than what makes a server drop a client that reads slowly
	pullGrace  = time.Second
	checkEvery = 2 * time.Second // whether anything was lost on the way, when nothing comes
)

// feed reads a stream from a position on, in order and without gaps. The consumer
// that it makes at the server only delivers: what was read is deleted from the
// stream when it is done with, so nothing depends on what the server thinks was
// delivered. When anything was lost on the way, as with the connection, the feed
// makes a new one that begins where it stopped. It must not be shared.
type feed struct {
	owner
	next    uint64          // the first sequence to read
	session context.Context // in which the server's consumer was made; ended: make a new one
	inbox   string
	sub     *nats.Subscription
	in      chan *nats.Msg
	count   uint64    // messages that the server's consumer has delivered
	pulls   int       // that were sent
	left    int       // messages that the last pull may still bring
	over    time.Time // when it brings none any more
	checked time.Time
	made    int // consumers at the server, for tests
}

// ended is a context that is over.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// item is a message of the stream, whole or a part.
type item struct {
	*nats.Msg
	seq  uint64
	time time.Time
}

// read returns the next item, or false when waiting ends before there is one. When
// that is for want of a connection, or of a server that answers, the error says so.
// What has begun goes on until ctx ends.
func (f *feed) read(ctx, waiting context.Context, want int) (item, bool, error) {
	for waiting.Err() == nil {
		if f.session.Err() != nil {
			if err := f.begin(ctx, waiting, f.renew); err != nil {
				return item{}, false, err
			}
		}
		if f.left <= 0 || time.Now().After(f.over) {
			if err := f.pull(waiting, want); err != nil {
				f.session = ended
				continue
			}
		}
		if m := f.receive(waiting); m != nil {
			if it, ok := f.look(ctx, m); ok {
				return it, true, nil
			}
		}
	}
	return item{}, false, nil
}

// receive returns what came, or nil when nothing did for a reason that the caller
// sees.
func (f *feed) receive(ctx context.Context) *nats.Msg {
	select {
	case m := <-f.in:
		return m
	default:
	}
	over := time.NewTimer(time.Until(f.over))
	defer over.Stop()
	select {
	case m := <-f.in:
		return m
	case <-f.session.Done():
	case <-over.C:
	case <-ctx.Done():
		f.check(ctx)
	}
	return nil
}

// begin makes a consumer at the server, by take or renew.
func (f *feed) begin(ctx, waiting context.Context, claim func(context.Context, uint64) error) error {
	f.stop()
	conn := f.stream.conn
	err := conn.settle(waiting, func(context.Context) error {
		return conn.call(ctx, func(ctx context.Context) error {
			f.session = conn.current()
			return claim(ctx, f.next)
		})
	})
	if err == nil {
		f.in = make(chan *nats.Msg, 4*mostBatch)
		f.inbox = conn.nc.NewInbox()
		f.sub, err = conn.nc.ChanSubscribe(f.inbox+".*", f.in)
	}
	if err != nil {
		f.session = ended
		return err
	}
	f.count, f.left, f.checked = 0, 0, time.Now()
	f.made++
	return nil
}

func (f *feed) stop() {
	if f.sub != nil {
		_ = f.sub.Unsubscribe() // it may be gone with the connection
		f.sub = nil
	}
}

// pull asks for messages.
func (f *feed) pull(ctx context.Context, want int) error {
	wait := callTimeout
	if end, ok := ctx.Deadline(); ok {
		wait = max(time.Until(end), time.Millisecond)
	}
	f.left = min(max(want, leastBatch), mostBatch)
	f.over = time.Now().Add(wait + pullGrace)
	req, err := json.Marshal(struct {
		Batch    int           `json:"batch"`
		MaxBytes int           `json:"max_bytes"`
		Expires  time.Duration `json:"expires"`
	}{f.left, batchBytes, wait})
	if err != nil {
		return err
	}
	f.pulls++
	return f.stream.conn.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+f.stream.name+"."+f.name, f.answer(), req)
}

// answer is the subject to which what is said about the last pull comes.
func (f *feed) answer() string { return f.inbox + "." + strconv.Itoa(f.pulls) }

// look looks at what came. It is false for what is no new message.
func (f *feed) look(ctx context.Context, m *nats.Msg) (item, bool) {
	if status := m.Header.Get("Status"); status != "" && m.Reply == "" {
		if m.Subject == f.answer() {
			f.left = 0 // the pull is over, for one reason or another
		}
		switch {
		case status == "503":
			f.absent(ctx)
		case m.Header.Get("Description") == "Consumer Deleted":
			f.session = ended
		}
		return item{}, false
	}
	meta, err := m.Metadata()
	if err != nil {
		return item{}, false // not from the stream
	}
	f.left--
	seq, count := meta.Sequence.Stream, meta.Sequence.Consumer
	if seq < f.next {
		return item{}, false // again, after another server took over
	}
	if count != f.count+1 {
		f.session = ended
		return item{}, false
	}
	f.count, f.next, f.checked = count, seq+1, time.Now()
	return item{Msg: m, seq: seq, time: meta.Timestamp}, true
}

// absent is called when nobody took the pull: the server's consumer is gone, or in
// a cluster it is not there yet.
func (f *feed) absent(ctx context.Context) {
	err := f.stream.conn.call(ctx, func(ctx context.Context) error {
		_, err := f.stream.nats.Consumer(ctx, f.name)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		f.session = ended
		return
	}
	select {
	case <-time.After(settleTick):
	case <-ctx.Done():
	}
}

// check finds out, when nothing has come for some time, whether the last messages
// were lost.
func (f *feed) check(ctx context.Context) {
	if time.Since(f.checked) < checkEvery || len(f.in) > 0 {
		return
	}
	f.checked = time.Now()
	var info *jetstream.ConsumerInfo
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pullGrace)
	defer cancel()
	err := f.stream.conn.call(ctx, func(ctx context.Context) error {
		cons, err := f.stream.nats.Consumer(ctx, f.name)
		if err == nil {
			info = cons.CachedInfo()
		}
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) || err == nil && info.Delivered.Consumer > f.count && len(f.in) == 0 {
		f.session = ended
	}
}
