package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// vanish ends a client without a farewell, as when its process dies.
func vanish(c *Conn) { c.nc.Close() }

func TestNewConsumerGetsWhatTheLastDidNotAcknowledge(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	publishSome(t, s, 6)
	dead := join(t, srv)
	first := consume(t, openStream(t, dead, StreamOptions{}))
	got := fetch(t, first, 5)
	wantIDs(t, got, "0 1 2 3 4")
	ack(t, first, got[1])
	vanish(dead)
	began := time.Now()
	second := consume(t, s)
	wantIDs(t, fetch(t, second, 4), "2 3 4 5")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("taking over took %v", took)
	}
}

func TestAckIsForAllBefore(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	publishSome(t, s, 5)
	c := consume(t, s)
	got := fetch(t, c, 4)
	wantPending(t, s, 5)
	ack(t, c, got[2])
	wantPending(t, s, 2)
	ack(t, c, got[0]) // again
	wantPending(t, s, 2)
	c.Close()
	c.Close()
	if _, err := c.Fetch(t.Context(), 1, time.Second); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed consumer says %v, want ErrClosed", err)
	}
	wantIDs(t, fetch(t, consume(t, s), 2), "3 4")
}

func TestTheOneWhoWasReplacedLearnsOfIt(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	publishSome(t, s, 2)
	first := consume(t, openStream(t, join(t, srv), StreamOptions{}))
	got := fetch(t, first, 2)
	second := consume(t, s)
	if _, err := first.Fetch(soon(t), 1, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("fetched: %v, want ErrTaken", err)
	}
	if err := first.Ack(soon(t), got[1]); !errors.Is(err, ErrTaken) {
		t.Errorf("acknowledged: %v, want ErrTaken", err)
	}
	wantIDs(t, fetch(t, second, 2), "0 1")
	if _, err := s.Consumer(soon(t), "other"); err == nil {
		t.Error("a stream has consumers of two names")
	}
}

func TestWhoTakesOverAgainAfterHalfATakeoverIsNotItsOwnRival(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	publishSome(t, s, 2)
	dead := join(t, srv)
	consume(t, openStream(t, dead, StreamOptions{}))
	vanish(dead)
	o := owner{stream: s, durable: "reader"}
	for range 3 { // the server dies before it has answered, and is asked again
		if err := o.take(soon(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	o.name = ""
	if all, err := o.others(soon(t)); err != nil || len(all) != 1 {
		t.Errorf("consumers %v, %v; want one", all, err)
	}
}

func TestOnlyOneOfManyConsumersStays(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	const n = 5
	type attempt struct {
		c   *Consumer
		err error
	}
	made := make(chan attempt, n)
	for range n {
		go func() {
			c, err := s.Consumer(soon(t), "reader")
			made <- attempt{c, err}
		}()
	}
	var all []*Consumer
	for range n {
		switch a := <-made; {
		case a.err == nil:
			all = append(all, a.c)
			t.Cleanup(a.c.Close)
		case !errors.Is(a.err, ErrTaken):
			t.Error(a.err)
		}
	}
	publishSome(t, s, 1)
	owners := 0
	for _, c := range all {
		if got, err := c.Fetch(soon(t), 1, time.Second); len(got) == 1 {
			owners++
		} else if !errors.Is(err, ErrTaken) {
			t.Errorf("got nothing and %v", err)
		}
	}
	if owners != 1 {
		t.Errorf("%d of %d consumers got the message", owners, len(all))
	}
}

// sendPart publishes a single part of a message, as a publisher does that dies
// before the next.
func sendPart(tb testing.TB, s *Stream, id string, data []byte, index int) {
	tb.Helper()
	parts, err := s.parts(soon(tb), "s.x", id, data)
	if err == nil {
		_, err = s.conn.js.PublishMsg(soon(tb), parts[index])
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func TestInterleavedPartsSurviveAcks(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s, other := openStream(t, join(t, srv), StreamOptions{}), openStream(t, join(t, srv), StreamOptions{})
	a, b := bytesOf(1, 2<<20), bytesOf(2, 2<<20) // three parts each
	c := consume(t, s)
	sendPart(t, s, "a", a, 0)
	publish(t, s, "before", nil)
	sendPart(t, other, "b", b, 0)
	sendPart(t, s, "a", a, 1)
	publish(t, s, "between", nil)
	sendPart(t, s, "a", a, 2)
	got := fetch(t, c, 3)
	wantIDs(t, got, "before between a")
	ack(t, c, got[0])
	wantPending(t, s, 5)
	ack(t, c, got[2])
	wantPending(t, s, 1)

	sendPart(t, other, "b", b, 1)
	publish(t, s, "after", nil)
	c = consume(t, s) // as after a crash
	wantIDs(t, fetch(t, c, 1), "after")
	sendPart(t, other, "b", b, 2)
	got = fetch(t, c, 1)
	wantIDs(t, got, "b")
	if !bytes.Equal(got[0].Data, b) {
		t.Error("b has changed")
	}
	ack(t, c, got[0])
	wantPending(t, s, 0)
	if c.Lost() != 0 {
		t.Errorf("%d messages were lost", c.Lost())
	}
}

func TestLargeMessagesOfManyPublishers(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	c := consume(t, s)
	c.ledger.maxHeld = 3 << 20 // the rest is read again when a message is whole
	const publishers, each = 4, 3
	for p := range publishers {
		mine := openStream(t, join(t, srv), StreamOptions{})
		go func() {
			for i := range each {
				if err := mine.Publish(soon(t), "s.x", fmt.Sprintf("%d-%d", p, i), bytesOf(uint64(p*each+i), 3<<20+i)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	next := make(map[int]int)
	for range publishers * each {
		m := fetch(t, c, 1)[0]
		var p, i int
		if _, err := fmt.Sscanf(m.ID, "%d-%d", &p, &i); err != nil || i != next[p] {
			t.Errorf("got %s, want number %d of this publisher", m.ID, next[p])
		}
		next[p]++
		if !bytes.Equal(m.Data, bytesOf(uint64(p*each+i), 3<<20+i)) {
			t.Errorf("%s has changed", m.ID)
		}
		ack(t, c, m)
	}
	wantPending(t, s, 0)
	if c.ledger.held != 0 || c.feed.made != 1 {
		t.Errorf("%d bytes are held, and %d consumers were made at the server", c.ledger.held, c.feed.made)
	}
}

func TestMessageThatNeverBecomesWholeIsGivenUp(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{Dedupe: 100 * time.Millisecond})
	data := bytesOf(1, 3<<20)
	c := consume(t, s)
	patience := c.ledger.patience
	c.ledger.patience = time.Hour
	sendPart(t, s, "a", data, 0)
	sendPart(t, s, "a", data, 1)
	wantNothing(t, c)
	wantPending(t, s, 2)
	c.ledger.patience = patience
	eventually(t, "the message is given up", func() bool {
		wantNothing(t, c)
		return c.Lost() == 1
	})
	c.ledger.patience = time.Hour // a slow machine is given all the time
	wantPending(t, s, 0)
	publish(t, s, "a", data)
	got := fetch(t, c, 1)
	if ack(t, c, got[0]); !bytes.Equal(got[0].Data, data) {
		t.Error("the message has changed")
	}
	wantPending(t, s, 0)
}

func TestPublisherThatTriesAgainCompletesItsMessage(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	data := bytesOf(1, 3<<20)
	c := consume(t, s)
	sendPart(t, s, "a", data, 0)
	sendPart(t, s, "a", data, 1)
	wantNothing(t, c)
	publish(t, s, "a", data)
	got := fetch(t, c, 1)
	if ack(t, c, got[0]); !bytes.Equal(got[0].Data, data) {
		t.Error("the message has changed")
	}
	wantPending(t, s, 0)
	if c.Lost() != 0 {
		t.Errorf("%d messages were lost", c.Lost())
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	c := consume(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Fetch(ctx, 1, patience); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	publishSome(t, s, 1)
	wantIDs(t, fetch(t, c, 1), "0")
}

func TestWhatWasDeletedWithItsStreamIsAcknowledged(t *testing.T) {
	t.Parallel()
	c := join(t, startServer(t, ServerOptions{}))
	s := openStream(t, c, StreamOptions{})
	reader := consume(t, s)
	publishSome(t, s, 3)
	got := fetch(t, reader, 3)
	if err := c.DeleteStream(soon(t), "S"); err != nil {
		t.Fatal(err)
	}
	ack(t, reader, got[2])
}
