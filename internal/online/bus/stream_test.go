package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestStreamPreservesOrderAndData(t *testing.T) {
	noLeaks(t)
	srv := startServer(t, ServerOptions{})
	s := openStream(t, join(t, srv), StreamOptions{})
	c := consume(t, openStream(t, join(t, srv), StreamOptions{}))
	limit := maxPayload - headerRoom
	sizes := []int{0, 1, limit, limit + 1, 20 << 20}
	for i, size := range sizes {
		publish(t, s, fmt.Sprint(i), largeText(size))
	}
	got := fetch(t, c, len(sizes))
	wantIDs(t, got, "0 1 2 3 4")
	for i, m := range got {
		if !bytes.Equal(m.Data, largeText(sizes[i])) {
			t.Errorf("sent %d bytes, got %d", sizes[i], len(m.Data))
		}
		if m.Subject != "s.x" || m.Time.IsZero() || i > 0 && m.Seq <= got[i-1].Seq {
			t.Errorf("message %d has subject %s, time %v and sequence %d", i, m.Subject, m.Time, m.Seq)
		}
	}
	ack(t, c, got[len(got)-1])
	wantPending(t, s, 0)
	wantNothing(t, c)
}

func TestStreamSurvivesServerRestart(t *testing.T) {
	t.Parallel()
	dir, listen := t.TempDir(), reserveAddress(t)
	srv := startServer(t, ServerOptions{Dir: dir, Listen: listen})
	client := join(t, srv)
	s := openStream(t, client, StreamOptions{})
	publishSome(t, s, 3)
	publish(t, s, "big", largeText(10<<20))
	c := consume(t, s)
	ack(t, c, fetch(t, c, 1)[0])
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the client notices", func() bool { return !client.Connected() })
	if err := s.Publish(t.Context(), "s.x", "4", nil); !errors.Is(err, ErrNotConnected) {
		t.Errorf("published: %v, want ErrAway", err)
	}
	if _, err := c.Fetch(t.Context(), 1, 10*time.Millisecond); !errors.Is(err, ErrNotConnected) {
		t.Errorf("fetched: %v, want ErrAway", err)
	}
	startServer(t, ServerOptions{Dir: dir, Listen: listen})
	wantConnected(t, client)
	publish(t, s, "1", nil) // the server remembers the id
	publish(t, s, "last", nil)
	got := fetch(t, c, 4)
	wantIDs(t, got, "1 2 big last")
	if !bytes.Equal(got[2].Data, largeText(10<<20)) {
		t.Error("the big message has changed")
	}
	ack(t, c, got[3])
	wantPending(t, s, 0)
}

func TestSameIDIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	big := largeText(3 << 20)
	for range 3 {
		publish(t, s, "small", nil)
		publish(t, s, "big", big)
	}
	c := consume(t, s)
	got := fetch(t, c, 2)
	wantIDs(t, got, "small big")
	ack(t, c, got[1])
	publish(t, s, "small", nil)
	publish(t, s, "big", big)
	wantNothing(t, c)
	wantPending(t, s, 0)
}

func TestFullStreamRejectsMessages(t *testing.T) {
	t.Parallel()
	const limit = 512 << 10
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{MaxBytes: limit})
	f := func(id string, size int, want error) {
		t.Helper()
		if err := s.Publish(soon(t), "s.x", id, bytesOf(1, size)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", id, err, want)
		}
	}
	f("a", 100<<10, nil)
	f("never", limit+1, ErrTooLarge)
	f("incompressible", maxPayload+1, ErrTooLarge)
	f("b", 300<<10, nil)
	f("c", 200<<10, ErrFull)
	f("d", 50<<10, nil)
	c := consume(t, s)
	got := fetch(t, c, 3)
	wantIDs(t, got, "a b d")
	wantNothing(t, c)
	ack(t, c, got[2])
	f("c", 200<<10, nil)
	wantIDs(t, fetch(t, c, 1), "c")
}

func TestStreamIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	c := join(t, srv)
	if _, err := c.Stream(soon(t), StreamOptions{Name: "S"}); err == nil {
		t.Error("attached to a stream that does not exist")
	}
	publishSome(t, openStream(t, c, StreamOptions{MaxBytes: 1 << 20}), 1)
	again, err := c.Stream(soon(t), StreamOptions{Name: "S"})
	if err != nil {
		t.Fatal(err)
	}
	wantPending(t, again, 1)
	wantPending(t, openStream(t, c, StreamOptions{MaxBytes: 2 << 20}), 1)
	info, err := again.info(soon(t))
	if err != nil || info.Config.MaxBytes != 2<<20 {
		t.Errorf("the limit is %d, error %v", info.Config.MaxBytes, err)
	}
	for range 2 {
		if err := c.DeleteStream(soon(t), "S"); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := again.Pending(soon(t)); err == nil {
		t.Error("a deleted stream has messages pending")
	}
	for _, opt := range []StreamOptions{{}, {Name: "a.b"}, {Name: "a b"}} {
		if _, err := c.Stream(soon(t), opt); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}

func TestConcurrentStreamCreation(t *testing.T) {
	t.Parallel()
	srv := startServer(t, ServerOptions{})
	var all sync.WaitGroup
	for i := range 16 {
		c := join(t, srv)
		all.Go(func() {
			for round := range 10 {
				opt := StreamOptions{Name: fmt.Sprint("S", round), Subjects: []string{fmt.Sprint("s", round)}, MaxBytes: 1<<20 + int64(i%2)}
				if _, err := c.Stream(soon(t), opt); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestPublishRejectsInvalidNames(t *testing.T) {
	t.Parallel()
	s := openStream(t, join(t, startServer(t, ServerOptions{})), StreamOptions{})
	f := func(subject, id, want string) {
		t.Helper()
		wantText(t, s.Publish(soon(t), subject, id, nil), want)
	}
	f("s.x", "", "id is empty")
	f("s.x", "a b", "without spaces")
	f("", "a", "subject is empty")
	f("elsewhere", "a", "no stream takes the subject")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Publish(ctx, "s.x", "late", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestTemporaryErrors(t *testing.T) {
	c := join(t, startServer(t, ServerOptions{}))
	s := openStream(t, c, StreamOptions{})
	if err := c.DeleteStream(soon(t), s.name); err != nil {
		t.Fatal(err)
	}
	f := func(want bool, err error) {
		t.Helper()
		if IsTemporary(err) != want {
			t.Errorf("%v: temporary: %t, want %t", err, !want, want)
		}
	}
	f(false, s.Publish(soon(t), "s.x", "id", nil)) // the stream is gone for good
	f(true, fmt.Errorf("publish: %w", jetstream.ErrNoStreamResponse))
	f(true, &jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"})
	f(true, fmt.Errorf("request: %w", ErrNotConnected))
	f(true, context.DeadlineExceeded)
	f(true, &jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"})
	f(true, &jetstream.APIError{Code: 400, ErrorCode: codeNoPeers, Description: "no suitable peers for placement, peer offline"})
	f(false, &jetstream.APIError{Code: 400, ErrorCode: codeNoPeers, Description: "no suitable peers for placement, insufficient storage"})
	f(false, &jetstream.APIError{Code: 500, ErrorCode: codeNoStorage})
	f(false, ErrDenied)
	f(false, ErrTooLarge)
}

// TestOutdatedAnswersAreIgnored pretends that the server that answers was cut off before the last message, as a former
// leader of a cluster may be: it must not appear as if all messages were acknowledged.
func TestOutdatedAnswersAreIgnored(t *testing.T) {
	noLeaks(t)
	c := join(t, startServer(t, ServerOptions{}))
	s := openStream(t, c, StreamOptions{})
	s.notePublished(1)
	if _, err := s.infoOnce(soon(t)); !errors.Is(err, errOutdated) {
		t.Errorf("the state has error %v, want %v", err, errOutdated)
	}
	done := make(chan error, 1)
	go func() { done <- s.WaitAcked(soon(t)) }()
	other := openStream(t, c, StreamOptions{})
	publishSome(t, other, 1) // the server learns of the message
	consumer := consume(t, other)
	select {
	case err := <-done:
		t.Fatalf("WaitAcked returned %v before the message was acknowledged", err)
	default:
	}
	ack(t, consumer, fetch(t, consumer, 1)[0])
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantPending(t, s, 0)
}
